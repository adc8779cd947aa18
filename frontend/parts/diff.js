// What an edit changed, word by word.

import { h } from "../dom.js";

const MOST = 3000;

/** [[kind, text]] with kind "same", "gone" or "new": the longest common run of words is kept. */
export function compared(before, after) {
  const [old, fresh] = [words(before), words(after)];
  const short = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < short && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < short - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  const middle = changed(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail));
  return joined([["same", old.slice(0, head).join("")], ...middle, ["same", old.slice(old.length - tail).join("")]]);
}

/** Words, the spaces between them, and what punctuation ends them. */
const words = (text) => text.split(/(\s+|[,.;:!?]+(?=\s|$))/).filter(Boolean);

/** Word by word; what is too long to be compared is all gone and all new. */
function changed(old, fresh) {
  if (old.length * fresh.length > MOST * MOST) return [["gone", old.join("")], ["new", fresh.join("")]];
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      table[i][j] =
        old[i] === fresh[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const steps = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      steps.push(["same", old[i++]]);
      j++;
    } else if (j >= fresh.length || (i < old.length && table[i + 1][j] >= table[i][j + 1])) {
      steps.push(["gone", old[i++]]);
    } else steps.push(["new", fresh[j++]]);
  }
  return steps;
}

/** Steps of a kind as one; a space between two changes is a part of both, so that they read on. */
function joined(steps) {
  const runs = [];
  let gone = "";
  let fresh = "";
  const flush = () => {
    if (gone) runs.push(["gone", gone]);
    if (fresh) runs.push(["new", fresh]);
    gone = fresh = "";
  };
  steps.forEach(([kind, text], place) => {
    const next = steps[place + 1];
    const between = gone && fresh && next && next[0] !== "same" && /^[^\S\n]+$/.test(text);
    if (kind === "gone" || (kind === "same" && between)) gone += text;
    if (kind === "new" || (kind === "same" && between)) fresh += text;
    if (kind !== "same" || between || !text) return;
    flush();
    if (runs.at(-1)?.[0] === "same") runs.at(-1)[1] += text;
    else runs.push(["same", text]);
  });
  flush();
  return runs;
}

const MARKS = { same: "span", gone: "del", new: "ins" };

const marked = (before, after) =>
  h("p", { class: "prose diff", dir: "auto" }, compared(before, after).map(([kind, text]) => h(MARKS[kind], {}, text)));

const FIELDS = [
  ["Summary", (unit) => unit.insight.summary],
  ["Detail", (unit) => unit.insight.detail],
  ["Action", (unit) => unit.insight.action],
  ["Tags", (unit) => unit.domains.join(", ")],
  ["Languages", (unit) => unit.context.languages.join(", ")],
  ["Frameworks", (unit) => unit.context.frameworks.join(", ")],
  ["Pattern", (unit) => unit.context.pattern],
];

/** The fields in which two texts of a unit differ. */
export function difference(before, after) {
  const changed = FIELDS.filter(([, read]) => read(before) !== read(after));
  return h(
    "dl",
    { class: "changes" },
    changed.map(([name, read]) => [h("dt", {}, name), h("dd", {}, marked(read(before), read(after)))]),
  );
}
