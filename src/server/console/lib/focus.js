// The keyboard's place, where what has the focus goes away.

import { useEffect, useRef } from "./html.js";

/** When what had the focus is not there any more, the focus goes to what the selector finds, or to the heading of the page: who works
 * with the keyboard goes on from there.
 * @param {string} selector */
export function useFocusKept(selector) {
  const last = useRef(/** @type {Element | null} */ (null));
  useEffect(() => {
    const follow = (/** @type {FocusEvent} */ event) => {
      last.current = event.target instanceof Element ? event.target : null;
    };
    last.current = document.activeElement;
    document.addEventListener("focusin", follow);
    return () => document.removeEventListener("focusin", follow);
  }, []);
  useEffect(() => {
    const isLost = document.activeElement === document.body && last.current !== null && last.current !== document.body && !last.current.isConnected;
    if (!isLost) return;
    const next = document.querySelector(selector) ?? document.querySelector("main h1");
    if (next instanceof HTMLElement) next.focus({ preventScroll: true });
  });
}
