// One pending unit at a time, oldest first. A choice is made in two steps, or in one by quick mode.

import { api, Refusal } from "../api.js";
import { announce, fill, focusOn, h } from "../dom.js";
import { many } from "../format.js";
import { failed, spinner, unitLink } from "../parts/bits.js";
import { revisions, similar, unitBody } from "../parts/card.js";
import { CHOICES, Choice } from "../parts/choice.js";
import { edit } from "../parts/edit.js";
import { remember } from "../parts/reasons.js";
import { swipeable } from "../parts/swipe.js";
import { to } from "../router.js";

const DONE = { approve: "Approved", reject: "Rejected" };

export default function review(shell) {
  const page = new Review(shell);
  page.next();
  return { title: "Review", view: page.view, leave: () => page.leave() };
}

class Review {
  constructor(shell) {
    this.shell = shell;
    this.waiting = [];
    this.cursor = null;
    this.ended = false;
    this.skipped = new Set();
    this.tally = { approve: 0, reject: 0 };
    this.item = null;
    this.choice = null;
    this.committing = false;
    this.turn = 0;
    this.last = null;
    this.note = h("div", { class: "slot", role: "status" });
    this.place = h("div", { class: "stage" });
    this.view = h("div", {}, h("h1", { class: "unseen" }, "Review"), this.note, this.place);
    this.onkey = (event) => this.key(event);
    document.addEventListener("keydown", this.onkey);
  }

  leave() {
    document.removeEventListener("keydown", this.onkey);
  }

  /** Show the next pending unit that was not skipped in this visit. */
  async next() {
    const turn = ++this.turn;
    this.item = null;
    fill(this.place, spinner());
    try {
      while (!this.waiting.length && !this.ended) {
        const page = await api.queue(this.cursor);
        this.shell.pending(page.total);
        this.total = page.total;
        this.cursor = page.next_cursor;
        this.ended = !page.next_cursor;
        this.waiting = page.items.filter(({ knowledge_unit: { id } }) => !this.skipped.has(id));
      }
    } catch (fault) {
      if (turn === this.turn) fill(this.place, failed(fault, () => this.next()));
      return;
    }
    // A unit that was taken back meanwhile goes first.
    if (turn !== this.turn) return;
    this.item = this.waiting.shift() || null;
    if (this.item) this.show();
    else this.rest();
  }

  show() {
    const { item } = this;
    this.line = h("p", { class: "problem", role: "alert" });
    this.choice = new Choice((name) => this.press(name));
    this.card = h(
      "article",
      { class: "card", "aria-labelledby": "unit-summary" },
      unitBody(item),
      revisions(item),
      h(
        "p",
        { class: "row" },
        h("button", { type: "button", class: "plain", onclick: () => this.edit() }, "Edit"),
        h("a", { class: "plain", href: to(["units", item.knowledge_unit.id]) }, "Whole history"),
      ),
    );
    swipeable(this.card, (name) => this.commit(name));
    fill(
      this.place,
      this.card,
      this.choice.more,
      this.choice.view,
      this.line,
      this.foot(),
      similar(item.knowledge_unit.id),
    );
    focusOn(this.card.querySelector("#unit-summary"));
  }

  foot() {
    const quick = h("input", {
      type: "checkbox",
      checked: quickMode(),
      onchange: (event) => quickMode(event.target.checked),
    });
    return h(
      "div",
      { class: "row spread quiet foot" },
      h("span", { class: "keys" }, h("kbd", {}, "←"), " reject ", h("kbd", {}, "→"), " approve ", h("kbd", {}, "P"), " publish ", h("kbd", {}, "Space"), " confirm ", h("kbd", {}, "S"), " skip ", h("kbd", {}, "E"), " edit ", h("kbd", {}, "U"), " undo"),
      h("label", {}, quick, " Quick mode: one press decides"),
    );
  }

  /** What stands there when nothing waits. */
  rest() {
    const { approve, reject } = this.tally;
    const decided = approve + reject;
    const hidden = this.skipped.size;
    fill(
      this.place,
      h(
        "section",
        { class: "rest" },
        h("h2", { tabindex: -1 }, hidden ? `${many(hidden, "unit")} skipped and still pending` : "All caught up"),
        decided > 0 && h("p", {}, `In this visit: ${decided} decided, ${reject} rejected, ${approve} approved.`),
        h(
          "p",
          { class: "row" },
          h("button", { type: "button", class: "main", onclick: () => this.restart() }, hidden ? "Go through them again" : "Look again"),
          h("a", { href: to("dashboard") }, "Dashboard"),
        ),
      ),
    );
    focusOn(this.place.querySelector("h2"));
  }

  restart() {
    this.skipped.clear();
    this.cursor = null;
    this.ended = false;
    this.waiting = [];
    this.next();
  }

  select(name) {
    this.choice.select(name);
    this.card.dataset.choice = name || "";
  }

  /** A button or a key: the first press selects, the second confirms. */
  press(name) {
    if (this.committing || !this.item) return;
    if (this.choice.name === name || quickMode()) this.commit(name);
    else {
      this.select(name);
      announce(`${CHOICES[name].label} selected. Press again to confirm.`);
    }
  }

  async commit(name) {
    const { item } = this;
    if (this.committing || !item) return;
    const { id } = item.knowledge_unit;
    const { tier } = this.choice;
    const reason = this.choice.reason.trim();
    if (name === "skip") {
      this.skipped.add(id);
      this.say("Skipped. It stays pending.");
      this.next();
      return;
    }
    this.committing = true;
    this.place.setAttribute("aria-busy", "true");
    this.line.textContent = "";
    try {
      if (name === "approve") await api.approve(id, tier);
      else {
        await api.reject(id, reason);
        remember(reason);
      }
    } catch (fault) {
      if (fault instanceof Refusal && (fault.status === 409 || fault.status === 404)) {
        this.say(`“${item.knowledge_unit.insight.summary}”: ${fault.detail}. Here is the next one.`, "mild");
        this.next();
      } else {
        this.select(name);
        const told = fault instanceof Refusal ? "Nothing was decided." : "Whether it was decided is not known; trying again is safe.";
        this.line.textContent = `${fault.message} ${told}`;
      }
      return;
    } finally {
      this.committing = false;
      this.place.removeAttribute("aria-busy");
    }
    this.tally[name] += 1;
    this.last = { id, name, item };
    this.shell.pending(--this.total);
    this.say(
      [
        `${DONE[name]}${name === "approve" && tier === "public" ? " and published" : ""}: `,
        unitLink(id, item.knowledge_unit.insight.summary),
        h("button", { type: "button", onclick: () => this.undo() }, "Undo"),
      ],
      "good",
    );
    this.next();
  }

  /** Take the last decision of this visit back; its unit is the next to be decided. */
  async undo() {
    const { last } = this;
    if (!last || this.committing) return;
    this.committing = true;
    try {
      await api.reopen(last.id);
      this.last = null;
      this.tally[last.name] -= 1;
      this.shell.pending(++this.total);
      const back = await api.unit(last.id);
      this.turn += 1;
      if (this.item) this.waiting.unshift(this.item);
      this.item = back;
      this.say("Taken back. It is pending again.");
      this.committing = false;
      this.show();
    } catch (fault) {
      this.say(`It could not be taken back: ${fault.message}`, "bad");
    } finally {
      this.committing = false;
    }
  }

  async edit() {
    if (this.committing || !this.item) return;
    const { item } = this;
    const edited = await edit(item);
    if (edited && this.item === item) {
      this.item = edited;
      this.say("Saved. It still waits for a decision.");
      this.show();
    }
  }

  say(content, kind = "") {
    fill(this.note, h("div", { class: `note ${kind}` }, content));
  }

  key(event) {
    const { target, key } = event;
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open], [popover]:popover-open")) return;
    const writes = target.matches("textarea, input:not([type=checkbox]):not([type=radio]), select");
    if (!writes && (key === "u" || key === "U")) this.undo();
    else if (!this.item) return;
    else if (key === "Escape") {
      if (this.choice.name) {
        this.select(null);
        focusOn(this.card.querySelector("#unit-summary"));
      }
    } else if (writes) return;
    else if (key === " " || key === "Enter") {
      // A focused control keeps its own meaning.
      if (this.choice.name && !target.closest("a, button, input, summary")) this.commit(this.choice.name);
      else return;
    } else if (key === "ArrowDown" || key === "ArrowUp") {
      if (target.matches("input")) return;
      this.press("skip");
    } else if (key === "ArrowLeft" && !target.matches("input")) this.press("reject");
    else if (key === "ArrowRight" && !target.matches("input")) this.press("approve");
    else if (key === "s" || key === "S") this.commit("skip");
    else if (key === "e" || key === "E") this.edit();
    else if (key === "p" || key === "P") {
      const { choice } = this;
      choice.tier = choice.tier === "public" ? "private" : "public";
      this.select("approve");
      announce(choice.tier === "public" ? "Approve and publish selected." : "Approve, private, selected.");
    } else return;
    event.preventDefault();
  }
}

/** Whether one press decides; kept for the next visit. */
function quickMode(set) {
  try {
    if (set !== undefined) localStorage.setItem("cq-quick", set ? "1" : "");
    return localStorage.getItem("cq-quick") === "1";
  } catch {
    return false;
  }
}
