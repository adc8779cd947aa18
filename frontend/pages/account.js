// One's own password.

import { api } from "../api.js";
import { announce, fill, h } from "../dom.js";
import { busy, field, problem } from "../parts/bits.js";

export default function account(shell) {
  const input = (autocomplete) => h("input", { type: "password", required: true, autocomplete });
  const now = input("current-password");
  const fresh = input("new-password");
  const again = input("new-password");
  const line = problem();
  const note = h("div", { class: "slot", role: "status" });
  const save = h("button", { type: "submit", class: "main" }, "Change the password");
  const form = h(
    "form",
    {
      class: "panel",
      onsubmit(event) {
        event.preventDefault();
        fill(note);
        busy(save, line, async () => {
          if (fresh.value !== again.value) throw new Error("The two new passwords differ.");
          await api.changePassword(now.value, fresh.value);
          now.value = fresh.value = again.value = "";
          fill(note, h("div", { class: "note good" }, "Changed. Your other sessions have ended."));
          announce("Changed.");
        });
      },
    },
    h("input", { type: "text", name: "username", autocomplete: "username", value: shell.me.username, hidden: true, readonly: true }),
    field("Password now", now),
    field("New password", fresh),
    field("New password again", again),
    line,
    save,
  );
  return {
    title: "Account",
    view: h("div", {}, h("h1", {}, "Account"), h("p", {}, "You are ", h("bdi", {}, shell.me.username), `, ${shell.me.role}.`), note, form),
  };
}
