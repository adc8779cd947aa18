// The product's mark, and the pictures on buttons.

import { h } from "../dom.js";

export const mark = () =>
  h(
    "svg:svg",
    { class: "mark", viewBox: "0 0 32 32", width: 28, height: 28, "aria-hidden": "true" },
    h("svg:rect", { width: 32, height: 32, rx: 8 }),
    h("svg:path", { d: "M8 10.5A4.5 4.5 0 0 1 12.5 6h7A4.5 4.5 0 0 1 24 10.5v6a4.5 4.5 0 0 1-4.5 4.5H16l-5 5v-5.2A4.5 4.5 0 0 1 8 16.5z", class: "speech" }),
    h("svg:path", { d: "m12.5 13.5 2.5 2.5 4.5-5", class: "tick" }),
  );

const icon = (...shapes) =>
  h("svg:svg", { class: "picture", viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" }, shapes);

export const sun = () =>
  icon(
    h("svg:circle", { cx: 12, cy: 12, r: 4.5 }),
    h("svg:path", { d: "M12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M4.9 19.1l1.8-1.8M17.3 6.7l1.8-1.8" }),
  );

export const moon = () => icon(h("svg:path", { d: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z" }));
