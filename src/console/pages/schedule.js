// What becomes active when: scheduled messages over time, and the messages of a span.

import { now, tenSeconds } from "../lib/clock.js";
import { useFocusKept } from "../lib/focus.js";
import { digits, local, number } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { entities, isKnown } from "../lib/live.js";
import { isoOf } from "../lib/local-time.js";
import { entityHref, messageHref } from "../lib/paths.js";
import { useResource } from "../lib/resource.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { visible } from "../lib/visible.js";
import { Empty, Loaded, Loading, Notice, Problem } from "../components/notice.js";
import { Preview } from "../components/message-list.js";
import { RowAction } from "../components/row-action.js";
import { Table } from "../components/table.js";
import { EntityLink, Text } from "../components/text.js";
import { Time } from "../components/time.js";
import { cancel, openChange, sendNow } from "./schedule/change.js";
import { READ_STEP, countScheduled, readScheduled } from "./schedule/data.js";
import { Histogram, announceRange } from "./schedule/histogram.js";
import { RANGE_MIN, rangeText, zoomed } from "./schedule/scale.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/schedule.js";

/** @typedef {import("./schedule/data.js").Row} Row */
/** @typedef {import("./schedule/scale.js").Range} Range */

/** Entities whose messages are shown together. */
const ENTITIES_MAX = 50;
/** Scheduled messages up to which each change is followed at once. */
const FOLLOWED_MAX = 5_000;

/** @param {import("./index.js").PageProperties} properties */
export default function Schedule({ query }) {
  const some = [...entities.value.values()]
    .filter(({ scheduled }) => scheduled !== 0)
    .sort((a, b) => b.scheduled - a.scheduled || (a.path < b.path ? -1 : 1));
  const wanted = query.entity ?? "";
  const paths = wanted === "" ? some.slice(0, ENTITIES_MAX).map(({ path }) => path) : [wanted];
  return html`
    <div class="page-head">
      <h1 tabindex="-1">${C.pages.schedule}</h1>
      <select
        class="schedule-entity"
        aria-label=${S.entity}
        value=${wanted}
        onChange=${(/** @type {any} */ event) => setQuery({ entity: event.target.value, at: undefined })}
      >
        <option value="" selected=${wanted === ""}>${S.all(number(some.length))}</option>
        ${wanted !== "" && !some.some(({ path }) => path === wanted) && html`
          <option value=${wanted} selected=${true}>${visible(wanted)}</option>
        `}
        ${some.map(
          ({ path, scheduled }) => html`
            <option key=${path} value=${path} selected=${path === wanted}>
              ${S.one(visible(path), number(scheduled))}
            </option>
          `,
        )}
      </select>
    </div>
    ${wanted === "" && ENTITIES_MAX < some.length && html`
      <${Notice}>${S.most(number(ENTITIES_MAX), number(some.length))}<//>
    `}
    ${!isKnown.value && some.length === 0
      ? html`<${Loading} />`
      : paths.length === 0
        ? html`<${None} />`
        : html`<${Shown} paths=${paths} query=${query} />`}
  `;
}

/** @param {{ path?: string }} properties */
function None({ path }) {
  return html`
    <div class="card">
      <${Empty} title=${path === undefined ? S.none : S.noneOf} text=${S.noneText} command=${S.command}>
        ${can("send") && html`<a href=${href(["send"], { entity: path })}>${S.sendOne}</a>`}
      <//>
    </div>
  `;
}

/** A range of the address.
 * @param {string | undefined} from
 * @param {string | undefined} before
 * @returns {Range | null} */
function rangeOf(from, before) {
  const range = { from: Date.parse(from ?? ""), before: Date.parse(before ?? "") };
  return range.from < range.before ? range : null;
}

/** @param {{ paths: string[], query: Record<string, string> }} properties */
function Shown({ paths, query }) {
  const range = rangeOf(query.from, query.before);
  const selection = rangeOf(.../** @type {[string, string]} */ ((query.at ?? "").split("..", 2)));
  const [changes, setChanges] = useState(0);
  const sum = paths.reduce((before, path) => before + (entities.value.get(path)?.scheduled ?? 0), 0);
  const bars = matchMedia("(max-width: 599px)").matches ? 36 : 60;
  const follows = [sum <= FOLLOWED_MAX ? sum : -tenSeconds.value, changes];
  const counts = useResource((signal) => countScheduled(paths, range, bars, signal), [paths, range], follows);
  // What was shown before stays until the next time is counted, so that the bars keep the focus.
  const shown = useRef(/** @type {import("./schedule/data.js").Counts | undefined} */ (undefined));
  const isFirst = shown.current === undefined;
  if (counts.data !== undefined) shown.current = counts.data;
  const data = counts.data ?? (counts.error ? undefined : shown.current);
  const inView = data == null ? 0 : data.counts.reduce((before, count) => before + count, 0);
  useEffect(() => {
    if (counts.data != null && !isFirst) announceRange(counts.data.scale, counts.data.scale, inView);
  }, [range?.from, range?.before, counts.data !== undefined]);
  if (data === undefined) return html`<${Loaded} of=${counts}>${() => null}<//>`;
  if (data === null) return html`<${None} path=${paths.length === 1 ? paths[0] : undefined} />`;
  const { scale } = data;
  const setRange = (/** @type {Range | null} */ next) =>
    setQuery({
      from: next === null ? undefined : isoOf(next.from),
      before: next === null ? undefined : isoOf(next.before),
      at: undefined,
    });
  const step = (/** @type {number} */ factor, /** @type {number | undefined} */ around = undefined) =>
    setRange(
      zoomed(
        range ?? scale,
        factor,
        around ?? (selection === null ? undefined : (selection.from + selection.before) / 2),
      ),
    );
  const move = (/** @type {-1 | 1} */ direction) => {
    const { from, before } = range ?? scale;
    const by = Math.round((before - from) / 2) * direction;
    setRange({ from: from + by, before: before + by });
  };
  const select = (/** @type {Range | null} */ next) =>
    setQuery({ at: next === null ? undefined : `${isoOf(next.from)}..${isoOf(next.before)}` });
  const ahead = (/** @type {number} */ hours) => () =>
    setRange({ from: Math.floor(now() / 1000) * 1000, before: Math.floor(now() / 1000) * 1000 + hours * 3_600_000 });
  const between = selection ?? scale;
  const expected =
    selection === null
      ? inView
      : data.counts.reduce((before, count, at) => {
          const begin = scale.from + at * scale.step;
          return before + (selection.from <= begin && begin < selection.before ? count : 0);
        }, 0);
  return html`
    <section class="card" aria-label=${S.histogram}>
      <div class="card-head">
        <h2>${rangeText(scale, scale)} <span class="muted number count">${number(inView)}</span></h2>
        <div class="actions zoom" role="group" aria-label=${S.span}>
          <button
            type="button"
            aria-label=${S.zoomIn}
            title=${S.zoomIn}
            disabled=${scale.step * 10 <= RANGE_MIN && scale.count <= 10}
            onClick=${() => step(0.5)}
          >
            +
          </button>
          <button type="button" aria-label=${S.zoomOut} title=${S.zoomOut} onClick=${() => step(2)}>−</button>
          <button type="button" aria-label=${S.earlier} title=${S.earlier} onClick=${() => move(-1)}>←</button>
          <button type="button" aria-label=${S.later} title=${S.later} onClick=${() => move(1)}>→</button>
          <button type="button" class="quiet" onClick=${ahead(1)}>${S.hour}</button>
          <button type="button" class="quiet" onClick=${ahead(24)}>${S.day}</button>
          <button type="button" class="quiet" onClick=${ahead(168)}>${S.week}</button>
          <button type="button" class="quiet" disabled=${range === null} onClick=${() => setRange(null)}>
            ${S.whole}
          </button>
        </div>
      </div>
      <${Histogram}
        scale=${scale}
        counts=${data.counts}
        selection=${selection}
        onSelect=${select}
        onZoom=${setRange}
        onStep=${step}
        onMove=${move}
        onWhole=${() => setRange(null)}
      />
      ${range === null && 0 < data.later && html`
        <p class="later">
          <button type="button" class="quiet" onClick=${() => setRange(data.whole)}>
            ${S.behind(number(data.later), local(data.whole.before))}
          </button>
        </p>
      `}
      ${data.isIncomplete && html`<p class="muted">${S.incomplete}</p>`}
    </section>
    <${Problem} error=${counts.error} />
    <${Messages}
      paths=${paths}
      range=${{ from: between.from, before: between.before }}
      scale=${scale}
      expected=${expected}
      isSelected=${selection !== null}
      isZoomed=${range !== null}
      stamp=${follows.join()}
      onChange=${() => setChanges((/** @type {number} */ old) => old + 1)}
    />
  `;
}

/** @param {{ paths: string[], range: Range, scale: import("./schedule/scale.js").Scale, expected: number,
 *   isSelected: boolean, isZoomed: boolean, stamp: string, onChange: () => void }} properties */
function Messages({ paths, range, scale, expected, isSelected, isZoomed, stamp, onChange }) {
  const [most, setMost] = useState(READ_STEP);
  useFocusKept(".table-box");
  const found = useResource(
    (signal) => readScheduled(paths, range, most, signal),
    [paths, range, most],
    [expected, stamp],
  );
  const kept = useRef(found.data);
  if (found.data !== undefined) kept.current = found.data;
  const data = found.data ?? (found.error ? undefined : kept.current);
  const title = isSelected ? S.messagesIn(rangeText(range, scale)) : S.messages;
  return html`
    <div class="card-head list-head">
      <h2>
        ${title}${" "}
        <span class="muted number count">
          ${data === undefined ? "" : S.found(number(data.rows.length), number(expected))}
        </span>
      </h2>
      ${isSelected && html`
        <button type="button" class="quiet" onClick=${() => setQuery({ at: undefined })}>${S.clear}</button>
      `}
    </div>
    <${Problem} error=${found.error} onRetry=${found.reload} />
    ${data !== undefined && !data.isWhole && html`
      <${Notice}>
        <span>${S.partlyRead(number(data.rows.length))}</span>
        <button type="button" disabled=${found.isLoading} onClick=${() => setMost(most + 5 * READ_STEP)}>
          ${S.further}
        </button>
      <//>
    `}
    ${data === undefined || (data.rows.length === 0 && found.isLoading)
      ? !found.error && html`<${Loading} />`
      : data.rows.length === 0 && data.isWhole
        ? html`
            <div class="card">
              <${Empty} title=${S.noneInSpan}>
                ${(isZoomed || isSelected) && html`
                  <button
                    type="button"
                    onClick=${() => setQuery({ from: undefined, before: undefined, at: undefined })}
                  >
                    ${S.showAll}
                  </button>
                `}
              <//>
            </div>
          `
        : html`
            <${Table}
              label=${S.messages}
              columns=${columnsOf(1 < paths.length, onChange)}
              rows=${data.rows}
              keyOf=${(/** @type {Row} */ row) => `${row.entity} ${row.sequence_number}`}
              hrefOf=${(/** @type {Row} */ row) => messageHref(row.entity, row.sequence_number)}
              fills=${true}
              isSorted=${true}
              rowHeight=${36}
            />
          `}
  `;
}

/** @param {boolean} hasEntity
 * @param {() => void} onChange
 * @returns {import("../components/table.js").Column<Row>[]} */
const columnsOf = (hasEntity, onChange) => [
  { id: "due", label: S.due, cell: (row) => html`<${Time} at=${row.scheduled_for ?? undefined} />` },
  ...(hasEntity
    ? [
        {
          id: "entity",
          label: S.queue,
          hide: /** @type {const} */ ("narrow"),
          cell: (/** @type {Row} */ row) => html`
            <${EntityLink} path=${row.entity} to=${entityHref(row.entity, "messages")} />
          `,
        },
      ]
    : []),
  {
    id: "number",
    label: S.number,
    align: "end",
    cell: (row) => html`
      <a class="number" href=${messageHref(row.entity, row.sequence_number)}>${digits(row.sequence_number)}</a>
    `,
  },
  { id: "id", label: S.messageId, hide: "medium", cell: (row) => html`<${Text} value=${row.message_id} max=${80} />` },
  { id: "body", label: S.body, isWide: true, hide: "medium", cell: (row) => html`<${Preview} message=${row} />` },
  ...(can("manage")
    ? [
        {
          id: "actions",
          label: S.actions,
          align: /** @type {const} */ ("end"),
          cell: (/** @type {Row} */ row) => {
            const shown = digits(row.sequence_number);
            return html`
              <span class="row-actions">
                <${RowAction}
                  icon="schedule"
                  label=${S.changeLabel(shown)}
                  onClick=${() => openChange(row, onChange)}
                />
                <${RowAction} icon="activate" label=${S.sendLabel(shown)} onClick=${() => sendNow(row, onChange)} />
                <${RowAction} icon="cancel" label=${S.cancelLabel(shown)} onClick=${() => cancel(row, onChange)} />
              </span>
            `;
          },
        },
      ]
    : []),
];
