// The form in which a reviewer edits a unit.

import { api } from "../api.js";
import { h } from "../dom.js";
import { busy, field, problem, split } from "./bits.js";
import { open } from "./dialog.js";

// What was typed and not saved when an Escape or a click beside the dialog closed it.
let draft = { of: null, words: {} };

/** Ends with the edited item, or null. */
export function edit(item) {
  const unit = item.knowledge_unit;
  const of = `${unit.id} ${item.revision}`;
  const kept = draft.of === of;
  const drop = () => { draft = { of: null, words: {} }; };
  const { summary, detail, action } = unit.insight;
  const { languages, frameworks, pattern } = unit.context;
  return open(
    "Edit this unit",
    (close) => {
      const area = (value, rows, maxlength) => h("textarea", { rows, maxlength, required: true, dir: "auto", value });
      const text = (value, more = {}) => h("input", { dir: "auto", value, ...more });
      const inputs = {
        summary: area(summary, 2, 500),
        detail: area(detail, 7, 8000),
        action: area(action, 4, 2000),
        domains: text(unit.domains.join(", "), { required: true }),
        languages: text(languages.join(", ")),
        frameworks: text(frameworks.join(", ")),
        pattern: text(pattern, { maxlength: 200 }),
      };
      inputs.summary.autofocus = true;
      if (kept) for (const [name, words] of Object.entries(draft.words)) inputs[name].value = words;
      const note = () => {
        draft = { of, words: Object.fromEntries(Object.entries(inputs).map(([name, { value }]) => [name, value])) };
      };
      const line = problem();
      const save = h("button", { type: "submit", class: "main" }, "Save");
      const submit = (event) => {
        event.preventDefault();
        busy(save, line, async () => {
          const value = (name) => inputs[name].value;
          const edited = await api.edit(unit.id, {
            revision: item.revision,
            domains: split(value("domains")),
            insight: { summary: value("summary"), detail: value("detail"), action: value("action") },
            context: {
              languages: split(value("languages")),
              frameworks: split(value("frameworks")),
              pattern: value("pattern"),
            },
          });
          drop();
          close(edited);
        });
      };
      return h(
        "form",
        { onsubmit: submit, oninput: note },
        kept && h("p", { class: "note mild" }, "What you typed before is here again; Cancel drops it."),
        field("Summary", inputs.summary),
        field("Detail", inputs.detail),
        field("Action", inputs.action),
        field("Tags", inputs.domains, "Commas separate them."),
        h("div", { class: "columns" }, field("Languages", inputs.languages), field("Frameworks", inputs.frameworks), field("Pattern", inputs.pattern)),
        line,
        h("div", { class: "row end" }, h("button", { type: "button", onclick: () => { drop(); close(null); } }, "Cancel"), save),
      );
    },
    { wide: true },
  );
}
