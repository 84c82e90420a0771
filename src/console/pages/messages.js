// A search over all queues of the namespace: by id, number, session, state, SQL filter, text or JSONPath.

import { ApiError } from "../lib/api.js";
import { number } from "../lib/format.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { entities, returns } from "../lib/live.js";
import { go, href } from "../lib/router.js";
import { session } from "../lib/session.js";
import { visible } from "../lib/visible.js";
import { Choice, Field } from "../components/field.js";
import { Empty, Problem } from "../components/notice.js";
import { announce } from "../components/toast.js";
import { Hits } from "./messages/hits.js";
import { CONDITIONS, searchFor, shareBefore, wantedOf } from "./messages/search.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/messages.js";

/** @typedef {import("./messages/search.js").Condition} Condition */
/** @typedef {{ by: Condition, value: string }} Row */

/** @param {import("./index.js").PageProperties} properties */
export default function Messages({ query }) {
  const wanted = wantedOf(query);
  const key = JSON.stringify(wanted);
  const isAsked = key !== "{}";
  const [runs, setRuns] = useState(0);
  const search = useMemo(() => (isAsked ? searchFor(session.peek()?.id ?? "", wanted, runs !== 0) : null), [key, runs]);
  useEffect(() => {
    if (search?.isWanted) void search.run();
    return () => search?.stop(true);
  }, [search]);
  useEffect(() => setRuns(0), [key]);
  const returned = returns.value;
  useEffect(() => {
    if (search?.progress.peek().state === "away") void search.run();
  }, [returned]);
  const error = search?.progress.value.error;
  return html`
    <div class="page-head"><h1 tabindex="-1">${C.pages.messages}</h1></div>
    <${Form} key=${key} wanted=${wanted} error=${search?.progress.value.state === "failed" ? error : null} />
    ${search === null
      ? html`<div class="card"><${Empty} title=${S.startTitle} text=${S.startText} command=${S.startCommand} /></div>`
      : html`<${Results} search=${search} again=${() => setRuns(runs + 1)} />`}
  `;
}

/** The conditions: at least one, each once.
 * @param {{ wanted: Record<string, string>, error: Error | null | undefined }} properties */
function Form({ wanted, error }) {
  const given = CONDITIONS.filter((name) => name in wanted).map((by) => ({ by, value: wanted[by] }));
  const [rows, setRows] = useState(
    /** @type {Row[]} */ (given.length === 0 ? [{ by: "message_id", value: "" }] : given),
  );
  const [state, setState] = useState(wanted.state ?? "");
  const [missing, setMissing] = useState("");
  const search = (/** @type {Row[]} */ conditions, /** @type {string} */ inState) => {
    const next = Object.fromEntries(
      conditions
        .filter(({ value }) => value.trim() !== "")
        .map(({ by, value }) => [by, isExact(by) ? value : value.trim()]),
    );
    if (inState !== "") next.state = inState;
    setMissing(Object.keys(next).length === 0 ? S.needed : "");
    if (Object.keys(next).length !== 0) go(href(["messages"], next));
  };
  const change = (/** @type {number} */ at, /** @type {Partial<Row>} */ part) =>
    setRows(rows.map((row, index) => (index === at ? { ...row, ...part } : row)));
  const free = CONDITIONS.filter((name) => rows.every(({ by }) => by !== name));
  const wrong = rows.findIndex(({ by }) => error instanceof ApiError && error.field === by);
  const errorOf = (/** @type {number} */ at) =>
    at === wrong ? error?.message : at === 0 && missing !== "" ? missing : undefined;
  return html`
    <form
      class="card search-form"
      aria-label=${S.form}
      onSubmit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        search(rows, state);
      }}
    >
      <p class="muted">${S.lead}</p>
      ${rows.map(
        (row, at) => html`
          <${Condition}
            key=${at}
            row=${row}
            free=${free}
            error=${errorOf(at)}
            onChange=${(/** @type {Partial<Row>} */ part) => change(at, part)}
            onRemove=${rows.length === 1 ? undefined : () => setRows(rows.filter((_, index) => index !== at))}
          />
        `,
      )}
      ${wrong === -1 && html`<${Problem} error=${error} />`}
      <div class="tools">
        <${Choice}
          label=${S.state}
          value=${state}
          onChange=${(/** @type {string} */ next) => {
            setState(next);
            if (wanted.state !== undefined || Object.keys(wanted).length !== 0) search(rows, next);
          }}
          options=${[
            { value: "", label: S.anyState },
            .../** @type {const} */ (["active", "scheduled", "deferred"]).map((each) => ({
              value: each,
              label: S[each],
            })),
          ]}
        />
        ${free.length !== 0 && html`
          <button type="button" class="quiet" onClick=${() => setRows([...rows, { by: free[0], value: "" }])}>
            ${S.add}
          </button>
        `}
        <button type="submit" class="primary search-go">${S.search}</button>
      </div>
    </form>
  `;
}

/** Ids are compared as they are, blanks and all.
 * @param {Condition} by */
const isExact = (by) => by === "message_id" || by === "correlation_id" || by === "session_id" || by === "text";

/** @param {{ row: Row, free: Condition[], error: string | undefined, onChange: (part: Partial<Row>) => void,
 *   onRemove: (() => void) | undefined }} properties */
function Condition({ row, free, error, onChange, onRemove }) {
  const names = CONDITIONS.filter((name) => name === row.by || free.includes(name));
  const hint = /** @type {Record<string, string>} */ (S.hints)[row.by];
  return html`
    <div class="condition">
      <select
        aria-label=${S.by}
        value=${row.by}
        onChange=${(/** @type {any} */ event) => onChange({ by: event.target.value })}
      >
        ${names.map(
          (name) => html`<option key=${name} value=${name} selected=${name === row.by}>${S.conditions[name]}</option>`,
        )}
      </select>
      <${Field} label=${html`<span class="hidden">${S.conditions[row.by]}</span>`} hint=${hint} error=${error}>
        <input
          type="search"
          value=${row.value}
          placeholder=${S.examples[row.by]}
          spellcheck=${false}
          autocomplete="off"
          maxlength="8192"
          inputmode=${row.by === "sequence_number" ? "numeric" : undefined}
          onInput=${(/** @type {any} */ event) => onChange({ value: event.target.value })}
        />
      <//>
      ${onRemove && html`
        <button type="button" class="quiet" aria-label=${S.remove(S.conditions[row.by])} onClick=${onRemove}>×</button>
      `}
    </div>
  `;
}

/** @param {{ search: import("./messages/search.js").Search, again: () => void }} properties */
function Results({ search, again }) {
  const { hits, place, state } = search.progress.value;
  const before = useRef(state);
  useEffect(() => {
    if (before.current === "running" && state !== "running")
      announce(`${S.found(number(hits.length))}${state === "done" ? `, ${S.done}` : ""}`);
    before.current = state;
  }, [state]);
  const where = visible(place?.queue ?? "").slice(0, 200);
  const says = {
    running: where === "" ? S.begins : S.searching(where),
    stopped: S.stoppedAt(where),
    paused: S.pausedAt(where),
    away: S.awayAt(where),
    failed: "",
    done: S.done,
  }[state];
  const share = state === "done" ? 1 : shareBefore([...entities.value.keys()], place?.queue);
  if (state === "failed" && hits.length === 0) return null;
  return html`
    <div class="search-state">
      <b class="number">${S.found(number(hits.length))}</b>
      ${state !== "done" && html`<progress aria-label=${S.progress} max="1" value=${share}></progress>`}
      <span class="muted search-where">${says}</span>
      <span class="actions">
        ${state === "running"
          ? html`<button type="button" onClick=${() => search.stop()}>${S.stop}</button>`
          : state === "done"
            ? html`<button type="button" class="quiet" onClick=${again}>${S.again}</button>`
            : state !== "failed" && html`<button type="button" onClick=${() => search.run()}>${S.further}</button>`}
      </span>
    </div>
    ${hits.length === 0 && state === "done"
      ? html`
          <div class="card">
            <${Empty} title=${S.noneTitle} text=${S.noneText}>
              <a href=${href(["rule-test"])}>${S.toRuleTest}</a>
              <a href=${href(["entities"])}>${S.toEntities}</a>
            <//>
          </div>
        `
      : hits.length !== 0 && html`<${Hits} hits=${hits} />`}
  `;
}
