// Approved units that need another look: somebody flagged them, or nobody confirmed them for long.

import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, busy, chips, evidence, problem, unitLink, when } from "../parts/bits.js";
import { flags } from "../parts/card.js";
import { confirm } from "../parts/dialog.js";
import { growing } from "../parts/list.js";

export default function attention(shell) {
  const note = h("div", { class: "slot", role: "status" });
  const load = async (cursor) => {
    const page = await api.attention(cursor);
    shell.looks(page.total);
    return { items: page.items, next: page.next_cursor };
  };

  function row(item) {
    const { id, insight, domains, evidence: given, flags: raised } = item.knowledge_unit;
    const line = problem();
    const act = (label, text, work, danger) => {
      const button = h(
        "button",
        {
          type: "button",
          onclick: () =>
            busy(button, line, async () => {
              const done = await confirm(`${label} this unit?`, text, label, work, { reason: true, danger });
              if (!done) return;
              entry.remove();
              shell.refresh();
              fill(note, h("div", { class: "note good" }, `${label}: `, unitLink(id, insight.summary)));
              const next = view.querySelector(".rows a") || view.querySelector("h1");
              next.focus();
            }),
        },
        label,
      );
      return button;
    };
    const entry = h(
      "li",
      {},
      h("p", { class: "title" }, item.disputed && badge("disputed"), item.stale && badge("stale"), unitLink(id, insight.summary)),
      chips(domains),
      h("div", { class: "row wrap quiet" }, evidence(given), h("span", {}, "last confirmed ", when(given.last_confirmed))),
      raised.length > 0 && flags(raised),
      h(
        "div",
        { class: "row wrap" },
        item.disputed && act("Keep", "It is right as it stands: its flags are answered.", (reason) => api.keep(id, reason), false),
        act("Retire", "Agents do not find it any more.", (reason) => api.retire(id, reason), true),
        h("span", { class: "quiet" }, "Edit or supersede it on its own page."),
      ),
      line,
    );
    return entry;
  }

  const view = h(
    "div",
    {},
    h("h1", { tabindex: -1 }, "Needs another look"),
    h("p", { class: "quiet" }, "Agents are still served these. Flags lower their confidence until a reviewer answers."),
    note,
    growing(load, row, h("p", { class: "quiet" }, "Nothing needs another look.")),
  );
  return { title: "Another look", view };
}
