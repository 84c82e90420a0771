// The entries of the log: read page by page, the newest first; new ones come to the beginning.

import { call } from "../../lib/api.js";
import { tenSeconds } from "../../lib/clock.js";
import { useEffect, useRef, useState } from "../../lib/html.js";
import { returns } from "../../lib/live.js";

/** @typedef {Schemas["Entry"]} Entry */
/** `before` is where older ones are; null when there are none.
 * @typedef {{ entries: Entry[], before: number | null | undefined, error: Error | undefined, isBusy: boolean }} Log */

const LIMIT = 100;

/** @returns {Log & { more: () => Promise<void> }} */
export function useLog() {
  const [log, setLog] = useState(
    /** @type {Log} */ ({ entries: [], before: undefined, error: undefined, isBusy: false }),
  );
  const latest = useRef(log);
  const ended = useRef(new AbortController());
  const set = (/** @type {Partial<Log>} */ change) => {
    latest.current = { ...latest.current, ...change };
    setLog(latest.current);
  };
  const read = async (/** @type {(aborted: AbortSignal) => Promise<Partial<Log>>} */ work) => {
    if (latest.current.isBusy) return;
    const { signal } = ended.current;
    set({ isBusy: true });
    try {
      const change = await work(signal);
      if (!signal.aborted) set({ error: undefined, ...change });
    } catch (error) {
      if (!signal.aborted) set({ error: /** @type {Error} */ (error) });
    } finally {
      if (!signal.aborted) set({ isBusy: false });
    }
  };
  const newest = () =>
    read(async (signal) => {
      const { entries: before } = latest.current;
      const { entries, next_before: next } = await call("list_audit", { query: { limit: LIMIT }, signal });
      const isJoined = before.length !== 0 && entries.some(({ number }) => number <= before[0].number);
      if (!isJoined) return { entries, before: next ?? null };
      const fresh = entries.filter(({ number }) => before[0].number < number);
      return fresh.length === 0 ? {} : { entries: [...fresh, ...before] };
    });
  const more = () =>
    read(async (signal) => {
      const { entries, before } = latest.current;
      if (before == null) return {};
      const found = await call("list_audit", { query: { before, limit: LIMIT }, signal });
      return { entries: [...entries, ...found.entries], before: found.next_before ?? null };
    });
  useEffect(() => {
    ended.current = new AbortController();
    return () => ended.current.abort();
  }, []);
  useEffect(() => void newest(), [returns.value, tenSeconds.value]);
  return { ...log, more };
}

/** What entries are chosen by: names of the page's query.
 * @typedef {{ who: string, operation: string, entity: string, from: number | null, until: number | null }} Wanted */

/** Returns whether an entry is wanted. Texts are looked for without regard of capital letters.
 * @param {Entry} entry
 * @param {Wanted} wanted */
export function isWanted(entry, { who, operation, entity, from, until }) {
  const has = (/** @type {string | undefined} */ text, /** @type {string} */ part) =>
    (text ?? "").toLowerCase().includes(part.toLowerCase());
  const at = Date.parse(entry.at);
  return (
    (has(entry.actor, who) || has(entry.peer, who)) &&
    (operation === "" || entry.operation === operation) &&
    has(entry.entity, entity) &&
    (from === null || from <= at) &&
    (until === null || at < until)
  );
}
