// All units: by filters, or found by a question as agents find them; several decided at once.

import { api } from "../api.js";
import { announce, fill, h } from "../dom.js";
import { many } from "../format.js";
import { badge, busy, chips, evidence, failed, field, problem, spinner, unitLink, when } from "../parts/bits.js";
import { confirm } from "../parts/dialog.js";
import { growing } from "../parts/list.js";
import { go, to } from "../router.js";

const STATUSES = ["pending", "approved", "rejected", "retired", "superseded"];
const BUCKETS = { "0.0-0.3": [0, 0.3], "0.3-0.6": [0.3, 0.6], "0.6-0.8": [0.6, 0.8], "0.8-1.0": [0.8, null] };
const MOST = 200;

export default function units(shell, { query }) {
  const place = h("div");
  fill(place, query.q ? found(query) : listed(query));
  return { title: "Units", view: h("div", {}, h("h1", {}, "Units"), form(query), place) };
}

/** The filters, each in the address. */
function form(query) {
  const choice = (name, label, options) =>
    field(
      label,
      h(
        "select",
        { name },
        h("option", { value: "" }, "any"),
        options.map(([value, text]) => h("option", { value, selected: query[name] === value }, text)),
      ),
    );
  const text = (name, label, more) => field(label, h("input", { name, dir: "auto", value: query[name] || "", ...more }));
  const q = h("input", { type: "search", name: "q", dir: "auto", value: query.q || "", maxlength: 2000 });
  return h(
    "form",
    {
      class: "filters",
      role: "search",
      onsubmit(event) {
        event.preventDefault();
        go(to("units", Object.fromEntries(new FormData(event.target))));
      },
    },
    field("Ask as an agent would", q, "Finds approved units by meaning, words and tags. The other filters but the tag rest meanwhile."),
    h(
      "div",
      { class: "columns" },
      choice("status", "Status", STATUSES.map((each) => [each, each])),
      text("domain", "Tag"),
      text("author", "Author"),
      choice("confidence", "Confidence", Object.keys(BUCKETS).map((each) => [each, each])),
      choice("look", "Needs another look", [["disputed", "disputed"], ["stale", "stale"]]),
    ),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Show"), h("a", { href: to("units") }, "All units")),
  );
}

function found({ q, domain }) {
  const place = h("div", {}, spinner("Searching…"));
  const ask = () =>
    api.search(q, domain || undefined).then(
      ({ data, explain, mode }) => {
        const told = data.length ? many(data.length, "approved unit") : "Nothing is near enough to be an answer";
        announce(told);
        fill(
          place,
          h("p", { class: "quiet" }, `${told}, ${mode === "semantic" ? "by meaning, words and tags" : "by words and tags: the model is not ready"}.`),
          h("ul", { class: "rows" }, data.map((unit, at) => h("li", {}, foundRow(unit, explain[at])))),
        );
      },
      (fault) => fill(place, failed(fault, ask)),
    );
  ask();
  return place;
}

function foundRow(unit, parts) {
  const names = { meaning: "meaning", text: "words", domain: "tags", confidence: "confidence", score: "score" };
  return [
    h("p", { class: "title" }, unitLink(unit.id, unit.insight.summary)),
    chips(unit.domains),
    evidence(unit.evidence),
    h(
      "dl",
      { class: "parts", "aria-label": "Why it was found" },
      Object.entries(names)
        .filter(([name]) => name in parts)
        .map(([name, label]) => h("div", {}, h("dt", {}, label), h("dd", {}, parts[name].toFixed(2)))),
    ),
  ];
}

function listed(query) {
  const [low, high] = BUCKETS[query.confidence] || [];
  const filters = {
    status: query.status,
    domain: query.domain,
    author: query.author,
    confidence_min: low,
    confidence_max: high,
    disputed: query.look === "disputed" ? 1 : undefined,
    stale: query.look === "stale" ? 1 : undefined,
  };
  const chosen = new Map();
  const bar = h("div", { class: "bulk", role: "group", "aria-label": "Decide together" });
  const note = h("div", { class: "slot", role: "status" });
  const holder = h("div");
  let list;
  const all = h("input", { type: "checkbox", onchange: () => every(all.checked) });

  function row(item) {
    const { id, insight, domains, evidence: given } = item.knowledge_unit;
    const box = h("input", {
      type: "checkbox",
      "aria-label": `Choose “${insight.summary}”`,
      onchange: () => choose(id, item, box.checked),
    });
    return h(
      "li",
      { class: "chosable", "data-id": id },
      box,
      h(
        "div",
        {},
        h("p", { class: "title" }, badge(item.status), item.disputed && badge("disputed"), item.stale && badge("stale"), unitLink(id, insight.summary)),
        chips(domains),
        h("div", { class: "row wrap quiet" }, evidence(given), when(item.created_at)),
      ),
    );
  }

  function every(checked) {
    for (const item of list.items.slice(0, MOST)) choose(item.knowledge_unit.id, item, checked, false);
    for (const box of list.querySelectorAll("[data-id] input")) {
      box.checked = checked && chosen.has(box.closest("[data-id]").dataset.id);
    }
    tell();
  }

  function choose(id, item, checked, told = true) {
    if (checked) chosen.set(id, item);
    else chosen.delete(id);
    if (told) tell();
  }

  function tell() {
    const decide = (label, decision, more, main) =>
      h("button", { type: "button", class: main, disabled: chosen.size === 0, onclick: () => together(label, decision, more) }, label);
    fill(
      bar,
      h("label", {}, all, " All shown"),
      h("span", { class: "quiet" }, `${chosen.size} chosen`),
      decide("Approve", "approve", { tier: "private" }),
      decide("Publish", "approve", { tier: "public" }),
      decide("Reject", "reject", {}),
      decide("Reopen", "reopen", {}),
    );
  }

  function together(label, decision, more) {
    const ids = [...chosen.keys()].slice(0, MOST);
    confirm(
      `${label} ${many(ids.length, "unit")}?`,
      "Each is answered by itself; what cannot be decided stays as it is.",
      label,
      async (reason) => {
        const { data } = await api.bulk(decision, ids, { ...more, ...(reason ? { reason } : {}) });
        show(label, decision, data);
      },
      { reason: true, danger: decision === "reject" },
    );
  }

  function show(label, decision, data) {
    const refused = data.filter((each) => each.error);
    const done = data.filter((each) => !each.error).map((each) => each.unit_id);
    const line = problem();
    const undo = h(
      "button",
      {
        type: "button",
        onclick: () =>
          busy(undo, line, async () => {
            const { data: back } = await api.bulk("reopen", done, { reason: "Undone" });
            const failures = back.filter((each) => each.error);
            fill(note, h("div", { class: "note" }, `${back.length - failures.length} taken back${failures.length ? `, ${failures.length} not: ${failures[0].detail}` : ""}.`));
            again();
          }),
      },
      "Undo",
    );
    fill(
      note,
      h(
        "div",
        { class: `note ${refused.length ? "mild" : "good"}` },
        `${label}: ${many(done.length, "unit")} done${refused.length ? `, ${refused.length} refused` : ""}. `,
        refused.length > 0 && h("ul", {}, refused.map((each) => h("li", {}, unitLink(each.unit_id, each.unit_id), ` ${each.detail}`))),
        done.length > 0 && decision !== "reopen" && undo,
        line,
      ),
    );
    again();
  }

  function again() {
    chosen.clear();
    all.checked = false;
    list = growing((cursor) => api.units(filters, cursor), row, h("p", { class: "quiet" }, "No unit passes these filters."));
    fill(holder, list);
    tell();
  }

  again();
  return [bar, note, holder];
}
