// Clients: their connections and links, which of them are stuck, and an end to those.

import { number } from "../lib/format.js";
import { html, useEffect } from "../lib/html.js";
import { connections, entities, isKnown } from "../lib/live.js";
import { connectionHref } from "../lib/paths.js";
import { setQuery } from "../lib/router.js";
import { Choice, Filter } from "../components/field.js";
import { Empty, Loading } from "../components/notice.js";
import { Table } from "../components/table.js";
import { useQuery } from "../components/tabs.js";
import { Attention } from "./connections/attention.js";
import { columns } from "./connections/columns.js";
import { One } from "./connections/one.js";
import { Receives } from "./connections/receives.js";
import { KEYS, rowsOf } from "./connections/rows.js";
import { stuckLinks } from "./connections/stuck.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/connections.js";

/** @typedef {import("./connections/rows.js").Row} Row */

/** @param {import("./index.js").PageProperties} properties */
export default function Connections({ parameters, query }) {
  useEffect(() => {
    if (parameters.id === undefined && query.id !== undefined) location.replace(connectionHref(Number(query.id)));
  }, [query.id]);
  return parameters.id === undefined ? html`<${All} />` : html`<${One} id=${Number(parameters.id)} />`;
}

function All() {
  const [filter, setFilter] = useQuery("filter");
  const [show, setShow] = useQuery("show");
  const [sort, setSort] = useQuery("sort");
  const found = stuckLinks.value;
  const rows = rowsOf(connections.value.values(), { filter, show, sort, stuck: found });
  const all = connections.value.size;
  return html`
    <div class="page-head">
      <h1 tabindex="-1">${C.pages.connections}</h1>
      ${isKnown.value && html`<span class="muted">${countsOf(rows, all)}</span>`}
    </div>
    ${show !== "stuck" && html`<${Attention} found=${found} />`}
    ${all !== 0 && html`
      <div class="tools">
        <${Filter} label=${S.filter} value=${filter} onInput=${setFilter} />
        <${Choice}
          label=${S.show}
          value=${show}
          onChange=${setShow}
          options=${[
            { value: "", label: S.all },
            { value: "receivers", label: S.receivers },
            { value: "senders", label: S.senders },
            {
              value: "stuck",
              label: html`
                ${S.stuck}
                ${found.length !== 0 && html` <small class="tab-count">${number(found.length)}</small>`}
              `,
            },
            { value: "requests", label: S.requests },
          ]}
        />
      </div>
    `}
    <${Receives} />
    <${Body} rows=${rows} all=${all} show=${show} sort=${sort} onSort=${setSort} />
  `;
}

/** @param {Row[]} rows
 * @param {number} all */
function countsOf(rows, all) {
  const shown = rows.filter(({ link }) => link === null).length;
  return S.counts(C.rows(number(shown), number(all)), number(rows.length - shown));
}

/** @param {{ rows: Row[], all: number, show: string, sort: string, onSort: (sort: string) => void }} properties */
function Body({ rows, all, show, sort, onSort }) {
  if (!isKnown.value) return html`<${Loading} />`;
  if (all === 0) {
    const path = [...entities.value.values()].find(({ kind }) => kind !== "topic")?.path ?? "orders";
    return html`
      <div class="card"><${Empty} title=${S.emptyTitle} text=${S.emptyText} command=${S.emptyCommand(path)} /></div>
    `;
  }
  if (rows.length === 0) {
    return html`
      <div class="card">
        <${Empty} title=${show === "stuck" ? S.noneStuck : S.noneTitle}>
          <button type="button" onClick=${() => setQuery({ filter: "", show: "" })}>${S.clear}</button>
        <//>
      </div>
    `;
  }
  return html`
    <${Table}
      label=${S.table}
      columns=${columns(KEYS)}
      rows=${rows}
      keyOf=${(/** @type {Row} */ row) => row.key}
      sort=${sort}
      onSort=${onSort}
      rowClass=${(/** @type {Row} */ row) => (row.link === null ? "connection" : row.why !== null ? "stuck" : "")}
      hrefOf=${(/** @type {Row} */ row) => connectionHref(row.connection.id)}
      isSorted=${true}
      fills=${true}
    />
  `;
}
