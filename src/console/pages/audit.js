// The log of administrative operations: filtered by who, what, which entity and when.

import { now } from "../lib/clock.js";
import { digits, local, locale, number, utc } from "../lib/format.js";
import { html, useEffect, useLayoutEffect, useRef } from "../lib/html.js";
import { entities } from "../lib/live.js";
import { fieldOf, isoOf, timeOf } from "../lib/local-time.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { Choice, Field } from "../components/field.js";
import { Empty, Loading, Problem } from "../components/notice.js";
import { Table } from "../components/table.js";
import { EntityLink, Text } from "../components/text.js";
import { isWanted, useLog } from "./audit/log.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/audit.js";

/** @typedef {import("./audit/log.js").Entry} Entry */
/** @typedef {{ query: Record<string, string> }} Properties */

const SPANS = /** @type {Record<string, number>} */ ({ "1h": 3_600_000, "1d": 86_400_000, "7d": 604_800_000 });

/** @param {Properties} properties */
export default function Audit({ query }) {
  return html`
    <div class="page-head"><h1 tabindex="-1">${C.pages.audit}</h1></div>
    ${can("manage")
      ? html`<${Log} query=${query} />`
      : html`<div class="card"><${Empty} title=${S.forbiddenTitle} text=${S.forbiddenText} /></div>`}
  `;
}

/** What the broker writes; others that it comes to write are added as they are read. */
const OPERATIONS = [
  "create",
  "update",
  "delete",
  "create_rule",
  "update_rule",
  "delete_rule",
  "start_job",
  "cancel_job",
  "set_session_state",
  "lock",
  "create_namespace",
  "delete_namespace",
  "settle",
  "close_connection",
  "close_link",
];

/** @param {string | undefined} iso */
const millisecondsOf = (iso) => (iso === undefined || Number.isNaN(Date.parse(iso)) ? null : Date.parse(iso));

/** @param {Properties} properties */
function Log({ query }) {
  const { who = "", operation = "", entity = "", span = "" } = query;
  const from = span in SPANS ? now() - SPANS[span] : millisecondsOf(query.from);
  const wanted = { who, operation, entity, from, until: span in SPANS ? null : millisecondsOf(query.until) };
  const log = useLog();
  const rows = log.entries.filter((entry) => isWanted(entry, wanted));
  const isFiltered = who !== "" || operation !== "" || entity !== "" || wanted.from !== null || wanted.until !== null;
  const oldest = log.entries.at(-1);
  // The log is short: a filter looks at all of it, as far back as its time.
  const needsMore =
    log.before != null &&
    !log.error &&
    (query.entry !== undefined || isFiltered) &&
    (from === null || (oldest !== undefined && from <= Date.parse(oldest.at)));
  useEffect(() => {
    if (needsMore && !log.isBusy) void log.more();
  }, [needsMore, log.isBusy]);
  const isStarting = log.entries.length === 0 && log.before === undefined && !log.error;
  const isDone = !isStarting && !log.error && !needsMore;
  return html`
    <${Filters}
      query=${query}
      operations=${[...new Set([...OPERATIONS, ...log.entries.map((entry) => entry.operation)])]}
    />
    <${Problem} error=${log.error} />
    ${query.entry !== undefined && log.entries.length !== 0 && html`
      <${Whole}
        key=${query.entry}
        entry=${log.entries.find((entry) => digits(entry.number) === query.entry)}
        isKnown=${isDone}
        number=${query.entry}
      />
    `}
    ${(isStarting || (needsMore && rows.length === 0)) && html`<${Loading} />`}
    ${isDone && rows.length === 0 && html`
      <div class="card">
        ${isFiltered
          ? html`<${Empty} title=${S.noneTitle}><button type="button" onClick=${clear}>${S.clear}</button><//>`
          : html`<${Empty} title=${S.emptyTitle} text=${S.emptyText} command=${S.emptyCommand} />`}
      </div>
    `}
    ${rows.length !== 0 && html`
      <${Table}
        label=${S.table}
        columns=${COLUMNS}
        rows=${rows}
        keyOf=${(/** @type {Entry} */ entry) => digits(entry.number)}
        isSorted=${true}
        hrefOf=${(/** @type {Entry} */ entry) => href(["audit"], { ...query, entry: digits(entry.number) })}
        fills=${true}
        onEnd=${log.before == null ? undefined : log.more}
        rowClass=${(/** @type {Entry} */ entry) => (digits(entry.number) === query.entry ? "chosen" : "")}
      />
      <p class="list-foot muted">
        <span aria-live="polite">
          ${S.count(number(rows.length), number(log.entries.length))}
          ${log.before == null && `, ${S.end}`}
        </span>
        ${log.isBusy && needsMore && html` <${Loading} />`}
      </p>
    `}
  `;
}

const clear = () => setQuery({ who: "", operation: "", entity: "", span: "", from: "", until: "" });

/** @param {{ query: Record<string, string>, operations: string[] }} properties */
function Filters({ query, operations }) {
  const { who = "", operation = "", entity = "", span = "" } = query;
  const isRange = query.from !== undefined || query.until !== undefined;
  const all = operation === "" || operations.includes(operation) ? operations : [...operations, operation];
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setQuery({ [name]: event.target.value });
  const setTime = (/** @type {string} */ name) => (/** @type {any} */ event) => {
    const at = timeOf(event.target.value);
    setQuery({ span: "", [name]: at === null ? "" : isoOf(at) });
  };
  const choose = (/** @type {string} */ next) =>
    setQuery(
      next === "range"
        ? { span: "", from: isoOf(now() - SPANS["1d"]), until: "" }
        : { span: next, from: "", until: "" },
    );
  const timeField = (/** @type {"from" | "until"} */ name) => {
    const at = millisecondsOf(query[name]);
    return html`
      <${Field} label=${S[name]}>
        <input type="datetime-local" step="1" value=${at === null ? "" : fieldOf(at)} onChange=${setTime(name)} />
      <//>
    `;
  };
  return html`
    <form
      class="audit-filters"
      aria-label=${S.filters}
      onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}
    >
      <${Field} label=${S.who}>
        <input type="search" placeholder=${S.whoHint} value=${who} spellcheck=${false} onInput=${set("who")} />
      <//>
      <${Field} label=${S.operation}>
        <select value=${operation} onChange=${set("operation")}>
          <option value="" selected=${operation === ""}>${S.anyOperation}</option>
          ${all.map(
            (name) => html`<option key=${name} value=${name} selected=${name === operation}>${words(name)}</option>`,
          )}
        </select>
      <//>
      <${Field} label=${S.entity}>
        <input type="search" value=${entity} spellcheck=${false} onInput=${set("entity")} />
      <//>
      <div class="field">
        <span class="field-label" aria-hidden="true">${S.span}</span>
        <${Choice}
          label=${S.span}
          value=${isRange ? "range" : span}
          onChange=${choose}
          options=${[
            ...Object.entries(S.spans).map(([value, label]) => ({ value, label })),
            { value: "range", label: S.range },
          ]}
        />
      </div>
      ${isRange && html`${timeField("from")}${timeField("until")}`}
    </form>
  `;
}

/** @param {string} operation */
const words = (operation) => operation.replaceAll("_", " ");

const short = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** A log is compared by its times: they are shown in full, and where there is no room without year and seconds.
 * @param {{ at: string }} properties */
const At = ({ at }) => html`
  <time class="number" datetime=${at} title=${utc(at)}>
    <span class="hide-narrow">${local(at)}</span>
    <span class="only-narrow">${short.format(new Date(at))}</span>
  </time>
`;

/** @param {{ path: string | undefined }} properties */
function EntityName({ path }) {
  if (path === undefined || path === "") return html`<span class="muted">${S.noEntity}</span>`;
  return entities.value.has(path) ? html`<${EntityLink} path=${path} />` : html`<${Text} value=${path} max=${260} />`;
}

/** @type {import("../components/table.js").Column<Entry>[]} */
const COLUMNS = [
  { id: "time", label: S.time, cell: ({ at }) => html`<${At} at=${at} />` },
  {
    id: "operation",
    label: S.operation,
    cell: (entry) => html`
      <button type="button" class="link" title=${S.details} onClick=${() => setQuery({ entry: digits(entry.number) })}>
        ${words(entry.operation)}
      </button>
    `,
  },
  { id: "entity", label: S.entity, cell: ({ entity }) => html`<${EntityName} path=${entity} />` },
  {
    id: "who",
    label: S.who,
    hide: "narrow",
    cell: ({ actor, peer }) => html`
      <${Text} value=${actor} max=${128} />
      ${peer && html` <span class="muted"><${Text} value=${peer} max=${64} /></span>`}
    `,
  },
  {
    id: "detail",
    label: S.detail,
    hide: "medium",
    isWide: true,
    cell: ({ detail }) => html`<code><${Text} value=${detail} max=${400} /></code>`,
  },
];

/** One entry with all that it has.
 * @param {{ entry: Entry | undefined, number: string, isKnown: boolean }} properties */
function Whole({ entry, number: shown, isKnown }) {
  /** @type {{ current: HTMLHeadingElement | null }} */
  const heading = useRef(null);
  const isThere = entry !== undefined;
  useLayoutEffect(() => {
    heading.current?.focus();
  }, [isThere]);
  if (!isThere && !isKnown) return null;
  return html`
    <section class="card" aria-labelledby="entry">
      <div class="card-head">
        <h2 id="entry" tabindex="-1" ref=${heading}>${S.entryTitle(shown)}</h2>
        <button type="button" class="quiet" onClick=${() => setQuery({ entry: undefined })}>${C.close}</button>
      </div>
      ${entry === undefined
        ? html`<p class="muted">${S.entryGone}</p>`
        : html`
            <dl class="pairs">
              <dt>${S.time}</dt>
              <dd><${At} at=${entry.at} /> <span class="muted">${utc(entry.at)}</span></dd>
              <dt>${S.operation}</dt>
              <dd>${words(entry.operation)}</dd>
              <dt>${S.entity}</dt>
              <dd><${EntityName} path=${entry.entity} /></dd>
              <dt>${S.who}</dt>
              <dd><${Text} value=${entry.actor} /></dd>
              ${entry.peer && html`<dt>${S.peer}</dt><dd><${Text} value=${entry.peer} /></dd>`}
              <dt>${S.detail}</dt>
              <dd>
                ${entry.detail
                  ? html`<code class="audit-detail"><${Text} value=${entry.detail} /></code>`
                  : html`<span class="muted">${S.noDetail}</span>`}
              </dd>
            </dl>
          `}
    </section>
  `;
}
