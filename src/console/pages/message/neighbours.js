// From one message to the one before it or behind it in the list that it was opened from.

import { number } from "../../lib/format.js";
import { html, useLayoutEffect, useMemo } from "../../lib/html.js";
import { neighboursOf } from "../../lib/neighbours.js";
import { route } from "../../lib/router.js";
import { S } from "../../strings/message.js";

/** Keys that go to the one before, and to the next. */
const KEYS = /** @type {const} */ ({ k: "previous", j: "next" });

/** Shows nothing if the message is in no list that the reader has seen. */
export function Neighbours() {
  const address = `#${route.value.path}`;
  const found = useMemo(() => neighboursOf(address), [address]);
  // Before the page is shown: a key pressed at once is for this message.
  useLayoutEffect(() => {
    if (found === null) return undefined;
    const press = (/** @type {KeyboardEvent} */ event) => {
      const isTyped =
        event.target instanceof Element &&
        event.target.closest("input, select, textarea, dialog, [contenteditable]") !== null;
      if (isTyped || event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS)) return;
      const to = found[KEYS[/** @type {keyof typeof KEYS} */ (event.key)]];
      if (to !== null) follow(to);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [found]);
  if (found === null) return null;
  const link = (/** @type {string | null} */ to, /** @type {string} */ label, /** @type {string} */ key) =>
    to === null
      ? html`<span class="pale">${label}</span>`
      : html`
          <a
            href=${to}
            title=${S.byKey(key)}
            aria-keyshortcuts=${key}
            onClick=${(/** @type {MouseEvent} */ event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return;
              event.preventDefault();
              follow(to);
            }}
          >
            ${label}
          </a>
        `;
  return html`
    <nav class="neighbours" aria-label=${S.neighbours}>
      ${link(found.previous, S.previous, "k")}
      <span class="muted number">${S.place(number(found.at + 1), number(found.count))}</span>
      ${link(found.next, S.next, "j")}
    </nav>
  `;
}

/** The way back leads to the list, however many messages were looked at.
 * @param {string} to */
const follow = (to) => location.replace(to);
