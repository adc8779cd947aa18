// Counts, trend, tags, confidence and what happened lately; asked for anew while the page is seen.

import { api } from "../api.js";
import { fill, focusOn, h } from "../dom.js";
import { ago } from "../format.js";
import { badge, failed, spinner, unitLink, when } from "../parts/bits.js";
import { bars, trend } from "../parts/chart.js";
import { to } from "../router.js";

const EVERY = 15000;
const SHOWN = 12;

export default function dashboard(shell) {
  const note = h("div", { class: "slot", role: "status" });
  const place = h("div", {}, spinner());
  const heading = h("h1", {}, "Dashboard");
  const parts = [part(tiles), part(submissions), part(approved), part(activity)];
  let shown = false;
  let asking = false;

  async function load() {
    if (document.hidden || asking) return;
    asking = true;
    try {
      const stats = await api.stats();
      shell.pending(stats.counts.pending);
      for (const each of parts) each.take(stats);
      if (!shown) first();
      fill(note);
      for (const time of place.querySelectorAll("time")) time.textContent = ago(time.dateTime);
    } catch (fault) {
      if (!shown) fill(place, failed(fault, load));
      else if (!note.firstChild) fill(note, h("div", { class: "note bad" }, `${fault.message} Trying again; these figures are older.`));
    } finally {
      asking = false;
    }
  }

  function first() {
    const left = place.contains(document.activeElement);
    shown = true;
    fill(place, parts.map((each) => each.place));
    if (left) focusOn(heading);
  }

  load();
  const timer = setInterval(load, EVERY);
  document.addEventListener("visibilitychange", load);
  return {
    title: "Dashboard",
    view: h("div", {}, heading, note, place),
    polls: true,
    leave() {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", load);
    },
  };
}

/** A part of the page that is drawn anew only where its figures changed. */
function part({ read, draw }) {
  const place = h("div");
  let last = null;
  return {
    place,
    take(stats) {
      const text = JSON.stringify(read(stats));
      if (text !== last) anew(place, draw(...read(stats)));
      last = text;
    },
  };
}

/** What was open stays open, and the link that had the focus keeps it. */
function anew(place, drawn) {
  const held = place.contains(document.activeElement) ? document.activeElement : null;
  const open = place.querySelector("details[open]") !== null;
  fill(place, drawn);
  if (open) place.querySelector("details")?.setAttribute("open", "");
  if (!held) return;
  const same = [...place.querySelectorAll(held.localName)].find((each) => each.getAttribute("href") === held.getAttribute("href"));
  focusOn(same || place.querySelector("h2, a"));
}

const quiet = (text) => h("p", { class: "quiet" }, text);

const tile = (name, count, address) =>
  h("li", { class: name }, h("a", { href: address }, h("strong", {}, count), h("span", {}, name)));

const tiles = {
  read: ({ counts }) => [counts],
  draw: (counts) =>
    h(
      "ul",
      { class: "tiles" },
      tile("pending", counts.pending, to("review")),
      tile("approved", counts.approved, to("units", { status: "approved" })),
      tile("rejected", counts.rejected, to("units", { status: "rejected" })),
    ),
};

const submissions = {
  read: ({ trends }) => [trends.daily],
  draw: (days) =>
    h("section", {}, h("h2", {}, "Submissions"), days.length ? trend(days) : quiet("Nothing was proposed in the last thirty days.")),
};

const approved = {
  read: ({ domains, confidence_distribution: spread }) => [domains, spread],
  draw(domains, spread) {
    // The order of an object's names is not to be relied on: `404` would come first.
    const tags = Object.entries(domains).sort(([one, some], [other, more]) => more - some || (one < other ? -1 : 1));
    const tagged = (domain) => to("units", { domain, status: "approved" });
    return h(
      "div",
      { class: "halves" },
      h(
        "section",
        {},
        h("h2", {}, "Tags of approved units"),
        tags.length ? bars(tags.slice(0, SHOWN), tagged) : quiet("No unit is approved yet."),
        tags.length > SHOWN && h("details", {}, h("summary", {}, `${tags.length - SHOWN} more`), bars(tags.slice(SHOWN), tagged)),
      ),
      h("section", {}, h("h2", {}, "Confidence"), bars(Object.entries(spread), (confidence) => to("units", { confidence, status: "approved" }))),
    );
  },
};

const activity = {
  read: ({ recent_activity: steps }) => [steps],
  draw: (steps) => h("section", {}, h("h2", {}, "Recent activity"), steps.length ? table(steps) : quiet("Nothing happened yet.")),
};

function table(steps) {
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
        steps.map((each) =>
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
