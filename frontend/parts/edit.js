// The form in which a reviewer edits a unit.

import { api } from "../api.js";
import { h } from "../dom.js";
import { busy, field, problem, split } from "./bits.js";
import { open } from "./dialog.js";

/** Ends with the edited item, or null. */
export function edit(item) {
  const unit = item.knowledge_unit;
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
      const line = problem();
      const save = h("button", { type: "submit", class: "main" }, "Save");
      const submit = (event) => {
        event.preventDefault();
        busy(save, line, async () => {
          const value = (name) => inputs[name].value;
          close(
            await api.edit(unit.id, {
              revision: item.revision,
              domains: split(value("domains")),
              insight: { summary: value("summary"), detail: value("detail"), action: value("action") },
              context: {
                languages: split(value("languages")),
                frameworks: split(value("frameworks")),
                pattern: value("pattern"),
              },
            }),
          );
        });
      };
      return h(
        "form",
        { onsubmit: submit },
        field("Summary", inputs.summary),
        field("Detail", inputs.detail),
        field("Action", inputs.action),
        field("Tags", inputs.domains, "Commas separate them."),
        h("div", { class: "columns" }, field("Languages", inputs.languages), field("Frameworks", inputs.frameworks), field("Pattern", inputs.pattern)),
        line,
        h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close(null) }, "Cancel"), save),
      );
    },
    { wide: true },
  );
}
