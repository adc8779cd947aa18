// How times, parts of a whole and states are told.

const STEPS = [
  [60, "s"],
  [60, "m"],
  [24, "h"],
  [Infinity, "d"],
];

function span(seconds, whole = Math.floor) {
  let left = Math.max(0, seconds);
  for (const [size, unit] of STEPS) {
    if (left < size) return `${whole(left)}${unit}`;
    left /= size;
  }
  return "";
}

/** "just now", "5m ago", "3h ago", "12d ago". */
export function ago(time) {
  const seconds = (Date.now() - new Date(time)) / 1000;
  return seconds < 60 ? "just now" : `${span(seconds)} ago`;
}

/** "12d left" to the nearest, or "over". */
export function left(time) {
  const seconds = (new Date(time) - Date.now()) / 1000;
  return seconds <= 0 ? "over" : `${span(seconds, Math.round)} left`;
}

/** The whole local date and time. */
export const whole = (time) =>
  new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

export const percent = (part) => `${Math.round(100 * part)} %`;

/** The class of a confidence: low, poor, fair or good. */
export function trust(confidence) {
  if (confidence < 0.3) return "low";
  if (confidence < 0.5) return "poor";
  return confidence < 0.7 ? "fair" : "good";
}

export const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;
