// What waits for a decision, oldest first, without what was skipped in this visit.

import { api, Refusal } from "../api.js";

const idOf = (item) => item.knowledge_unit.id;

/** A walk through the pending units; `total` is how many there were when it was last asked, and
 *  `shown()` the id of the one that is looked at. */
export class Queue {
  constructor(skipped, shown) {
    this.skipped = skipped;
    this.shown = shown;
    this.loading = null;
    this.rewind();
  }

  /** Begin with the oldest again. `passed` counts the skipped ones that this walk came by. */
  rewind() {
    this.waiting = [];
    this.cursor = null;
    this.ended = false;
    this.passed = 0;
  }

  /** Fetch until something waits or nothing is left. Calls that overlap share one walk. */
  fill() {
    this.loading ||= this.walk().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  async walk() {
    let whole = !this.ended && this.cursor === null;
    while (!this.waiting.length) {
      if (this.ended) {
        if (whole) return;
        // All were seen, but more may have come meanwhile: go through the whole once more.
        this.rewind();
        whole = true;
      }
      const page = await api.queue(this.cursor);
      const open = page.items.filter((item) => !this.skipped.has(idOf(item)));
      this.total = page.total;
      this.passed += page.items.length - open.length;
      this.waiting.push(...open.filter((item) => idOf(item) !== this.shown()));
      this.cursor = page.next_cursor;
      this.ended = !page.next_cursor;
    }
  }

  take() {
    return this.waiting.shift() || null;
  }

  /** It comes next. */
  put(item) {
    this.waiting.unshift(item);
  }
}

/** The item once its decision is taken back; one that was decided anew since by others stays so. */
export async function reopened(item, status, who) {
  const now = await api.unit(idOf(item));
  // The answer to an earlier try was lost.
  if (now.status === "pending") return now;
  if (now.status !== status || now.reviewed_by !== who) {
    throw new Refusal(409, `it is ${now.status} by ${now.reviewed_by} since.`);
  }
  await api.reopen(idOf(item));
  return { ...now, status: "pending", reviewed_by: null, reviewed_at: null, reason: null };
}
