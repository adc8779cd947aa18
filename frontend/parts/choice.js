// The three choices for a unit, and what the chosen one still asks: a tier, or a reason.

import { fill, h } from "../dom.js";
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

/** `name` is what is chosen, or null; `tier` and `reason` go with it. `press(name)` hears the buttons. */
export class Choice {
  constructor(press) {
    this.name = null;
    this.tier = "private";
    this.reason = "";
    this.buttons = Object.fromEntries(
      Object.entries(CHOICES).map(([name, { label, hint }]) => [
        name,
        h("button", { type: "button", class: `choice ${name}`, title: hint, onclick: () => press(name) }, label),
      ]),
    );
    this.more = h("div", { class: "more" });
    this.view = h("div", { class: "choices", role: "group", "aria-label": "Decide" }, Object.values(this.buttons));
    this.select(null);
  }

  select(name) {
    this.name = name;
    for (const [each, button] of Object.entries(this.buttons)) {
      const label = CHOICES[each].label;
      const published = each === "approve" && this.tier === "public" ? " and publish" : "";
      button.setAttribute("aria-pressed", String(each === name));
      button.textContent = each === name ? `Confirm: ${label.toLowerCase()}${published}` : label;
    }
    fill(this.more, name === "approve" && this.tiers(), name === "reject" && this.why());
  }

  tiers() {
    const choose = (tier) => {
      this.tier = tier;
      this.select("approve");
      this.more.querySelector("input:checked").focus();
    };
    return h(
      "fieldset",
      {},
      h("legend", {}, "Approve as"),
      TIERS.map(([tier, label]) =>
        h("label", {}, h("input", { type: "radio", name: "tier", value: tier, checked: tier === this.tier, onchange: () => choose(tier) }), ` ${label}`),
      ),
    );
  }

  why() {
    const input = h("textarea", { rows: 2, maxlength: 1000, id: "reason", dir: "auto", value: this.reason, oninput: () => { this.reason = input.value; } });
    const known = recent();
    const again = (text) => () => {
      this.reason = input.value = text;
      input.focus();
    };
    return h(
      "div",
      { class: "field" },
      h("label", { for: "reason" }, "Reason for the author (optional)"),
      input,
      known.length > 0 &&
        h(
          "p",
          { class: "row", role: "group", "aria-label": "Recent reasons" },
          known.map((text) => h("button", { type: "button", class: "plain", onclick: again(text) }, text)),
        ),
    );
  }
}
