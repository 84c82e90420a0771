// How the messages of entities have changed over the last hour and day, and which dead letters are new.

import { call } from "./api.js";
import { minute } from "./clock.js";
import { computed, signal, useEffect } from "./html.js";
import { entities, returns } from "./live.js";
import { can, ownEntity, session } from "./session.js";

/** @typedef {Schemas["TrendShown"]} Trend */

/** Those of entities by their path in lower case; null until they are known. @type
 * {import("./html.js").Signal<Map<string, Trend> | null>} */
const trends = signal(null);
/** That of the namespace as a whole. @type {import("./html.js").Signal<Trend | null>} */
export const whole = signal(null);

/** Keeps the trends up to date: the frame of the pages does. */
export function useTrends() {
  const [tick, returned, id] = [minute.value, returns.value, session.value?.id];
  const isAllowed = can("listen") && ownEntity() === "";
  useEffect(
    () => () => {
      trends.value = null;
      whole.value = null;
    },
    [id],
  );
  useEffect(() => {
    if (!isAllowed) return undefined;
    const aborted = new AbortController();
    call("list_trends", { signal: aborted.signal }).then(
      (found) => {
        trends.value = new Map(found.trends.map(({ path, trend }) => [path, trend]));
        whole.value = found.whole ?? null;
      },
      () => {
        // The next time may be better; numbers stand without their change until then.
      },
    );
    return () => aborted.abort();
  }, [tick, returned, id, isAllowed]);
}

/** @param {string} path */
export const trendOf = (path) => trends.value?.get(path.toLowerCase());

/** How many of the dead letters of an entity have come within the last hour: what was dead-lettered, and what was added
 * to them since the broker was asked. All are new where it has seen none within the last day, or keeps no history of
 * the entity.
 * @param {string} path
 * @param {number} dead how many there are now */
export function freshOf(path, dead) {
  if (dead === 0 || trends.value === null) return 0;
  const trend = trendOf(path);
  if (trend === undefined) return dead;
  const { dead_letters: letters, dead_lettered: counted } = trend;
  return Math.min(dead, Math.max(0, counted.hour, letters.hour) + Math.max(0, dead - letters.now));
}

/** How many dead letters of the namespace have come within the last hour. */
export const freshTotal = computed(() => {
  let sum = 0;
  for (const { path, dead_letters: dead } of entities.value.values()) sum += freshOf(path, dead);
  return sum;
});
