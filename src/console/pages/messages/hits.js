// Messages that were found, each with the queue that has it.

import { digits } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entityHref, entityOf, isDeadLetters, messageHref } from "../../lib/paths.js";
import { Preview, stateOf } from "../../components/message-list.js";
import { Table } from "../../components/table.js";
import { EntityLink, Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { S } from "../../strings/messages.js";

/** @typedef {import("./search.js").Hit} Hit */

/** @param {{ hits: Hit[] }} properties */
export function Hits({ hits }) {
  return html`
    <${Table}
      label=${S.results}
      columns=${COLUMNS}
      rows=${hits}
      keyOf=${(/** @type {Hit} */ { queue, message }) => `${queue} ${message.sequence_number}`}
      hrefOf=${hrefOf}
      isSorted=${true}
      fills=${true}
    />
  `;
}

/** @param {Hit} hit */
const hrefOf = ({ queue, message }) => messageHref(queue, message.sequence_number);

/** @type {import("../../components/table.js").Column<Hit>[]} */
const COLUMNS = [
  {
    id: "number",
    label: S.number,
    align: "end",
    cell: (hit) => html`<a class="number" href=${hrefOf(hit)}>${digits(hit.message.sequence_number)}</a>`,
  },
  { id: "state", label: S.state, cell: (hit) => html`<${State} hit=${hit} />` },
  {
    id: "queue",
    label: S.queue,
    cell: ({ queue }) => html`
      <${EntityLink}
        path=${entityOf(queue)}
        to=${entityHref(entityOf(queue), isDeadLetters(queue) ? "dead-letters" : "messages")}
      />
    `,
  },
  {
    id: "id",
    label: S.messageId,
    hide: "narrow",
    cell: ({ message }) => html`<${Text} value=${message.message_id} max=${128} />`,
  },
  {
    id: "body",
    label: S.body,
    isWide: true,
    hide: "narrow",
    cell: ({ message }) => html`
      ${message.dead_letter?.reason && html`
        <span class="alarm-text"><${Text} value=${message.dead_letter.reason} max=${80} /></span>${" "}
      `}
      <${Preview} message=${message} />
    `,
  },
  {
    id: "enqueued",
    label: S.enqueued,
    align: "end",
    hide: "medium",
    cell: ({ message }) => html`<${Time} at=${message.enqueued_at} />`,
  },
];

/** @param {{ hit: Hit }} properties */
function State({ hit: { queue, message } }) {
  if (message.lock != null) return html`<span class="tag accent">${stateOf(message)}</span>`;
  if (/\/\$transfer/i.test(queue)) return html`<span class="tag alarm">${S.transferDead}</span>`;
  return isDeadLetters(queue)
    ? html`<span class="tag alarm">${S.dead}</span>`
    : html`<span class="tag">${stateOf(message)}</span>`;
}
