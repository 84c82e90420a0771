// A search over the namespace: bounded steps, each with the place to go on from. What was found stays when the reader
// comes back.

import { ApiError, AwayError, call } from "../../lib/api.js";
import { signal } from "../../lib/html.js";

/** Hits after which the search waits for the reader. */
const PAUSE_AFTER = 500;

/** @typedef {Schemas["FoundMessage"]} Hit */
/** `place` is where to go on; null when all was searched.
 * @typedef {{ hits: Hit[], place: { queue?: string, number?: number } | null, error: Error | null,
 *   state: "running" | "stopped" | "paused" | "away" | "failed" | "done" }} Progress */

/** What may be searched for, by the names of the API. */
export const CONDITIONS = /** @type {const} */ ([
  "message_id",
  "correlation_id",
  "sequence_number",
  "session_id",
  "text",
  "filter",
  "json_path",
]);
/** @typedef {typeof CONDITIONS[number]} Condition */

/** The part of a page's query that says what is searched for.
 * @param {Record<string, string>} query
 * @returns {Record<string, string>} */
export const wantedOf = (query) =>
  Object.fromEntries([...CONDITIONS, "state"].filter((name) => query[name]).map((name) => [name, query[name]]));

/** A search of some conditions. */
export class Search {
  /** @param {Record<string, string>} wanted */
  constructor(wanted) {
    this.wanted = wanted;
    /** @type {import("../../lib/html.js").Signal<Progress>} */
    this.progress = signal({ hits: [], place: {}, error: null, state: "stopped" });
    this.aborted = new AbortController();
    /** Whether it goes on by itself when the page is shown again. */
    this.isWanted = true;
  }

  /** @param {Partial<Progress>} change */
  set(change) {
    this.progress.value = { ...this.progress.peek(), ...change };
  }

  /** Goes on from its place. */
  async run() {
    if (this.progress.peek().state === "running" || this.progress.peek().place === null) return;
    this.isWanted = true;
    this.aborted = new AbortController();
    const { signal: aborted } = this.aborted;
    this.set({ state: "running", error: null });
    const most = this.progress.peek().hits.length + PAUSE_AFTER;
    try {
      while (!aborted.aborted) {
        const { hits, place } = this.progress.peek();
        const { state, ...conditions } = this.wanted;
        const query = /** @type {any} */ ({
          ...conditions,
          ...(state ? { state: [state] } : {}),
          from_queue: place?.queue,
          from_number: place?.number,
          limit: 100,
        });
        const found = await call("search_messages", { query, signal: aborted });
        const next = found.next_queue == null ? null : { queue: found.next_queue, number: found.next_number ?? 0 };
        const all = [...hits, ...found.messages];
        const state_ = next === null ? "done" : most <= all.length ? "paused" : "running";
        this.set({ hits: all, place: next, state: state_ });
        if (state_ !== "running") return;
      }
    } catch (error) {
      if (aborted.aborted) return;
      if (!(error instanceof ApiError) && !(error instanceof AwayError)) throw error;
      this.set({ error, state: error instanceof AwayError ? "away" : "failed" });
    }
  }

  /** Stops; what was found and the place stay. `isWanted` says whether it goes on when the page comes back. */
  stop(isWanted = false) {
    if (this.progress.peek().state !== "running") return;
    this.isWanted = isWanted;
    this.aborted.abort();
    this.set({ state: "stopped" });
  }
}

/** The last searches, the newest last: back from a message shows them as they were. @type {Map<string, Search>} */
const kept = new Map();
const KEPT_MAX = 8;

/** Returns the search of some conditions, that of before if there is one.
 * @param {string} session
 * @param {Record<string, string>} wanted */
export function searchFor(session, wanted, isNew = false) {
  const key = JSON.stringify([session, wanted]);
  const before = kept.get(key);
  before?.stop(true);
  const search = before === undefined || isNew ? new Search(wanted) : before;
  kept.delete(key);
  kept.set(key, search);
  for (const old of [...kept.keys()].slice(0, -KEPT_MAX)) kept.delete(old);
  return search;
}

/** How much of the namespace lies before an address, 0 to 1: queues are searched in the order of their paths.
 * @param {string[]} paths of the entities
 * @param {string | undefined} queue */
export function shareBefore(paths, queue) {
  if (queue === undefined || paths.length === 0) return 0;
  const place = queue.toLowerCase();
  return paths.filter((path) => path.toLowerCase() < place).length / paths.length;
}
