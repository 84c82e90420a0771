// Jobs: those that run and the last that ended, live; one of them; and the beginning of another.

import { digits, number, span } from "../lib/format.js";
import { now, second } from "../lib/clock.js";
import { html, useEffect } from "../lib/html.js";
import { isKnown, jobs } from "../lib/live.js";
import { kindOf } from "../lib/outcome.js";
import { entityHref, entityOf, isDeadLetters, jobHref } from "../lib/paths.js";
import { setQuery } from "../lib/router.js";
import { inWords } from "../lib/selection.js";
import { can } from "../lib/session.js";
import { Choice, Filter } from "../components/field.js";
import { Empty, Loading } from "../components/notice.js";
import { RowAction } from "../components/row-action.js";
import { Table } from "../components/table.js";
import { useQuery } from "../components/tabs.js";
import { EntityLink, Text } from "../components/text.js";
import { Count, Time } from "../components/time.js";
import { Begin } from "./jobs/begin.js";
import { One } from "./jobs/one.js";
import { Bar, cancel, stateTag } from "./jobs/parts.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/jobs.js";

/** @typedef {Schemas["Job"]} Job */

/** @param {import("./index.js").PageProperties} properties */
export default function Jobs({ parameters, query }) {
  useEffect(() => {
    if (parameters.id === undefined && query.id !== undefined) location.replace(jobHref(Number(query.id)));
  }, [query.id]);
  return parameters.id === undefined
    ? html`<${All} />`
    : html`<${One} key=${parameters.id} id=${Number(parameters.id)} />`;
}

function All() {
  const [show, setShow] = useQuery("show");
  const [filter, setFilter] = useQuery("filter");
  const all = [...jobs.value.values()];
  const running = all.filter(({ state }) => state === "running").length;
  const problems = all.filter(hasProblem).length;
  const wanted = filter.toLowerCase();
  const rows = all.filter(
    (job) =>
      (show === "" || (show === "running" ? job.state === "running" : hasProblem(job))) &&
      job.entity.toLowerCase().includes(wanted),
  );
  rows.sort((a, b) => Number(b.state === "running") - Number(a.state === "running") || b.id - a.id);
  return html`
    <div class="page-head">
      <h1 tabindex="-1">${C.pages.jobs}</h1>
      ${isKnown.value && html`<span class="muted">${C.rows(number(rows.length), number(all.length))}</span>`}
    </div>
    ${all.length !== 0 && html`
      <div class="tools">
        <${Filter} label=${S.filter} value=${filter} onInput=${setFilter} />
        <${Choice}
          label=${S.show}
          value=${show}
          onChange=${setShow}
          options=${[
            { value: "", label: S.all },
            { value: "running", label: html`${S.running} <small class="tab-count">${number(running)}</small>` },
            { value: "problems", label: html`${S.problems} <small class="tab-count">${number(problems)}</small>` },
          ]}
        />
      </div>
    `}
    <${List} rows=${rows} all=${all.length} />
    ${can("manage") && html`<${Begin} />`}
  `;
}

/** @param {Job} job */
const hasProblem = ({ state, skipped }) => state === "failed" || 0 < skipped;

/** @param {{ rows: Job[], all: number }} properties */
function List({ rows, all }) {
  const [sort, setSort] = useQuery("sort");
  if (!isKnown.value) return html`<${Loading} />`;
  if (all === 0)
    return html`
      <div class="card"><${Empty} title=${S.emptyTitle} text=${S.emptyText} command=${S.emptyCommand} /></div>
    `;
  if (rows.length === 0)
    return html`
      <div class="card">
        <${Empty} title=${S.noneTitle}>
          <button type="button" onClick=${() => setQuery({ show: "", filter: "" })}>${S.clear}</button>
        <//>
      </div>
    `;
  return html`
    <${Table}
      label=${S.table}
      columns=${rows.some(({ state }) => state === "running") ? COLUMNS : ENDED_COLUMNS}
      rows=${rows}
      keyOf=${(/** @type {Job} */ job) => job.id}
      sort=${sort}
      onSort=${setSort}
      heightMax=${418}
      hrefOf=${(/** @type {Job} */ job) => jobHref(job.id)}
    />
  `;
}

/** @param {Job} job */
const duration = ({ created_at: from, ended_at: to }) => (to == null ? now() : Date.parse(to)) - Date.parse(from);

/** @param {{ job: Job }} properties */
function Took({ job }) {
  if (job.ended_at == null) second.value;
  const took = duration(job);
  return html`<span class="number">${took < 1000 ? `${Math.max(0, Math.round(took))}ms` : span(took)}</span>`;
}

/** @type {import("../components/table.js").Column<Job>[]} */
const COLUMNS = [
  {
    id: "id",
    label: S.job,
    align: "end",
    sort: (job) => job.id,
    cell: ({ id }) => html`<a class="number" href=${jobHref(id)}>${digits(id)}</a>`,
  },
  { id: "state", label: S.state, sort: ({ state }) => state, cell: (job) => stateTag(job) },
  { id: "what", label: S.what, hide: "narrow", cell: (job) => S.kinds[kindOf(job)] },
  {
    id: "entity",
    label: S.entity,
    isWide: true,
    sort: ({ entity }) => entity,
    cell: ({ entity }) => html`
      <${EntityLink}
        path=${entity}
        to=${entityHref(entityOf(entity), isDeadLetters(entity) ? "dead-letters" : undefined)}
      />
    `,
  },
  {
    id: "selection",
    label: S.selection,
    hide: "medium",
    cell: ({ selection }) => html`<span class="muted"><${Text} value=${inWords(selection)} max=${120} /></span>`,
  },
  {
    id: "progress",
    label: S.progress,
    hide: "narrow",
    cell: (job) => job.state === "running" && html`<${Bar} job=${job} />`,
  },
  {
    id: "changed",
    label: S.changed,
    align: "end",
    sort: ({ changed }) => changed,
    cell: ({ changed }) => html`<${Count} value=${changed} />`,
  },
  {
    id: "skipped",
    label: S.skipped,
    align: "end",
    hide: "narrow",
    sort: ({ skipped }) => skipped,
    cell: ({ skipped }) => html`<${Count} value=${skipped} />`,
  },
  {
    id: "began",
    label: S.began,
    align: "end",
    hide: "medium",
    sort: ({ created_at: at }) => Date.parse(at),
    cell: ({ created_at: at }) => html`<${Time} at=${at} />`,
  },
  {
    id: "took",
    label: S.took,
    align: "end",
    hide: "medium",
    sort: duration,
    cell: (job) => html`<${Took} job=${job} />`,
  },
  {
    id: "cancel",
    label: "",
    align: "end",
    cell: (job) =>
      job.state === "running" && can("manage") && html`
        <${RowAction} icon="cancel" label=${S.cancelLabel(digits(job.id))} onClick=${() => cancel(job)} />
      `,
  },
];

/** Where none runs, nothing is on its way. */
const ENDED_COLUMNS = COLUMNS.filter(({ id }) => id !== "progress" && id !== "cancel");
