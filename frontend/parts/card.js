// A unit with all that a decision needs.

import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { percent } from "../format.js";
import { badge, chips, evidence, prose, unitLink, when } from "./bits.js";
import { difference } from "./diff.js";

/** The unit's words, evidence and flags; `item` is as the review routes give it. */
export function unitBody(item, level = "h2") {
  const unit = item.knowledge_unit;
  const { languages, frameworks, pattern } = unit.context;
  const facts = [
    ["Languages", languages.join(", ")],
    ["Frameworks", frameworks.join(", ")],
    ["Pattern", pattern],
    ["Tier", item.status === "approved" ? unit.tier : ""],
    ["Reason", item.reason],
    ["Reviewed", item.reviewed_by && [`by ${item.reviewed_by}, `, when(item.reviewed_at)]],
    ["Last confirmed", unit.evidence.confirmations > 1 && when(unit.evidence.last_confirmed)],
  ].filter(([, value]) => value);
  return [
    h("div", { class: "row spread" }, chips(unit.domains), h("span", { class: "quiet" }, "proposed ", when(item.created_at), unit.created_by && [" by ", h("bdi", {}, unit.created_by)])),
    h(level, { class: "summary", dir: "auto", id: "unit-summary", tabindex: -1 }, unit.insight.summary),
    prose(unit.insight.detail),
    h("section", { class: "action" }, h("h3", {}, "Action"), prose(unit.insight.action)),
    facts.length > 0 && h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value)))),
    evidence(unit.evidence),
    item.findings.length > 0 && findings(item.findings),
    item.flags.length > 0 && flags(item.flags),
    unit.extensions && Object.keys(unit.extensions).length > 0 && h("details", {}, h("summary", {}, "Extensions"), h("pre", { class: "prose", dir: "auto" }, JSON.stringify(unit.extensions, null, 2))),
  ];
}

const WORDS = { secret: "Secret", personal: "Personal data", internal: "Internal place", hidden: "Hidden character", directive: "Directive" };

/** What the safety check found in the words; none of it is repeated here. */
function findings(given) {
  return h(
    "section",
    { class: "flags" },
    h("h3", {}, "Look closely"),
    h("ul", {}, given.map(({ field, kind, text }) => h("li", {}, h("strong", {}, WORDS[kind] || kind), ` in the ${field}: ${text}`))),
  );
}

/** What agents found wrong. */
export function flags(given, level = "h3") {
  return h(
    "section",
    { class: "flags" },
    h(level, {}, "Flags"),
    h(
      "ul",
      {},
      given.map((flag) =>
        h(
          "li",
          {},
          h("strong", {}, flag.reason),
          " ",
          flag.by && ["by ", h("bdi", {}, flag.by), " "],
          when(flag.timestamp),
          flag.duplicate_of && [" of ", unitLink(flag.duplicate_of, flag.duplicate_of)],
          flag.detail && prose(flag.detail),
          flag.answered_by && h("p", { class: "quiet" }, "answered by ", h("bdi", {}, flag.answered_by), " ", when(flag.answered_at)),
        ),
      ),
    ),
  );
}

/** A place that fills itself with the units most like this one. */
export function similar(id) {
  const place = h("aside", { class: "similar", "aria-label": "Similar units" }, h("p", { class: "quiet" }, "Looking for similar units…"));
  api.similar(id).then(
    ({ mode, data }) =>
      fill(
        place,
        h("h3", {}, "Similar units"),
        data.length === 0 && h("p", { class: "quiet" }, "None is much like it."),
        h(
          "ul",
          {},
          data.map((item) =>
            h(
              "li",
              {},
              h("span", { class: "likeness", title: mode === "semantic" ? "alike in meaning" : "alike in words" }, percent(item.similarity)),
              badge(item.status),
              unitLink(item.knowledge_unit.id, item.knowledge_unit.insight.summary),
            ),
          ),
        ),
        data.length > 0 && h("p", { class: "quiet" }, mode === "semantic" ? "By meaning." : "By shared words; search by meaning is not ready."),
      ),
    (fault) => fill(place, h("p", { class: "quiet" }, `Similar units are not to be had: ${fault.message}`)),
  );
  return place;
}

/** A place that fills itself with what edits changed; null if there were none. */
export function revisions(item) {
  if (item.revision === 1) return null;
  const place = h("div");
  api.history(item.knowledge_unit.id).then(
    ({ revisions: texts }) => fill(place, revisionList(texts)),
    (fault) => fill(place, h("p", { class: "quiet" }, `The edits are not to be had: ${fault.message}`)),
  );
  return place;
}

/** Each edit as a difference from the text before it, the last one first and open. */
export function revisionList(texts) {
  return texts
    .slice(1)
    .map((text, place) =>
      h(
        "details",
        { open: place === texts.length - 2 },
        h("summary", {}, `Edit ${text.revision - 1} by `, h("bdi", {}, text.by), ", ", when(text.at)),
        difference(texts[place], text),
      ),
    )
    .reverse();
}
