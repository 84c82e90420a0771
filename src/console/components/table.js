// Tables of any length: only the rows in sight are elements. Sorting and the cursor work with the keyboard.

import { locale } from "../lib/format.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { rememberRows } from "../lib/neighbours.js";
import { placeOf, scrollBack } from "../lib/place.js";
import { S } from "../strings/common.js";

/** A column. `cell` shows a row; `sort` makes what rows are compared by, without it there is no sorting. `hide` leaves
 * the column out where there is no room: "narrow" below 600 px, "medium" below 1000 px, "large" below 1300 px; and
 * "wide" from 600 px on, of what takes the place of others below it. `align` is "end" for numbers.
 * @template R
 * @typedef {{ id: string, label: string, cell: (row: R) => any, sort?: (row: R) => string | number, hide?: "narrow" |
 *   "medium" | "large" | "wide", align?: "end", width?: string, isWide?: boolean }} Column */

/** Rows that the reader has ticked, by their keys as texts. `labelOf` names the box of a row, or is null where it
 * cannot be ticked.
 * @template R
 * @typedef {{ selected: Set<string>, onSelect: (selected: Set<string>) => void, labelOf: (row: R) => string |
 *   null }} Ticks */

/** A table.
 *
 * With `ticks` rows have boxes: Shift and a click, or Shift and the space bar, ticks all from the last one on. `keyOf`
 * tells rows apart. `sort` is `column` or `-column` (descending), usually kept in the address by `useQuery("sort")`.
 * `hrefOf` makes Enter on a row go to its page; the first column should have a link to it, for the mouse. `fills` makes
 * the table take the height that the page has left, else it is as high as its rows up to `heightMax`.
 * @template R
 * @param {{ label: string, columns: Column<R>[], rows: R[], keyOf: (row: R) => string | number, sort?: string,
 *   onSort?: (sort: string) => void, hrefOf?: (row: R) => string, fills?: boolean, heightMax?: number,
 *   rowHeight?: number, rowClass?: (row: R) => string, isSorted?: boolean, onEnd?: () => void,
 *   ticks?: Ticks<R> }} properties */
export function Table({
  label,
  columns,
  rows,
  keyOf,
  sort = "",
  onSort,
  hrefOf,
  fills = false,
  heightMax = 480,
  rowHeight = 32,
  rowClass,
  isSorted = false,
  onEnd,
  ticks,
}) {
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(heightMax);
  const [cursor, moveCursor] = useState(-1);
  const place = useRef(/** @type {ReturnType<typeof placeOf> | null} */ (null));
  place.current ??= placeOf(label);
  const { before, keep } = place.current;
  const isBack = useRef(before?.row === undefined);
  const sorted = useMemo(() => (isSorted ? rows : inOrder(rows, columns, sort)), [rows, columns, sort, isSorted]);
  useEffect(() => {
    if (hrefOf !== undefined) rememberRows(sorted, hrefOf);
  }, [sorted]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    const end = before === undefined ? () => {} : scrollBack(element, before.top);
    return () => {
      watch.disconnect();
      end();
    };
  }, []);
  const chosen = useRef(/** @type {string | undefined} */ (undefined));
  const setCursor = (/** @type {number} */ at) => {
    isBack.current = true;
    moveCursor(at);
    chosen.current = sorted[at] === undefined ? undefined : String(keyOf(sorted[at]));
    keep({ row: chosen.current });
  };
  useEffect(() => {
    // The row that was chosen before the reader went on has the cursor again, once it is there.
    const at = isBack.current ? -1 : sorted.findIndex((row) => String(keyOf(row)) === before?.row);
    if (at !== -1) setCursor(at);
    // Rows come before it, and others take its place in the order: the cursor stays on its row.
    const moved = chosen.current === undefined ? -1 : sorted.findIndex((row) => String(keyOf(row)) === chosen.current);
    if (moved !== -1) moveCursor(moved);
  }, [sorted]);
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - 8, sorted.length - 1));
  const last = Math.min(sorted.length, Math.ceil((top + height) / rowHeight) + 8);
  useEffect(() => {
    if (onEnd !== undefined && last === sorted.length) onEnd();
  }, [last, sorted.length]);
  const lastTicked = useRef(-1);
  const tick = (/** @type {number} */ at, /** @type {boolean} */ isRange) => {
    if (ticks === undefined || sorted[at] === undefined || ticks.labelOf(sorted[at]) === null) return;
    const selected = new Set(ticks.selected);
    const isOn = !selected.has(String(keyOf(sorted[at])));
    const from = isRange && lastTicked.current !== -1 ? Math.min(lastTicked.current, at) : at;
    const to = isRange && lastTicked.current !== -1 ? Math.max(lastTicked.current, at) : at;
    for (const row of sorted.slice(from, to + 1)) {
      if (ticks.labelOf(row) === null) continue;
      if (isOn) selected.add(String(keyOf(row)));
      else selected.delete(String(keyOf(row)));
    }
    lastTicked.current = at;
    ticks.onSelect(selected);
  };
  const move = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === " " && event.target === box.current && ticks !== undefined) {
      event.preventDefault();
      tick(cursor, event.shiftKey);
      return;
    }
    const page = Math.max(1, Math.floor(height / rowHeight) - 2);
    const steps = /** @type {Record<string, number>} */ ({
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -sorted.length,
      End: sorted.length,
    });
    if (event.key === "Enter" && event.target === box.current && hrefOf && sorted[cursor] !== undefined) {
      location.hash = hrefOf(sorted[cursor]);
      return;
    }
    if (!(event.key in steps) || sorted.length === 0 || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(sorted.length - 1, cursor + steps[event.key]));
    setCursor(next);
    box.current?.focus({ preventScroll: true });
    reveal(box.current, next, rowHeight);
  };
  const onScroll = (/** @type {any} */ event) => {
    const { scrollTop } = event.currentTarget;
    setTop(scrollTop);
    keep({ top: scrollTop });
  };
  // A table that takes what is left keeps some rows in sight, and none that it has not.
  const heightMin = Math.min(10, sorted.length + 1) * rowHeight + 2;
  const id = `row-${label.replace(/\W/g, "")}`;
  const shown = sorted.slice(first, last);
  const span = columns.length + (ticks === undefined ? 0 : 1);
  return html`
    <div
      ref=${box}
      class=${`table-box ${fills ? "fills" : ""}`}
      style=${fills ? { minHeight: `${heightMin}px` } : { maxHeight: `${heightMax}px` }}
      tabindex="0"
      role="group"
      aria-label=${label}
      onKeyDown=${move}
      onScroll=${onScroll}
      aria-activedescendant=${0 <= cursor && first <= cursor && cursor < last ? `${id}-${cursor}` : undefined}
    >
      <table aria-label=${label} aria-rowcount=${sorted.length + 1}>
        <thead>
          <tr aria-rowindex="1">
            ${ticks !== undefined && html`<${TickAll} ticks=${ticks} rows=${sorted} keyOf=${keyOf} />`}
            ${columns.map(
              (column) => html`<${Head} key=${column.id} column=${column} sort=${sort} onSort=${onSort} />`,
            )}
          </tr>
        </thead>
        <tbody>
          ${first !== 0 && html`
            <tr class="space" aria-hidden="true" key="before">
              <td colspan=${span} style=${{ height: `${first * rowHeight}px` }}></td>
            </tr>
          `}
          ${shown.map(
            (row, at) => html`
              <tr
                key=${keyOf(row)}
                id=${`${id}-${first + at}`}
                aria-rowindex=${first + at + 2}
                class=${`${first + at === cursor ? "cursor" : ""} ${rowClass ? rowClass(row) : ""}`}
                style=${{ height: `${rowHeight}px` }}
                onClick=${() => setCursor(first + at)}
              >
                ${ticks !== undefined && html`
                  <td key="tick" class="tick">
                    <${Tick}
                      label=${ticks.labelOf(row)}
                      isOn=${ticks.selected.has(String(keyOf(row)))}
                      onTick=${(/** @type {boolean} */ isRange) => tick(first + at, isRange)}
                    />
                  </td>
                `}
                ${columns.map((column) => html`<td key=${column.id} class=${classOf(column)}>${column.cell(row)}</td>`)}
              </tr>
            `,
          )}
          ${last < sorted.length && html`
            <tr class="space" aria-hidden="true" key="after">
              <td colspan=${span} style=${{ height: `${(sorted.length - last) * rowHeight}px` }}></td>
            </tr>
          `}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {{ label: string | null, isOn: boolean, onTick: (isRange: boolean) => void }} properties */
function Tick({ label, isOn, onTick }) {
  // The state is the list's: the box shows what that says, also if it says nothing new.
  return html`
    <input
      type="checkbox"
      aria-label=${label ?? S.notSelectable}
      disabled=${label === null}
      checked=${isOn}
      onClick=${(/** @type {MouseEvent} */ event) => onTick(event.shiftKey)}
    />
  `;
}

/** The box of all rows.
 * @param {{ ticks: Ticks<any>, rows: any[], keyOf: (row: any) => string | number }} properties */
function TickAll({ ticks, rows, keyOf }) {
  const keys = rows.filter((row) => ticks.labelOf(row) !== null).map((row) => String(keyOf(row)));
  const count = keys.filter((key) => ticks.selected.has(key)).length;
  const isAll = count !== 0 && count === keys.length;
  return html`
    <th scope="col" class="tick">
      <input
        type="checkbox"
        aria-label=${isAll ? S.selectNone : S.selectAll}
        disabled=${keys.length === 0}
        checked=${isAll}
        indeterminate=${0 < count && !isAll}
        onClick=${() => ticks.onSelect(new Set(isAll ? [] : keys))}
      />
    </th>
  `;
}

/** @param {{ column: Column<any>, sort: string, onSort: ((sort: string) => void) | undefined }} properties */
function Head({ column, sort, onSort }) {
  const [isUp, isDown] = [sort === column.id, sort === `-${column.id}`];
  const order = isUp ? "ascending" : isDown ? "descending" : undefined;
  // A column of buttons has no head that is seen.
  const label = column.label === "" ? html`<span class="hidden">${S.actions}</span>` : column.label;
  if (column.sort === undefined || onSort === undefined)
    return html`<th scope="col" class=${classOf(column)} style=${{ width: column.width }}>${label}</th>`;
  // Numbers are looked at from the largest on.
  const next = isUp ? `-${column.id}` : isDown ? column.id : column.align === "end" ? `-${column.id}` : column.id;
  return html`
    <th scope="col" class=${classOf(column)} style=${{ width: column.width }} aria-sort=${order}>
      <button type="button" class="sort" title=${S.sortBy(column.label)} onClick=${() => onSort(next)}>
        ${column.label}
        <span class="arrow" aria-hidden="true">${isUp ? "↑" : isDown ? "↓" : ""}</span>
      </button>
    </th>
  `;
}

/** @param {Column<any>} column */
const classOf = ({ align, hide, isWide }) =>
  [align === "end" && "end", hide && `hide-${hide}`, isWide && "wide"].filter(Boolean).join(" ");

const collator = new Intl.Collator(locale, { numeric: true });

/** Compares what columns sort by: numbers as numbers, texts as readers do.
 * @param {string | number} a
 * @param {string | number} b */
export const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));

/** Returns rows in the order of `column` or `-column`.
 * @template R
 * @param {R[]} rows
 * @param {Column<R>[]} columns
 * @param {string} sort */
export function inOrder(rows, columns, sort) {
  const isDown = sort.startsWith("-");
  const of = columns.find(({ id }) => id === sort.replace(/^-/, ""))?.sort;
  if (of === undefined) return rows;
  const keyed = rows.map((row) => ({ row, key: of(row) }));
  keyed.sort((a, b) => (isDown ? compare(b.key, a.key) : compare(a.key, b.key)));
  return keyed.map(({ row }) => row);
}

/** @param {HTMLElement | null} element
 * @param {number} index
 * @param {number} rowHeight */
function reveal(element, index, rowHeight) {
  if (element === null) return;
  const head = element.querySelector("thead")?.clientHeight ?? 0;
  const [from, to] = [index * rowHeight, (index + 1) * rowHeight + head];
  if (from < element.scrollTop) element.scrollTop = from;
  else if (element.scrollTop + element.clientHeight < to) element.scrollTop = to - element.clientHeight;
}
