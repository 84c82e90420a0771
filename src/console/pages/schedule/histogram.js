// Counts over time as bars: one is chosen by a click, a time is zoomed into by dragging over it, and keys do both.

import { announce } from "../../components/toast.js";
import { second, now } from "../../lib/clock.js";
import { number } from "../../lib/format.js";
import { html, useEffect, useId, useMemo, useRef, useState } from "../../lib/html.js";
import { rangeText, stepText, tickOf } from "./scale.js";
import { S } from "../../strings/schedule.js";

/** @typedef {import("./scale.js").Scale} Scale */
/** @typedef {import("./scale.js").Range} Range */

/** Where a key moves to. @type {Record<string, (at: number, last: number) => number>} */
const MOVES = { ArrowRight: (at) => at + 1, ArrowLeft: (at) => at - 1, Home: () => 0, End: (_, last) => last };

/** @param {{ scale: Scale, counts: number[], selection: Range | null, onSelect: (range: Range | null) => void,
 *   onZoom: (range: Range) => void, onStep: (factor: number, around?: number) => void, onMove: (direction: -1 | 1) =>
 *   void, onWhole: () => void }} properties */
export function Histogram({ scale, counts, selection, onSelect, onZoom, onStep, onMove, onWhole }) {
  const id = useId();
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  const [cursor, setCursor] = useState(0);
  const [anchor, setAnchor] = useState(/** @type {number | null} */ (null));
  const [hovered, setHovered] = useState(/** @type {number | null} */ (null));
  const [drag, setDrag] = useState(/** @type {{ from: number, to: number } | null} */ (null));
  const last = scale.count - 1;
  useEffect(() => {
    setCursor(
      Math.max(
        0,
        counts.findIndex((count) => 0 < count),
      ),
    );
    setAnchor(null);
  }, [scale.from, scale.step]);
  const beginning = (/** @type {number} */ at) => scale.from + at * scale.step;
  const rangeOf = (/** @type {number} */ a, /** @type {number} */ b) => ({
    from: beginning(Math.min(a, b)),
    before: beginning(Math.max(a, b) + 1),
  });
  const isSelected = (/** @type {number} */ at) =>
    selection !== null && selection.from <= beginning(at) && beginning(at) < selection.before;
  const nameOf = (/** @type {number} */ at) => S.bar(rangeText(rangeOf(at, at), scale), number(counts[at] ?? 0));
  const toggle = (/** @type {number} */ at) =>
    onSelect(
      selection !== null && selection.from === beginning(at) && selection.before === beginning(at + 1)
        ? null
        : rangeOf(at, at),
    );
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const around = selection ?? undefined;
    if (event.key in MOVES) {
      const next = Math.max(0, Math.min(last, MOVES[event.key](cursor, last)));
      setCursor(next);
      if (event.shiftKey) {
        setAnchor(anchor ?? cursor);
        onSelect(rangeOf(anchor ?? cursor, next));
      } else {
        setAnchor(null);
      }
    } else if (event.key === " " || event.key === "Enter") toggle(cursor);
    else if (event.key === "+" || event.key === "=") {
      if (around === undefined) onStep(0.5, beginning(cursor) + scale.step / 2);
      else onZoom(around);
    } else if (event.key === "-") onStep(2, beginning(cursor) + scale.step / 2);
    else if (event.key === "PageUp") onMove(-1);
    else if (event.key === "PageDown") onMove(1);
    else if (event.key === "0") onWhole();
    else if (event.key === "Escape" && selection !== null) onSelect(null);
    else return;
    event.preventDefault();
  };
  const placeOf = (/** @type {PointerEvent} */ event) => {
    const { left, width } = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    return Math.max(0, Math.min(last, Math.floor(((event.clientX - left) / width) * scale.count)));
  };
  const onPointerDown = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    const at = placeOf(event);
    box.current?.setPointerCapture(event.pointerId);
    setDrag({ from: at, to: at });
    setCursor(at);
    setAnchor(null);
  };
  const onPointerMove = (/** @type {PointerEvent} */ event) => {
    const at = placeOf(event);
    setHovered(at);
    if (drag !== null && drag.to !== at) setDrag({ ...drag, to: at });
  };
  const onPointerUp = (/** @type {PointerEvent} */ event) => {
    if (drag === null) return;
    setDrag(null);
    const at = placeOf(event);
    if (at === drag.from) toggle(at);
    else onZoom(rangeOf(drag.from, at));
  };
  const highest = useMemo(() => Math.max(1, ...counts), [counts]);
  const shown = hovered ?? cursor;
  const inDrag = (/** @type {number} */ at) =>
    drag !== null && drag.from !== drag.to && Math.min(drag.from, drag.to) <= at && at <= Math.max(drag.from, drag.to);
  return html`
    <div class="histogram">
      <p class="histogram-now">
        <span>${nameOf(Math.min(shown, last))}</span>
        <span class="muted hide-narrow">${S.step(stepText(scale.step))}</span>
      </p>
      <div class="plot">
        <span class="top-count number" aria-hidden="true">${number(highest)}</span>
        <div
          ref=${box}
          class="bars"
          role="listbox"
          tabindex="0"
          aria-label=${S.histogram}
          aria-multiselectable="true"
          aria-activedescendant=${`${id}-${Math.min(cursor, last)}`}
          aria-describedby=${`${id}-help`}
          onKeyDown=${onKeyDown}
          onPointerDown=${onPointerDown}
          onPointerMove=${onPointerMove}
          onPointerUp=${onPointerUp}
          onPointerCancel=${() => setDrag(null)}
          onPointerLeave=${() => setHovered(null)}
        >
          ${counts.map(
            (count, at) => html`
              <div
                key=${beginning(at)}
                id=${`${id}-${at}`}
                role="option"
                aria-selected=${isSelected(at)}
                aria-label=${nameOf(at)}
                class=${`bar ${at === cursor ? "cursor" : ""} ${inDrag(at) ? "dragged" : ""}`}
              >
                <i style=${{ height: `${count === 0 ? 0 : Math.max(2, (count / highest) * 100)}%` }}></i>
              </div>
            `,
          )}
          <${NowLine} scale=${scale} />
        </div>
      </div>
      <${Ticks} scale=${scale} />
      <p class="hint hide-narrow" id=${`${id}-help`}>${S.help}</p>
    </div>
  `;
}

/** @param {{ scale: Scale }} properties */
function NowLine({ scale }) {
  second.value;
  const share = (now() - scale.from) / (scale.before - scale.from);
  if (share < 0 || 1 < share) return null;
  return html`<span class="now-line" aria-hidden="true" title=${S.now} style=${{ left: `${share * 100}%` }}></span>`;
}

/** @param {{ scale: Scale }} properties */
function Ticks({ scale }) {
  const every = Math.max(1, Math.ceil(scale.count / 6));
  const places = Array.from({ length: Math.ceil(scale.count / every) }, (_, at) => at * every);
  return html`
    <div class="ticks number muted" aria-hidden="true">
      ${places.map(
        (at, index) => html`
          <span
            key=${at}
            class=${index % 2 === 1 ? "hide-narrow" : ""}
            style=${{ left: `${(at / scale.count) * 100}%` }}
          >
            ${tickOf(scale.from + at * scale.step, scale)}
          </span>
        `,
      )}
    </div>
  `;
}

/** Says to readers of the screen what is shown now.
 * @param {Range} range
 * @param {Scale} scale
 * @param {number} count */
export const announceRange = (range, scale, count) => announce(S.bar(rangeText(range, scale), number(count)));
