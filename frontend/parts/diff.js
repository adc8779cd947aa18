// What an edit changed, word by word.

import { h } from "../dom.js";

const MOST = 2000;

/** [[kind, text]] with kind "same", "gone" or "new": the longest common run of words is kept. */
export function compared(before, after) {
  const old = before.split(/(\s+)/).filter(Boolean);
  const fresh = after.split(/(\s+)/).filter(Boolean);
  if (old.length * fresh.length > MOST * MOST) return [["gone", before], ["new", after]];
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      table[i][j] =
        old[i] === fresh[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const steps = [];
  const add = (kind, text) => {
    const last = steps.at(-1);
    if (last && last[0] === kind) last[1] += text;
    else steps.push([kind, text]);
  };
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      add("same", old[i++]);
      j++;
    } else if (j >= fresh.length || (i < old.length && table[i + 1][j] >= table[i][j + 1])) {
      add("gone", old[i++]);
    } else add("new", fresh[j++]);
  }
  return steps;
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
