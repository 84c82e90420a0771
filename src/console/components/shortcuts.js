// The keys of the console: what they do, and a dialog that says so.

import { html, useEffect } from "../lib/html.js";
import { go, href } from "../lib/router.js";
import { navigation } from "../pages/index.js";
import { Dialog, openDialog } from "./dialog.js";
import { S } from "../strings/common.js";

/** The second key of a page, after `g`.
 * @type {Partial<Record<string, import("../pages/index.js").NavName>>} */
const PAGE_KEYS = {
  o: "overview",
  e: "entities",
  m: "messages",
  v: "sessions",
  c: "connections",
  s: "schedule",
  d: "deferred",
  j: "jobs",
  n: "send",
  a: "audit",
};
/** How long the second key may take, milliseconds. */
const SECOND_KEY_MILLISECONDS = 1_500;

/** Keys that are typed into a field are text.
 * @param {EventTarget | null} target */
const isField = (target) => target instanceof Element && target.matches("input, textarea, select, [contenteditable]");

export const openShortcuts = () =>
  openDialog(
    (close) => html`
      <${Dialog} title=${S.shortcuts.title}>
        <dl class="pairs shortcuts">
          ${S.shortcuts.keys.map(
            ([keys, text]) => html`
              <dt key=${keys}>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt>
              <dd>${text}</dd>
            `,
          )}
          ${Object.entries(PAGE_KEYS).map(
            ([key, page]) =>
              page !== undefined && navigation().flat().includes(page) && html`
                <dt key=${key}><kbd>g</kbd> <kbd>${key}</kbd></dt>
                <dd>${S.shortcuts.goTo(S.pages[page])}</dd>
              `,
          )}
        </dl>
        <div class="dialog-actions"><button type="button" onClick=${close}>${S.close}</button></div>
      <//>
    `,
  );

/** The button in the head, and the keys. */
export function Shortcuts() {
  useEffect(() => {
    let until = 0;
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        isField(event.target) ||
        document.querySelector("dialog[open]") !== null
      )
        return;
      const page = performance.now() < until ? PAGE_KEYS[event.key] : undefined;
      until = event.key === "g" ? performance.now() + SECOND_KEY_MILLISECONDS : 0;
      if (event.key === "?") openShortcuts();
      else if (page !== undefined && navigation().flat().includes(page))
        go(page === "overview" ? href([""]) : href([page]));
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return html`
    <button
      type="button"
      class="quiet hide-narrow"
      aria-label=${S.shortcuts.title}
      title=${S.shortcuts.title}
      onClick=${openShortcuts}
    >
      ?
    </button>
  `;
}
