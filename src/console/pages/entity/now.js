// Counts of an entity by state, and its history.

import { rangeOf, useHistory } from "../../lib/history.js";
import { rate } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { href, route } from "../../lib/router.js";
import { HistoryCharts, RangeChoice } from "../../components/history-charts.js";
import { Loaded } from "../../components/notice.js";
import { Count, Size } from "../../components/time.js";
import { Attention } from "./attention.js";
import { TopicMap } from "./map.js";
import { Picture } from "./picture.js";
import { S } from "../../strings/entity.js";

/** @type {import("../../components/history-charts.js").ChartOfHistory[]} */
const CHARTS = [
  {
    title: S.traffic,
    format: rate,
    linesOf: (lines) => [
      { label: S.in, values: lines.rate("incoming"), tone: "accent" },
      { label: S.out, values: lines.rate("completed"), tone: "quiet" },
      { label: S.deadLettered, values: lines.rate("dead_lettered"), tone: "alarm" },
    ],
  },
  {
    title: S.backlog,
    linesOf: (lines) => [
      { label: S.active, values: lines.count("active"), tone: "accent" },
      { label: S.scheduled, values: lines.count("scheduled"), tone: "quiet", isDashed: true },
      { label: S.deferred, values: lines.count("deferred"), tone: "deferred" },
      { label: S.dead, values: lines.count("dead_letters"), tone: "alarm" },
    ],
  },
];

/** A topic holds scheduled messages only: its copies are those of its subscriptions.
 * @type {import("../../components/history-charts.js").ChartOfHistory[]} */
const TOPIC_CHARTS = [
  {
    title: S.traffic,
    format: rate,
    linesOf: (lines) => [{ label: S.published, values: lines.rate("incoming"), tone: "accent" }],
  },
  {
    title: S.scheduledMessages,
    linesOf: (lines) => [{ label: S.scheduled, values: lines.count("scheduled"), tone: "accent" }],
  },
];

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function Now({ entity }) {
  const history = useHistory(entity.path, rangeOf(route.value.query));
  const charts = entity.kind === "topic" ? TOPIC_CHARTS : CHARTS;
  return html`
    ${entity.kind === "topic"
      ? html`<${TopicMap} entity=${entity} />`
      : html`<${Picture} entity=${entity} /><${Others} entity=${entity} />`}
    <${Attention} path=${entity.path} />
    <${RangeChoice} />
    <${Loaded} of=${history}>
      ${(/** @type {Schemas["HistoryShown"]} */ shown) => html`<${HistoryCharts} history=${shown} charts=${charts} />`}
    <//>
  `;
}

/** What the picture of a queue does not show.
 * @param {{ entity: Schemas["EntityNow"] }} properties */
function Others({ entity }) {
  const { path, sessions, sessions_held: held } = entity;
  return html`
    <dl class="figures">
      <div><dt>${S.size}</dt><dd><${Size} value=${entity.size_bytes} /></dd></div>
      <div>
        <dt>${S.sessions}</dt>
        <dd>
          ${sessions === 0
            ? html`<${Count} value=${0} />`
            : html`
                <a href=${href(["sessions", path])}><${Count} value=${sessions} /></a>
                <small> ${held} ${S.heldSessions}</small>
              `}
        </dd>
      </div>
      <div><dt>${S.abandonedTotal}</dt><dd><${Count} value=${entity.abandoned} /></dd></div>
      <div><dt>${S.locksExpiredTotal}</dt><dd><${Count} value=${entity.locks_expired} /></dd></div>
    </dl>
  `;
}
