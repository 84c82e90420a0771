// Message sessions as rows.

import { number, size } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { connectionHref, sessionHref } from "../../lib/paths.js";
import { Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { S } from "../../strings/sessions.js";

/** @typedef {{ path: string, session: Schemas["Session"] }} Listed */

/** The most messages that the API counts of a session. */
const COUNTED_MAX = 1_000;

/** @param {{ value: number }} properties */
export function Messages({ value }) {
  return html`
    <span
      class=${`number ${value === 0 ? "pale" : ""}`}
      title=${value < COUNTED_MAX ? undefined : S.orMore(number(value))}
    >
      ${number(value)}
      ${COUNTED_MAX <= value && "+"}
    </span>
  `;
}

/** @param {{ lock: Schemas["Lock"] }} properties */
export function Holder({ lock: { holder } }) {
  if (holder == null) return html`<span class="muted">${S.holderUnknown}</span>`;
  return html`
    <a href=${connectionHref(holder.connection)}><${Text} value=${holder.container_id || holder.peer} max=${200} /></a>
  `;
}

/** @param {boolean} hasEntities
 * @returns {import("../../components/table.js").Column<Listed>[]} */
export const columnsOf = (hasEntities) => [
  {
    id: "session",
    label: S.session,
    isWide: true,
    sort: ({ session }) => session.id,
    cell: ({ path, session }) => html`
      <a href=${sessionHref(path, session.id)}><${Text} value=${session.id} max=${200} none=${S.emptyId} /></a>
    `,
  },
  .../** @type {import("../../components/table.js").Column<Listed>[]} */ (
    hasEntities
      ? [
          {
            id: "entity",
            label: S.entity,
            hide: "narrow",
            sort: ({ path }) => path,
            cell: ({ path }) => html`<span class="muted"><${Text} value=${path} max=${120} /></span>`,
          },
        ]
      : []
  ),
  {
    id: "messages",
    label: S.messages,
    align: "end",
    sort: ({ session }) => session.messages,
    cell: ({ session }) => html`<${Messages} value=${session.messages} />`,
  },
  {
    id: "state",
    label: S.state,
    align: "end",
    hide: "narrow",
    sort: ({ session }) => session.state_bytes ?? -1,
    cell: ({ session: { state_bytes: bytes } }) =>
      bytes == null ? html`<span class="pale">${S.noState}</span>` : html`<span class="number">${size(bytes)}</span>`,
  },
  {
    id: "holder",
    label: S.holder,
    sort: ({ session }) => session.lock?.holder?.container_id ?? "",
    cell: ({ session: { lock } }) =>
      lock == null ? html`<span class="tag">${S.freeTag}</span>` : html`<${Holder} lock=${lock} />`,
  },
  {
    id: "until",
    label: S.until,
    align: "end",
    hide: "narrow",
    sort: ({ session }) => Date.parse(session.lock?.until ?? "") || 0,
    cell: ({ session: { lock } }) => lock?.until != null && html`<${Time} at=${lock.until} />`,
  },
];
