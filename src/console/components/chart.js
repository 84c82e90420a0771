// Charts of values over time, by uPlot. Colours are those of the page, which follow the reader's system.

import { clock, compact, tick } from "../lib/format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/html.js";
import { S } from "../strings/common.js";

/** @typedef {import("../vendor/uplot.js").default} Plot */
/** @typedef {typeof import("../vendor/uplot.js").default} Library */

// The page is there before its charts. Where the library cannot be loaded the legend has the newest values.
const library = import("../vendor/uplot.js").then(
  (module) => module.default,
  () => null,
);

/** A line. `tone` names its colour: "accent", "quiet", "deferred" or "alarm" (what needs a person).
 * @typedef {{ label: string, values: (number | null)[], tone: "accent" | "quiet" | "deferred" | "alarm",
 *   isDashed?: boolean }} Line */

/** What a reader does in a chart; times in milliseconds.
 * @typedef {{ hover: (time: number | null) => void, zoom: (from: number, before: number) => void, whole: () =>
 *   void }} Deeds */

/** Charts with the same key have one cursor. */
const SYNC = "time";

/** @param {{ title: string, empty: string, timeOf: (time: number) => string, times: number[], lines: Line[],
 *   unit?: string, height?: number, format?: (value: number) => string, hovered: number | null,
 *   onHover: Deeds["hover"], onZoom: Deeds["zoom"], onWhole: Deeds["whole"] }} properties `times` in milliseconds, the
 *   oldest first; `hovered` is one of them; `empty` is said where there are too few */
export function Chart({
  title,
  empty,
  timeOf,
  times,
  lines,
  unit = "",
  height = 132,
  format = compact,
  hovered,
  onHover,
  onZoom,
  onWhole,
}) {
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  /** @type {{ current: Plot | null }} */
  const plot = useRef(null);
  const found = hovered === null ? -1 : times.indexOf(hovered);
  const at = found === -1 ? null : found;
  /** @type {{ current: Deeds & { times: number[] } }} */
  const newest = useRef({ hover: onHover, zoom: onZoom, whole: onWhole, times });
  newest.current = { hover: onHover, zoom: onZoom, whole: onWhole, times };
  const [uPlot, setLibrary] = useState(/** @type {Library | null} */ (null));
  useEffect(() => void library.then((found) => setLibrary(() => found)), []);
  const scheme = useScheme();
  const shape = JSON.stringify([
    scheme,
    height,
    timeOf === clock,
    lines.map(({ label, tone, isDashed }) => [label, tone, isDashed]),
  ]);
  const isEmpty = times.length < 2;
  useLayoutEffect(() => {
    if (box.current === null || isEmpty || uPlot === null) return undefined;
    const made = make(uPlot, box.current, lines, height, timeOf, format !== compact, {
      hover: (index) => newest.current.hover(index === null ? null : (newest.current.times[index] ?? null)),
      zoom: (from, before) => newest.current.zoom(from, before),
      whole: () => newest.current.whole(),
    });
    plot.current = made;
    made.setData(dataOf(times, lines));
    const watch = new ResizeObserver(() => made.setSize({ width: widthOf(box.current), height }));
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, isEmpty, uPlot]);
  useEffect(() => plot.current?.setData(dataOf(times, lines)), [times, lines]);
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const last = times.length - 1;
    const around = Math.ceil(last / 4);
    const middle = at ?? last;
    switch (event.key) {
      case "ArrowLeft":
        onHover(times[Math.max(0, middle - 1)]);
        break;
      case "ArrowRight":
        onHover(times[Math.min(last, middle + 1)]);
        break;
      case "Home":
        onHover(times[0]);
        break;
      case "End":
        onHover(times[last]);
        break;
      case "+":
        onZoom(times[Math.max(0, middle - around)], times[Math.min(last, middle + around)]);
        break;
      case "-":
        onWhole();
        break;
      default:
        return;
    }
    event.preventDefault();
  };
  const shownAt = at ?? times.length - 1;
  const shown = (/** @type {Line} */ line) =>
    line.values[shownAt] == null ? "–" : `${format(Number(line.values[shownAt]))}${unit}`;
  const summary = isEmpty ? empty : `${title}: ${lines.map((line) => `${line.label} ${shown(line)}`).join(", ")}`;
  return html`
    <figure class="chart">
      <figcaption>
        <span class="chart-title">${title}</span>
        <span class="legend">
          ${lines.map(
            (line) => html`
              <span key=${line.label} class="legend-item">
                <i class=${`swatch ${line.tone} ${line.isDashed ? "dashed" : ""}`}></i>
                ${line.label} <b class="number">${isEmpty ? "" : shown(line)}</b>
              </span>
            `,
          )}
          ${at !== null && html`<span class="muted">${timeOf(times[at])}</span>`}
        </span>
      </figcaption>
      ${isEmpty
        ? html`<p class="chart-empty" style=${{ height: `${height}px` }}>${empty}</p>`
        : html`
            <div
              ref=${box}
              role="img"
              aria-label=${summary}
              title=${S.chartKeys}
              tabindex="0"
              onKeyDown=${press}
              onBlur=${() => onHover(null)}
              style=${{ height: `${height}px` }}
            ></div>
          `}
    </figure>
  `;
}

/** Pixels: less is a click. */
const SELECTED_MIN = 8;

/** @param {HTMLElement | null} element */
const widthOf = (element) => Math.max(120, Math.floor(element?.clientWidth ?? 300));

/** @param {number[]} times
 * @param {Line[]} lines
 * @returns {import("../vendor/uplot.js").default.AlignedData} */
const dataOf = (times, lines) => [times.map((time) => time / 1000), ...lines.map(({ values }) => values)];

/** Pixels at the end of a chart that have no room for a label of the time. */
const LABEL_END = 20;

/** Steps of an axis of counts. */
const WHOLE_STEPS = Array.from({ length: 15 }, (_, at) => [1, 2, 5].map((digit) => digit * 10 ** at)).flat();

/** @param {Library} uPlot
 * @param {HTMLElement} element
 * @param {Line[]} lines
 * @param {number} height
 * @param {(time: number) => string} timeOf
 * @param {boolean} hasFractions
 * @param {{ hover: (index: number | null) => void, zoom: Deeds["zoom"], whole: Deeds["whole"] }} deeds */
function make(uPlot, element, lines, height, timeOf, hasFractions, deeds) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const colours = {
    accent: colour("accent"),
    quiet: colour("quiet-line"),
    deferred: colour("deferred-line"),
    alarm: colour("alarm"),
  };
  const axis = {
    stroke: colour("muted"),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
  };
  return new uPlot(
    {
      width: widthOf(element),
      height,
      legend: { show: false },
      padding: [8, 8, 0, 0],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        sync: { key: SYNC },
        bind: {
          dblclick: () => () => {
            deeds.whole();
            return null;
          },
        },
      },
      scales: { y: { range: (_, _low, high) => [0, high <= 0 ? 1 : high * 1.1] } },
      axes: [
        {
          ...axis,
          size: 22,
          gap: 4,
          space: timeOf === clock ? 70 : 84,
          values: (chart, splits) => {
            // A label is in the middle of its place: the last one would be cut.
            const end = chart.bbox.width / devicePixelRatio - LABEL_END;
            return splits.map((each) =>
              end < chart.valToPos(each, "x") ? "" : timeOf(each * 1000).replace(/:00(?=\D*$)/, ""),
            );
          },
        },
        {
          ...axis,
          size: 44,
          gap: 6,
          space: 28,
          incrs: hasFractions ? undefined : WHOLE_STEPS,
          values: (_, splits, _axis, _space, step) =>
            splits.map((each) => (step < 1 ? tick(each, step) : compact(each))),
        },
      ],
      series: [
        {},
        ...lines.map(({ label, tone, isDashed }) => ({
          label,
          stroke: colours[tone],
          width: 1.5,
          dash: isDashed ? [4, 3] : undefined,
          points: { show: false },
          fill: tone === "accent" ? `${colours.accent}1c` : undefined,
        })),
      ],
      hooks: {
        setCursor: [(chart) => deeds.hover(chart.cursor.idx ?? null)],
        setSelect: [
          (chart) => {
            const { left, width: wide } = chart.select;
            if (wide < SELECTED_MIN) return;
            const [from, before] = [left, left + wide].map((place) => chart.posToVal(place, "x") * 1000);
            chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            deeds.zoom(from, before);
          },
        ],
      },
    },
    [[], ...lines.map(() => [])],
    element,
  );
}

/** Follows whether the reader's system is dark: what is drawn must be drawn again. */
export function useScheme() {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return isDark ? "dark" : "light";
}
