// A list that grows by pages: "Show more" leads on where the cursor stands.

import { announce, fill, focusOn, h } from "../dom.js";
import { failed, spinner } from "./bits.js";

/** `load(cursor)` gives {items, next}; `row(item)` a list item, or where there is a `table`, a row of
 *  it. `empty` is what stands there for none. Tells "grown" after each page; `items` are those that
 *  came so far. */
export function growing(load, row, empty, { table, name } = {}) {
  const list = table ? h("tbody") : h("ul", { class: "rows" });
  table?.append(list);
  const shown = table ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name, hidden: true }, table) : list;
  const foot = h("div", { class: "slot" });
  const place = h("div", {}, shown, foot);
  place.items = [];
  let rest = null;

  async function more(cursor) {
    fill(foot, spinner());
    let page;
    try {
      page = await load(cursor);
    } catch (fault) {
      fill(foot, failed(fault, () => more(cursor)));
      if (cursor) lead(foot);
      return;
    }
    rest = page.next;
    place.items.push(...page.items);
    const rows = page.items.map(row);
    list.append(...rows);
    shown.hidden = Boolean(table) && !list.firstChild;
    fill(foot, rest ? h("button", { type: "button", onclick: () => more(rest) }, "Show more") : !list.firstChild && empty);
    if (cursor) {
      announce(`${rows.length} more shown.`);
      lead(rows[0] || foot);
    } else if (!rows.length && place.isConnected) announce(empty.textContent);
    place.dispatchEvent(new Event("grown"));
  }

  /** Take a row out and lead on to the one that stands in its place then. */
  place.without = (entry) => {
    const beside = entry.nextElementSibling || entry.previousElementSibling;
    entry.remove();
    if (beside) lead(beside);
    else if (rest) more(rest);
    else lead(fill(foot, empty));
  };

  more();
  return place;
}

/** Move the focus to the first control in a node, or to what it says. */
export function lead(node) {
  focusOn(node.querySelector("a, button, input, summary") || node.firstElementChild || node);
}
