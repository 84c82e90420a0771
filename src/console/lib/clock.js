// The broker's clock, as far as answers tell it, and ticks that components follow.

import { signal } from "./html.js";

/** What the broker's clock is ahead, in milliseconds; differences that a slow answer makes count as none. */
let ahead = 0;

/** Takes the header `Date` of an answer.
 * @param {string | null} date */
export function observe(date) {
  const difference = Date.parse(date ?? "") - Date.now();
  if (Number.isFinite(difference)) ahead = Math.abs(difference) < 5_000 ? 0 : difference;
}

/** How far this machine's clock is from the broker's, as far as answers have told, in milliseconds. */
export const clockDifference = () => ahead;

/** Milliseconds by the broker's clock. */
export const now = () => Date.now() + ahead;

/** Counts seconds while the page is visible. */
export const second = signal(0);

/** Counts spans of ten seconds while the page is visible: as long as an interval of the history is. */
export const tenSeconds = signal(0);

/** Counts minutes while the page is visible. */
export const minute = signal(0);

setInterval(() => {
  if (document.hidden) return;
  second.value += 1;
  if (second.value % 10 === 0) tenSeconds.value += 1;
  if (second.value % 60 === 0) minute.value += 1;
}, 1000);
