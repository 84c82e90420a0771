// Entities as rows: topics with their subscriptions below them.

import { lastName, topicOf } from "./format.js";
import { rateOf } from "./live.js";
import { unseenOf } from "./seen.js";
import { freshOf } from "./trends.js";
import { compare } from "../components/table.js";

/** A row. A topic's counts have those of its subscriptions in them: a topic keeps nothing but scheduled messages
 * itself. `fresh` and `unseen` are dead letters that have come within the last hour, and since the reader has looked.
 * @typedef {{ path: string, name: string, kind: Schemas["Kind"], depth: number, children: number, isOpen: boolean,
 *   active: number, locked: number, scheduled: number, deferred: number, dead: number, fresh: number, unseen: number,
 *   incoming: number, outgoing: number, size: number, receivers: number, forwardTo?: string }} Row */

/** What rows are sorted by. @type {Record<string, (row: Row) => string | number>} */
export const KEYS = {
  name: (row) => row.name,
  kind: (row) => row.kind,
  active: (row) => row.active,
  locked: (row) => row.locked,
  scheduled: (row) => row.scheduled,
  deferred: (row) => row.deferred,
  dead: (row) => row.dead,
  in: (row) => row.incoming,
  out: (row) => row.outgoing,
  size: (row) => row.size,
  receivers: (row) => row.receivers,
};

/** @param {Schemas["EntityNow"]} entity
 * @returns {Row} */
function rowOf({
  path,
  kind,
  active,
  locked,
  scheduled,
  deferred,
  dead_letters: dead,
  size_bytes: size,
  receivers,
  forward_to: forwardTo,
}) {
  return {
    path,
    kind,
    name: kind === "subscription" ? lastName(path) : path,
    depth: kind === "subscription" ? 1 : 0,
    children: 0,
    isOpen: false,
    active,
    locked,
    scheduled,
    deferred,
    dead,
    size,
    receivers,
    forwardTo: forwardTo ?? undefined,
    fresh: freshOf(path, dead),
    unseen: unseenOf(path, dead),
    incoming: rateOf(path, "incoming"),
    outgoing: rateOf(path, "completed"),
  };
}

/** Counts of a topic that those of its subscriptions are added to. */
const SUMMED = /** @type {const} */ ([
  "active",
  "locked",
  "scheduled",
  "deferred",
  "dead",
  "fresh",
  "unseen",
  "size",
  "receivers",
  "outgoing",
]);

/** The counts of an entity as every page shows them: those of a topic with those of its subscriptions.
 * @param {Schemas["EntityNow"]} entity
 * @param {Iterable<Schemas["EntityNow"]>} entities
 * @returns {Row} */
export function wholeOf(entity, entities) {
  const whole = rowOf(entity);
  if (entity.kind !== "topic") return whole;
  for (const other of entities) {
    if (other.kind !== "subscription" || topicOf(other.path) !== entity.path) continue;
    const row = rowOf(other);
    whole.children += 1;
    for (const name of SUMMED) whole[name] += row[name];
  }
  return whole;
}

/** Makes the rows of a tree: what matches, and the topics of what matches.
 * @param {Iterable<Schemas["EntityNow"]>} entities
 * @param {{ filter: string, kind: string, sort: string, closed: Set<string> }} options
 * @returns {Row[]} */
export function treeOf(entities, { filter, kind, sort, closed }) {
  const wanted = filter.toLowerCase();
  /** @type {Map<string, { row: Row, children: Row[], isWanted: boolean }>} */
  const roots = new Map();
  const subscriptions = [];
  for (const entity of entities) {
    if (entity.kind === "subscription") {
      if (kind !== "queue") subscriptions.push(rowOf(entity));
    } else if (kind === "" || kind === entity.kind) {
      roots.set(entity.path, {
        row: rowOf(entity),
        children: [],
        isWanted: entity.path.toLowerCase().includes(wanted),
      });
    }
  }
  for (const row of subscriptions) {
    const root = roots.get(topicOf(row.path) ?? "");
    if (root === undefined) continue;
    root.row.children += 1;
    for (const name of SUMMED) root.row[name] += row[name];
    if (root.isWanted || row.name.toLowerCase().includes(wanted)) root.children.push(row);
  }
  const key = KEYS[sort.replace(/^-/, "")] ?? KEYS.name;
  const sign = sort.startsWith("-") ? -1 : 1;
  const order = (/** @type {Row} */ a, /** @type {Row} */ b) =>
    sign * compare(key(a), key(b)) || compare(a.name, b.name);
  const shown = [...roots.values()].filter(({ isWanted, children }) => isWanted || children.length !== 0);
  shown.sort((a, b) => order(a.row, b.row));
  return shown.flatMap(({ row, children }) => {
    row.isOpen = !closed.has(row.path);
    return row.isOpen ? [row, ...children.sort(order)] : [row];
  });
}
