// Message sessions: the entities that have them, who holds which, and one of them with its state and messages.

import { call } from "../lib/api.js";
import { number } from "../lib/format.js";
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { entities, isKnown } from "../lib/live.js";
import { entityHref, sessionHref } from "../lib/paths.js";
import { useResource } from "../lib/resource.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { Choice, Filter } from "../components/field.js";
import { Empty, Loaded, Loading } from "../components/notice.js";
import { Table } from "../components/table.js";
import { useQuery } from "../components/tabs.js";
import { EntityLink, EntityName } from "../components/text.js";
import { Count } from "../components/time.js";
import { columnsOf } from "./sessions/list.js";
import { One } from "./sessions/one.js";
import { useCalm } from "./sessions/calm.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/sessions.js";

/** @typedef {Schemas["EntityNow"]} Entity */
/** @typedef {import("./sessions/list.js").Listed} Listed */

/** Entities whose sessions are shown together. */
const TOGETHER_MAX = 12;

/** @param {import("./index.js").PageProperties} properties */
export default function Sessions({ parameters, query }) {
  const { path, id } = parameters;
  // Other pages may know the session only.
  useEffect(() => {
    if (path !== undefined) return;
    if (query.entity !== undefined)
      location.replace(query.id === undefined ? href(["sessions", query.entity]) : sessionHref(query.entity, query.id));
    else if (query.id !== undefined) setQuery({ filter: query.id, id: undefined });
  }, [query.entity, query.id]);
  if (path === undefined) return html`<${All} />`;
  return id === undefined ? html`<${OfEntity} path=${path} />` : html`<${One} path=${path} id=${id} />`;
}

/** Entities that have sessions now.
 * @returns {Entity[]} */
function withSessions() {
  const found = [...entities.value.values()].filter(({ sessions }) => 0 < sessions);
  return found.sort((a, b) => b.sessions_held - a.sessions_held || b.sessions - a.sessions);
}

/** @param {Entity[]} found */
const countsOf = (found) =>
  S.counts(
    number(found.reduce((sum, { sessions }) => sum + sessions, 0)),
    number(found.reduce((sum, { sessions_held: held }) => sum + held, 0)),
  );

function All() {
  const found = withSessions();
  const [sort, setSort] = useState("");
  return html`
    <div class="page-head">
      <h1 tabindex="-1">${C.pages.sessions}</h1>
      ${isKnown.value && html`<span class="muted">${countsOf(found)}</span>`}
    </div>
    ${!isKnown.value
      ? html`<${Loading} />`
      : found.length === 0
        ? html`<${None} />`
        : html`
            <${Table}
              label=${S.entities}
              columns=${ENTITY_COLUMNS}
              rows=${found}
              keyOf=${(/** @type {Entity} */ row) => row.path}
              heightMax=${226}
              sort=${sort}
              onSort=${setSort}
              hrefOf=${(/** @type {Entity} */ row) => href(["sessions", row.path])}
            />
            <${Together} found=${found} />
          `}
  `;
}

function None() {
  const requiring = useResource(requiringSessions, []);
  return html`
    <div class="card">
      <${Loaded} of=${requiring}>
        ${(/** @type {string[]} */ paths) => html`
          <${Empty} title=${S.emptyTitle} text=${S.emptyText} command=${S.emptyCommand(paths[0] ?? "invoices")}>
            ${paths.length === 0 && can("manage") && html`<a href=${href(["new-entity"])}>${S.create}</a>`}
            ${paths.length !== 0 && html`
              <ul class="requiring">
                ${paths.map(
                  (path) => html`
                    <li key=${path}>
                      <a href=${href(["sessions", path])}><${EntityName} value=${path} max=${200} /></a>
                    </li>
                  `,
                )}
              </ul>
            `}
          <//>
        `}
      <//>
    </div>
  `;
}

/** Finds entities that require sessions among the first of the namespace.
 * @param {AbortSignal} signal */
async function requiringSessions(signal) {
  const { entities: queues } = await call("list_entities", { query: { kind: "queue", limit: 100 }, signal });
  return queues.filter(({ properties }) => /** @type {any} */ (properties).requires_session).map(({ path }) => path);
}

/** @param {{ found: Entity[] }} properties */
function Together({ found }) {
  const shown = found.slice(0, TOGETHER_MAX);
  const paths = shown.map(({ path }) => path);
  const stir = useCalm(shown.map(stirOf).join(" "));
  const pages = useResource(
    (signal) =>
      Promise.all(
        paths.map((path) =>
          call("list_sessions", { path: { entity: path }, query: { limit: 100 }, signal }).then(
            ({ sessions, next_after: next }) => ({ path, sessions, next }),
          ),
        ),
      ),
    [paths],
    [stir],
  );
  return html`
    <${Loaded} of=${pages}>
      ${(/** @type {{ path: string, sessions: Schemas["Session"][], next?: string | null }[]} */ data) => {
        const rows = data.flatMap(({ path, sessions }) => sessions.map((session) => ({ path, session })));
        return html`
          <${Filtered} rows=${rows} hasEntities=${true} path=${null} />
          ${(data.some(({ next }) => next != null) || shown.length < found.length) && html`
            <p class="list-foot muted">${S.firstOf(number(shown.length))}</p>
          `}
        `;
      }}
    <//>
  `;
}

/** What changes when the sessions of an entity may have.
 * @param {Entity | undefined} entity */
const stirOf = (entity) =>
  entity === undefined
    ? ""
    : [
        entity.sessions,
        entity.sessions_held,
        entity.incoming,
        entity.completed,
        entity.deferred,
        entity.dead_letters,
        entity.scheduled,
      ].join();

/** @param {{ path: string }} properties */
function OfEntity({ path }) {
  const entity = entities.value.get(path);
  const [pages, setPages] = useState(1);
  // Many pages are read again when the reader asks only.
  const stir = useCalm(pages <= 3 ? stirOf(entity) : "");
  const list = useResource((signal) => readPages(path, pages, signal), [path], [stir, pages]);
  const more = () => {
    if (list.data?.next != null && !list.isLoading) setPages(pages + 1);
  };
  return html`
    <div class="page-head">
      <p class="crumbs"><a href=${href(["sessions"])}>${C.pages.sessions}</a></p>
      <h1 tabindex="-1"><${EntityName} value=${path} max=${260} /></h1>
      ${entity && html`<span class="muted">${S.counts(number(entity.sessions), number(entity.sessions_held))}</span>`}
      <div class="actions"><a class="button" href=${entityHref(path)}>${S.entity}</a></div>
    </div>
    <${Loaded} of=${list}>
      ${(/** @type {{ sessions: Schemas["Session"][], next: string | undefined }} */ data) => html`
        <${Filtered}
          rows=${data.sessions.map((session) => ({ path, session }))}
          hasEntities=${false}
          path=${path}
          onEnd=${more}
        />
        <p class="list-foot muted">
          ${number(data.sessions.length)}
          ${data.next === undefined
            ? `, ${S.allShown}`
            : html` <button type="button" class="quiet" onClick=${more}>${S.more}</button>`}
          ${3 < pages && html` <button type="button" class="quiet" onClick=${list.reload}>${S.refresh}</button>`}
        </p>
      `}
    <//>
  `;
}

/** @param {string} path
 * @param {number} count
 * @param {AbortSignal} signal */
async function readPages(path, count, signal) {
  /** @type {Schemas["Session"][]} */
  const sessions = [];
  /** @type {string | undefined} */
  let next;
  for (let page = 0; page < count && (page === 0 || next !== undefined); page += 1) {
    const found = await call("list_sessions", { path: { entity: path }, query: { after: next, limit: 100 }, signal });
    sessions.push(...found.sessions);
    next = found.next_after ?? undefined;
  }
  return { sessions, next };
}

/** @param {{ rows: Listed[], hasEntities: boolean, path: string | null, onEnd?: () => void }} properties */
function Filtered({ rows, hasEntities, path, onEnd }) {
  const [filter, setFilter] = useQuery("filter");
  const [show, setShow] = useQuery("show");
  const [sort, setSort] = useQuery("sort");
  const columns = useMemo(() => columnsOf(hasEntities), [hasEntities]);
  const wanted = filter.toLowerCase();
  const shown = rows.filter(
    ({ session }) =>
      session.id.toLowerCase().includes(wanted) && (show === "" || (session.lock != null) === (show === "held")),
  );
  const open = (/** @type {Event} */ event) => {
    event.preventDefault();
    const found =
      shown.find(({ session }) => session.id === filter) ??
      (path === null ? shown[0] : { path, session: { id: filter } });
    if (filter !== "" && found !== undefined) location.hash = sessionHref(found.path, found.session.id);
  };
  return html`
    <form class="tools" onSubmit=${open}>
      <${Filter}
        label=${S.filter}
        value=${filter}
        title=${path === null ? undefined : S.openHint}
        onInput=${setFilter}
      />
      ${path !== null && filter !== "" && html`<button type="submit">${S.open}</button>`}
      <${Choice}
        label=${S.show}
        value=${show}
        onChange=${setShow}
        options=${[
          { value: "", label: S.all },
          { value: "held", label: S.held },
          { value: "free", label: S.free },
        ]}
      />
    </form>
    ${shown.length === 0
      ? html`
          <div class="card">
            <${Empty}
              title=${rows.length === 0 ? S.none : S.noneMatch}
              command=${rows.length === 0 && path !== null ? S.emptyCommand(path) : undefined}
            >
              ${rows.length !== 0 && html`
                <button type="button" onClick=${() => setQuery({ filter: "", show: "" })}>${S.clear}</button>
              `}
            <//>
          </div>
        `
      : html`
          <${Table}
            label=${S.table}
            columns=${columns}
            rows=${shown}
            keyOf=${(/** @type {Listed} */ row) => `${row.path} ${row.session.id}`}
            sort=${sort}
            onSort=${setSort}
            hrefOf=${(/** @type {Listed} */ row) => sessionHref(row.path, row.session.id)}
            fills=${true}
            onEnd=${filter === "" && show === "" ? onEnd : undefined}
          />
        `}
  `;
}

/** @type {import("../components/table.js").Column<Entity>[]} */
const ENTITY_COLUMNS = [
  {
    id: "path",
    label: S.entities,
    isWide: true,
    sort: ({ path }) => path,
    cell: ({ path }) => html`<${EntityLink} path=${path} to=${href(["sessions", path])} />`,
  },
  {
    id: "sessions",
    label: S.sessions,
    align: "end",
    sort: ({ sessions }) => sessions,
    cell: ({ sessions }) => html`<${Count} value=${sessions} />`,
  },
  {
    id: "held",
    label: S.held,
    align: "end",
    sort: ({ sessions_held: held }) => held,
    cell: ({ sessions_held: held }) => html`<${Count} value=${held} />`,
  },
  {
    id: "free",
    label: S.free,
    align: "end",
    sort: (row) => row.sessions - row.sessions_held,
    cell: (row) => html`<${Count} value=${row.sessions - row.sessions_held} />`,
  },
  {
    id: "active",
    label: S.active,
    align: "end",
    hide: "narrow",
    sort: ({ active }) => active,
    cell: ({ active }) => html`<${Count} value=${active} />`,
  },
];
