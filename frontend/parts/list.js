// A list that grows by pages: "Show more" leads on where the cursor stands.

import { announce, fill, h } from "../dom.js";
import { failed, spinner } from "./bits.js";

/** `load(cursor)` gives {items, next}; `row(item)` a list item. `empty` is what stands there for none. */
export function growing(load, row, empty) {
  const list = h("ul", { class: "rows" });
  const foot = h("div", { class: "slot" });
  const place = h("div", {}, list, foot);
  place.items = [];

  async function more(cursor) {
    fill(foot, spinner());
    try {
      const { items, next } = await load(cursor);
      place.items.push(...items);
      const rows = items.map(row);
      list.append(...rows);
      const button = next && h("button", { type: "button", onclick: () => more(next) }, "Show more");
      fill(foot, button || (place.items.length === 0 && empty));
      if (cursor) {
        announce(`${items.length} more shown.`);
        const focus = rows[0] && rows[0].querySelector("a, button, input");
        if (focus) focus.focus();
      }
      place.dispatchEvent(new Event("grown"));
    } catch (fault) {
      fill(foot, failed(fault, () => more(cursor)));
    }
  }
  more();
  return place;
}
