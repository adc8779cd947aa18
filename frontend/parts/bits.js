// Small pieces that several pages show.

import { Away, network } from "../api.js";
import { h } from "../dom.js";
import { ago, trust, whole } from "../format.js";
import { to } from "../router.js";

export const badge = (status) => h("span", { class: `badge ${status}` }, status);

export const chips = (tags) =>
  h("ul", { class: "chips", "aria-label": "Tags" }, [...tags].sort().map((tag) => h("li", { dir: "auto" }, tag)));

export const when = (time) => h("time", { datetime: time, title: whole(time) }, ago(time));

/** Confidence as a bar and a number, and how often it was confirmed. */
export function evidence({ confidence, confirmations }) {
  return h(
    "p",
    { class: "evidence" },
    h("span", { class: `trust ${trust(confidence)}` }, confidence.toFixed(2)),
    " confidence · ",
    `${confirmations} ${confirmations === 1 ? "confirmation" : "confirmations"}`,
  );
}

/** A text of several lines as it was written. */
export const prose = (text, more = {}) => h("p", { class: "prose", dir: "auto", ...more }, text);

export const unitLink = (id, text) => h("a", { href: to(["units", id]), dir: "auto" }, text);

export function spinner(text = "Loading…") {
  return h("p", { class: "waiting", role: "status" }, text);
}

/** What went wrong and a way to try again, which is taken by itself once a server that was away is back. */
export function failed(fault, again) {
  const note = h(
    "div",
    { class: "note bad", role: "alert" },
    h("p", {}, fault.message),
    again && h("button", { type: "button", onclick: () => again() }, "Try again"),
  );
  if (again && fault instanceof Away) {
    network.addEventListener("back", () => note.isConnected && again(), { once: true });
  }
  return note;
}

/** A labelled control; `hint` stands under it. */
export function field(label, control, hint) {
  const id = control.id || `f${(field.count = (field.count || 0) + 1)}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    hint && h("small", { id: `${id}-hint` }, hint),
  );
}

/** Run what a button does once at a time, and say in `line` what went wrong. */
export async function busy(button, line, work) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  line.textContent = "";
  try {
    await work();
  } catch (fault) {
    line.textContent = fault.message;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** A line for what went wrong, read out when it changes. */
export const problem = () => h("p", { class: "problem", role: "alert" });

/** Commas separate tags. */
export const split = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
