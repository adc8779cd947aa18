// Dialogs: native ones, which trap the focus and give it back.

import { h } from "../dom.js";
import { busy, problem } from "./bits.js";

/** Open a dialog with this heading; `build(close)` gives what stands in it. Ends with what close got.
 *  `firm` keeps Escape and the backdrop from closing it. */
export function open(heading, build, { firm = false, wide = false } = {}) {
  return new Promise((done) => {
    const dialog = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": "dialog-heading" });
    const before = document.activeElement;
    const close = (value) => {
      dialog.close();
      dialog.remove();
      if (before && before.isConnected) before.focus();
      done(value);
    };
    dialog.append(h("h2", { id: "dialog-heading", tabindex: -1 }, heading), build(close));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      if (!firm) close(null);
    });
    // Chromium closes at a second Escape whatever was prevented.
    dialog.addEventListener("close", () => dialog.isConnected && (firm ? dialog.showModal() : close(null)));
    dialog.addEventListener("mousedown", (event) => {
      if (!firm && event.target === dialog) close(null);
    });
    document.body.append(dialog);
    dialog.showModal();
    if (!dialog.querySelector("[autofocus]")) dialog.querySelector("h2").focus();
  });
}

/** Ask before something is done; `work(reason)` does it, its failure stays in the dialog. */
export function confirm(heading, text, verb, work, { reason = false, danger = true } = {}) {
  return open(heading, (close) => {
    const line = problem();
    const why = reason && h("textarea", { rows: 2, maxlength: 1000, "aria-label": "Reason (optional)", placeholder: "Reason (optional)" });
    const button = h("button", { type: "submit", class: danger ? "danger" : "main" }, verb);
    return h(
      "form",
      {
        onsubmit(event) {
          event.preventDefault();
          busy(button, line, async () => {
            await work(why ? why.value.trim() : undefined);
            close(true);
          });
        },
      },
      h("p", {}, text),
      why,
      line,
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
        button,
      ),
    );
  });
}
