// The reasons for rejections that were given here lately.

const KEY = "cq-reasons";
const KEPT = 5;

export function recent() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(kept) ? kept.filter((each) => typeof each === "string").slice(0, KEPT) : [];
  } catch {
    return [];
  }
}

export function remember(reason) {
  if (!reason) return;
  try {
    localStorage.setItem(KEY, JSON.stringify([reason, ...recent().filter((each) => each !== reason)].slice(0, KEPT)));
  } catch {
    // A browser that keeps nothing forgets this, too.
  }
}
