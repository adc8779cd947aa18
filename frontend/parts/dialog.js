// Dialogs: native ones, which trap the focus; it goes back to where it came from.

import { focusOn, h } from "../dom.js";
import { busy, problem } from "./bits.js";

/** Open a dialog with this heading; `build(close)` gives what stands in it. Ends with what close got,
 *  null if it was dismissed: by Escape, the backdrop or another page. `firm` dialogs stay for all these. */
export function open(heading, build, { firm = false, wide = false } = {}) {
  return new Promise((done) => {
    const dialog = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": "dialog-heading" });
    let touched = false;
    const end = (value) => {
      if (!dialog.isConnected) return;
      removeEventListener("hashchange", leave);
      dialog.close();
      dialog.remove();
      // The browser gives the focus back to what opened it; if that is gone, the page gets it.
      if (document.activeElement === document.body) focusOn(document.querySelector("main [autofocus], main h1") || document.querySelector("main"));
      done(value);
    };
    // What was begun is waited for: its answer has to be seen.
    const close = (value) => {
      if (value !== null || !dialog.querySelector("[aria-busy=true]")) end(value);
    };
    const dismiss = () => firm || close(null);
    const leave = () => firm || end(null);
    const outside = ({ clientX: x, clientY: y }) => {
      const { left, right, top, bottom } = dialog.getBoundingClientRect();
      return x < left || x > right || y < top || y > bottom;
    };
    dialog.append(h("h2", { id: "dialog-heading", tabindex: -1 }, heading), build(close));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      dismiss();
    });
    // Chromium closes at a second Escape whatever was prevented.
    dialog.addEventListener("close", () => {
      if (!dialog.isConnected) return;
      dismiss();
      if (dialog.isConnected) dialog.showModal();
    });
    dialog.addEventListener("input", () => { touched = true; });
    dialog.addEventListener("mousedown", (event) => {
      if (event.target !== dialog || !outside(event)) return;
      // The focus stays, and a slip beside the dialog does not throw away what was typed.
      event.preventDefault();
      if (!touched) dismiss();
    });
    addEventListener("hashchange", leave);
    document.body.append(dialog);
    dialog.showModal();
    if (!dialog.querySelector("[autofocus]")) dialog.querySelector("h2").focus();
  });
}

/** Ask before something is done; `work(reason)` does it, its failure stays in the dialog. */
export function confirm(heading, text, verb, work, { reason = false, danger = true } = {}) {
  return open(heading, (close) => {
    const line = problem();
    const why = reason && h("textarea", { rows: 2, maxlength: 1000, dir: "auto", "aria-label": "Reason (optional)", placeholder: "Reason (optional)" });
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
