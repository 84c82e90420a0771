// The messages of a session in their order, which is that in which its receiver gets them.

import { call } from "../../lib/api.js";
import { digits, number } from "../../lib/format.js";
import { html, useEffect, useState } from "../../lib/html.js";
import { messageHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { Preview, stateOf } from "../../components/message-list.js";
import { Loaded } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { S } from "../../strings/sessions.js";

/** @typedef {Schemas["MessageShown"]} Message */
/** @typedef {{ messages: Message[], next: number | null | undefined }} Found */

/** Messages that are read at first, and more each time the reader asks. */
const STEP = 200;
/** Requests in a row: each looks at a bounded number of the entity's messages. */
const REQUESTS_MAX = 20;

/** @param {string} path
 * @param {string} id
 * @param {number} most
 * @param {number} requests
 * @param {AbortSignal} signal
 * @returns {Promise<Found>} */
async function read(path, id, most, requests, signal) {
  /** @type {Found} */
  const all = { messages: [], next: 0 };
  for (let request = 0; request < requests && all.next != null && all.messages.length < most; request += 1) {
    const found = await call("list_messages", {
      path: { entity: path },
      query: { session_id: id, body: "preview", from: all.next, limit: 100 },
      signal,
    });
    all.messages.push(...found.messages);
    all.next = found.next;
  }
  return all;
}

/** @param {{ path: string, id: string, stir: string }} properties */
export function SessionMessages({ path, id, stir }) {
  const [steps, setSteps] = useState(1);
  useEffect(() => setSteps(1), [path, id]);
  const found = useResource(
    (signal) => read(path, id, STEP * steps, REQUESTS_MAX * steps, signal),
    [path, id],
    [stir, steps],
  );
  return html`
    <section class="session-messages" aria-labelledby="messages">
      <h2 id="messages">${S.messagesTitle}</h2>
      <${Loaded} of=${found}>
        ${(/** @type {Found} */ { messages, next }) => html`
          ${messages.length === 0
            ? html`<p class="muted">${S.noMessages}</p>`
            : html`
                <${Table}
                  label=${S.messagesTitle}
                  columns=${columnsOf(path)}
                  rows=${messages}
                  isSorted=${true}
                  heightMax=${546}
                  keyOf=${(/** @type {Message} */ row) => String(row.sequence_number)}
                  hrefOf=${(/** @type {Message} */ row) => messageHref(path, row.sequence_number)}
                />
              `}
          <p class="list-foot muted">
            ${messages.length !== 0 &&
            (next == null ? `${number(messages.length)}, ${S.allShown}` : S.shown(number(messages.length)))}
            ${next != null && html`
              <button type="button" class="quiet" onClick=${() => setSteps(steps + 1)}>${S.searchOn}</button>
            `}
          </p>
        `}
      <//>
    </section>
  `;
}

/** @param {string} path
 * @returns {import("../../components/table.js").Column<Message>[]} */
const columnsOf = (path) => [
  {
    id: "number",
    label: S.number,
    align: "end",
    cell: (row) => html`
      <a class="number" href=${messageHref(path, row.sequence_number)}>${digits(row.sequence_number)}</a>
    `,
  },
  {
    id: "state",
    label: S.messageState,
    cell: (row) => html`<span class=${row.lock == null ? "tag" : "tag accent"}>${stateOf(row)}</span>`,
  },
  { id: "body", label: S.body, isWide: true, cell: (row) => html`<${Preview} message=${row} />` },
  { id: "deliveries", label: S.deliveries, align: "end", hide: "narrow", cell: (row) => number(row.delivery_count) },
  {
    id: "enqueued",
    label: S.enqueued,
    align: "end",
    hide: "narrow",
    cell: (row) => html`<${Time} at=${row.enqueued_at} />`,
  },
];
