// The deferred messages of an entity, a page at a time, with those that the reader has selected.

import { call } from "../../lib/api.js";
import { useFocusKept } from "../../lib/focus.js";
import { digits, number } from "../../lib/format.js";
import { html, useMemo, useState } from "../../lib/html.js";
import { messageHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { can } from "../../lib/session.js";
import { Preview } from "../../components/message-list.js";
import { Loading, Problem } from "../../components/notice.js";
import { RowAction } from "../../components/row-action.js";
import { Table } from "../../components/table.js";
import { Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/deferred.js";

/** Messages that are read at first, and more each time the reader asks. */
const STEP = 200;

/** @typedef {Schemas["MessageShown"]} Message */

/** @param {{ path: string, follows: (string | number)[], selected: Set<string>, onSelect: (selected: Set<string>) =>
 *   void, onReceive: ((number: string) => void) | null, onPutBack: (number: string) => void }} properties */
export function DeferredList({ path, follows, selected, onSelect, onReceive, onPutBack }) {
  const [most, setMost] = useState(STEP);
  useFocusKept(".table-box");
  const found = useResource((signal) => read(path, most, signal), [path], [most, ...follows]);
  const { data } = found;
  const columns = useMemo(() => columnsOf(path, onReceive, onPutBack), [path, onReceive, onPutBack]);
  if (data === undefined)
    return found.error ? html`<${Problem} error=${found.error} onRetry=${found.reload} />` : html`<${Loading} />`;
  const labelOf = (/** @type {Message} */ { sequence_number: each, lock }) =>
    lock == null ? S.selectLabel(digits(each)) : null;
  return html`
    <${Table}
      label=${S.messages}
      columns=${columns}
      rows=${data.messages}
      keyOf=${(/** @type {Message} */ row) => digits(row.sequence_number)}
      hrefOf=${(/** @type {Message} */ row) => messageHref(path, row.sequence_number)}
      fills=${true}
      isSorted=${true}
      rowHeight=${36}
      ticks=${can("manage") ? { selected, onSelect, labelOf } : undefined}
    />
    <p class="list-foot muted">
      ${number(data.messages.length)}
      ${data.next == null
        ? `, ${S.all}`
        : html`
            ${" "}<button
              type="button"
              class="quiet"
              disabled=${found.isLoading}
              onClick=${() => setMost(most + 5 * STEP)}
            >
              ${S.more}
            </button>
          `}
    </p>
  `;
}

/** @param {string} path
 * @param {number} most
 * @param {AbortSignal} signal */
async function read(path, most, signal) {
  /** @type {Message[]} */
  const messages = [];
  /** @type {number | null | undefined} */
  let next = 0;
  while (next != null && messages.length < most) {
    /** @type {Schemas["Messages"]} */
    const page = await call("list_messages", {
      path: { entity: path },
      query: { state: ["deferred"], body: "preview", from: next, limit: 100 },
      signal,
    });
    messages.push(...page.messages);
    next = page.next;
  }
  return { messages, next };
}

/** @param {string} path
 * @param {((number: string) => void) | null} onReceive
 * @param {(number: string) => void} onPutBack
 * @returns {import("../../components/table.js").Column<Message>[]} */
function columnsOf(path, onReceive, onPutBack) {
  /** @type {import("../../components/table.js").Column<Message>[]} */
  const columns = [
    {
      id: "number",
      label: S.number,
      align: "end",
      cell: (row) => html`
        <a class="number" href=${messageHref(path, row.sequence_number)}>${digits(row.sequence_number)}</a>
      `,
    },
    {
      id: "id",
      label: S.messageId,
      hide: "narrow",
      cell: (row) => html`<${Text} value=${row.message_id} max=${80} />`,
    },
    {
      id: "subject",
      label: S.subject,
      hide: "medium",
      cell: (row) => html`<${Text} value=${row.subject} max=${80} />`,
    },
    { id: "body", label: S.body, isWide: true, hide: "narrow", cell: (row) => html`<${Preview} message=${row} />` },
    { id: "deliveries", label: S.deliveries, align: "end", hide: "medium", cell: (row) => number(row.delivery_count) },
    {
      id: "enqueued",
      label: S.enqueued,
      align: "end",
      hide: "medium",
      cell: (row) => html`<${Time} at=${row.enqueued_at} />`,
    },
  ];
  if (!can("manage")) return columns;
  return [
    ...columns,
    {
      id: "actions",
      label: S.actions,
      align: "end",
      cell: (row) => {
        const each = digits(row.sequence_number);
        if (row.lock != null)
          return html`
            <span class="muted hide-narrow"><${Time} at=${row.lock.until ?? undefined} /></span>${" "}
            <span class="tag accent">${C.states.locked}</span>
          `;
        return html`
          <span class="row-actions">
            ${onReceive !== null && html`
              <${RowAction} icon="receive" label=${S.receiveLabel(each)} onClick=${() => onReceive(each)} />
            `}
            <${RowAction} icon="activate" label=${S.putBackLabel(each)} onClick=${() => onPutBack(each)} />
          </span>
        `;
      },
    },
  ];
}
