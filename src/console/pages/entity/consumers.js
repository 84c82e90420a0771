// Links of clients to an entity.

import { html } from "../../lib/html.js";
import { connections, entities } from "../../lib/live.js";
import { connectionHref, entityOf } from "../../lib/paths.js";
import { isOfRequests } from "../../lib/links.js";
import { Empty } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { Text } from "../../components/text.js";
import { Count } from "../../components/time.js";
import { Action, Credit, Held, Lasting, Waiting, addressOf, productOf } from "../connections/columns.js";
import { Receives } from "../connections/receives.js";
import { S as L } from "../../strings/connections.js";
import { S } from "../../strings/entity.js";

/** @typedef {{ connection: Schemas["Connection"], link: Schemas["Link"] }} Attached */

/** Links to an entity or to one of its sub-queues, but for those of requests.
 * @param {string} path
 * @returns {Attached[]} */
export function linksTo(path) {
  const found = [];
  for (const connection of connections.value.values()) {
    for (const link of connection.links) {
      if (!isOfRequests(link) && entityOf(link.entity).toLowerCase() === path.toLowerCase())
        found.push({ connection, link });
    }
  }
  return found;
}

/** @param {{ path: string }} properties */
export function Consumers({ path }) {
  const rows = linksTo(path);
  const receives = html`<${Receives} path=${path} />`;
  if (rows.length === 0) {
    const isTopic = entities.value.get(path)?.kind === "topic";
    const command = isTopic ? S.sendCommand(path) : L.emptyCommand(path);
    return html`${receives}<div class="card"><${Empty} title=${S.noConsumers} command=${command} /></div>`;
  }
  return html`
    ${receives}
    <${Table}
      label=${S.consumers}
      columns=${COLUMNS}
      rows=${rows}
      fills=${true}
      keyOf=${(/** @type {Attached} */ row) => `${row.connection.id} ${row.link.id}`}
    />
  `;
}

/** @type {import("../../components/table.js").Column<Attached>[]} */
const COLUMNS = [
  {
    id: "client",
    label: S.client,
    isWide: true,
    cell: ({ connection }) => html`
      <a href=${connectionHref(connection.id)}>
        <${Text} value=${connection.container_id} max=${200} none=${L.noName} />
      </a>
      <span class="muted client-peer"><${Text} value=${productOf(connection)} none="" /></span>
    `,
  },
  { id: "peer", label: S.peer, hide: "narrow", cell: ({ connection }) => addressOf(connection) },
  { id: "role", label: S.role, cell: ({ link }) => S.roles[link.role] },
  {
    id: "credit",
    label: S.credit,
    align: "end",
    cell: ({ link }) => html`<${Credit} link=${link} isAlarm=${link.stuck != null} />`,
  },
  {
    id: "locked",
    label: S.lockedByLink,
    align: "end",
    cell: ({ link }) => (link.locked == null ? "" : html`<${Count} value=${link.locked} />`),
  },
  {
    id: "waiting",
    label: L.waiting,
    align: "end",
    hide: "medium",
    cell: ({ link }) => html`<${Waiting} link=${link} isAlarm=${link.stuck != null} />`,
  },
  {
    id: "idle",
    label: L.idle,
    align: "end",
    hide: "medium",
    cell: ({ link }) => link.idle_since != null && html`<${Lasting} since=${link.idle_since} />`,
  },
  { id: "session", label: S.heldSession, hide: "medium", cell: ({ link }) => html`<${Held} link=${link} />` },
  {
    id: "selector",
    label: S.selector,
    hide: "medium",
    cell: ({ link }) => html`<${Text} value=${link.selector ?? ""} max=${120} />`,
  },
  { id: "close", label: "", cell: ({ connection, link }) => html`<${Action} connection=${connection} link=${link} />` },
];
