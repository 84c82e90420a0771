// Receives over HTTP that wait for a message, beside the links of clients.

import { call } from "../../lib/api.js";
import { second } from "../../lib/clock.js";
import { html } from "../../lib/html.js";
import { entityOf } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { confirm } from "../../components/dialog.js";
import { RowAction } from "../../components/row-action.js";
import { Table } from "../../components/table.js";
import { Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { toast } from "../../components/toast.js";
import { Entity } from "./columns.js";
import { S } from "../../strings/connections.js";

/** @typedef {Schemas["Receive"]} Receive */

/** They are loaded again after so many seconds. */
const EACH_SECONDS = 3;

/** Shows the first hundred, of all entities or of one. Nothing, if none waits.
 * @param {{ path?: string }} properties */
export function Receives({ path }) {
  const { data, reload } = useResource(
    (signal) => call("list_receives", { signal }),
    [],
    [Math.floor(second.value / EACH_SECONDS)],
  );
  const is = (/** @type {Receive} */ { entity }) =>
    path === undefined || entityOf(entity).toLowerCase() === path.toLowerCase();
  const rows = (data?.receives ?? []).filter(is);
  if (rows.length === 0) return null;
  return html`
    <section class="card" aria-labelledby="receives">
      <div class="card-head"><h2 id="receives">${S.receives}</h2></div>
      <${Table}
        label=${S.receives}
        columns=${columns(reload)}
        rows=${rows}
        keyOf=${(/** @type {Receive} */ { id }) => id}
        heightMax=${240}
      />
    </section>
  `;
}

/** @param {Receive} receive
 * @param {() => void} done */
const end = (receive, done) =>
  confirm({
    title: S.endTitle(visible(receive.entity)),
    text: S.endText,
    action: S.endAction,
    run: async () => {
      await call("end_receive", { path: { id: receive.id } });
      toast(S.ended);
      done();
    },
  });

/** @param {() => void} reload
 * @returns {import("../../components/table.js").Column<Receive>[]} */
const columns = (reload) => [
  {
    id: "client",
    label: S.client,
    isWide: true,
    cell: ({ client, peer }) => html`
      <${Text} value=${client} max=${200} /> <span class="muted client-peer">${peer}</span>
    `,
  },
  { id: "entity", label: S.entity, cell: (receive) => html`<${Entity} link=${receive} />` },
  { id: "mode", label: S.mode, hide: "medium", cell: ({ mode }) => S.modes[mode] },
  { id: "until", label: S.waitsUntil, cell: ({ waits_until: until }) => html`<${Time} at=${until} />` },
  {
    id: "action",
    label: "",
    align: "end",
    cell: (receive) =>
      can("manage") && html`
        <${RowAction}
          icon="cancel"
          label=${S.endLabel(visible(receive.entity))}
          onClick=${() => end(receive, reload)}
        />
      `,
  },
];
