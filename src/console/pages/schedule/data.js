// What is read of scheduled messages: counts of spans of time, and the messages of one of them.

import { call } from "../../lib/api.js";
import { isoOf } from "../../lib/local-time.js";
import { RANGE_MIN, scaleOf } from "./scale.js";

/** Messages that are read at first, and more each time the reader asks: the broker has them in the order of their
 * numbers. */
export const READ_STEP = 2_000;
/** Requests for one list: each looks at a bounded number of messages. */
const REQUESTS_MAX = 200;
/** Spans in which few messages far behind the others are looked for, and how often. */
const [SPANS, ROUNDS] = [100, 4];
/** Messages are far behind if they are at most one of so many. */
const FEW = 10;

/** @typedef {Schemas["MessageShown"] & { entity: string }} Row */
/** @typedef {import("./scale.js").Range} Range */

/** `later` are few messages far behind those that are counted; `whole` has them too.
 * @typedef {{ scale: import("./scale.js").Scale, counts: number[], total: number, isIncomplete: boolean, later: number,
 *   whole: Range }} Counted */
/** @typedef {Counted | null} Counts null where nothing is scheduled */

/** Counts the scheduled messages of entities in the same spans of time; without a range, in the time that has them, but
 * for few that are far behind.
 * @param {string[]} paths
 * @param {Range | null} range
 * @param {number} most about so many spans
 * @param {AbortSignal} signal
 * @returns {Promise<Counts>} */
export async function countScheduled(paths, range, most, signal) {
  const whole = range ?? (await wholeOf(paths, signal));
  if (whole === null) return null;
  const main = range === null ? await mainOf(paths, whole, signal) : { range: whole, later: 0 };
  const scale = scaleOf(main.range, most);
  return { scale, ...(await countsOf(paths, scale, scale.count, signal)), later: main.later, whole };
}

/** @param {string[]} paths
 * @param {Range} range
 * @param {number} spans
 * @param {AbortSignal} signal */
async function countsOf(paths, range, spans, signal) {
  const query = { from: isoOf(range.from), before: isoOf(range.before), spans };
  const all = await Promise.all(paths.map((entity) => call("count_scheduled", { path: { entity }, query, signal })));
  const counts = Array.from({ length: spans }, (_, at) =>
    all.reduce((sum, { spans: of }) => sum + (of[at]?.messages ?? 0), 0),
  );
  return {
    counts,
    total: all.reduce((sum, { total }) => sum + total, 0),
    isIncomplete: all.some(({ incomplete }) => incomplete),
  };
}

/** @param {string[]} paths
 * @param {AbortSignal} signal
 * @returns {Promise<Range | null>} */
async function wholeOf(paths, signal) {
  const all = await Promise.all(
    paths.map((entity) => call("count_scheduled", { path: { entity }, query: { spans: 1 }, signal })),
  );
  const some = all.filter(({ total }) => total !== 0);
  if (some.length === 0) return null;
  return {
    from: Math.min(...some.map(({ from }) => Date.parse(from ?? ""))),
    before: Math.max(...some.map(({ before }) => Date.parse(before ?? ""))),
  };
}

/** The time without the few messages that are far behind the others: one that is ten years ahead leaves two bars of all
 * the rest.
 * @param {string[]} paths
 * @param {Range} whole
 * @param {AbortSignal} signal
 * @returns {Promise<{ range: Range, later: number }>} */
async function mainOf(paths, whole, signal) {
  let range = whole;
  let [all, later] = [0, 0];
  for (let round = 0; round < ROUNDS && RANGE_MIN < range.before - range.from; round += 1) {
    const { counts } = await countsOf(paths, range, SPANS, signal);
    const sum = (/** @type {number[]} */ some) => some.reduce((before, count) => before + count, 0);
    if (round === 0) all = sum(counts);
    const cut = gapOf(counts);
    const behind = cut === null ? 0 : sum(counts.slice(cut));
    if (cut === null || all < (later + behind) * FEW) break;
    later += behind;
    range = { from: range.from, before: range.from + Math.ceil(((range.before - range.from) * cut) / SPANS) };
  }
  return later === 0 ? { range: whole, later } : { range, later };
}

/** Where the longest time without messages begins, if it is longer than half of all.
 * @param {number[]} counts
 * @returns {number | null} */
function gapOf(counts) {
  let begin = 0;
  for (let at = 0; at <= counts.length; at += 1) {
    if (at < counts.length && counts[at] === 0) continue;
    if (counts.length < (at - begin) * 2) return begin === 0 ? null : begin;
    begin = at + 1;
  }
  return null;
}

/** Reads the messages that become active in a time, as many as there are, or `most`.
 * @param {string[]} paths
 * @param {Range} range
 * @param {number} most
 * @param {AbortSignal} signal
 * @returns {Promise<{ rows: Row[], isWhole: boolean }>} */
export async function readScheduled(paths, range, most, signal) {
  /** @type {Row[]} */
  const rows = [];
  const query = {
    scheduled_from: isoOf(range.from),
    scheduled_before: isoOf(range.before),
    body: /** @type {const} */ ("preview"),
    limit: 100,
  };
  let requests = 0;
  for (const entity of paths) {
    /** @type {number | null | undefined} */
    let next = 0;
    while (next != null) {
      if (most <= rows.length || REQUESTS_MAX <= requests) return { rows: inTime(rows), isWhole: false };
      requests += 1;
      /** @type {Schemas["Messages"]} */
      const page = await call("list_messages", {
        path: { entity },
        query: { ...query, state: ["scheduled"], from: next },
        signal,
      });
      for (const message of page.messages) rows.push({ ...message, entity });
      next = page.next;
    }
  }
  return { rows: inTime(rows), isWhole: true };
}

/** @param {Row[]} rows */
const inTime = (rows) => rows.sort((a, b) => Date.parse(a.scheduled_for ?? "") - Date.parse(b.scheduled_for ?? ""));
