// Spans of time with round beginnings, and their texts.

import { locale, span } from "../../lib/format.js";

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30].map((count) => count * DAY),
];
/** The shortest time that is shown. */
export const RANGE_MIN = 10 * SECOND;

/** A time in equal steps. Times are milliseconds.
 * @typedef {{ from: number, before: number, step: number, count: number }} Scale */
/** @typedef {{ from: number, before: number }} Range */

/** Divides a time into at most about so many steps.
 * @param {Range} range
 * @param {number} most
 * @returns {Scale} */
export function scaleOf({ from, before }, most) {
  const length = Math.max(before - from, RANGE_MIN);
  const step = STEPS.find((each) => length / each <= most) ?? Math.ceil(length / most / (30 * DAY)) * 30 * DAY;
  // Days begin at midnight of the reader.
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  const begin = Math.floor((from - zone) / step) * step + zone;
  const count = Math.max(1, Math.ceil((from + length - begin) / step));
  return { from: begin, before: begin + count * step, step, count };
}

/** Makes a range longer or shorter around a time in it.
 * @param {Range} range
 * @param {number} factor
 * @param {number} [around]
 * @returns {Range} */
export function zoomed({ from, before }, factor, around = (from + before) / 2) {
  const length = Math.max(RANGE_MIN, (before - from) * factor);
  const share = (around - from) / (before - from);
  const begin = Math.max(0, Math.round(around - length * share));
  return { from: begin, before: begin + Math.round(length) };
}

/** @param {Intl.DateTimeFormatOptions} options */
const formatter = (options) => new Intl.DateTimeFormat(locale, options);
const withSeconds = formatter({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const withMinutes = formatter({ hour: "2-digit", minute: "2-digit" });
const onDay = formatter({ day: "numeric", month: "short" });
const inYear = formatter({ day: "numeric", month: "short", year: "numeric" });
const dayAndMinutes = formatter({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const dayAndSeconds = formatter({
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** The text of a place on a scale: as short as the scale allows.
 * @param {number} at
 * @param {Scale} scale */
export function tickOf(at, { from, before, step }) {
  if (300 * DAY < before - from) return inYear.format(at);
  if (DAY <= step || (3 * DAY < before - from && isMidnight(at))) return onDay.format(at);
  if (20 * HOUR < before - from) return dayAndMinutes.format(at);
  return (step < MINUTE ? withSeconds : withMinutes).format(at);
}

/** The text of a time from one moment to another.
 * @param {Range} range
 * @param {Scale} scale */
export const rangeText = ({ from, before }, { step }) =>
  (DAY <= step ? inYear : step < MINUTE ? dayAndSeconds : dayAndMinutes).formatRange(from, before);

/** How long a step is.
 * @param {number} step */
export const stepText = (step) => span(step);

/** @param {number} at */
function isMidnight(at) {
  const moment = new Date(at);
  return moment.getHours() === 0 && moment.getMinutes() === 0;
}
