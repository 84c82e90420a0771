// JSON with colours, in which objects and lists are folded.

import { number } from "../lib/format.js";
import { html, useMemo, useState } from "../lib/html.js";
import { unfolded } from "../lib/json-lines.js";
import { Text } from "./text.js";
import { S } from "../strings/message.js";

/** @typedef {import("../lib/json-lines.js").Line} Line */

/** Lines that are shown at first, and more each time the reader asks. */
const STEP = 1_000;
/** Characters of one value that are shown. */
const VALUE_MAX = 20_000;

/** @param {{ lines: Line[] }} properties */
export function JsonView({ lines }) {
  const [folded, setFolded] = useState(/** @type {Set<number>} */ (new Set()));
  const [most, setMost] = useState(STEP);
  const { shown, isWhole } = useMemo(() => unfolded(lines, folded, most), [lines, folded, most]);
  const toggle = (/** @type {number} */ at) => {
    const next = new Set(folded);
    if (!next.delete(at)) next.add(at);
    setFolded(next);
  };
  const inner = lines.flatMap(({ closing, depth }, at) => (closing !== null && 0 < depth ? [at] : []));
  return html`
    ${inner.length !== 0 && html`
      <div class="tools json-tools">
        <button
          type="button"
          class="quiet"
          disabled=${inner.every((at) => folded.has(at))}
          onClick=${() => setFolded(new Set(inner))}
        >
          ${S.foldAll}
        </button>
        <button type="button" class="quiet" disabled=${folded.size === 0} onClick=${() => setFolded(new Set())}>
          ${S.unfoldAll}
        </button>
      </div>
    `}
    <pre class="body json" tabindex="0" aria-label=${S.body}>
      ${shown.map(
        (at) => html`
          <${Row}
            key=${at}
            line=${lines[at]}
            end=${lines[lines[at].closing ?? at]}
            isFolded=${folded.has(at)}
            onToggle=${() => toggle(at)}
          />
        `,
      )}
    </pre>
    ${!isWhole && html`
      <p class="muted">
        ${S.linesShown(number(most), number(lines.length))}
        <button type="button" class="quiet" onClick=${() => setMost(most * 4)}>${S.more}</button>
      </p>
    `}
  `;
}

/** A line. Its text is what a copy of it has: the button has none.
 * @param {{ line: Line, end: Line, isFolded: boolean, onToggle: () => void }} properties */
function Row({ line: { depth, key, value, kind, hasComma, closing, count }, end, isFolded, onToggle }) {
  const isFold = closing !== null && isFolded;
  const comma = (isFold ? end.hasComma : hasComma) ? "," : "";
  return html`
    <span class="json-line">
      ${closing !== null && html`
        <button
          type="button"
          class="fold"
          aria-expanded=${!isFolded}
          aria-label=${key === null ? S.foldList : S.fold(key)}
          onClick=${onToggle}
        />
      `}
      ${"  ".repeat(depth)}
      ${key !== null && html`<span class="json-key"><${Text} value=${key} max=${VALUE_MAX} /></span>: `}
      <span class=${`json-${kind}`}><${Text} value=${value} max=${VALUE_MAX} /></span>
      ${isFold && html`<span class="muted"> ${S.folded(number(count))} </span>${end.value}`}
      ${comma}
      ${"\n"}
    </span>
  `;
}
