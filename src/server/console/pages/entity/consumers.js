// Links of clients to an entity.

import { call } from "../../lib/api.js";
import { number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { connections, entities } from "../../lib/live.js";
import { entityOf } from "../../lib/paths.js";
import { can } from "../../lib/session.js";
import { confirm } from "../../components/dialog.js";
import { Empty } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { Text } from "../../components/text.js";
import { Count } from "../../components/time.js";
import { toast } from "../../components/toast.js";
import { S } from "../../strings/entity.js";

/** @typedef {{ connection: Schemas["Connection"], link: Schemas["Link"] }} Attached */

/** Links to an entity or to one of its sub-queues.
 * @param {string} path
 * @returns {Attached[]} */
export function linksTo(path) {
  const found = [];
  for (const connection of connections.value.values()) {
    for (const link of connection.links) {
      if (entityOf(link.entity).toLowerCase() === path.toLowerCase()) found.push({ connection, link });
    }
  }
  return found;
}

/** A receiver that takes nothing more, holds messages, and others wait.
 * @param {Attached} attached */
export function isStuck({ link }) {
  const entity = entities.value.get(link.entity);
  return link.role === "receiver" && link.credit === 0 && 0 < (link.locked ?? 0) && entity !== undefined && 0 < entity.active - entity.locked;
}

/** @param {{ path: string }} properties */
export function Consumers({ path }) {
  const rows = linksTo(path);
  if (rows.length === 0) return html`<div class="card"><${Empty} title=${S.noConsumers} command=${S.consumersCommand} /></div>`;
  return html`<${Table} label=${S.consumers} columns=${COLUMNS} rows=${rows} fills=${true}
    keyOf=${(/** @type {Attached} */ row) => `${row.connection.id} ${row.link.id}`} />`;
}

/** @param {Attached} attached */
function close({ connection, link }) {
  confirm({
    title: S.closeLinkTitle, text: S.closeLinkText, action: S.closeLink,
    run: async () => {
      await call("close_link", { path: { id: connection.id, link: link.id } });
      toast(S.linkClosed);
    },
  });
}

/** @type {import("../../components/table.js").Column<Attached>[]} */
const COLUMNS = [
  { id: "client", label: S.client, isWide: true, cell: ({ connection }) => html`<${Text} value=${connection.container_id} max=${200} />` },
  { id: "peer", label: S.peer, hide: "narrow", cell: ({ connection }) => connection.peer },
  { id: "role", label: S.role, cell: ({ link }) => S.roles[link.role] },
  { id: "credit", label: S.credit, align: "end", cell: (row) => (row.link.credit == null ? "" : html`<span class=${isStuck(row) ? "alarm-text number" : "number"}>${number(row.link.credit)}</span>`) },
  { id: "locked", label: S.lockedByLink, align: "end", cell: ({ link }) => (link.locked == null ? "" : html`<${Count} value=${link.locked} />`) },
  { id: "session", label: S.heldSession, hide: "medium", cell: ({ link }) => html`<${Text} value=${link.session_id} max=${100} />` },
  { id: "close", label: "", cell: (row) => can("manage") && html`<button type="button" class="quiet" onClick=${() => close(row)}>${S.closeLink}</button>` },
];
