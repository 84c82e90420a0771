// Where the focus of the keyboard goes: when what has it goes away, and when a form is refused.

import { useEffect, useLayoutEffect, useRef } from "./html.js";

/** When what had the focus is not there any more, the focus goes to what the selector finds, or to the heading of the
 * page: who works with the keyboard goes on from there.
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
    const isLost =
      document.activeElement === document.body &&
      last.current !== null &&
      last.current !== document.body &&
      !last.current.isConnected;
    if (!isLost) return;
    const next = document.querySelector(selector) ?? document.querySelector("main h1");
    if (next instanceof HTMLElement) next.focus({ preventScroll: true });
  });
}

/** Moves the focus to the first field of a form that is refused, each time that `errors` change. The effect is a layout
 * effect: the focus has moved when the error can be read, so that it takes no key from the field that the reader goes
 * to next.
 * @param {unknown} errors
 * @param {string} [otherwise] what has the focus when no field is refused; nothing, if it is absent
 * @returns {{ current: HTMLFormElement | null }} the form's ref */
export function useRefusedFocus(errors, otherwise) {
  /** @type {{ current: HTMLFormElement | null }} */
  const form = useRef(null);
  useLayoutEffect(() => {
    const field =
      form.current?.querySelector("[aria-invalid='true']") ??
      (otherwise === undefined ? null : form.current?.querySelector(otherwise));
    if (field instanceof HTMLElement) field.focus();
  }, [errors]);
  return form;
}
