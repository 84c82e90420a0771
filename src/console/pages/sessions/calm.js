// A value that changes at most every two seconds, so that a busy entity is not read without a pause.

import { useEffect, useRef, useState } from "../../lib/html.js";

const PAUSE_MILLISECONDS = 2_000;

/** @param {string} value */
export function useCalm(value) {
  const [calm, setCalm] = useState(value);
  const changed = useRef(0);
  useEffect(() => {
    if (value === calm) return undefined;
    const timer = setTimeout(
      () => {
        changed.current = performance.now();
        setCalm(value);
      },
      Math.max(0, changed.current + PAUSE_MILLISECONDS - performance.now()),
    );
    return () => clearTimeout(timer);
  }, [value, calm]);
  return calm;
}
