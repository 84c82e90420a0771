// The beginning of a job: every entity with messages, its counts by state. A count opens the dialog.

import { number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { entities, isKnown } from "../../lib/live.js";
import { deadLettersOf, jobHref } from "../../lib/paths.js";
import { go } from "../../lib/router.js";
import { visible } from "../../lib/visible.js";
import { Filter } from "../../components/field.js";
import { Table } from "../../components/table.js";
import { useQuery } from "../../components/tabs.js";
import { EntityLink } from "../../components/text.js";
import { openVerb } from "../../components/verb-dialog.js";
import { S } from "../../strings/jobs.js";

/** @typedef {Schemas["EntityNow"]} Entity */

/** @param {Entity} entity */
const liveOf = ({ active, scheduled, deferred }) => active + scheduled + deferred;

/** @param {Entity} entity */
const sumOf = (entity) => liveOf(entity) + entity.dead_letters;

const STATES = /** @type {const} */ (["active", "scheduled", "deferred"]);

export function Begin() {
  const [filter, setFilter] = useQuery("entity");
  const [sort, setSort] = useState("");
  if (!isKnown.value) return null;
  const wanted = filter.toLowerCase();
  const full = [...entities.value.values()].filter((entity) => 0 < sumOf(entity));
  const rows = full.filter(({ path }) => path.toLowerCase().includes(wanted));
  if (sort === "") rows.sort((a, b) => sumOf(b) - sumOf(a));
  return html`
    <section class="begin" aria-labelledby="begin">
      <div class="card-head"><h2 id="begin">${S.begin}</h2><span class="muted">${S.beginText}</span></div>
      ${full.length === 0
        ? html`<p class="muted">${S.nothing}</p>`
        : html`
            <div class="tools"><${Filter} label=${S.beginFilter} value=${filter} onInput=${setFilter} /></div>
            <${Table}
              label=${S.begin}
              columns=${COLUMNS}
              rows=${rows}
              keyOf=${(/** @type {Entity} */ row) => row.path}
              sort=${sort}
              onSort=${setSort}
              heightMax=${418}
            />
          `}
    </section>
  `;
}

/** @param {{ entity: Entity, count: number, label: string, open: () => void }} properties */
function Choose({ entity, count, label, open }) {
  if (count === 0) return html`<span class="number pale">0</span>`;
  return html`
    <button
      type="button"
      class="link number"
      aria-label=${S.beginLabel(number(count), label.toLowerCase(), visible(entity.path))}
      onClick=${open}
    >
      ${number(count)}
    </button>
  `;
}

/** Opens the dialog; the page of the job is opened when it has begun.
 * @param {import("../../components/verb-dialog.js").Proposal} proposal */
const begin = (proposal) => openVerb({ ...proposal, canChoose: true, onDone: ({ id }) => go(jobHref(id)) });

/** @param {(typeof STATES)[number]} state
 * @returns {import("../../components/table.js").Column<Entity>} */
const stateColumn = (state) => ({
  id: state,
  label: S[state],
  align: "end",
  hide: "narrow",
  sort: (entity) => entity[state],
  cell: (entity) => html`
    <${Choose}
      entity=${entity}
      count=${entity[state]}
      label=${S[state]}
      open=${() => begin({ entity: entity.path, kind: "delete", selection: { states: [state] } })}
    />
  `,
});

/** All messages but dead letters, where a column for each state has no room. The dialog has a box for each.
 * @type {import("../../components/table.js").Column<Entity>} */
const LIVE = {
  id: "live",
  label: S.live,
  align: "end",
  hide: "wide",
  sort: liveOf,
  cell: (entity) => html`
    <${Choose}
      entity=${entity}
      count=${liveOf(entity)}
      label=${liveOf(entity) === 1 ? S.liveOne : S.live}
      open=${() =>
        begin({
          entity: entity.path,
          kind: "delete",
          selection: { states: STATES.filter((state) => 0 < entity[state]) },
        })}
    />
  `,
};

/** @type {import("../../components/table.js").Column<Entity>[]} */
const COLUMNS = [
  {
    id: "path",
    label: S.entity,
    isWide: true,
    sort: ({ path }) => path,
    cell: ({ path }) => html`<${EntityLink} path=${path} />`,
  },
  ...STATES.map(stateColumn),
  LIVE,
  {
    id: "dead",
    label: S.dead,
    align: "end",
    sort: (entity) => entity.dead_letters,
    cell: (entity) => html`
      <${Choose}
        entity=${entity}
        count=${entity.dead_letters}
        label=${S.dead}
        open=${() => begin({ entity: deadLettersOf(entity.path), kind: "redrive" })}
      />
    `,
  },
];
