// Deciding by touch: to the right approves, to the left rejects. Up and down scroll, as ever, and a
// mouse selects text.

const START = 10;
const PART = 0.4;

/** `decide(name)` is called when a finger lets go far enough to one side. */
export function swipeable(card, decide) {
  let from = null;
  let across = 0;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  const reset = () => {
    from = null;
    across = 0;
    card.style.removeProperty("transform");
    delete card.dataset.swipe;
  };
  const ready = () => Math.abs(across) >= PART * card.clientWidth;

  card.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && event.isPrimary && !event.target.closest("a, button, summary")) {
      from = { x: event.clientX, y: event.clientY, id: event.pointerId };
    }
  });
  card.addEventListener("pointermove", (event) => {
    if (!from || event.pointerId !== from.id) return;
    const x = event.clientX - from.x;
    const y = event.clientY - from.y;
    if (!across && (Math.abs(x) < START || Math.abs(x) < 1.5 * Math.abs(y))) return;
    if (!across) card.setPointerCapture(from.id);
    across = x || 1;
    if (!calm.matches) card.style.transform = `translateX(${x}px) rotate(${x / 100}deg)`;
    card.dataset.swipe = `${x > 0 ? "approve" : "reject"}${ready() ? " ready" : ""}`;
  });
  card.addEventListener("pointerup", () => {
    const name = from && ready() ? (across > 0 ? "approve" : "reject") : null;
    reset();
    if (name) decide(name);
  });
  card.addEventListener("pointercancel", reset);
}
