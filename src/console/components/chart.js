// Charts of values over time, by uPlot. Colours are those of the page, which follow the reader's system.

import { clock, compact } from "../lib/format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/html.js";
import { S } from "../strings/common.js";

/** @typedef {import("../vendor/uplot.js").default} Plot */
/** @typedef {typeof import("../vendor/uplot.js").default} Library */

// The page is there before its charts. Where the library cannot be loaded the legend has the newest values.
const library = import("../vendor/uplot.js").then((module) => module.default, () => null);

/** A line. `tone` names its colour: "accent", "quiet" or "alarm" (what needs a person).
 * @typedef {{ label: string, values: (number | null)[], tone: "accent" | "quiet" | "alarm", isDashed?: boolean }} Line */

/** @param {{ title: string, times: number[], lines: Line[], unit?: string, height?: number, format?: (value: number) => string }} properties
 *   `times` in milliseconds, the oldest first */
export function Chart({ title, times, lines, unit = "", height = 132, format = compact }) {
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  /** @type {{ current: Plot | null }} */
  const plot = useRef(null);
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  const [uPlot, setLibrary] = useState(/** @type {Library | null} */ (null));
  useEffect(() => void library.then((found) => setLibrary(() => found)), []);
  const scheme = useScheme();
  const shape = JSON.stringify([scheme, height, lines.map(({ label, tone, isDashed }) => [label, tone, isDashed])]);
  const isEmpty = times.length < 2;
  useLayoutEffect(() => {
    if (box.current === null || isEmpty || uPlot === null) return undefined;
    const made = make(uPlot, box.current, lines, height, format, setAt);
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
  const shownAt = at ?? times.length - 1;
  const shown = (/** @type {Line} */ line) => (line.values[shownAt] == null ? "–" : `${format(Number(line.values[shownAt]))}${unit}`);
  const summary = isEmpty ? S.chartEmpty : `${title}: ${lines.map((line) => `${line.label} ${shown(line)}`).join(", ")}`;
  return html`<figure class="chart"><figcaption><span class="chart-title">${title}</span>
      <span class="legend">${lines.map((line) => html`<span key=${line.label} class="legend-item"><i class=${`swatch ${line.tone} ${line.isDashed ? "dashed" : ""}`}></i>${
        line.label} <b class="number">${isEmpty ? "" : shown(line)}</b></span>`)}${at !== null && html`<span class="muted">${clock(times[at])}</span>`}</span></figcaption>
    ${isEmpty ? html`<p class="chart-empty" style=${{ height: `${height}px` }}>${S.chartEmpty}</p>`
      : html`<div ref=${box} role="img" aria-label=${summary} style=${{ height: `${height}px` }}></div>`}</figure>`;
}

/** @param {HTMLElement | null} element */
const widthOf = (element) => Math.max(120, Math.floor(element?.clientWidth ?? 300));

/** @param {number[]} times
 * @param {Line[]} lines
 * @returns {import("../vendor/uplot.js").default.AlignedData} */
const dataOf = (times, lines) => [times.map((time) => time / 1000), ...lines.map(({ values }) => values)];

/** @param {Library} uPlot
 * @param {HTMLElement} element
 * @param {Line[]} lines
 * @param {number} height
 * @param {(value: number) => string} format
 * @param {(index: number | null) => void} onCursor */
function make(uPlot, element, lines, height, format, onCursor) {
  const style = getComputedStyle(element);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const colours = { accent: colour("accent"), quiet: colour("quiet-line"), alarm: colour("alarm") };
  const axis = {
    stroke: colour("muted"), font: `11px ${style.fontFamily}`, grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false },
  };
  return new uPlot({
    width: widthOf(element), height, legend: { show: false }, padding: [8, 8, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_, _low, high) => [0, high <= 0 ? 1 : high * 1.1] } },
    axes: [
      { ...axis, size: 22, gap: 4, space: 70, values: (_, splits) => splits.map((each) => clock(each * 1000).replace(/:00(?=\D*$)/, "")) },
      { ...axis, size: 44, gap: 6, space: 28, values: (_, splits) => splits.map(format) },
    ],
    series: [{}, ...lines.map(({ label, tone, isDashed }) => ({
      label, stroke: colours[tone], width: 1.5, dash: isDashed ? [4, 3] : undefined, points: { show: false },
      fill: tone === "accent" ? `${colours.accent}1c` : undefined,
    }))],
    hooks: { setCursor: [(chart) => onCursor(chart.cursor.idx ?? null)] },
  }, [[], ...lines.map(() => [])], element);
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
