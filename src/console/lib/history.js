// The last hour of the namespace or of an entity, kept up to date.

import { ApiError, call } from "./api.js";
import { tenSeconds } from "./clock.js";
import { useEffect, useRef, useState } from "./html.js";
import { useResource } from "./resource.js";

/** Intervals of ten seconds in an hour. */
const POINTS_MAX = 360;

/** @typedef {Schemas["HistoryShown"]} Hour */

/** Returns the last hour; of an entity if there is a path.
 * @param {string | undefined} path
 * @returns {import("./resource.js").Resource<Hour>} */
export function useHistory(path) {
  const resource = useResource((signal) => read(path, undefined, signal), [path]);
  const [hour, setHour] = useState(/** @type {Hour | undefined} */ (undefined));
  /** @type {{ current: Hour | undefined }} */
  const newest = useRef(undefined);
  const take = (/** @type {Hour | undefined} */ next) => {
    newest.current = next;
    setHour(next);
  };
  useEffect(() => take(resource.data), [resource.data]);
  const tick = tenSeconds.value;
  useEffect(() => {
    const known = newest.current;
    if (known === undefined) return undefined;
    const aborted = new AbortController();
    read(path, known.points.at(-1)?.at, aborted.signal).then((next) => {
      take({ ...next, points: [...known.points, ...next.points].slice(-POINTS_MAX) });
    }, () => {
      // The next time may be better; the head of the page says if the broker is away.
    });
    return () => aborted.abort();
  }, [tick, path]);
  return { ...resource, data: resource.data === undefined ? undefined : hour ?? resource.data };
}

/** @param {string | undefined} path
 * @param {string | undefined} after
 * @param {AbortSignal} signal
 * @returns {Promise<Hour>} */
async function read(path, after, signal) {
  try {
    return await (path === undefined ? call("get_history", { query: { after }, signal })
      : call("get_entity_history", { path: { entity: path }, query: { after }, signal }));
  } catch (error) {
    // What is new has none yet.
    if (error instanceof ApiError && error.status === 404) return { range: "hour", interval_seconds: 10, points: [], gaps: [] };
    throw error;
  }
}

/** @typedef {"incoming" | "completed" | "dead_lettered"} Happened */

/** The ends of the intervals in milliseconds, and lines over them.
 * @param {Hour} hour */
export function linesOf(hour) {
  const times = hour.points.map(({ at }) => Date.parse(at));
  return {
    times,
    /** Messages a second. @param {Happened} name */
    rate: (name) => hour.points.map((point, at) => {
      const seconds = at === 0 ? hour.interval_seconds : (times[at] - times[at - 1]) / 1000;
      return point[name] / (seconds || hour.interval_seconds);
    }),
    /** Messages at the end of each interval. @param {"active" | "deferred" | "scheduled" | "dead_letters"} name */
    count: (name) => hour.points.map((point) => point[name]),
  };
}
