// One pending unit at a time, oldest first. A choice is made in two steps, or in one by quick mode.

import { api, Refusal } from "../api.js";
import { announce, fill, focusOn, h } from "../dom.js";
import { many } from "../format.js";
import { failed, problem, spinner, unitLink } from "../parts/bits.js";
import { revisions, similar, unitBody } from "../parts/card.js";
import { CHOICES, Choice, help, quick } from "../parts/choice.js";
import { edit } from "../parts/edit.js";
import { covered, shortcuts } from "../parts/keys.js";
import { Queue, reopened } from "../parts/queue.js";
import { remember } from "../parts/reasons.js";
import { swipeable } from "../parts/swipe.js";
import { to } from "../router.js";

const DONE = { approve: "approved", reject: "rejected" };
const VERBS = { approved: "approve", rejected: "reject" };
const ARROWS = { ArrowLeft: "reject", ArrowRight: "approve", ArrowUp: "skip", ArrowDown: "skip" };
const WRITES = "textarea, select, input:not([type=checkbox], [type=radio])";

// What somebody did since the page was loaded: looking elsewhere and coming back keeps it.
let visit = { who: null };

export default function review(shell) {
  const who = shell.me.username;
  if (visit.who !== who) visit = { who, skipped: new Set(), tally: { approve: 0, reject: 0 }, last: null };
  const page = new Review(shell);
  page.next();
  return { title: "Review", view: page.view, leave: () => page.leave() };
}

class Review {
  constructor(shell) {
    this.shell = shell;
    this.queue = new Queue(visit.skipped, () => this.item?.knowledge_unit.id);
    this.item = null;
    this.choice = null;
    this.committing = false;
    this.left = false;
    // The unit of which a decision was sent and no answer came.
    this.unsure = null;
    // Counts what is shown: whoever waited finds that something else came first.
    this.turn = 0;
    this.note = h("div", { class: "slot", role: "status" });
    this.place = h("div", { class: "stage" });
    this.view = h("div", {}, h("h1", { class: "unseen" }, "Review"), this.note, this.place);
    if (visit.last) this.told();
    this.silence = shortcuts((event) => this.meaning(event));
  }

  leave() {
    this.left = true;
    this.turn += 1;
    this.silence();
  }

  /** Show the next pending unit that was not skipped in this visit. */
  async next() {
    if (this.left) return;
    const turn = ++this.turn;
    this.item = null;
    fill(this.place, spinner());
    try {
      await this.queue.fill();
      if (turn !== this.turn) return;
    } catch (fault) {
      if (turn !== this.turn) return;
      const line = fill(this.place, failed(fault, () => this.next()));
      if (document.activeElement === document.body) line.querySelector("button").focus();
      return;
    }
    this.count(0);
    const item = this.queue.take();
    if (item) this.show(item);
    else this.rest();
  }

  /** Tell the shell how many are pending, so many more than were known. */
  count(more) {
    if (this.queue.total === undefined) return;
    this.queue.total += more;
    this.shell.pending(this.queue.total);
  }

  show(item) {
    this.item = item;
    this.line = problem();
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
    fill(this.place, this.card, this.choice.view, this.choice.more, this.line, help(), similar(item.knowledge_unit.id));
    this.begin(this.heading());
  }

  heading() {
    return this.card.querySelector("#unit-summary");
  }

  /** Lead eye and focus to what is new, unless somebody has just opened the menu. */
  begin(heading) {
    if (this.left) return;
    scrollTo(0, 0);
    if (!covered()) focusOn(heading);
  }

  /** What stands there when nothing waits. */
  rest() {
    const { approve, reject } = visit.tally;
    const hidden = this.queue.passed;
    fill(
      this.place,
      h(
        "section",
        { class: "rest" },
        h("h2", {}, hidden ? `${many(hidden, "unit")} skipped and still pending` : "All caught up"),
        approve + reject > 0 && h("p", {}, `In this visit: ${approve + reject} decided, ${reject} rejected, ${approve} approved.`),
        h(
          "p",
          { class: "row" },
          h("button", { type: "button", class: "main", onclick: () => this.restart() }, hidden ? "Go through them again" : "Look again"),
          h("a", { href: to("dashboard") }, "Dashboard"),
        ),
      ),
    );
    this.begin(this.place.querySelector("h2"));
  }

  restart() {
    visit.skipped.clear();
    this.queue.rewind();
    this.next();
  }

  select(name, tier) {
    const within = this.choice.more.contains(document.activeElement);
    const changes = this.choice.name !== name;
    this.choice.select(name, tier);
    this.card.dataset.choice = name || "";
    if (within && changes) focusOn(this.heading());
  }

  /** A button: the first press selects, the second confirms. */
  press(name) {
    if (this.committing || !this.item) return;
    if (this.choice.name === name || quick()) this.commit(name);
    else this.choose(name, "Press again to confirm.");
  }

  /** An arrow: it selects, however often. */
  point(name) {
    if (quick()) this.commit(name);
    else this.choose(name, "Space confirms.");
  }

  choose(name, how) {
    this.select(name);
    announce(`${CHOICES[name].label} selected. ${how}`);
  }

  publish() {
    const tier = this.choice.tier === "public" ? "private" : "public";
    this.select("approve", tier);
    announce(`${tier === "public" ? "Approve and publish" : "Approve, private,"} selected. Space confirms.`);
  }

  skip() {
    visit.skipped.add(this.item.knowledge_unit.id);
    this.say("Skipped. It stays pending.");
    this.next();
  }

  async commit(name) {
    const { item, choice } = this;
    if (this.committing || !item) return;
    if (name === "skip") {
      this.skip();
      return;
    }
    const { tier, reason } = choice;
    this.busy(true);
    this.line.textContent = "";
    try {
      const { id } = item.knowledge_unit;
      if (name === "approve") await api.approve(id, tier, item.revision);
      else {
        await api.reject(id, reason, item.revision);
        remember(reason);
      }
    } catch (fault) {
      await this.refused(item, name, fault);
      return;
    } finally {
      this.busy(false);
    }
    this.decided(item, name, tier);
  }

  busy(yes) {
    this.committing = yes;
    if (yes) this.place.setAttribute("aria-busy", "true");
    else this.place.removeAttribute("aria-busy");
  }

  decided(item, name, tier) {
    visit.tally[name] += 1;
    visit.last = { item, name, tier };
    this.count(-1);
    this.told();
    this.next();
  }

  told() {
    const { item, name, tier } = visit.last;
    const done = `${name === "approve" && tier === "public" ? "Approved and published" : capital(DONE[name])}: `;
    this.say([done, unitLink(item.knowledge_unit.id, item.knowledge_unit.insight.summary)], "good", "Undo");
  }

  /** A decision was not taken: somebody was faster or changed the words, or the server is in trouble. */
  async refused(item, name, fault) {
    const { id, insight: { summary } } = item.knowledge_unit;
    const status = fault instanceof Refusal ? fault.status : 0;
    if (status === 404 || status === 409) {
      const now = status === 409 && (await api.unit(id).catch(() => null));
      if (now && now.status === "pending") {
        this.say(`${fault.detail}. These are its words now.`, "mild");
        this.show(now);
      } else if (now && this.unsure === id && now.reviewed_by === visit.who && now.status in VERBS) {
        // The answer to the first try was lost, not the decision.
        this.decided(now, VERBS[now.status], now.knowledge_unit.tier);
      } else {
        this.say(`“${summary}”: ${fault.detail}.`, "mild");
        this.next();
      }
      return;
    }
    const sure = (status >= 400 && status < 500) || status === 503;
    if (!sure) this.unsure = id;
    this.select(name, this.choice.tier);
    this.line.textContent = `${fault.message.replace(/\.?$/, ".")} ${sure ? "Nothing was decided." : "Whether it was decided is not known; trying again is safe."}`;
  }

  /** Take the last decision of this visit back; its unit is the next to be decided. */
  async undo() {
    const { last } = visit;
    if (!last || this.committing) return;
    this.committing = true;
    let back;
    try {
      back = await reopened(last.item, DONE[last.name], visit.who);
    } catch (fault) {
      if ([403, 404, 409].includes(fault.status)) visit.last = null;
      this.say(`It could not be taken back: ${fault.message}`, "bad", "Try again");
      return;
    } finally {
      this.committing = false;
    }
    visit.last = null;
    visit.tally[last.name] -= 1;
    if (this.left) return;
    this.turn += 1;
    if (this.item) this.queue.put(this.item);
    this.count(1);
    this.say(`No longer ${DONE[last.name]}: it is pending again.`);
    this.show(back);
  }

  async edit() {
    const { item } = this;
    if (this.committing || !item) return;
    const edited = await edit(item);
    const now = edited || (await api.unit(item.knowledge_unit.id).catch(() => item));
    if (edited) this.say("Saved. It still waits for a decision.");
    else if (now.revision !== item.revision || now.status !== item.status) this.say("It was changed meanwhile.", "mild");
    else return;
    if (now.status === "pending") this.show(now);
    else this.next();
  }

  /** Tell what happened, beside the way back from the last decision. */
  say(content, kind = "", back = "Undo the last decision") {
    const held = this.note.contains(document.activeElement);
    const undo = visit.last && h("button", { type: "button", onclick: () => this.undo() }, back);
    fill(this.note, h("div", { class: `note ${kind}` }, content, undo));
    if (held) focusOn(undo || this.view.querySelector("h1"));
  }

  /** What a key does now, if anything; else it keeps the meaning that it has without this page. */
  meaning({ target, key, shiftKey }) {
    const letter = key.toLowerCase();
    const writes = target.matches(WRITES);
    if (letter === "u" && !writes) return visit.last && (() => this.undo());
    if (!this.item || this.committing) return null;
    const { name } = this.choice;
    if (key === "Escape") return name && (() => { this.select(null); focusOn(this.heading()); });
    if (writes) return null;
    // A focused control is pressed, not the choice confirmed.
    if (key === " " || key === "Enter") return name && !target.closest("a, button, input, summary") && (() => this.commit(name));
    if (key in ARROWS) return !shiftKey && !target.matches("[type=radio]") && (() => this.point(ARROWS[key]));
    return { s: () => this.skip(), e: () => this.edit(), p: () => this.publish() }[letter];
  }
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);
