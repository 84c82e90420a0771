// Texts of others as text nodes, with what hides in them made visible.

import { html } from "../lib/html.js";
import { parts } from "../lib/visible.js";

/** Longest text that is shown; a page has a way to the rest where there may be more. */
const LENGTH_MAX = 2_000;

/** Shows a text of others: a name, a property, a reason.
 * @param {{ value: string | undefined | null, max?: number, none?: string }} properties */
export function Text({ value, max = LENGTH_MAX, none = "" }) {
  if (value === undefined || value === null || value === "") return none === "" ? null : html`<span class="muted">${none}</span>`;
  const isLong = max < value.length;
  return html`<${Parts} parts=${parts(isLong ? value.slice(0, max) : value)} />${isLong && html`<span class="muted">…</span>`}`;
}

/** Shows what `visible.js` and `bytes.js` have taken apart.
 * @param {{ parts: { text: string, isEscape: boolean }[] }} properties */
export function Parts({ parts: shown }) {
  return shown.map(({ text, isEscape }) => (isEscape ? html`<span class="escape">${text}</span>` : text));
}
