// Where a reader was on a page, so that the way back leads there: what was scrolled how far, and which row was chosen.
// Each step of the browser's history has its own; the memory of the tab keeps them.

import { route } from "./router.js";
import { effect } from "./html.js";

/** What is kept of an element that scrolls: how far, and the key of the chosen row of a table.
 * @typedef {{ top: number, row?: string }} Place */

/** How long a page may take until it is as long as it was, milliseconds. */
const RESTORING_MILLISECONDS = 5_000;
/** For how long it stays where it was, while parts above it are still loaded, milliseconds. */
const HOLDING_MILLISECONDS = 1_000;
/** What a reader does who does not wait for that. */
const INTERRUPTIONS = ["wheel", "pointerdown", "keydown"];

/** @type {Map<string, Place>} */
const places = new Map();

// A step that is new gets a name.
effect(() => {
  route.value;
  if (history.state?.step === undefined)
    history.replaceState({ ...history.state, step: crypto.getRandomValues(new Uint32Array(2)).join("") }, "");
});

/** Returns the place of an element in this step of the history, and a function that keeps a later one.
 * @param {string} name of the element
 * @returns {{ before: Place | undefined, keep: (change: Partial<Place>) => void }} */
export function placeOf(name) {
  const key = `${history.state?.step} ${name}`;
  return {
    before: places.get(key),
    keep: (change) => places.set(key, { ...(places.get(key) ?? { top: 0 }), ...change }),
  };
}

/** Scrolls an element to where it was, as soon as it is long enough, unless the reader does something else before.
 * Parts that are loaded later do not move it for a second. Returns a function that ends that.
 * @param {HTMLElement} element
 * @param {number} top
 * @returns {() => void} */
export function scrollBack(element, top) {
  const ended = new AbortController();
  const end = () => ended.abort();
  for (const event of INTERRUPTIONS)
    addEventListener(event, end, { signal: ended.signal, capture: true, passive: true });
  const until = performance.now() + RESTORING_MILLISECONDS;
  let heldUntil = Infinity;
  const step = () => {
    if (ended.signal.aborted) return;
    const now = performance.now();
    element.scrollTop = top;
    // The top is there at once, and a reader or a program may scroll on from it.
    if (top === 0) return end();
    if (top - 1 <= element.scrollTop) heldUntil = Math.min(heldUntil, now + HOLDING_MILLISECONDS);
    if (now < Math.min(until, heldUntil)) requestAnimationFrame(step);
    else end();
  };
  step();
  return end;
}
