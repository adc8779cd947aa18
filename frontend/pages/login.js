// Signing in. What was wrong is told apart: a wrong password, too many tries, a server that is away.

import { api } from "../api.js";
import { h } from "../dom.js";
import { busy, field, problem } from "../parts/bits.js";
import { mark } from "../parts/mark.js";

export default function login(shell, { query }) {
  const name = h("input", { name: "username", required: true, autofocus: true, autocomplete: "username", autocapitalize: "none", spellcheck: "false" });
  const secret = h("input", { name: "password", type: "password", required: true, autocomplete: "current-password" });
  const line = problem();
  const button = h("button", { type: "submit", class: "main" }, "Sign in");
  const show = h("button", {
    type: "button",
    class: "plain",
    "aria-pressed": "false",
    onclick() {
      const shown = secret.type === "password";
      secret.type = shown ? "text" : "password";
      show.setAttribute("aria-pressed", String(shown));
    },
  }, "Show password");
  const view = h(
    "form",
    {
      class: "panel login",
      onsubmit(event) {
        event.preventDefault();
        busy(button, line, async () => {
          await api.signIn(name.value, secret.value);
          await shell.signedIn(query.next);
        });
      },
    },
    h("h1", {}, mark(), "Sign in to cq"),
    query.why === "ended" && h("p", { class: "note mild" }, "Your session has ended. Sign in again to go on where you were."),
    field("Username", name),
    field("Password", secret),
    show,
    line,
    button,
  );
  return { title: "Sign in", view };
}
