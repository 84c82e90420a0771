// The history of the namespace or of an entity over an hour, a day or a week, kept up to date.

import { ApiError, call } from "./api.js";
import { minute, tenSeconds } from "./clock.js";
import { useEffect, useRef, useState } from "./html.js";
import { useResource } from "./resource.js";

/** @typedef {Schemas["HistoryShown"]} History */
/** @typedef {Schemas["HistoryRange"]} Range */

/** What each range covers, in milliseconds. @type {Record<Range, number>} */
const SPANS = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 };

export const RANGES = /** @type {Range[]} */ (Object.keys(SPANS));

/** The range that is in the address.
 * @param {Record<string, string>} query
 * @returns {Range} */
export const rangeOf = ({ range }) => RANGES.find((each) => each === range) ?? "hour";

/** Returns the history of a range; of an entity if there is a path.
 * @param {string | undefined} path
 * @param {Range} range
 * @returns {import("./resource.js").Resource<History>} */
export function useHistory(path, range) {
  const resource = useResource((signal) => read(path, range, undefined, signal), [path, range]);
  const [shown, setShown] = useState(/** @type {History | undefined} */ (undefined));
  /** @type {{ current: History | undefined }} */
  const newest = useRef(undefined);
  const take = (/** @type {History | undefined} */ next) => {
    newest.current = next;
    setShown(next);
  };
  useEffect(() => take(resource.data), [resource.data]);
  const tick = range === "hour" ? tenSeconds.value : minute.value;
  useEffect(() => {
    const known = newest.current;
    if (known === undefined || known.range !== range) return undefined;
    const aborted = new AbortController();
    // The last interval that is known comes again, and with it the gap behind it.
    read(path, range, known.points.at(-2)?.at, aborted.signal).then(
      (next) => take(merged(known, next)),
      () => {
        // The next time may be better; the head of the page says if the broker is away.
      },
    );
    return () => aborted.abort();
  }, [tick, path, range]);
  return { ...resource, data: resource.data === undefined ? undefined : (shown ?? resource.data) };
}

/** What is known with what has come since, without what is too old.
 * @param {History} known
 * @param {History} next
 * @returns {History} */
function merged(known, next) {
  const [points, gaps] = [
    joined(known.points, next.points, ({ at }) => Date.parse(at)),
    joined(known.gaps, next.gaps, ({ from }) => Date.parse(from)),
  ];
  const oldest = Date.parse(points.at(-1)?.at ?? "") - SPANS[known.range];
  return {
    ...next,
    points: points.filter(({ at }) => oldest < Date.parse(at)),
    gaps: gaps.filter(({ until }) => oldest < Date.parse(until)),
  };
}

/** @template T
 * @param {T[]} known
 * @param {T[]} next
 * @param {(each: T) => number} timeOf by which they are in order */
function joined(known, next, timeOf) {
  if (next.length === 0) return known;
  const first = timeOf(next[0]);
  return [...known.filter((each) => timeOf(each) < first), ...next];
}

/** @param {string | undefined} path
 * @param {Range} range
 * @param {string | undefined} after
 * @param {AbortSignal} signal
 * @returns {Promise<History>} */
async function read(path, range, after, signal) {
  try {
    return await (path === undefined
      ? call("get_history", { query: { range, after }, signal })
      : call("get_entity_history", { path: { entity: path }, query: { range, after }, signal }));
  } catch (error) {
    // What is new has none yet.
    if (error instanceof ApiError && error.status === 404) return { range, interval_seconds: 10, points: [], gaps: [] };
    throw error;
  }
}

/** @typedef {"incoming" | "completed" | "dead_lettered"} Happened */

/** The ends of the intervals in milliseconds, and lines over them. In the middle of each gap is a time without values,
 * so that no line goes over it.
 * @param {History} history */
export function linesOf({ points, current, gaps, interval_seconds: length }) {
  /** @type {{ time: number, point: Schemas["PointShown"] | null }[]} */
  const places = (current == null ? points : [...points, current]).map((point) => ({
    time: Date.parse(point.at),
    point,
  }));
  const [first, last] = [places[0]?.time ?? 0, places.at(-1)?.time ?? 0];
  for (const gap of gaps) {
    const time = (Date.parse(gap.from) + Date.parse(gap.until)) / 2;
    if (first < time && time < last) places.push({ time, point: null });
  }
  places.sort((a, b) => a.time - b.time);
  return {
    times: places.map(({ time }) => time),
    /** Messages a second. @param {Happened} name */
    rate: (name) => places.map(({ point }) => (point === null ? null : point[name] / (point.seconds || length))),
    /** Messages at the end of each interval. @param {"active" | "deferred" | "scheduled" | "dead_letters"} name */
    count: (name) => places.map(({ point }) => (point === null ? null : point[name])),
  };
}
