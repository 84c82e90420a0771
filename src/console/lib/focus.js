// Where the focus of the keyboard goes: when what has it goes away, and when a form is refused.

import { second } from "./clock.js";
import { useEffect, useLayoutEffect, useRef, useSignalEffect } from "./html.js";

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

/** Looks each second whether the focus is nowhere, because what had it has gone, or cannot be used any more: the button
 * that saved, the form that has been sent. The heading of the page has it then. A button that is busy is not taken for
 * one that stays so. The frame does it once for all pages. */
export function useFocusOnPage() {
  const last = useRef(/** @type {Element | null} */ (null));
  const lost = useRef(/** @type {Element | null} */ (null));
  useEffect(() => {
    const follow = (/** @type {FocusEvent} */ event) => {
      last.current = event.target instanceof Element ? event.target : null;
    };
    document.addEventListener("focusin", follow);
    return () => document.removeEventListener("focusin", follow);
  }, []);
  useSignalEffect(() => {
    second.value;
    const had = last.current;
    const isLost =
      had !== null && document.activeElement === document.body && (!had.isConnected || had.matches(":disabled"));
    const heading = document.querySelector("main h1");
    if (isLost && lost.current === had && heading instanceof HTMLElement) heading.focus({ preventScroll: true });
    lost.current = isLost ? had : null;
  });
}

/** Moves the focus to the first field of what was added at the end of a list.
 * @param {number} count
 * @returns {{ list: { current: any }, added: () => void }} the list's ref, and what is called when something is
 *   added */
export function useAddedFocus(count) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const isAdded = useRef(false);
  useLayoutEffect(() => {
    const field = isAdded.current ? list.current?.lastElementChild?.querySelector("input, select") : null;
    if (field instanceof HTMLElement) field.focus();
    isAdded.current = false;
  }, [count]);
  return {
    list,
    added: () => {
      isAdded.current = true;
    },
  };
}
