// All entities with live counts: topics with their subscriptions below them.

import { number } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { entities, hasRates, isKnown } from "../lib/live.js";
import { entityHref } from "../lib/paths.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { KEYS, treeOf } from "../lib/tree.js";
import { trendOf as trendOfPath } from "../lib/trends.js";
import { Choice, Filter } from "../components/field.js";
import { NoEntities } from "../components/no-entities.js";
import { Empty, Loading } from "../components/notice.js";
import { Table } from "../components/table.js";
import { useQuery } from "../components/tabs.js";
import { EntityLink } from "../components/text.js";
import { Count, Rate, Size } from "../components/time.js";
import { Unseen, WithTrend } from "../components/trend.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/entities.js";

/** @typedef {import("../lib/tree.js").Row} Row */

const CLOSED = "jitney-closed-topics";

/** Topics whose subscriptions are hidden; kept over a reload.
 * @returns {[Set<string>, (path: string) => void]} */
function useClosed() {
  const [closed, setClosed] = useState(() => new Set(JSON.parse(sessionStorage.getItem(CLOSED) ?? "[]")));
  return [
    closed,
    (path) => {
      const next = new Set(closed);
      if (!next.delete(path)) next.add(path);
      sessionStorage.setItem(CLOSED, JSON.stringify([...next]));
      setClosed(next);
    },
  ];
}

export default function Entities() {
  const [filter, setFilter] = useQuery("filter");
  const [kind, setKind] = useQuery("kind");
  const [sort, setSort] = useQuery("sort", "name");
  const [closed, toggle] = useClosed();
  const rows = treeOf(entities.value.values(), { filter, kind, sort, closed });
  const all = entities.value.size;
  return html`
    <div class="page-head">
      <h1 tabindex="-1">${C.pages.entities}</h1>
      <span class="muted">
        ${isKnown.value && C.rows(number(filter === "" && kind === "" ? all : rows.length), number(all))}
      </span>
      ${can("manage") && html`
        <span class="actions"><a class="button" href=${href(["new-entity"])}>${S.make}</a></span>
      `}
    </div>
    <div class="tools">
      <${Filter} label=${S.filter} value=${filter} onInput=${setFilter} />
      <${Choice}
        label=${S.kinds}
        value=${kind}
        onChange=${setKind}
        options=${[
          { value: "", label: S.all },
          { value: "queue", label: S.queues },
          { value: "topic", label: S.topics },
        ]}
      />
    </div>
    <${Body} rows=${rows} all=${all} sort=${sort} onSort=${setSort} toggle=${toggle} />
  `;
}

/** @param {{ rows: Row[], all: number, sort: string, onSort: (sort: string) => void, toggle: (path: string) =>
 *   void }} properties */
function Body({ rows, all, sort, onSort, toggle }) {
  if (all === 0) {
    return isKnown.value ? html`<${NoEntities} />` : html`<${Loading} />`;
  }
  if (rows.length === 0) {
    return html`
      <div class="card">
        <${Empty} title=${S.noneTitle}>
          <button type="button" onClick=${() => setQuery({ filter: "", kind: "" })}>${S.clear}</button>
        <//>
      </div>
    `;
  }
  return html`
    <${Table}
      label=${S.table}
      columns=${columnsOf(toggle)}
      rows=${rows}
      keyOf=${(/** @type {Row} */ row) => row.path}
      sort=${sort}
      onSort=${onSort}
      hrefOf=${(/** @type {Row} */ row) => entityHref(row.path)}
      isSorted=${true}
      fills=${true}
    />
  `;
}

/** @param {(path: string) => void} toggle
 * @returns {import("../components/table.js").Column<Row>[]} */
function columnsOf(toggle) {
  return [
    {
      id: "name",
      label: S.name,
      sort: KEYS.name,
      isWide: true,
      cell: (row) => html`<${Name} row=${row} toggle=${toggle} />`,
    },
    {
      id: "kind",
      label: S.kind,
      sort: KEYS.kind,
      hide: "large",
      cell: (row) => html`<span class="muted">${C.kinds[row.kind]}</span>`,
    },
    {
      id: "active",
      label: S.active,
      sort: KEYS.active,
      align: "end",
      cell: (row) => html`
        <${WithTrend} value=${row.active} change=${trendOf(row)?.active}><${Count} value=${row.active} /><//>
      `,
    },
    {
      id: "locked",
      label: S.locked,
      sort: KEYS.locked,
      align: "end",
      hide: "large",
      cell: (row) => html`<${Count} value=${row.locked} />`,
    },
    {
      id: "scheduled",
      label: S.scheduled,
      sort: KEYS.scheduled,
      align: "end",
      hide: "narrow",
      cell: (row) => html`<${Count} value=${row.scheduled} />`,
    },
    {
      id: "deferred",
      label: S.deferred,
      sort: KEYS.deferred,
      align: "end",
      hide: "large",
      cell: (row) => html`<${Count} value=${row.deferred} />`,
    },
    { id: "dead", label: S.dead, sort: KEYS.dead, align: "end", cell: (row) => html`<${Dead} row=${row} />` },
    {
      id: "in",
      label: S.in,
      sort: KEYS.in,
      align: "end",
      hide: "narrow",
      cell: (row) => html`<${Rate} value=${hasRates() ? row.incoming : null} />`,
    },
    {
      id: "out",
      label: S.out,
      sort: KEYS.out,
      align: "end",
      hide: "narrow",
      cell: (row) => html`<${Rate} value=${hasRates() ? row.outgoing : null} />`,
    },
    {
      id: "size",
      label: S.size,
      sort: KEYS.size,
      align: "end",
      hide: "large",
      cell: (row) => html`<${Size} value=${row.size} />`,
    },
    {
      id: "receivers",
      label: S.receivers,
      sort: KEYS.receivers,
      align: "end",
      hide: "medium",
      cell: (row) => html`<${Count} value=${row.receivers} />`,
    },
  ];
}

/** @param {{ row: Row, toggle: (path: string) => void }} properties */
function Name({ row, toggle }) {
  return html`
    <span class=${`entity-name ${row.depth === 0 ? "" : "sub"}`}>
      ${0 < row.children
        ? html`
            <button
              type="button"
              class="twist"
              aria-expanded=${row.isOpen}
              aria-label=${row.isOpen ? S.collapse : S.expand}
              onClick=${() => toggle(row.path)}
            >
              ${row.isOpen ? "▾" : "▸"}
            </button>
          `
        : html`<span class="twist"></span>`}
      <${EntityLink} path=${row.path} name=${row.name} />
    </span>
  `;
}

/** That of a topic has nothing of its subscriptions, whose counts it shows.
 * @param {Row} row */
const trendOf = ({ path, kind }) => (kind === "topic" ? undefined : trendOfPath(path));

/** @param {{ row: Row }} properties */
function Dead({ row }) {
  const tone = 0 < row.fresh ? "alarm" : "";
  const count =
    row.dead === 0 || row.kind === "topic"
      ? html`<${Count} value=${row.dead} tone=${tone} />`
      : html`<a class=${`number ${tone}`} href=${entityHref(row.path, "dead-letters")}>${number(row.dead)}</a>`;
  return html`
    <${WithTrend} value=${row.dead} change=${trendOf(row)?.dead_letters} tone=${tone}>
      <${Unseen} count=${row.unseen} />
      ${count}
    <//>
  `;
}
