// Times and quantities.

import { second } from "../lib/clock.js";
import { number, relative, size, utc, local, rate } from "../lib/format.js";
import { html, useComputed } from "../lib/html.js";
import { S } from "../strings/common.js";

/** Shows a time: relative while it is young, in the reader's zone, with UTC as its title.
 * @param {{ at: string | undefined, none?: string }} properties */
export function Time({ at, none = "" }) {
  const shown = useComputed(() => {
    second.value;
    return at === undefined ? "" : relative(at);
  });
  if (at === undefined) return html`<span class="muted">${none}</span>`;
  return html`<time datetime=${at} title=${`${utc(at)}\n${local(at)}`}>${shown}</time>`;
}

/** Shows a count; nothing is pale, so that the eye finds what there is. `tone` is "alarm" for what needs a person.
 * @param {{ value: number, tone?: string }} properties */
export function Count({ value, tone = "" }) {
  return html`<span class=${`number ${value === 0 ? "pale" : tone}`}>${number(value)}</span>`;
}

/** Shows messages a second, or that they are not known yet; with the unit where no label beside it has that.
 * @param {{ value: number | null, hasUnit?: boolean }} properties */
export function Rate({ value, hasUnit = false }) {
  return html`
    <span class=${`number ${value ? "" : "pale"}`}>${rate(value)}</span>
    ${hasUnit && html`<small> ${S.perSecond}</small>`}
  `;
}

/** Shows bytes.
 * @param {{ value: number }} properties */
export function Size({ value }) {
  return html`<span class=${`number ${value === 0 ? "pale" : ""}`} title=${`${number(value)} B`}>${size(value)}</span>`;
}
