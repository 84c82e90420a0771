// The namespaces of the store: who has them, and which of them are not served.

import { number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { setQuery } from "../../lib/router.js";
import { Choice, Filter } from "../../components/field.js";
import { Empty } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { useQuery } from "../../components/tabs.js";
import { Text } from "../../components/text.js";
import { Count } from "../../components/time.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/servers.js";

/** @typedef {Schemas["FleetNamespace"]} Namespace */

/** @param {{ namespaces: Namespace[], stores: number }} properties */
export function Namespaces({ namespaces, stores }) {
  const [filter, setFilter] = useQuery("filter");
  const [show, setShow] = useQuery("show");
  const [sort, setSort] = useQuery("sort");
  const wanted = filter.toLowerCase();
  const problems = namespaces.filter(hasProblem).length;
  const rows = namespaces.filter(
    (row) =>
      (show !== "problems" || hasProblem(row)) && `${row.name} ${row.server ?? ""}`.toLowerCase().includes(wanted),
  );
  return html`
    <section aria-labelledby="namespaces">
      <div class="card-head">
        <h2 id="namespaces">${S.namespaces}</h2>
        <span class="muted">${C.rows(number(rows.length), number(namespaces.length))}</span>
      </div>
      <div class="tools namespace-tools">
        <${Filter} label=${S.filter} value=${filter} onInput=${setFilter} />
        <${Choice}
          label=${S.show}
          value=${show}
          onChange=${setShow}
          options=${[
            { value: "", label: S.all },
            { value: "problems", label: html`${S.problems} <small class="tab-count">${number(problems)}</small>` },
          ]}
        />
      </div>
      ${rows.length === 0
        ? html`
            <div class="card">
              <${Empty} title=${show === "problems" && filter === "" ? S.noProblem : S.noneTitle}>
                <button type="button" onClick=${() => setQuery({ filter: "", show: "" })}>${S.clear}</button>
              <//>
            </div>
          `
        : html`
            <${Table}
              label=${S.namespaces}
              columns=${stores === 1 ? OF_ONE_STORE : COLUMNS}
              rows=${rows}
              keyOf=${(/** @type {Namespace} */ row) => row.name}
              sort=${sort}
              onSort=${setSort}
              heightMax=${640}
            />
          `}
    </section>
  `;
}

/** @param {Namespace} namespace
 * @returns {"served" | "waiting" | "suspended" | "quarantined"} */
function stateOf({ server, suspended, quarantined }) {
  if (quarantined != null) return "quarantined";
  if (server == null) return "waiting";
  return suspended == null ? "served" : "suspended";
}

/** @param {Namespace} namespace */
const hasProblem = (namespace) => stateOf(namespace) !== "served";

/** @type {import("../../components/table.js").Column<Namespace>[]} */
const COLUMNS = [
  {
    id: "name",
    label: S.namespace,
    sort: ({ name }) => name,
    cell: ({ name }) => html`<b><${Text} value=${name} max=${80} /></b>`,
  },
  {
    id: "state",
    label: S.state,
    sort: stateOf,
    cell: (row) => html`<span class=${`tag ${hasProblem(row) ? "alarm" : ""}`}>${S[stateOf(row)]}</span>`,
  },
  {
    id: "server",
    label: S.server,
    sort: ({ server }) => server ?? "",
    cell: ({ server }) =>
      server == null ? html`<span class="muted">${S.noServer}</span>` : html`<${Text} value=${server} max=${80} />`,
  },
  {
    id: "store",
    label: S.ofStore,
    hide: "narrow",
    sort: ({ store }) => store,
    cell: ({ store }) => html`<${Text} value=${store} max=${80} />`,
  },
  {
    id: "rate",
    label: S.rate,
    align: "end",
    hide: "medium",
    sort: ({ rate }) => rate,
    cell: ({ rate }) => html`<${Count} value=${rate} />`,
  },
  {
    id: "epoch",
    label: S.epoch,
    align: "end",
    sort: ({ epoch }) => epoch,
    cell: ({ epoch }) => html`<${Count} value=${epoch} />`,
  },
  {
    id: "why",
    label: "",
    hide: "narrow",
    isWide: true,
    cell: ({ quarantined, suspended }) => {
      const why = quarantined ?? suspended ?? "";
      return html`<span class="muted" title=${why}><${Text} value=${why} max=${200} /></span>`;
    },
  },
];

/** One store needs no name. */
const OF_ONE_STORE = COLUMNS.filter(({ id }) => id !== "store");
