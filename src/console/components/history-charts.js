// Charts of a history beside one another: one hover and one part of the time for all of them.

import { clock, dayClock } from "../lib/format.js";
import { linesOf, RANGES, rangeOf } from "../lib/history.js";
import { html, useMemo, useState } from "../lib/html.js";
import { route, setQuery } from "../lib/router.js";
import { Chart } from "./chart.js";
import { Choice } from "./field.js";
import { S } from "../strings/common.js";
import { S as T } from "../strings/trends.js";

/** Fewer intervals are no chart. */
const POINTS_MIN = 3;

/** @typedef {{ title: string, format?: (value: number) => string,
 *   linesOf: (lines: ReturnType<typeof linesOf>) => import("./chart.js").Line[] }} ChartOfHistory */

/** The part of the history that is in the address, in milliseconds; null for all of it.
 * @param {Record<string, string>} query
 * @returns {{ from: number, before: number } | null} */
function partOf({ begin, end }) {
  const part = { from: Date.parse(begin ?? ""), before: Date.parse(end ?? "") };
  return part.from < part.before ? part : null;
}

/** Chooses the range, which is in the address. A part of the time is one of its range. */
export function RangeChoice() {
  const options = RANGES.map((value) => ({ value, label: T.ranges[value] }));
  const choose = (/** @type {string} */ range) =>
    setQuery({ range: range === "hour" ? undefined : range, begin: undefined, end: undefined });
  return html`
    <div class="tools">
      <${Choice} label=${T.range} value=${rangeOf(route.value.query)} options=${options} onChange=${choose} />
    </div>
  `;
}

/** @param {{ history: Schemas["HistoryShown"], charts: ChartOfHistory[] }} properties `charts` is the same at each
 *   call */
export function HistoryCharts({ history, charts }) {
  const [hovered, setHovered] = useState(/** @type {number | null} */ (null));
  const { begin, end } = route.value.query;
  const part = useMemo(() => partOf({ begin, end }), [begin, end]);
  const shown = useMemo(() => {
    const isInPart = (/** @type {Schemas["PointShown"]} */ { at }) =>
      part === null || (part.from <= Date.parse(at) && Date.parse(at) <= part.before);
    const points = history.points.filter(isInPart);
    const isShort = points.length < POINTS_MIN;
    const current = history.current != null && isInPart(history.current) ? history.current : undefined;
    const lines = linesOf(isShort ? history : { ...history, points, current });
    return {
      isWhole: part === null || isShort,
      times: lines.times,
      charts: charts.map((chart) => ({ ...chart, lines: chart.linesOf(lines) })),
    };
  }, [history, part, charts]);
  const whole = () => setQuery({ begin: undefined, end: undefined });
  const zoom = (/** @type {number} */ from, /** @type {number} */ before) => {
    const inside = shown.times.filter((time) => from <= time && time <= before);
    if (POINTS_MIN <= inside.length) setQuery({ begin: isoOf(inside[0]), end: isoOf(Number(inside.at(-1))) });
  };
  const { times } = shown;
  const timeOf = history.range === "hour" ? clock : dayClock;
  return html`
    ${!shown.isWhole && html`
      <p class="chart-part">
        <span>${S.chartPart(timeOf(times[0]), timeOf(Number(times.at(-1))))}</span>${" "}
        <button type="button" onClick=${whole}>${S.chartWhole}</button>
      </p>
    `}
    <div class="columns">
      ${shown.charts.map(
        ({ title, lines, format }) => html`
          <div key=${title} class="card">
            <${Chart}
              title=${title}
              empty=${T.empty[history.range]}
              timeOf=${timeOf}
              times=${times}
              lines=${lines}
              format=${format}
              hovered=${hovered}
              onHover=${setHovered}
              onZoom=${zoom}
              onWhole=${whole}
            />
          </div>
        `,
      )}
    </div>
  `;
}

/** @param {number} time */
const isoOf = (time) => new Date(time).toISOString();
