// Links of clients, and which of them are stuck: what the stream says of a link is compared with what it said before.

import { call } from "./api.js";
import { second } from "./clock.js";
import { number, span } from "./format.js";
import { computed, effect, signal } from "./html.js";
import { connections, entities } from "./live.js";
import { S } from "../strings/connections.js";

/** @typedef {Schemas["Connection"]} Connection */
/** @typedef {Schemas["Link"]} Link */
/** Why a link stands out. `isAlarm` if a person is needed: others wait for it.
 * @typedef {{ why: string, isAlarm: boolean }} Trouble */

/** A receiver without credit is stuck after so long: the time of one message is not. */
const STUCK_MILLISECONDS = 10_000;
/** Messages are held for long after so long. */
const OLD_MILLISECONDS = 30_000;
/** Entities whose locked messages are looked at, and how often. */
const WATCHED_MAX = 8;
const WATCH_SECONDS = 3;

/** What a link was like, and since when it is so, by its key. @type {Map<string, { mark: string, at: number }>} */
const marks = new Map();
/** How many deliveries a link had at the last looks, the oldest first, by its key. @type {Map<string, { at: number, deliveries: number }[]>} */
const counts = new Map();
/** A rate is that of so many looks, which come every second. */
const RATE_LOOKS = 6;
/** Since when messages are seen to be held, by entity, then by connection and number. @type {Map<string, Map<string, number>>} */
const held = new Map();
/** Counts looks at held messages. */
const looks = signal(0);

/** @param {Connection} connection
 * @param {Link} link */
export const linkKey = (connection, link) => `${connection.id} ${link.id}`;

/** Messages that no receiver has.
 * @param {string} path */
function waiting(path) {
  const entity = entities.value.get(path);
  return entity === undefined ? 0 : Math.max(0, entity.active - entity.locked);
}

effect(() => {
  second.value;
  const [now, present] = [performance.now(), new Set()];
  for (const connection of connections.value.values()) {
    for (const link of connection.links) {
      const key = linkKey(connection, link);
      present.add(key);
      if (link.deliveries != null) {
        const seen = counts.get(key) ?? [];
        counts.set(key, [...seen, { at: now, deliveries: link.deliveries }].slice(-RATE_LOOKS));
      }
      if (link.role !== "receiver") continue;
      const entity = entities.peek().get(link.entity);
      const settled = entity === undefined ? 0 : entity.completed + entity.abandoned + entity.dead_lettered + entity.locks_expired + entity.deferred;
      const mark = `${link.credit} ${link.locked} ${link.deliveries} ${settled}`;
      if (marks.get(key)?.mark !== mark) marks.set(key, { mark, at: now });
    }
  }
  for (const key of marks.keys()) if (!present.has(key)) marks.delete(key);
  for (const key of counts.keys()) if (!present.has(key)) counts.delete(key);
});

/** For how long nothing has happened on a link, in milliseconds.
 * @param {Connection} connection
 * @param {Link} link */
const stillFor = (connection, link) => performance.now() - (marks.get(linkKey(connection, link))?.at ?? Infinity);

/** For how long the oldest message of a link is held, as far as this page has seen, in milliseconds.
 * @param {Connection} connection
 * @param {Link} link */
export function heldFor(connection, link) {
  second.value;
  looks.value;
  if (!link.locked) return 0;
  const seen = held.get(link.entity);
  // Other receivers of the entity settle too: only the messages themselves tell.
  if (seen === undefined) return Math.max(0, stillFor(connection, link));
  let first = Infinity;
  for (const [key, at] of seen) if (key.startsWith(`${connection.id} `)) first = Math.min(first, at);
  return first === Infinity ? 0 : performance.now() - first;
}

/** Says why a link stands out, or null.
 * @param {Connection} connection
 * @param {Link} link
 * @returns {Trouble | null} */
export function troubleOf(connection, link) {
  if (link.role !== "receiver") return null;
  second.value;
  const [locked, waits] = [link.locked ?? 0, waiting(link.entity)];
  const age = heldFor(connection, link);
  if (link.credit === 0 && 0 < locked && 0 < waits && STUCK_MILLISECONDS <= age) {
    return { why: S.why.stuck(number(locked), span(age), number(waits)), isAlarm: true };
  }
  if (0 < locked && OLD_MILLISECONDS <= age) return { why: S.why.old(number(locked), span(age)), isAlarm: 0 < waits };
  if (link.credit === 0 && locked === 0 && 0 < waits && STUCK_MILLISECONDS <= stillFor(connection, link)) {
    return { why: S.why.silent(number(waits)), isAlarm: sharers.value.get(`receiver ${link.entity}`)?.busy === 0 };
  }
  return null;
}

/** Links of each role to each entity: how many, and how many of them take messages or hold some. */
const sharers = computed(() => {
  /** @type {Map<string, { links: number, busy: number }>} */
  const found = new Map();
  for (const { links } of connections.value.values()) {
    for (const { entity, role, credit, locked } of links) {
      const key = `${role} ${entity}`;
      const { links: count, busy } = found.get(key) ?? { links: 0, busy: 0 };
      found.set(key, { links: count + 1, busy: busy + (credit || locked ? 1 : 0) });
    }
  }
  return found;
});

/** Deliveries a second over a link in the last seconds; null if that is not known, as of a link that was attached just now.
 * @param {Connection} connection
 * @param {Link} link */
export function rateOfLink(connection, link) {
  second.value;
  const seen = counts.get(linkKey(connection, link)) ?? [];
  const [first, last] = [seen[0], seen.at(-1)];
  if (first === undefined || last === undefined || last.at <= first.at) return null;
  return ((last.deliveries - first.deliveries) * 1000) / (last.at - first.at);
}

/** Looks at held messages again and again until the returned function is called: since when they are held is known from then on. */
export function watchHeld() {
  const ended = new AbortController();
  let isBusy = false;
  const stop = effect(() => {
    if (second.value % WATCH_SECONDS !== 0 || isBusy) return;
    isBusy = true;
    look(ended.signal).finally(() => {
      isBusy = false;
    });
  });
  return () => {
    stop();
    ended.abort();
    held.clear();
  };
}

/** The lowest number of the messages of an entity that links have locked: what they hold begins there.
 * @param {Link[]} links
 * @param {string} path */
export function oldestLocked(links, path) {
  let oldest;
  for (const { entity, oldest_locked: number } of links) if (entity === path && number != null && !(oldest !== undefined && oldest <= number)) oldest = number;
  return oldest;
}

/** @param {AbortSignal} signal */
async function look(signal) {
  const all = [...connections.peek().values()].flatMap(({ links }) => links).filter(({ role }) => role === "receiver");
  /** @type {Map<string, number>} */
  const locked = new Map();
  for (const link of all) if (link.locked) locked.set(link.entity, (locked.get(link.entity) ?? 0) + link.locked);
  for (const path of held.keys()) if (!locked.has(path)) held.delete(path);
  const watched = [...locked].sort((a, b) => b[1] - a[1]).slice(0, WATCHED_MAX);
  for (const [path] of watched) {
    try {
      const { messages } = await call("list_messages", { path: { entity: path }, query: { body: "none", limit: 100, from: oldestLocked(all, path) }, signal });
      const before = held.get(path);
      const now = performance.now();
      const seen = new Map();
      for (const { lock, sequence_number: at } of messages) {
        const key = `${lock?.holder?.connection} ${at}`;
        if (lock?.holder) seen.set(key, before?.get(key) ?? now);
      }
      held.set(path, seen);
    } catch {
      // The next look may be better; the head of the page says if the broker is away.
    }
    if (signal.aborted) {
      held.clear();
      return;
    }
  }
  looks.value += 1;
}
