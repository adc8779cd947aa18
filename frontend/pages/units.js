// All units: by filters, or found by a question as agents find them; several decided at once.

import { api } from "../api.js";
import { announce, fill, focusOn, h } from "../dom.js";
import { many } from "../format.js";
import { badge, busy, chips, evidence, failed, field, problem, spinner, unitLink, when } from "../parts/bits.js";
import { confirm } from "../parts/dialog.js";
import { growing } from "../parts/list.js";
import { go, to } from "../router.js";

const STATUSES = ["pending", "approved", "rejected", "retired", "superseded"];
const BUCKETS = new Map([
  ["0.0-0.3", [0, 0.3]],
  ["0.3-0.6", [0.3, 0.6]],
  ["0.6-0.8", [0.6, 0.8]],
  ["0.8-1.0", [0.8, null]],
]);
const MOST = 200;
const FOUND = 50;

// [button, what was done, the server's decision, what goes with it]
const DECISIONS = [
  ["Approve", "Approved", "approve", { tier: "private" }],
  ["Publish", "Published", "approve", { tier: "public" }],
  ["Reject", "Rejected", "reject", {}],
  ["Reopen", "Reopened", "reopen", {}],
];

export default function units(shell, { query }) {
  const place = h("div");
  fill(place, query.q ? found(query) : listed(shell, query));
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
        options.map((value) => h("option", { value, selected: query[name] === value }, value)),
      ),
    );
  const text = (name, label) => field(label, h("input", { name, dir: "auto", value: query[name] || "" }));
  const q = h("input", { type: "search", name: "q", dir: "auto", value: query.q || "", maxlength: 2000 });
  return h(
    "form",
    {
      class: "filters",
      role: "search",
      onsubmit(event) {
        event.preventDefault();
        const asked = [...new FormData(event.target)].map(([name, value]) => [name, value.trim()]);
        go(to("units", Object.fromEntries(asked)));
      },
    },
    field("Ask as an agent would", q, "Finds approved units as agents find them. Of the filters below only the tag counts then."),
    h(
      "div",
      { class: "columns" },
      choice("status", "Status", STATUSES),
      text("domain", "Tag"),
      text("author", "Author"),
      choice("confidence", "Confidence", [...BUCKETS.keys()]),
      choice("look", "Another look", ["disputed", "stale"]),
    ),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Show"), h("a", { href: to("units") }, "All units")),
  );
}

function found({ q, domain }) {
  const place = h("div", {}, spinner("Searching…"));
  const ask = () =>
    api.search(q, domain || undefined).then(
      ({ data, explain, mode }) => {
        const told = counted(data.length);
        if (place.isConnected) announce(told);
        fill(
          place,
          h("p", { class: "quiet" }, `${told} ${mode === "semantic" ? "Searched by meaning, words and tags." : "Searched by words and tags: meaning is off or not ready."}`),
          h("ul", { class: "rows" }, data.map((unit, at) => h("li", {}, foundRow(unit, explain[at])))),
        );
      },
      (fault) => fill(place, failed(fault, ask)),
    );
  ask();
  return place;
}

function counted(count) {
  if (count === 0) return "Nothing is near enough to be an answer.";
  return count < FOUND ? `${many(count, "approved unit")}, the best first.` : `The ${count} best approved units.`;
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

function listed(shell, query) {
  const [low, high] = BUCKETS.get(query.confidence) || [];
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
  const note = h("div", { class: "slot", role: "status" });
  const holder = h("div");
  const all = h("input", { type: "checkbox", onchange: () => every(all.checked) });
  const count = h("span", { class: "quiet" });
  const buttons = DECISIONS.map((each) => h("button", { type: "button", onclick: () => together(...each) }, each[0]));
  let list;

  function row(item) {
    const { id, insight, domains, evidence: given } = item.knowledge_unit;
    const box = h("input", {
      type: "checkbox",
      "aria-label": `Choose “${insight.summary}”`,
      onchange() {
        if (box.checked) chosen.set(id, insight.summary);
        else chosen.delete(id);
        tell();
      },
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
    chosen.clear();
    for (const { knowledge_unit: unit } of checked ? list.items : []) chosen.set(unit.id, unit.insight.summary);
    for (const box of list.querySelectorAll("[data-id] > input")) box.checked = checked;
    tell();
  }

  /** What is chosen now, and whether it can be decided. */
  function tell() {
    const { size } = chosen;
    all.checked = size > 0 && size === list.items.length;
    all.indeterminate = size > 0 && !all.checked;
    count.textContent = `${size} chosen${size > MOST ? `; ${MOST} are the most at once` : ""}`;
    for (const button of buttons) button.disabled = size === 0 || size > MOST;
  }

  async function together(label, past, decision, more) {
    const names = new Map(chosen);
    const decided = await confirm(
      `${label} ${many(names.size, "unit")}?`,
      "Each is answered by itself; what cannot be decided stays as it is.",
      label,
      async (reason) => {
        const { data } = await api.bulk(decision, [...names.keys()], { ...more, ...(reason ? { reason } : {}) });
        show(past, data, names, decision !== "reopen");
      },
      { reason: true, danger: decision === "reject" },
    );
    if (decided) focusOn(note.firstChild);
  }

  function show(past, data, names, undoable) {
    const refused = data.filter((each) => each.error);
    const done = data.filter((each) => !each.error).map((each) => each.unit_id);
    const line = problem();
    const undo = h(
      "button",
      {
        type: "button",
        onclick: () =>
          busy(undo, line, async () => {
            const back = await api.bulk("reopen", done, { reason: "Undone" });
            show("Taken back", back.data, names, false);
            focusOn(note.firstChild);
          }),
      },
      "Undo",
    );
    fill(
      note,
      h(
        "div",
        { class: `note ${refused.length ? "mild" : "good"}` },
        `${past}: ${many(done.length, "unit")}.`,
        undoable && done.length > 0 && undo,
        refused.length > 0 && refusals(refused, names),
        line,
      ),
    );
    shell.refresh();
    again();
  }

  function again() {
    chosen.clear();
    list = growing((cursor) => api.units(filters, cursor), row, h("p", { class: "quiet" }, "No unit passes these filters."));
    // What came besides is not chosen.
    list.addEventListener("grown", tell);
    fill(holder, list);
    tell();
  }

  again();
  return [
    h("div", { class: "bulk", role: "group", "aria-label": "Decide together" }, h("label", {}, all, " All shown"), count, buttons),
    note,
    holder,
  ];
}

const refusals = (refused, names) =>
  h(
    "details",
    { open: refused.length <= 5 },
    h("summary", {}, `${refused.length} refused`),
    h("ul", {}, refused.map((each) => h("li", {}, unitLink(each.unit_id, names.get(each.unit_id)), ` ${each.detail}`))),
  );
