// What an action has done: shown for some seconds, and announced.

import { html, signal } from "../lib/html.js";
import { Text } from "./text.js";
import { S } from "../strings/common.js";

/** How an action is undone: what it returns is said then.
 * @typedef {() => Promise<string>} Undo */
/** @type {import("../lib/html.js").Signal<{ id: number, text: string, tone: string, href: string | undefined,
 *   linkText: string | undefined, undo: Undo | undefined }[]>} */
const toasts = signal([]);
const announcement = signal("");
let last = 0;

/** Says something to readers of the screen only.
 * @param {string} text */
export function announce(text) {
  // The same text twice is no change, and is not read.
  announcement.value = announcement.peek() === text ? `${text}\u00a0` : text;
}

/** Milliseconds for which a toast is shown; longer if there is something to be read or decided. */
const [SHOWN, SHOWN_LONGER] = [6_000, 15_000];

/** Shows and announces what was done, or why not. With `undo` the reader may take it back.
 * @param {string} text
 * @param {{ tone?: "done" | "alarm", href?: string, linkText?: string, undo?: Undo }} [options] */
export function toast(text, { tone = "done", href, linkText, undo } = {}) {
  last += 1;
  const id = last;
  toasts.value = [...toasts.peek().slice(-3), { id, text, tone, href, linkText, undo }];
  announce(text);
  setTimeout(() => dismiss(id), tone === "alarm" || href !== undefined || undo !== undefined ? SHOWN_LONGER : SHOWN);
}

/** Takes an action back, once.
 * @param {number} id
 * @param {Undo} undo */
async function takeBack(id, undo) {
  dismiss(id);
  try {
    toast(await undo());
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { tone: "alarm" });
  }
}

/** @param {number} id */
function dismiss(id) {
  toasts.value = toasts.peek().filter((each) => each.id !== id);
}

/** Carries an action out: its result is a toast, an error too. Returns whether it was done.
 * @param {() => Promise<unknown>} action
 * @param {string} done what is said when it is */
export async function attempt(action, done) {
  try {
    await action();
    toast(done);
    return true;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { tone: "alarm" });
    return false;
  }
}

export function Toasts() {
  return html`
    <section class="toasts" aria-label=${S.toasts}>
      ${toasts.value.map(
        ({ id, text, tone, href, linkText, undo }) => html`
          <div class=${`toast ${tone}`} key=${id}>
            <span><${Text} value=${text} /></span>
            ${href && html`<a href=${href}>${linkText}</a>`}
            ${undo && html`<button type="button" onClick=${() => takeBack(id, undo)}>${S.undo}</button>`}
            <button type="button" class="quiet" onClick=${() => dismiss(id)}>${S.close}</button>
          </div>
        `,
      )}
    </section>
    <div class="announcements" role="status" aria-live="polite">${announcement}</div>
  `;
}
