// What needs attention: the broker says what that is (docs/operating.md#what-needs-attention), and the reader which of
// it to hide.
//
// Marks are kept in the browser for each namespace. An item that was acknowledged is shown again when its number grows,
// or when it has gone and come back; one that is muted is hidden until it is unmuted.

import { computed, effect, signal } from "./html.js";
import { attention } from "./live.js";
import { phase, session } from "./session.js";

/** @typedef {Schemas["AttentionItem"]} Item */
/** `count` is the smallest number since it was acknowledged.
 * @typedef {{ kind: "muted" } | { kind: "acknowledged", count: number, since: string | null }} Mark */
/** @typedef {Record<string, Mark>} Marks by the ids of items */

const PREFIX = "jitney-attention ";
/** Marks of a namespace; the oldest go first. */
const MARKS_MAX = 500;

const key = computed(() => (phase.value === "signed-in" ? `${PREFIX}${session.value?.name ?? ""}` : ""));

/** @type {import("./html.js").Signal<Marks>} */
const marks = signal({});

/** @param {string} place
 * @returns {Marks} */
function read(place) {
  try {
    const kept = JSON.parse(localStorage.getItem(place) ?? "{}");
    const isObject = (/** @type {unknown} */ value) =>
      value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject(kept) ? Object.fromEntries(Object.entries(kept).filter(([, mark]) => isObject(mark))) : {};
  } catch {
    return {};
  }
}

/** @param {Marks} next */
function write(next) {
  const kept = Object.fromEntries(Object.entries(next).slice(-MARKS_MAX));
  marks.value = kept;
  try {
    if (Object.keys(kept).length === 0) localStorage.removeItem(key.peek());
    else localStorage.setItem(key.peek(), JSON.stringify(kept));
  } catch {
    // The browser keeps nothing for this page: marks last as long as it is open.
  }
}

effect(() => {
  marks.value = key.value === "" ? {} : read(key.value);
});

// Another tab of the browser has marked something.
addEventListener("storage", ({ key: changed }) => {
  if (changed === null || changed === key.peek()) marks.value = read(key.peek());
});

/** Returns the marks that still hold, with the smallest numbers.
 * @param {Marks} known
 * @param {Schemas["AttentionNow"]} now
 * @returns {Marks} */
export function held(known, { items, left_out: leftOut }) {
  const present = new Map(items.map((item) => [item.id, item]));
  /** @type {Marks} */
  const next = {};
  for (const [id, mark] of Object.entries(known)) {
    const item = present.get(id);
    if (mark.kind === "muted") next[id] = mark;
    else if (item === undefined) {
      // One that the list has not may hold still.
      if (leftOut !== 0) next[id] = mark;
    } else if ((item.since ?? null) === mark.since && item.count <= mark.count) {
      next[id] = item.count === mark.count ? mark : { ...mark, count: item.count };
    }
  }
  return next;
}

effect(() => {
  const now = attention.value;
  const known = marks.value;
  if (now === null || key.value === "") return;
  const next = held(known, now);
  if (JSON.stringify(next) !== JSON.stringify(known)) write(next);
});

/** @param {Item} item
 * @returns {Mark | undefined} */
export const markOf = ({ id }) => marks.value[id];

/** Hides an item until its number grows, or it comes back.
 * @param {Item} item */
export const acknowledge = ({ id, count, since }) =>
  write({ ...marks.peek(), [id]: { kind: "acknowledged", count, since: since ?? null } });

/** Hides an item until it is unmuted.
 * @param {Item} item */
export const mute = ({ id }) => write({ ...marks.peek(), [id]: { kind: "muted" } });

/** Shows an item again.
 * @param {Item} item */
export function unmark({ id }) {
  const { [id]: _, ...rest } = marks.peek();
  write(rest);
}
