// Approved units that need another look: somebody flagged them, or nobody confirmed them for long.

import { api, Refusal } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, busy, chips, evidence, problem, unitLink, when } from "../parts/bits.js";
import { flags } from "../parts/card.js";
import { confirm } from "../parts/dialog.js";
import { growing, lead } from "../parts/list.js";

const KEEP = ["Keep", "Kept", "It is right as it stands.", api.keep, false];
const RETIRE = ["Retire", "Retired", "Agents do not find it any more.", api.retire, true];

export default function attention(shell) {
  const note = h("div", { class: "slot", role: "status" });
  const load = async (cursor) => {
    const page = await api.attention(cursor);
    shell.looks(page.total);
    return { items: page.items, next: page.next_cursor };
  };

  function row(item) {
    const { id, insight, domains, evidence: given } = item.knowledge_unit;
    const open = item.flags.filter((flag) => !flag.answered_at);
    const line = problem();

    async function decide([label, past, text, work, danger]) {
      let [told, kind] = [past, "good"];
      const once = async (reason) => {
        try {
          await work(id, reason);
        } catch (fault) {
          // Somebody else was first: that answers it, too.
          if (!(fault instanceof Refusal && (fault.status === 409 || fault.status === 404))) throw fault;
          [told, kind] = [fault.detail, "mild"];
        }
      };
      if (!(await confirm(`${label} this unit?`, text, label, once, { reason: true, danger }))) return;
      fill(note, h("div", { class: `note ${kind}` }, `${told}: `, unitLink(id, insight.summary)));
      shell.refresh();
      await settle();
    }

    /** The row goes, unless the unit still needs a look. */
    async function settle() {
      const now = await api.unit(id).catch(() => null);
      if (now && (now.disputed || now.stale)) {
        const anew = row(now);
        entry.replaceWith(anew);
        lead(anew);
      } else list.without(entry);
    }

    const act = (step) => {
      const button = h("button", { type: "button", onclick: () => busy(button, line, () => decide(step)) }, step[0]);
      return button;
    };
    const entry = h(
      "li",
      {},
      h("p", { class: "title" }, item.disputed && badge("disputed"), item.stale && badge("stale"), unitLink(id, insight.summary)),
      chips(domains),
      h("div", { class: "row wrap quiet" }, evidence(given), h("span", {}, "last confirmed ", when(given.last_confirmed))),
      open.length > 0 && flags(open, "h2"),
      h(
        "div",
        { class: "row wrap" },
        act(KEEP),
        act(RETIRE),
        h("span", { class: "quiet" }, item.disputed ? "Edit or supersede it on its own page." : "Supersede it on its own page."),
      ),
      line,
    );
    return entry;
  }

  const list = growing(load, row, h("p", { class: "quiet" }, "Nothing needs another look."));
  const view = h(
    "div",
    {},
    h("h1", {}, "Needs another look"),
    h("p", { class: "quiet" }, "Agents are still served these. Flags lower their confidence until a reviewer answers."),
    note,
    list,
  );
  return { title: "Another look", view };
}
