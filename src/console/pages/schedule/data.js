// What is read of scheduled messages: counts of spans of time, and the messages of one of them.

import { call } from "../../lib/api.js";
import { isoOf } from "../../lib/local-time.js";
import { scaleOf } from "./scale.js";

/** Scheduled messages that one look at the list reads of the broker: it has them in the order of their numbers. */
export const LOOKED_STEP = 2_000;

/** @typedef {Schemas["MessageShown"] & { entity: string }} Row */
/** @typedef {{ scale: import("./scale.js").Scale, counts: number[], total: number, isIncomplete: boolean } | null} Counts null where nothing is scheduled */

/** Counts the scheduled messages of entities in the same spans of time; without a range, in all of their time.
 * @param {string[]} paths
 * @param {import("./scale.js").Range | null} range
 * @param {number} most about so many spans
 * @param {AbortSignal} signal
 * @returns {Promise<Counts>} */
export async function countScheduled(paths, range, most, signal) {
  const whole = range ?? await wholeOf(paths, signal);
  if (whole === null) return null;
  const scale = scaleOf(whole, most);
  const query = { from: isoOf(scale.from), before: isoOf(scale.before), spans: scale.count };
  const all = await Promise.all(paths.map((entity) => call("count_scheduled", { path: { entity }, query, signal })));
  const counts = Array.from({ length: scale.count }, (_, at) => all.reduce((sum, { spans }) => sum + (spans[at]?.messages ?? 0), 0));
  return { scale, counts, total: all.reduce((sum, { total }) => sum + total, 0), isIncomplete: all.some(({ incomplete }) => incomplete) };
}

/** @param {string[]} paths
 * @param {AbortSignal} signal */
async function wholeOf(paths, signal) {
  const all = await Promise.all(paths.map((entity) => call("count_scheduled", { path: { entity }, query: { spans: 1 }, signal })));
  const some = all.filter(({ total }) => total !== 0);
  if (some.length === 0) return null;
  return { from: Math.min(...some.map(({ from }) => Date.parse(from ?? ""))), before: Math.max(...some.map(({ before }) => Date.parse(before ?? ""))) };
}

/** Reads the messages that become active in a time, until as many are found as there are, or `most` were looked at.
 * @param {string[]} paths
 * @param {import("./scale.js").Range} range
 * @param {number} expected
 * @param {number} most
 * @param {AbortSignal} signal
 * @returns {Promise<{ rows: Row[], looked: number, isWhole: boolean }>} */
export async function readScheduled(paths, range, expected, most, signal) {
  /** @type {Row[]} */
  const rows = [];
  let looked = 0;
  for (const entity of paths) {
    /** @type {number | null | undefined} */
    let next = 0;
    while (next != null && rows.length < expected) {
      if (most <= looked) return { rows: inTime(rows), looked, isWhole: false };
      /** @type {Schemas["Messages"]} */
      const page = await call("list_messages", { path: { entity }, query: { state: ["scheduled"], body: "preview", from: next, limit: 100 }, signal });
      looked += page.messages.length;
      for (const message of page.messages) {
        const due = Date.parse(message.scheduled_for ?? "");
        if (range.from <= due && due < range.before) rows.push({ ...message, entity });
      }
      next = page.next;
    }
  }
  return { rows: inTime(rows), looked, isWhole: true };
}

/** @param {Row[]} rows */
const inTime = (rows) => rows.sort((a, b) => Date.parse(a.scheduled_for ?? "") - Date.parse(b.scheduled_for ?? ""));
