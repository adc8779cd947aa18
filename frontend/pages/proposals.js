// What became of one's own proposals.

import { api } from "../api.js";
import { h } from "../dom.js";
import { badge, chips, prose, when } from "../parts/bits.js";
import { growing } from "../parts/list.js";
import { to } from "../router.js";

export default function proposals(shell) {
  const load = async (cursor) => {
    const page = await api.proposals(cursor);
    return { items: page.items, next: page.next_cursor };
  };
  const row = (item) => {
    const unit = item.knowledge_unit;
    return h(
      "li",
      {},
      h(
        "details",
        {},
        h("summary", { class: "title" }, badge(item.status), h("span", { dir: "auto" }, unit.insight.summary)),
        prose(unit.insight.detail),
        h("section", { class: "action" }, h("h3", {}, "Action"), prose(unit.insight.action)),
        shell.may("reviewer") && h("p", {}, h("a", { href: to(["units", unit.id]) }, "Its page")),
      ),
      chips(unit.domains),
      h(
        "p",
        { class: "quiet" },
        "proposed ",
        when(item.created_at),
        item.reviewed_by && [`, ${item.status} by `, h("bdi", {}, item.reviewed_by), " ", when(item.reviewed_at)],
        unit.superseded_by && [", superseded by ", h("code", {}, unit.superseded_by)],
      ),
      item.reason && h("blockquote", { class: "prose", dir: "auto" }, item.reason),
    );
  };
  const empty = h("p", { class: "quiet" }, "Nothing was proposed with your keys yet. ", h("a", { href: to("keys") }, "Make a key"), " for an agent.");
  return {
    title: "My proposals",
    view: h("div", {}, h("h1", {}, "My proposals"), growing(load, row, empty)),
  };
}
