// The servers, and how old their beats are.

import { number, span } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { Table } from "../../components/table.js";
import { useQuery } from "../../components/tabs.js";
import { Text } from "../../components/text.js";
import { Count } from "../../components/time.js";
import { S } from "../../strings/servers.js";

/** @typedef {Schemas["FleetServer"] & { isOwn: boolean }} Row */

/** A beat that is older is late: they come twice a second, and are seen twice a second. */
const LATE_MILLISECONDS = 2_000;

/** @param {{ fleet: Schemas["FleetShown"] }} properties */
export function Servers({ fleet }) {
  const [sort, setSort] = useQuery("servers");
  const rows = fleet.servers.map((server) => ({ ...server, isOwn: server.name === fleet.server }));
  // Those that have gone come last.
  rows.sort((a, b) => Number(b.alive) - Number(a.alive));
  return html`
    <section aria-labelledby="servers">
      <div class="card-head"><h2 id="servers">${S.servers}</h2></div>
      <${Table}
        label=${S.servers}
        columns=${COLUMNS}
        rows=${rows}
        keyOf=${(/** @type {Row} */ row) => row.name}
        sort=${sort}
        onSort=${setSort}
        heightMax=${360}
      />
    </section>
  `;
}

/** What is said of a server.
 * @param {Row} server
 * @returns {"alive" | "late" | "leaving" | "left" | "lost" | "takesNone"} */
function stateOf({ alive, leaving, beat_age_ms: age, takes_none: takesNone }) {
  if (!alive) return leaving ? "left" : "lost";
  if (leaving) return "leaving";
  if (takesNone != null) return "takesNone";
  return age != null && LATE_MILLISECONDS < age ? "late" : "alive";
}

const TONES = { alive: "accent", late: "alarm", leaving: "", left: "", lost: "alarm", takesNone: "alarm" };

/** @param {number | undefined | null} age */
const ageText = (age) => (age == null ? "" : S.ago(age < 1_000 ? S.millis(number(age)) : span(age)));

/** @type {import("../../components/table.js").Column<Row>[]} */
const COLUMNS = [
  {
    id: "name",
    label: S.server,
    sort: ({ name }) => name,
    cell: ({ name, isOwn }) => html`
      <b><${Text} value=${name} max=${80} /></b>
      ${isOwn && html` <span class="tag" title=${S.answersTitle}>${S.answers}</span>`}
    `,
  },
  {
    id: "state",
    label: S.state,
    sort: stateOf,
    cell: (row) => html`
      <span class=${`tag ${TONES[stateOf(row)]}`} title=${row.takes_none ?? ""}>${S[stateOf(row)]}</span>
    `,
  },
  {
    id: "beat",
    label: S.beat,
    align: "end",
    sort: ({ beat_age_ms: age }) => age ?? Infinity,
    cell: ({ beat_age_ms: age }) => html`<span class="number">${ageText(age)}</span>`,
  },
  {
    id: "beats",
    label: S.beats,
    align: "end",
    hide: "narrow",
    sort: ({ beats }) => beats,
    cell: ({ beats }) => html`<${Count} value=${beats} />`,
  },
  {
    id: "namespaces",
    label: S.has,
    align: "end",
    sort: ({ namespaces }) => namespaces,
    cell: ({ namespaces }) => html`<${Count} value=${namespaces} />`,
  },
  {
    id: "address",
    label: S.address,
    hide: "narrow",
    isWide: true,
    sort: ({ address }) => address,
    cell: ({ address }) => html`<span class="muted"><${Text} value=${address} max=${120} /></span>`,
  },
];
