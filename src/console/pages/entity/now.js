// Counts of an entity by state, and its history.

import { rangeOf, useHistory } from "../../lib/history.js";
import { rate } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { href, route } from "../../lib/router.js";
import { trendOf } from "../../lib/trends.js";
import { wholeOf } from "../../lib/tree.js";
import { HistoryCharts, RangeChoice } from "../../components/history-charts.js";
import { Loaded } from "../../components/notice.js";
import { Count, Size } from "../../components/time.js";
import { WithTrend } from "../../components/trend.js";
import { S } from "../../strings/entity.js";
import { S as O } from "../../strings/overview.js";

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

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function Now({ entity }) {
  const history = useHistory(entity.path, rangeOf(route.value.query));
  const isTopic = entity.kind === "topic";
  const whole = wholeOf(entity, entities.value.values());
  // That of a topic has nothing of its subscriptions.
  const trend = isTopic ? undefined : trendOf(entity.path);
  const tone = 0 < whole.fresh ? "alarm" : "";
  return html`<dl class="figures">
      <div><dt>${isTopic ? S.published : S.in}</dt><dd>${rate(whole.incoming)}<small> ${O.perSecond}</small></dd></div>
      <div><dt>${isTopic ? S.copiesCompleted : S.out}</dt><dd>${rate(whole.outgoing)}<small> ${O.perSecond}</small></dd></div>
      <div><dt>${S.active}</dt><dd><${WithTrend} change=${trend?.active}><${Count} value=${whole.active} /><//></dd></div>
      <div><dt>${S.locked}</dt><dd><${Count} value=${whole.locked} /></dd></div>
      <div><dt>${S.scheduled}</dt><dd><${Count} value=${whole.scheduled} /></dd></div>
      <div><dt>${S.deferred}</dt><dd><${Count} value=${whole.deferred} /></dd></div>
      <div><dt>${S.dead}</dt><dd><${WithTrend} change=${trend?.dead_letters} tone=${tone}><${Count} value=${whole.dead} tone=${tone} /><//></dd></div>
      <div><dt>${S.size}</dt><dd><${Size} value=${whole.size} /></dd></div>
      <div><dt>${S.receivers}</dt><dd><${Count} value=${whole.receivers} /></dd></div>
      <div><dt>${S.sessions}</dt><dd>${entity.sessions === 0 ? html`<${Count} value=${0} />` : html`<a href=${href(["sessions", entity.path])}><${Count} value=${entity.sessions} /></a>`}${0 < entity.sessions && html`<small> ${entity.sessions_held} ${S.heldSessions}</small>`}</dd></div>
    </dl>
    ${isTopic && html`<p class="muted">${S.topicCounts}</p>`}
    <${RangeChoice} /><${Loaded} of=${history}>${(/** @type {Schemas["HistoryShown"]} */ shown) => html`<${HistoryCharts} history=${shown} charts=${CHARTS} />`}<//>
    <section class="card"><div class="card-head"><h2>${S.totals}</h2></div><dl class="pairs totals">
      <dt>${S.incomingTotal}</dt><dd><${Count} value=${entity.incoming} /></dd>
      <dt>${S.completedTotal}</dt><dd><${Count} value=${entity.completed} /></dd>
      <dt>${S.abandonedTotal}</dt><dd><${Count} value=${entity.abandoned} /></dd>
      <dt>${S.locksExpiredTotal}</dt><dd><${Count} value=${entity.locks_expired} /></dd>
      <dt>${S.expiredTotal}</dt><dd><${Count} value=${entity.expired} /></dd>
      <dt>${S.deadTotal}</dt><dd><${Count} value=${entity.dead_lettered} /></dd></dl></section>`;
}
