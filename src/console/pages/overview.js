// The first page: is the namespace well, what comes in and goes out, and what needs a person.

import { html } from "../lib/html.js";
import { rate } from "../lib/format.js";
import { rangeOf, useHistory } from "../lib/history.js";
import { attention, entities, hasRates, isKnown, rateOf, totals } from "../lib/live.js";
import { href, route } from "../lib/router.js";
import { can } from "../lib/session.js";
import { freshTotal, whole } from "../lib/trends.js";
import { AttentionList } from "../components/attention-list.js";
import { HistoryCharts, RangeChoice } from "../components/history-charts.js";
import { NoEntities } from "../components/no-entities.js";
import { Empty, Loaded } from "../components/notice.js";
import { Table } from "../components/table.js";
import { EntityLink } from "../components/text.js";
import { Count, Rate, Size } from "../components/time.js";
import { WithTrend } from "../components/trend.js";
import { ServerNow } from "./overview/server.js";
import { S as A } from "../strings/attention.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/overview.js";

const ITEMS_MAX = 4;
const BUSIEST_MAX = 8;

/** @type {import("../components/history-charts.js").ChartOfHistory[]} */
const CHARTS = [
  {
    title: S.traffic,
    format: rate,
    linesOf: (lines) => [
      { label: S.in, values: lines.rate("incoming"), tone: "accent" },
      { label: S.out, values: lines.rate("completed"), tone: "quiet" },
    ],
  },
  {
    title: S.backlog,
    linesOf: (lines) => [
      { label: S.active, values: lines.count("active"), tone: "accent" },
      { label: S.scheduled, values: lines.count("scheduled"), tone: "quiet", isDashed: true },
      { label: S.dead, values: lines.count("dead_letters"), tone: "alarm" },
    ],
  },
];

export default function Overview() {
  const range = rangeOf(route.value.query);
  const history = useHistory(undefined, range);
  return html`
    <div class="page-head"><h1 tabindex="-1">${C.pages.overview}</h1></div>
    <${Figures} rates=${history.data?.rates} />
    <${FirstSteps} />
    <div class="columns"><${Attention} /><${Busiest} /></div>
    <${RangeChoice} />
    <${Loaded} of=${history}>
      ${(/** @type {Schemas["HistoryShown"]} */ shown) => html`<${HistoryCharts} history=${shown} charts=${CHARTS} />`}
    <//>
    <${ServerNow} />
  `;
}

/** @param {{ rates: Schemas["RatesShown"] | null | undefined }} properties */
function Figures({ rates }) {
  const sum = totals.value;
  const tone = 0 < freshTotal.value ? "alarm" : "";
  return html`
    <dl class="figures">
      <div>
        <dt title=${S.inTitle}>${S.in}</dt>
        <dd>
          <${Rate} value=${rates?.incoming ?? 0} hasUnit />
          ${0 < (rates?.published ?? 0) && html`
            <small class="published">${S.published(rate(rates?.published ?? 0))}</small>
          `}
        </dd>
      </div>
      <div><dt title=${S.outTitle}>${S.out}</dt><dd><${Rate} value=${rates?.completed ?? 0} hasUnit /></dd></div>
      <div>
        <dt>${S.active}</dt>
        <dd><${WithTrend} value=${sum.active} change=${whole.value?.active}><${Count} value=${sum.active} /><//></dd>
      </div>
      <div><dt>${S.locked}</dt><dd><${Count} value=${sum.locked} /></dd></div>
      <div><dt>${S.scheduled}</dt><dd><${Count} value=${sum.scheduled} /></dd></div>
      <div><dt>${S.deferred}</dt><dd><${Count} value=${sum.deferred} /></dd></div>
      <div>
        <dt>${S.dead}</dt>
        <dd>
          <${WithTrend} value=${sum.dead_letters} change=${whole.value?.dead_letters} tone=${tone}>
            <${Count} value=${sum.dead_letters} tone=${tone} />
          <//>
        </dd>
      </div>
      <div><dt>${S.size}</dt><dd><${Size} value=${sum.size_bytes} /></dd></div>
    </dl>
  `;
}

/** Says what to do next in a namespace in which nothing has happened. */
function FirstSteps() {
  if (!isKnown.value) return null;
  if (entities.value.size === 0) return html`<${NoEntities} />`;
  const isQuiet = ![...entities.value.values()].some(
    (entity) => 0 < entity.incoming + entity.active + entity.scheduled + entity.dead_letters,
  );
  const first = [...entities.value.values()].find(({ kind }) => kind !== "subscription")?.path ?? "";
  return isQuiet
    ? html`
        <div class="card">
          <${Empty} title=${S.quietTitle} command=${S.quietCommand(first)}>
            ${can("send") && html`<a href=${href(["send"], { entity: first })}>${S.quietLink}</a>`}
          <//>
        </div>
      `
    : null;
}

function Attention() {
  const now = attention.value;
  return html`
    <section class="card" aria-labelledby="attention">
      <div class="card-head"><h2 id="attention">${A.title}</h2></div>
      ${now === null
        ? html`<p class="muted">${A.notKnown}</p>`
        : html`<${AttentionList} items=${now.items} leftOut=${now.left_out} most=${ITEMS_MAX} />`}
    </section>
  `;
}

function Busiest() {
  const busy = [];
  for (const { path } of entities.value.values()) {
    const [incoming, completed] = [rateOf(path, "incoming"), rateOf(path, "completed")];
    if (0 < incoming + completed) busy.push({ path, incoming, completed });
  }
  busy.sort((a, b) => b.incoming + b.completed - a.incoming - a.completed);
  const columns = [
    {
      id: "path",
      label: S.entity,
      isWide: true,
      cell: (/** @type {any} */ row) => html`<${EntityLink} path=${row.path} />`,
    },
    {
      id: "in",
      label: `${S.in} ${C.perSecond}`,
      align: /** @type {const} */ ("end"),
      cell: (/** @type {any} */ row) => html`<${Rate} value=${row.incoming} />`,
    },
    {
      id: "out",
      label: `${S.out} ${C.perSecond}`,
      align: /** @type {const} */ ("end"),
      cell: (/** @type {any} */ row) => html`<${Rate} value=${row.completed} />`,
    },
    {
      id: "active",
      label: S.active,
      align: /** @type {const} */ ("end"),
      cell: (/** @type {any} */ row) => html`<${Count} value=${entities.value.get(row.path)?.active ?? 0} />`,
    },
  ];
  return html`
    <section class="card" aria-labelledby="busiest">
      <div class="card-head"><h2 id="busiest">${S.busiest}</h2></div>
      ${busy.length === 0
        ? html`<p class="muted">${hasRates() ? S.busiestNone : C.loading}</p>`
        : html`
            <${Table}
              label=${S.busiest}
              columns=${columns}
              rows=${busy.slice(0, BUSIEST_MAX)}
              keyOf=${(/** @type {any} */ row) => row.path}
            />
          `}
    </section>
  `;
}
