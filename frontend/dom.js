// The one maker of nodes. Text becomes text nodes, so nothing that a unit says is ever markup.

const SVG = "http://www.w3.org/2000/svg";

/** h("a", {href: "#/", class: "x", onclick: f}, "text", [more], cond && node); "svg:path" for SVG. */
export function h(tag, props = {}, ...children) {
  const node = tag.startsWith("svg:")
    ? document.createElementNS(SVG, tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...flat(children));
  return node;
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== true)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

/** Put these in the place of what a node holds. */
export function fill(node, ...children) {
  node.replaceChildren(...flat(children));
  return node;
}

/** Have a screen reader say it; twice the same text is said twice. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (!region) return;
  region.textContent = "";
  setTimeout(() => {
    region.textContent = text;
  }, 30);
}

/** Move the focus to what was just shown, without making it a stop of the Tab key. */
export function focusOn(node) {
  if (!node.matches("button, a[href], input, select, textarea, [tabindex]")) node.tabIndex = -1;
  node.focus({ preventScroll: false });
}
