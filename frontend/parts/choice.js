// The three choices for a unit, and what the chosen one still asks: a tier, or a reason.

import { fill, h } from "../dom.js";
import { field } from "./bits.js";
import { recent } from "./reasons.js";

export const CHOICES = {
  reject: { label: "Reject", hint: "←" },
  skip: { label: "Skip", hint: "↑ or S" },
  approve: { label: "Approve", hint: "→" },
};

const TIERS = [
  ["private", "Private: for this team's agents"],
  ["public", "Public: for everybody who can reach the server"],
];
const KEYS = [["←", "reject"], ["→", "approve"], ["P", "publish"], ["Space", "confirm"], ["S", "skip"], ["E", "edit"], ["U", "undo"]];
const SHOWN = 60;

/** `name` is what is chosen, or null; `tier` and `reason` go with it. `press(name)` hears the buttons.
 *  `more` belongs below `view`: what unfolds may not push a button away from under the pointer. */
export class Choice {
  constructor(press) {
    this.name = null;
    this.buttons = Object.fromEntries(
      Object.entries(CHOICES).map(([name, { hint }]) => [
        name,
        h("button", { type: "button", class: `choice ${name}`, title: hint, onclick: () => press(name) }),
      ]),
    );
    this.panels = { approve: this.tiers(), reject: this.why(press) };
    this.more = h("div", { class: "more" });
    this.view = h("div", { class: "choices", role: "group", "aria-label": "Decide" }, Object.values(this.buttons));
    this.select(null);
  }

  get reason() {
    return this.input.value.trim();
  }

  /** Publishing ends with the choice to approve: it has to be asked for again. */
  select(name, tier = name === this.name ? this.tier : "private") {
    if (name !== this.name) fill(this.more, this.panels[name]);
    this.name = name;
    this.tier = tier;
    for (const radio of this.radios) radio.checked = radio.value === tier;
    for (const [each, button] of Object.entries(this.buttons)) {
      const label = CHOICES[each].label;
      const published = tier === "public" ? " and publish" : "";
      button.setAttribute("aria-pressed", String(each === name));
      button.textContent = each === name ? `Confirm: ${label.toLowerCase()}${published}` : label;
    }
  }

  tiers() {
    this.radios = TIERS.map(([tier]) =>
      h("input", { type: "radio", name: "tier", value: tier, onchange: () => this.select("approve", tier) }),
    );
    return h(
      "fieldset",
      {},
      h("legend", {}, "Approve as"),
      TIERS.map(([, label], place) => h("label", {}, this.radios[place], ` ${label}`)),
    );
  }

  why(press) {
    const confirms = (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) press("reject");
    };
    this.input = h("textarea", { rows: 2, maxlength: 1000, id: "reason", dir: "auto", onkeydown: confirms });
    const known = recent();
    const again = (text) => () => {
      this.input.value = text;
      this.input.focus();
    };
    return [
      field("Reason for the author (optional)", this.input),
      known.length > 0 &&
        h(
          "p",
          { class: "row", role: "group", "aria-label": "Recent reasons" },
          known.map((text) => h("button", { type: "button", class: "plain", title: text, dir: "auto", onclick: again(text) }, short(text))),
        ),
      h("p", { class: "keys quiet" }, h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), " rejects"),
    ];
  }
}

const short = (text) => (text.length > SHOWN ? `${text.slice(0, SHOWN).trimEnd()}…` : text);

/** The keys, and the switch for quick mode. */
export function help() {
  const onchange = (event) => quick(event.target.checked);
  return h(
    "div",
    { class: "row spread quiet foot" },
    h("span", { class: "keys" }, KEYS.map(([key, verb]) => [h("kbd", {}, key), ` ${verb} `])),
    h("label", {}, h("input", { type: "checkbox", checked: quick(), onchange }), " Quick mode: one press decides, two publish"),
  );
}

/** Whether one press decides; kept for the next visit. */
export function quick(set) {
  try {
    if (set !== undefined) localStorage.setItem("cq-quick", set ? "1" : "");
    return localStorage.getItem("cq-quick") === "1";
  } catch {
    return false;
  }
}
