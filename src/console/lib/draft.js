// What a reader has typed into a form: kept for the tab and the namespace, so that a reload loses nothing and no
// message goes where it was not meant to; forgotten when the reader signs out.

import { effect, useRef, useState } from "./html.js";
import { phase, session } from "./session.js";

const PREFIX = "jitney-draft ";

effect(() => {
  if (phase.value !== "signed-out") return;
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
});

/** A state of a component that a reload keeps. `name` tells drafts apart; the component has `key=name` where it can
 * change. What is set may be a function of the present draft: after a request, the draft of before it lacks what was
 * typed meanwhile.
 * @template T
 * @param {string} name
 * @param {T} initial
 * @returns {[T, (next: T | ((now: T) => T)) => void, () => void]} the draft, and functions that set and forget it */
export function useDraft(name, initial) {
  const key = `${PREFIX}${JSON.stringify(session.value?.name ?? "")} ${name}`;
  const [kept, setKept] = useState(() => ({ key, value: read(key, initial) }));
  const value = kept.key === key ? kept.value : read(key, initial);
  const present = useRef(value);
  present.current = value;
  const set = (/** @type {T | ((now: T) => T)} */ change) => {
    const next = typeof change === "function" ? /** @type {(now: T) => T} */ (change)(present.current) : change;
    present.current = next;
    setKept({ key, value: next });
    try {
      sessionStorage.setItem(key, JSON.stringify(next));
    } catch {
      // It is larger than a tab may keep: a reload begins anew.
      sessionStorage.removeItem(key);
    }
  };
  const forget = () => {
    sessionStorage.removeItem(key);
    present.current = initial;
    setKept({ key, value: initial });
  };
  return [value, set, forget];
}

/** @template T
 * @param {string} key
 * @param {T} initial
 * @returns {T} */
function read(key, initial) {
  try {
    const kept = sessionStorage.getItem(key);
    if (kept === null) return initial;
    const parsed = JSON.parse(kept);
    // A draft of before may lack what forms have now.
    return initial !== null && typeof initial === "object" && !Array.isArray(initial)
      ? { ...initial, ...parsed }
      : parsed;
  } catch {
    return initial;
  }
}
