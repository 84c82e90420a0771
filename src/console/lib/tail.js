// Messages of a queue as they arrive: looked at, and not locked. The stream of changes tells the number that the next
// message gets; if it has grown, the newest messages are read, once a second and while the page is looked at.

import { ApiError, call } from "./api.js";
import { now, second } from "./clock.js";
import { useEffect, useRef, useState } from "./html.js";

/** Messages that are kept, and those of one look. */
export const ROWS_MAX = 200;
export const LOOK_MAX = 100;

/** @typedef {Schemas["MessageShown"]} Message */
/** What has arrived since `since`: `rows` are the newest, `shown` counts them and those before them. `passed` were not
 * looked at, because more than a look takes came at once; `missing` were not there any more, or do not match. `next` is
 * the number from which on the next look begins. The first look, `isFirst`, finds out whether the broker takes the
 * query.
 * @typedef {{ since: number, next: number, isFirst: boolean, rows: Message[], shown: number, passed: number,
 *   missing: number, error?: Error }} Tail */

/** @param {number} next
 * @returns {Tail} */
export const beginTail = (next) => ({ since: now(), next, isFirst: true, rows: [], shown: 0, passed: 0, missing: 0 });

/** Where a look begins: so near to the end that it takes all that is behind it.
 * @param {Tail} tail
 * @param {number} end the number that the next message gets */
export const lookFrom = (tail, end) => Math.max(tail.next, end - LOOK_MAX);

/** Adds what a look has found.
 * @param {Tail} tail
 * @param {number} from where it began
 * @param {number} end the number that the next message got when it began
 * @param {Schemas["Messages"]} page
 * @returns {Tail} */
export function addLook(tail, from, end, { messages, next }) {
  const reached = next ?? Math.max(end, ...messages.map(({ sequence_number: number }) => number + 1));
  return {
    ...tail,
    next: reached,
    isFirst: false,
    rows: [...messages.toReversed(), ...tail.rows].slice(0, ROWS_MAX),
    shown: tail.shown + messages.length,
    passed: tail.passed + from - tail.next,
    missing: tail.missing + reached - from - messages.length,
    error: undefined,
  };
}

/** Whether the broker would refuse the same query again.
 * @param {Error | undefined} error */
const isRefused = (error) => error instanceof ApiError && error.status === 400;

/** The tail that was shown last: who comes back to it from a message finds it as it was.
 * @type {{ key: string, tail: Tail } | null} */
let last = null;

/** Follows what arrives in an entity.
 * @param {string} path
 * @param {number} end the number that the next message gets
 * @param {Record<string, unknown>} query what messages have to match
 * @param {"running" | "paused"} state
 * @returns {{ tail: Tail, clear: () => void }} */
export function useTail(path, end, query, state) {
  const key = JSON.stringify([history.state?.step, path, query]);
  const [, setShown] = useState(/** @type {Tail | null} */ (null));
  const isBusy = useRef(false);
  if (last?.key !== key || end < last.tail.next - LOOK_MAX) last = { key, tail: beginTail(end) };
  const { tail } = last;
  const set = (/** @type {Tail} */ next) => {
    // An answer that comes late is of another tail.
    if (last?.key !== key) return;
    last = { key, tail: next };
    setShown(next);
  };
  const tick = second.value;
  useEffect(() => {
    if (state === "paused" || isBusy.current || isRefused(tail.error) || (end <= tail.next && !tail.isFirst)) return;
    isBusy.current = true;
    const from = lookFrom(tail, end);
    call("list_messages", { path: { entity: path }, query: { ...query, from, limit: LOOK_MAX } })
      .then(
        (page) => set(addLook(tail, from, end, page)),
        (error) => {
          // While the broker is away the head of the page says so.
          if (error instanceof ApiError) set({ ...tail, error });
        },
      )
      .finally(() => {
        isBusy.current = false;
      });
  }, [tick, key, state]);
  return { tail, clear: () => set(beginTail(Math.max(end, tail.next))) };
}
