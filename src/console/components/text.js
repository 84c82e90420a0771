// Texts of others as text nodes, with what hides in them made visible.

import { html } from "../lib/html.js";
import { entityHref } from "../lib/paths.js";
import { parts, visible } from "../lib/visible.js";

/** Longest text that is shown; a page has a way to the rest where there may be more. */
const LENGTH_MAX = 2_000;

/** Behind what a name may be broken: separators, and a small letter in front of a capital. */
const WORD_ENDS = /[/._~-](?![/._~-])|\p{Ll}(?=\p{Lu})/gu;
/** A text that is shown has none: it would be an escape. */
const BREAK = "\u200b";

/** Shows a text of others: a name, a property, a reason.
 * @param {{ value: string | undefined | null, max?: number, none?: string }} properties */
export function Text({ value, max = LENGTH_MAX, none = "" }) {
  if (value === undefined || value === null || value === "")
    return none === "" ? null : html`<span class="muted">${none}</span>`;
  const isLong = max < value.length;
  return html`
    <${Parts} parts=${parts(isLong ? value.slice(0, max) : value)} />
    ${isLong && html`<span class="muted">…</span>`}
  `;
}

/** Shows the name or the path of an entity. A line ends behind a separator in it, and not inside a word that fits a
 * line.
 * @param {{ value: string, max?: number }} properties */
export function EntityName({ value, max = LENGTH_MAX }) {
  const isLong = max < value.length;
  const shown = parts(isLong ? value.slice(0, max) : value).map(({ text, isEscape }) =>
    isEscape
      ? html`<span class="escape">${text}</span>`
      : text
          .replace(WORD_ENDS, `$&${BREAK}`)
          .split(BREAK)
          .map((word, at) => html`${at !== 0 && html`<wbr />`}${word}`),
  );
  return html`${shown}${isLong && html`<span class="muted">…</span>`}`;
}

/** A link to an entity in one line of a table, or to what is about it. Where there is no room, the beginning of its
 * path is cut: paths differ in their last word.
 * @param {{ path: string, name?: string, to?: string }} properties `name` is what is shown of the path */
export function EntityLink({ path, name = path, to = entityHref(path) }) {
  return html`<a class="path" href=${to} title=${visible(name)}><bdi dir="ltr"><${Text} value=${name} /></bdi></a>`;
}

/** Shows what `visible.js` and `bytes.js` have taken apart.
 * @param {{ parts: { text: string, isEscape: boolean }[] }} properties */
export function Parts({ parts: shown }) {
  return shown.map(({ text, isEscape }) => (isEscape ? html`<span class="escape">${text}</span>` : text));
}
