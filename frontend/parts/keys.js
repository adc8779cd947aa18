// The shortcuts of a page. They rest while a dialog or the menu is open, and never repeat.

const OVER = "dialog[open], [popover]:popover-open";

/** Whether something lies over the page and has the keyboard. */
export const covered = () => document.querySelector(OVER) !== null;

/** `meaning(event)` gives what a key does now, if anything; else it keeps the meaning that it has
 *  anyway. Ends with the function that is given back.
 */
export function shortcuts(meaning) {
  let held = null;
  const onkey = (event) => {
    if (event.repeat) {
      // What a key began, its repeats do not go on with: neither here nor where the focus went.
      const presses = event.key === "Enter" && event.target.closest("button");
      if (event.code === held || presses) event.preventDefault();
      return;
    }
    held = null;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || covered()) return;
    const step = meaning(event);
    if (!step) return;
    event.preventDefault();
    held = event.code;
    step();
  };
  document.addEventListener("keydown", onkey);
  return () => document.removeEventListener("keydown", onkey);
}
