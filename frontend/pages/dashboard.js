// Counts, trend, tags, confidence and what happened lately; asked for anew while the page is seen.

import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, failed, spinner, unitLink, when } from "../parts/bits.js";
import { bars, trend } from "../parts/chart.js";
import { to } from "../router.js";

const EVERY = 15000;
const SHOWN = 12;

export default function dashboard(shell) {
  const note = h("div", { class: "slot", role: "status" });
  const place = h("div", {}, spinner());
  let last = null;

  async function load() {
    if (document.hidden) return;
    try {
      const stats = await api.stats();
      shell.pending(stats.counts.pending);
      fill(note);
      const text = JSON.stringify(stats);
      if (text !== last) fill(place, drawn(stats));
      last = text;
    } catch (fault) {
      if (last) fill(note, h("div", { class: "note bad" }, `${fault.message} Trying again; these figures are older.`));
      else fill(place, failed(fault, load));
    }
  }
  load();
  const timer = setInterval(load, EVERY);
  document.addEventListener("visibilitychange", load);
  return {
    title: "Dashboard",
    view: h("div", {}, h("h1", {}, "Dashboard"), note, place),
    polls: true,
    leave() {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", load);
    },
  };
}

function drawn({ counts, domains, confidence_distribution: spread, recent_activity: activity, trends }) {
  const tags = Object.entries(domains);
  return [
    h(
      "ul",
      { class: "tiles" },
      tile("pending", counts.pending, to("review")),
      tile("approved", counts.approved, to("units", { status: "approved" })),
      tile("rejected", counts.rejected, to("units", { status: "rejected" })),
    ),
    h("section", {}, h("h2", {}, "Submissions"), trends.daily.length ? trend(trends.daily) : h("p", { class: "quiet" }, "Nothing was proposed in the last thirty days.")),
    h(
      "div",
      { class: "halves" },
      h(
        "section",
        {},
        h("h2", {}, "Tags of approved units"),
        tags.length ? bars(tags.slice(0, SHOWN), (domain) => to("units", { domain, status: "approved" })) : h("p", { class: "quiet" }, "No unit is approved yet."),
        tags.length > SHOWN && h("details", {}, h("summary", {}, `${tags.length - SHOWN} more`), bars(tags.slice(SHOWN), (domain) => to("units", { domain, status: "approved" }))),
      ),
      h("section", {}, h("h2", {}, "Confidence"), bars(Object.entries(spread), (confidence) => to("units", { confidence, status: "approved" }))),
    ),
    h("section", {}, h("h2", {}, "Recent activity"), activity.length ? table(activity) : h("p", { class: "quiet" }, "Nothing happened yet.")),
  ];
}

const tile = (name, count, address) =>
  h("li", { class: name }, h("a", { href: address }, h("strong", {}, count), h("span", {}, name)));

function table(activity) {
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Recent activity" },
    h(
      "table",
      { class: "activity" },
      h("thead", {}, h("tr", {}, ["Status", "Summary", "Reviewer", "Time"].map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        activity.map((each) =>
          h(
            "tr",
            {},
            h("td", {}, badge(each.type)),
            h("td", { class: "cut" }, unitLink(each.unit_id, each.summary)),
            h("td", {}, h("bdi", {}, each.reviewed_by || "–")),
            h("td", {}, when(each.timestamp)),
          ),
        ),
      ),
    ),
  );
}
