// What a page reads from the API: loaded, loaded again, and replaced without flicker.

import { AwayError } from "./api.js";
import { useEffect, useRef, useState } from "./html.js";
import { returns } from "./live.js";

/** @template T
 * @typedef {{ data: T | undefined, error: Error | undefined, isLoading: boolean, reload: () => void }} Resource */

/** Loads something when `keys` change, when the broker is back, and when `reload` is called. Old data stays until new
 * is there, unless `keys` have changed. `follows` are values with which it may have changed: it is loaded again, and
 * the old data stays meanwhile.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} keys
 * @param {(string | number)[]} [follows]
 * @returns {Resource<T>} */
export function useResource(load, keys, follows = []) {
  const [count, setCount] = useState(0);
  /** @type {[{ key: string, data?: T, error?: Error }, Function]} */
  const [state, setState] = useState(() => ({ key: "" }));
  const [isLoading, setIsLoading] = useState(true);
  const key = JSON.stringify(keys, (_, value) => (typeof value === "bigint" ? String(value) : value));
  const latest = useRef(load);
  latest.current = load;
  const returned = returns.value;
  useEffect(() => {
    const aborted = new AbortController();
    setIsLoading(true);
    latest
      .current(aborted.signal)
      .then(
        (data) => setState({ key, data }),
        (error) => {
          if (aborted.signal.aborted) return;
          // While the broker is away its last answer stays; the head of the page says that it is away.
          setState((/** @type {typeof state} */ old) =>
            error instanceof AwayError && old.key === key && old.data !== undefined ? old : { key, error },
          );
        },
      )
      .finally(() => {
        if (!aborted.signal.aborted) setIsLoading(false);
      });
    return () => aborted.abort();
  }, [key, count, returned, follows.join(" ")]);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: isLoading || !isCurrent,
    reload: () => setCount((/** @type {number} */ old) => old + 1),
  };
}
