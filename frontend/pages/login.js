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
  const show = h("button", { type: "button", class: "plain", "aria-pressed": "false", onclick: () => shown(secret.type === "password") }, "Show password");
  const shown = (plain) => {
    secret.type = plain ? "text" : "password";
    show.setAttribute("aria-pressed", String(plain));
  };

  async function signIn() {
    // A browser that keeps passwords knows the field by its type.
    shown(false);
    try {
      await api.signIn(name.value, secret.value);
    } catch (fault) {
      if (fault.status === 401) secret.select();
      throw fault.status === 429 && fault.retryAfter ? new Error(`Too many failed tries. Try again in ${fault.retryAfter} s.`) : fault;
    }
    await shell.signedIn();
  }

  const view = h(
    "form",
    {
      class: "panel login",
      onsubmit(event) {
        event.preventDefault();
        busy(button, line, signIn);
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
