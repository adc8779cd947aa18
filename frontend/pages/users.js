// Accounts, for admins.

import { api } from "../api.js";
import { announce, fill, h } from "../dom.js";
import { badge, busy, failed, field, problem, spinner, when } from "../parts/bits.js";
import { confirm, open } from "../parts/dialog.js";

const ROLES = ["contributor", "reviewer", "admin"];

export default function users(shell) {
  const list = h("div", {}, spinner());

  async function load() {
    try {
      const everybody = await api.users();
      fill(list, h("ul", { class: "rows" }, everybody.map(row)));
    } catch (fault) {
      fill(list, failed(fault, load));
    }
  }

  function row(user) {
    const line = problem();
    // Set by a button: arrow keys go through all roles on the way to the one that is meant.
    const role = h(
      "select",
      { "aria-label": `Role of ${user.username}`, onchange: () => { set.hidden = role.value === user.role; } },
      ROLES.map((value) => h("option", { value, selected: value === user.role }, value)),
    );
    const set = h("button", { type: "button", class: "main", hidden: true, onclick: () => busy(set, line, change) }, "Set the role");
    async function change() {
      try {
        await api.changeUser(user.username, { role: role.value });
        announce(`${user.username} is ${role.value} now.`);
        user.role = role.value;
      } finally {
        role.value = user.role;
        role.focus();
        set.hidden = true;
      }
    }
    async function shut() {
      const done = await confirm(
        user.disabled ? `Let ${user.username} in again?` : `Shut ${user.username} out?`,
        user.disabled ? "The account and its keys work again." : "The account and its keys stop working at once. What it did stays.",
        user.disabled ? "Let in" : "Shut out",
        async () => {
          await api.changeUser(user.username, { disabled: !user.disabled });
          await load();
        },
        { danger: !user.disabled },
      );
      if (done) [...list.querySelectorAll("li")].find((each) => each.dataset.name === user.username)?.querySelector(".shut").focus();
    }
    return h(
      "li",
      { "data-name": user.username },
      h("p", { class: "title" }, h("bdi", {}, user.username), user.username === shell.me.username && h("span", { class: "quiet" }, "(you)"), user.disabled && badge("disabled")),
      h(
        "div",
        { class: "row wrap" },
        role,
        set,
        h("button", { type: "button", onclick: () => password(user) }, "Set a password"),
        h("button", { type: "button", class: "shut", onclick: shut }, user.disabled ? "Let in" : "Shut out"),
        h("span", { class: "quiet" }, "since ", when(user.created_at)),
      ),
      line,
    );
  }

  const name = h("input", { required: true, maxlength: 64, autocomplete: "off" });
  const secret = h("input", { type: "password", required: true, autocomplete: "new-password" });
  const role = h("select", {}, ROLES.map((value) => h("option", { value }, value)));
  const line = problem();
  const make = h("button", { type: "submit", class: "main" }, "Make the account");
  const form = h(
    "form",
    {
      class: "panel",
      onsubmit(event) {
        event.preventDefault();
        busy(make, line, async () => {
          const user = await api.makeUser({ username: name.value, password: secret.value, role: role.value });
          announce(`${user.username} can sign in now.`);
          name.value = secret.value = "";
          await load();
        });
      },
    },
    h("h2", {}, "A new account"),
    h("div", { class: "columns" }, field("Name", name), field("Password", secret), field("Role", role)),
    line,
    make,
  );
  load();
  return { title: "Users", view: h("div", {}, h("h1", {}, "Users"), form, h("h2", {}, "Accounts"), list) };
}

function password(user) {
  return open(`A password for ${user.username}`, (close) => {
    const secret = h("input", { type: "password", required: true, autocomplete: "new-password", autofocus: true });
    const line = problem();
    const button = h("button", { type: "submit", class: "main" }, "Set it");
    return h(
      "form",
      {
        onsubmit(event) {
          event.preventDefault();
          busy(button, line, async () => {
            await api.changeUser(user.username, { password: secret.value });
            announce("The password is set.");
            close(true);
          });
        },
      },
      h("p", {}, "Sessions of this account end at once; its keys go on working."),
      // For who keeps passwords: whose it is.
      h("input", { type: "text", autocomplete: "username", value: user.username, hidden: true, readonly: true }),
      field("New password", secret),
      line,
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close(null) }, "Cancel"), button),
    );
  });
}
