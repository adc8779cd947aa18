// The product's mark.

import { h } from "../dom.js";

export const mark = () =>
  h(
    "svg:svg",
    { class: "mark", viewBox: "0 0 32 32", width: 28, height: 28, "aria-hidden": "true" },
    h("svg:rect", { width: 32, height: 32, rx: 8 }),
    h("svg:path", { d: "M8 10.5A4.5 4.5 0 0 1 12.5 6h7A4.5 4.5 0 0 1 24 10.5v6a4.5 4.5 0 0 1-4.5 4.5H16l-5 5v-5.200A4.5 4.5 0 0 1 8 16.5z", class: "speech" }),
    h("svg:path", { d: "m12.5 13.5 2.500 2.500 4.500-5", class: "tick" }),
  );
