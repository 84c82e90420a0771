// Messages of one queue: filtered by the broker, read page by page, in the order of their numbers.

import { call } from "../lib/api.js";
import { digits, number } from "../lib/format.js";
import { useFocusKept } from "../lib/focus.js";
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { returns } from "../lib/live.js";
import { messageHref } from "../lib/paths.js";
import { route, setQuery } from "../lib/router.js";
import { chosenColumns, columnsChosen, openColumns } from "./columns.js";
import { Choice, Filter } from "./field.js";
import { MessageBar } from "./message-bar.js";
import { Empty, Loading, Problem } from "./notice.js";
import { Table } from "./table.js";
import { Text } from "./text.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/entity.js";
import { S as L } from "../strings/message-list.js";

/** @typedef {Schemas["MessageShown"]} Message */

/** What is searched by: names of the API's query. */
const BY = /** @type {const} */ ({
  message_id: S.byMessageId,
  correlation_id: S.byCorrelationId,
  session_id: S.bySession,
  text: S.byText,
  filter: S.byFilter,
  json_path: S.byJsonPath,
});

/** Reads messages until there are no more, a page at a time.
 * @param {string} address
 * @param {Record<string, unknown>} query
 * @param {number} reloads */
function usePages(address, query, reloads) {
  /** @typedef {{ key: string, messages: Message[], next: number | null | undefined, error?: any,
   *   isBusy: boolean }} Pages */
  const key = JSON.stringify([address, query, reloads, returns.value]);
  const [pages, setPages] = useState(/** @type {Pages} */ ({ key: "", messages: [], next: 0, isBusy: false }));
  const latest = useRef(pages);
  latest.current = pages;
  const aborted = useRef(new AbortController());
  const set = (/** @type {Pages} */ next) => {
    latest.current = next;
    setPages(next);
  };
  const more = async () => {
    const before = latest.current;
    if (before.key !== key || before.isBusy || before.next == null || before.error) return;
    set({ ...before, isBusy: true });
    const { signal } = aborted.current;
    try {
      const found = await call("list_messages", {
        path: { entity: address },
        query: { ...query, from: before.next, limit: 100 },
        signal,
      });
      set({ key, messages: [...before.messages, ...found.messages], next: found.next, isBusy: false });
    } catch (error) {
      if (!signal.aborted) set({ ...before, error, isBusy: false });
    }
  };
  useEffect(() => {
    aborted.current = new AbortController();
    set({ key, messages: [], next: 0, isBusy: false });
    void more();
    return () => aborted.current.abort();
  }, [key]);
  return { pages, more, isCurrent: pages.key === key };
}

/** `newest` is a number that changes when the queue does: with it the reader may refresh. `changes` counts what the
 * reader has done to the queue beside the list, which is then read again. `hasReasons` for dead letters.
 * @param {{ address: string, newest?: number, changes?: number, hasReasons?: boolean }} properties */
export function MessageList({ address, newest = 0, changes = 0, hasReasons = false }) {
  const { columns: wanted } = route.value.query;
  const list = hasReasons ? "dead-letters" : "messages";
  const chosen = chosenColumns(list, wanted);
  const [reloads, setReloads] = useState(0);
  const { query, isSearch } = queryOf(route.value.query);
  const { pages, more, isCurrent } = usePages(address, query, reloads + changes);
  const [ticked, setTicked] = useState(/** @type {Set<string>} */ (new Set()));
  const [every, setEvery] = useState(false);
  const select = (/** @type {Set<string>} */ next) => {
    setTicked(next);
    setEvery(false);
  };
  useEffect(() => select(new Set()), [pages.key]);
  useFocusKept(".table-box");
  const seen = useRef(newest);
  if (!isCurrent) seen.current = newest;
  const isEmpty = isCurrent && !pages.isBusy && pages.messages.length === 0 && pages.next == null && !pages.error;
  const numbers = pages.messages.map((message) => message.sequence_number).filter((each) => ticked.has(String(each)));
  const areAll =
    numbers.length !== 0 &&
    pages.messages.every((message) => message.lock != null || ticked.has(String(message.sequence_number)));
  const canGoOn = pages.next != null && !pages.isBusy && !pages.error;
  return html`
    <${Filters}
      hasReasons=${hasReasons}
      onRefresh=${newest === seen.current ? undefined : () => setReloads(reloads + 1)}
      onColumns=${() => openColumns(list, chosen, pages.messages)}
    />
    <${Problem} error=${pages.error} />
    ${isEmpty && html`
      <div class="card">
        <${Empty}
          title=${isSearch ? S.noMatch : S.noMessages}
          command=${isSearch || hasReasons ? undefined : S.sendCommand(address)}
        >
          ${isSearch && html`
            <button type="button" onClick=${() => setQuery({ state: undefined, by: undefined, value: undefined })}>
              ${S.showEvery}
            </button>
          `}
        <//>
      </div>
    `}
    ${isCurrent && numbers.length !== 0 && html`
      <${MessageBar}
        address=${address}
        query=${query}
        numbers=${numbers}
        every=${every}
        isSearch=${isSearch}
        canHaveEvery=${areAll && pages.next != null}
        onEvery=${() => setEvery(true)}
        onClear=${() => select(new Set())}
        onDone=${() => setReloads(reloads + 1)}
      />
    `}
    ${pages.messages.length !== 0 && html`
      <${Table}
        label=${hasReasons ? S.dead : S.messages}
        columns=${[numberColumn(address), ...columnsChosen(chosen, { stateOf, Preview })]}
        rows=${pages.messages}
        keyOf=${(/** @type {Message} */ row) => String(row.sequence_number)}
        hrefOf=${(/** @type {Message} */ row) => messageHref(address, row.sequence_number)}
        fills=${true}
        isSorted=${true}
        onEnd=${isSearch ? undefined : more}
        ticks=${{ selected: ticked, onSelect: select, labelOf: tickLabel }}
      />
    `}
    <p class="list-foot muted">
      ${pages.isBusy && html`<${Loading} />`}
      ${!pages.isBusy && !isEmpty && html`
        <span>${number(pages.messages.length)}${pages.next == null && `, ${S.listEnd}`}</span>
      `}
      ${canGoOn && html`
        ${" "}<button type="button" class="quiet" onClick=${more}>${isSearch ? S.continueSearch : C.more}</button>
      `}
    </p>
  `;
}

/** What names the box of a message; what a receiver has locked cannot be changed.
 * @param {Message} message */
const tickLabel = ({ sequence_number: each, lock }) => (lock == null ? L.tickLabel(digits(each)) : null);

/** What the filters in the address ask the broker for.
 * @param {Record<string, string>} address
 * @returns {{ query: Record<string, any>, isSearch: boolean }} */
export function queryOf({ state, by, value }) {
  return {
    query: { body: "preview", ...(state ? { state: [state] } : {}), ...(by && value ? { [by]: value } : {}) },
    isSearch: state !== undefined || (by !== undefined && value !== undefined),
  };
}

/** The filters of a list, which are in the address. With `onRefresh` the reader may refresh it.
 * @param {{ hasReasons?: boolean, onRefresh?: () => void, onColumns: () => void }} properties */
export function Filters({ hasReasons = false, onRefresh, onColumns }) {
  const { state = "", by = "", value = "" } = route.value.query;
  const [draft, setDraft] = useState({ by, value });
  useEffect(() => setDraft({ by, value }), [by, value]);
  const options = { ...(hasReasons ? { reason: S.byReason, description: S.byDescription } : {}), ...BY };
  const first = Object.keys(options)[0];
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setQuery({ by: draft.value === "" ? undefined : draft.by || first, value: draft.value });
  };
  return html`
    <form class="tools" onSubmit=${submit}>
      ${!hasReasons && html`
        <${Choice}
          label=${S.state}
          value=${state}
          onChange=${(/** @type {string} */ next) => setQuery({ state: next })}
          options=${[
            { value: "", label: S.anyState },
            .../** @type {const} */ (["active", "scheduled", "deferred"]).map((each) => ({
              value: each,
              label: S[each],
            })),
          ]}
        />
      `}
      <select
        aria-label=${S.by}
        value=${draft.by || first}
        onChange=${(/** @type {any} */ event) => setDraft({ ...draft, by: event.target.value })}
      >
        ${Object.entries(options).map(
          ([name, label]) => html`
            <option key=${name} value=${name} selected=${name === (draft.by || first)}>${label}</option>
          `,
        )}
      </select>
      <${Filter}
        label=${S.value}
        value=${draft.value}
        onInput=${(/** @type {string} */ next) => setDraft({ ...draft, value: next })}
      />
      <button type="submit">${S.search}</button>
      ${value && html`
        <button type="button" class="quiet" onClick=${() => setQuery({ by: undefined, value: undefined })}>
          ${C.clear}
        </button>
      `}
      ${onRefresh && html`<button type="button" class="quiet" onClick=${onRefresh}>${S.refresh}</button>`}
      <button type="button" class="quiet" onClick=${onColumns}>${L.columns}</button>
    </form>
  `;
}

/** The state of a message in a word.
 * @param {Message} message */
export const stateOf = ({ state, lock }) => (lock == null ? C.states[state] : C.states.locked);

/** @param {string} address
 * @returns {import("./table.js").Column<Message>} */
export const numberColumn = (address) => ({
  id: "number",
  label: S.number,
  align: "end",
  cell: (row) => html`
    <a class="number" href=${messageHref(address, row.sequence_number)}>${digits(row.sequence_number)}</a>
  `,
});

/** The beginning of a body, in one line.
 * @param {{ message: Message }} properties */
export function Preview({ message }) {
  const { body } = message;
  if (body == null) return null;
  if (body.text == null) return html`<code class="muted">${(body.base64 ?? "").slice(0, 80)}</code>`;
  return html`<code><${Text} value=${body.text.slice(0, 400).replace(/\s+/g, " ")} max=${200} /></code>`;
}
