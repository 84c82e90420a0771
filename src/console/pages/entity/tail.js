// What arrives in a queue or a subscription, as it arrives.

import { clock, number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { messageHref } from "../../lib/paths.js";
import { route } from "../../lib/router.js";
import { LOOK_MAX, useTail } from "../../lib/tail.js";
import { chosenColumns, columnsChosen, openColumns } from "../../components/columns.js";
import { Filters, Preview, numberColumn, queryOf, stateOf } from "../../components/message-list.js";
import { Empty, Problem } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { S as E } from "../../strings/entity.js";
import { S } from "../../strings/tail.js";

/** @typedef {import("../../lib/tail.js").Message} Message */
/** @typedef {import("../../lib/tail.js").Tail} Tail */

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function Live({ entity }) {
  const { path, next_number: end } = entity;
  if (end == null) return html`<div class="card"><${Empty} title=${S.partitioned} text=${S.partitionedText} /></div>`;
  return html`<${Following} path=${path} end=${end} />`;
}

/** @param {{ path: string, end: number }} properties */
function Following({ path, end }) {
  const [state, setState] = useState(/** @type {"running" | "paused"} */ ("running"));
  const { query, isSearch } = queryOf(route.value.query);
  const { tail, clear } = useTail(path, end, query, state);
  const chosen = chosenColumns("messages", route.value.query.columns);
  const isPaused = state === "paused";
  return html`
    <${Filters} onColumns=${() => openColumns("messages", chosen, tail.rows)} />
    <div class="tools">
      <button type="button" onClick=${() => setState(isPaused ? "running" : "paused")}>
        ${isPaused ? S.resume : S.pause}
      </button>
      <button type="button" class="quiet" onClick=${clear}>${S.clear}</button>
      <span class=${isPaused ? "tag" : "tag accent"} role="status">${isPaused ? S.paused : S.following}</span>
      <span class="muted">${countsOf(tail, isSearch).join("; ")}</span>
    </div>
    <${Problem} error=${tail.error} />
    ${tail.rows.length === 0
      ? html`
          <div class="card">
            ${tail.missing === 0
              ? html`<${Empty} title=${S.none(clock(tail.since))} text=${S.noneText} command=${E.sendCommand(path)} />`
              : html`<${Empty} title=${S.noneShown} text=${S.noneShownText} />`}
          </div>
        `
      : html`
          <${Table}
            label=${S.table}
            columns=${[numberColumn(path), ...columnsChosen(chosen, { stateOf, Preview })]}
            rows=${tail.rows}
            keyOf=${(/** @type {Message} */ row) => String(row.sequence_number)}
            hrefOf=${(/** @type {Message} */ row) => messageHref(path, row.sequence_number)}
            fills=${true}
            isSorted=${true}
          />
        `}
  `;
}

/** What is shown, and what is not.
 * @param {Tail} tail
 * @param {boolean} isSearch
 * @returns {string[]} */
function countsOf({ since, rows, shown, passed, missing }, isSearch) {
  return [
    S.since(clock(since), number(shown)),
    rows.length < shown ? S.newest(number(rows.length)) : "",
    0 < passed ? S.passed(number(passed), number(LOOK_MAX)) : "",
    0 < missing ? (isSearch ? S.unmatched(number(missing)) : S.missing(number(missing))) : "",
  ].filter(Boolean);
}
