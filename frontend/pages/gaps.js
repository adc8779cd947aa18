// What agents asked for and did not find, and what units they were served.

import { api } from "../api.js";
import { h } from "../dom.js";
import { badge, chips, unitLink } from "../parts/bits.js";
import { growing } from "../parts/list.js";

const GAP = ["Tags", "Not found", "Asked", "Last day"];
const USE = ["Unit", "Served", "Confirmed", "Flagged", "Last day"];

export default function gaps() {
  const off = h("p", { class: "note mild", hidden: true }, "Nothing is counted: the server runs with CQ_QUERY_LOG=0.");
  const pages = (ask) => async (cursor) => {
    const page = await ask(cursor);
    off.hidden = page.counting;
    const next = page.offset + page.items.length;
    return { items: page.items, next: next < page.total ? next : null };
  };
  const never = { name: "Units that no agent was served yet", head: ["Unit", "Confirmed", "Flagged"] };
  return {
    title: "Gaps and use",
    view: h(
      "div",
      {},
      h("h1", {}, "Gaps and use"),
      h("p", { class: "quiet" }, "Counted from agents' queries, without their questions and names. None of it changes a confidence or an order."),
      off,
      section("Asked for and not found", "In the last 90 days, by the tags that agents sent.", GAP, pages(api.gaps), gap, "Agents found something each time."),
      section("Served most", "How often a unit was in an answer, and what came back.", USE, pages(api.use), used, "No unit was in an answer yet."),
      section(never.name, "Approved ones, the oldest first.", never.head, pages(api.unused), unused, "Each approved unit was in an answer."),
    ),
  };
}

function section(name, about, head, load, row, empty) {
  return h(
    "section",
    {},
    h("h2", {}, name),
    h("p", { class: "quiet" }, about),
    growing(load, row, h("p", {}, empty), { table: h("table", { class: "counts" }, h("thead", {}, h("tr", {}, head.map((each) => h("th", { scope: "col" }, each))))), name }),
  );
}

const day = (text) => h("td", {}, text ? h("time", { datetime: text }, text) : "–");
const number = (count) => h("td", { class: "number" }, count);

const gap = ({ tags, missed, asked, last, known }) =>
  h(
    "tr",
    {},
    h("th", { scope: "row" }, tags.length ? chips(tags) : "a question without tags", known && h("span", { class: "badge approved", title: "An approved unit has one of these tags now" }, "known now")),
    number(missed),
    number(asked),
    day(last),
  );

const unit = ({ unit_id: id, summary, status }) =>
  h("th", { scope: "row" }, unitLink(id, summary), status !== "approved" && [" ", badge(status)]);

const used = (use) => h("tr", {}, unit(use), number(use.served), number(use.confirmed), number(use.flagged), day(use.last));
const unused = (use) => h("tr", {}, unit(use), number(use.confirmed), number(use.flagged));
