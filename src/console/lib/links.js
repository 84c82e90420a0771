// Links of clients, and which of them are stuck: the broker says so, with the times and counts that it judges by
// (docs/console.md). Rates are made of what the stream says and what it said before.

import { now, second } from "./clock.js";
import { number, span } from "./format.js";
import { effect } from "./html.js";
import { connections } from "./live.js";
import { S } from "../strings/connections.js";

/** @typedef {Schemas["Connection"]} Connection */
/** @typedef {Schemas["Link"]} Link */
/** How many deliveries a link had at the last looks, the oldest first, by its key. @type {Map<string, { at: number,
 * deliveries: number }[]>} */
const counts = new Map();
/** A rate is that of so many looks, which come every second. */
const RATE_LOOKS = 6;

/** @param {Connection} connection
 * @param {Link} link */
export const linkKey = (connection, link) => `${connection.id} ${link.id}`;

/** Links over which requests and their responses go: `$cbs`, `$management`. Clients make them by themselves.
 * @param {Link} link */
export const isOfRequests = ({ role }) => role === "requests" || role === "responses";

effect(() => {
  second.value;
  const [at, present] = [performance.now(), new Set()];
  for (const connection of connections.value.values()) {
    for (const link of connection.links) {
      if (link.deliveries == null) continue;
      const key = linkKey(connection, link);
      present.add(key);
      const seen = counts.get(key) ?? [];
      counts.set(key, [...seen, { at, deliveries: link.deliveries }].slice(-RATE_LOOKS));
    }
  }
  for (const key of counts.keys()) if (!present.has(key)) counts.delete(key);
});

/** For how long something lasts, by the broker's clock, in milliseconds; null if the broker does not say since when.
 * @param {string | null | undefined} since */
export function ageOf(since) {
  second.value;
  return since == null ? null : Math.max(0, now() - Date.parse(since));
}

/** Says why a receiver is stuck, in words; null if the broker does not say that it is.
 * @param {Link} link
 * @returns {string | null} */
export function whyStuck(link) {
  if (link.stuck == null) return null;
  const [locked, waits] = [number(link.locked ?? 0), number(link.waiting ?? 0)];
  const [idle, age] = [ageOf(link.idle_since), ageOf(link.oldest_lock_at)];
  const lasts = idle === null ? S.notKnown : span(idle);
  return link.stuck === "holding"
    ? S.why.holding(locked, age === null ? "" : span(age), lasts, waits)
    : S.why.silent(lasts, waits);
}

/** Deliveries a second over a link in the last seconds; null if that is not known, as of a link that was attached just
 * now.
 * @param {Connection} connection
 * @param {Link} link */
export function rateOfLink(connection, link) {
  second.value;
  const seen = counts.get(linkKey(connection, link)) ?? [];
  const [first, last] = [seen[0], seen.at(-1)];
  if (first === undefined || last === undefined || last.at <= first.at) return null;
  return ((last.deliveries - first.deliveries) * 1000) / (last.at - first.at);
}

/** The lowest number of the messages of an entity that links have locked: what they hold begins there.
 * @param {Link[]} links
 * @param {string} path */
export function oldestLocked(links, path) {
  let oldest;
  for (const { entity, locked, oldest_locked: number } of links) {
    if (entity !== path || !locked) continue;
    // It is not known of all: the look begins at the beginning.
    if (number == null) return undefined;
    if (oldest === undefined || number < oldest) oldest = number;
  }
  return oldest;
}
