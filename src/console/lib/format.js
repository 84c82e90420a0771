// Numbers, sizes and times as texts, in the reader's language and zone.

import { now } from "./clock.js";
import { S } from "../strings/common.js";

/** The reader's language; English where the browser's own tag for it is refused (`en-US@posix` of some Linux
 * systems). */
export const locale = (() => {
  try {
    return new Intl.NumberFormat().resolvedOptions().locale;
  } catch {
    return "en";
  }
})();

const whole = new Intl.NumberFormat(locale);
const short = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const tenth = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const oneDigit = new Intl.NumberFormat(locale, { maximumSignificantDigits: 1 });
/** A rate below it is only said to be lower: one message in a quarter of an hour is about it. */
const LEAST_RATE = 0.001;
const dateTime = new Intl.DateTimeFormat(locale, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const dayAndTime = new Intl.DateTimeFormat(locale, { weekday: "short", hour: "2-digit", minute: "2-digit" });
const timeOnly = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** @param {number | bigint} value */
export const number = (value) => whole.format(value);

/** @param {number} value */
export const compact = (value) => (Math.abs(value) < 10_000 ? tenth.format(value) : short.format(value));

/** Sequence numbers and other names that are digits: without separators, to be copied.
 * @param {number | bigint} value */
export const digits = (value) => String(value);

/** Messages a second, in few digits: one that is not zero is not shown as zero.
 * @param {number | null} perSecond null if it is not known yet */
export function rate(perSecond) {
  if (perSecond === null) return "–";
  if (perSecond === 0) return "0";
  if (perSecond < LEAST_RATE) return `< ${oneDigit.format(LEAST_RATE)}`;
  if (perSecond < 0.1) return oneDigit.format(perSecond);
  return perSecond < 100 ? tenth.format(perSecond) : compact(Math.round(perSecond));
}

/** A value of an axis whose values are a step apart: with the digits that tell it from its neighbours.
 * @param {number} value @param {number} step */
export const tick = (value, step) => {
  const fraction = step < 1 ? (String(step).split(".")[1]?.length ?? 0) : 1;
  return new Intl.NumberFormat(locale, { maximumFractionDigits: fraction }).format(value);
};

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  while (1024 <= value && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && 0 < unit ? tenth.format(value) : whole.format(Math.round(value))} ${units[unit]}`;
}

/** @param {string} iso */
export const utc = (iso) =>
  `${new Date(iso)
    .toISOString()
    .replace("T", " ")
    .replace(/\.?0*Z$/, "")} UTC`;

/** @param {string | number} at */
export const local = (at) => dateTime.format(new Date(at));

/** @param {number} at milliseconds */
export const clock = (at) => timeOnly.format(new Date(at));

/** @param {number} at milliseconds, within some days */
export const dayClock = (at) => dayAndTime.format(new Date(at));

/** How long something lasts, in its two largest units at most: `40m`, `1h 5m`.
 * @param {number} milliseconds */
export function span(milliseconds) {
  const seconds = Math.round(Math.abs(milliseconds) / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return units(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "m");
  return units(Math.floor(seconds / 86_400), "d", Math.floor((seconds % 86_400) / 3600), "h");
}

/** @param {number} large @param {string} of @param {number} small @param {string} below */
const units = (large, of, small, below) => `${large}${of}${small === 0 ? "" : ` ${small}${below}`}`;

/** A time, relative to now if that is less than a day away.
 * @param {string} iso */
export function relative(iso) {
  const ahead = Date.parse(iso) - now();
  if (86_400_000 <= Math.abs(ahead)) return local(iso);
  if (Math.abs(ahead) < 1500) return S.now;
  return ahead < 0 ? S.ago(span(ahead)) : S.ahead(span(ahead));
}

/** Shows an ISO 8601 duration as the command line does, `1h 30m`; the largest that the service has means never.
 * @param {string} iso */
export function duration(iso) {
  const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(iso);
  if (found === null) return iso;
  const [, days, hours, minutes, seconds] = found.map((part) => Number(part ?? 0));
  if (3_650_000 < days) return S.never;
  const parts = [
    [days, "d"],
    [hours, "h"],
    [minutes, "m"],
    [seconds, "s"],
  ].filter(([count]) => count !== 0);
  return parts.length === 0 ? "0s" : parts.map(([count, unit]) => `${tenth.format(Number(count))}${unit}`).join(" ");
}

/** Takes a path apart: what is shown of a subscription below its topic.
 * @param {string} path */
export function lastName(path) {
  const at = path.toLowerCase().lastIndexOf("/subscriptions/");
  return at === -1 ? path : path.slice(at + "/subscriptions/".length);
}

/** The topic of a subscription's path; null of others.
 * @param {string} path */
export function topicOf(path) {
  const at = path.toLowerCase().lastIndexOf("/subscriptions/");
  return at === -1 ? null : path.slice(0, at);
}
