// A line chart in SVG, with the same figures as a table for whoever does not see it.

import { h } from "../dom.js";

const HIGH = 200;
const FOOT = 22;
const HEAD = 8;
const END = 8;

const SERIES = [
  ["proposed", "submitted"],
  ["approved", "approved"],
  ["rejected", "rejected"],
];

/** `days` is [{date, proposed, approved, rejected}], oldest first. */
export function trend(days) {
  // As wide as it is shown, about: a label that is scaled down cannot be read.
  const wide = Math.max(280, Math.min(640, innerWidth - 48));
  const most = Math.max(1, ...days.flatMap((day) => SERIES.map(([name]) => day[name])));
  const step = Math.ceil(most / 4);
  const top = step * 4;
  const start = 14 + 7 * String(top).length;
  const room = wide - start - 6 - END;
  const single = days.length === 1;
  const last = days.length - 1;
  const x = (place) => start + 6 + (single ? room / 2 : (place * room) / last);
  const y = (value) => HEAD + (HIGH - FOOT - HEAD) * (1 - value / top);
  const every = Math.ceil(days.length / Math.floor(wide / 100));
  const lines = [0, 1, 2, 3, 4].map((each) => [
    h("svg:line", { x1: start, x2: wide, y1: y(each * step), y2: y(each * step), class: "grid" }),
    h("svg:text", { x: start - 6, y: y(each * step) + 4, "text-anchor": "end" }, each * step),
  ]);
  // From today backwards, so that today has one.
  const labels = days.map((day, place) =>
    (last - place) % every === 0 &&
    h("svg:text", { x: x(place), y: HIGH - 4, "text-anchor": single ? "middle" : anchor(place, last) }, day.date.slice(5)),
  );
  const drawn = SERIES.map(([name]) => [
    h("svg:polyline", {
      class: `series ${name}`,
      points: days.map((day, place) => `${x(place)},${y(day[name])}`).join(" "),
    }),
    days.length <= 7 &&
      days.map((day, place) => h("svg:circle", { class: `series ${name}`, cx: x(place), cy: y(day[name]), r: 3 })),
  ]);
  const touched = days.map((day, place) =>
    h(
      "svg:rect",
      { class: "touch", x: x(place) - wide / days.length / 2, y: 0, width: wide / days.length, height: HIGH - FOOT },
      h("svg:title", {}, `${day.date}: ${SERIES.map(([name, label]) => `${day[name]} ${label}`).join(", ")}`),
    ),
  );
  return h(
    "figure",
    { class: "trend" },
    h("svg:svg", { viewBox: `0 0 ${wide} ${HIGH}`, "aria-hidden": "true" }, lines, labels, drawn, touched),
    h("figcaption", {}, SERIES.map(([name, label]) => h("span", { class: `key ${name}` }, label))),
    // A table does not shrink: what is around it hides it.
    h("div", { class: "unseen" }, figures(days)),
  );
}

function anchor(place, last) {
  if (place === last) return "end";
  return place === 0 ? "start" : "middle";
}

function figures(days) {
  return h(
    "table",
    {},
    h("caption", {}, "Submissions and decisions a day"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Day"), SERIES.map(([, label]) => h("th", { scope: "col" }, label)))),
    h(
      "tbody",
      {},
      days.map((day) => h("tr", {}, h("th", { scope: "row" }, day.date), SERIES.map(([name]) => h("td", {}, day[name])))),
    ),
  );
}

/** Rows of a name, a bar as a part of the largest, and the count; `link(name)` is where it leads. */
export function bars(counts, link) {
  const most = Math.max(1, ...counts.map(([, count]) => count));
  return h(
    "ul",
    { class: "bars" },
    counts.map(([name, count]) => {
      const shown = [
        h("span", { class: "name", dir: "auto" }, name),
        h("meter", { min: 0, max: most, value: count, "aria-hidden": "true" }),
        h("span", { class: "count" }, count),
      ];
      return h("li", {}, count ? h("a", { href: link(name) }, shown) : h("span", {}, shown));
    }),
  );
}
