// How many dead letters of each entity the reader has seen on the page of the entity: the browser keeps it for each
// namespace.

import { effect, signal } from "./html.js";
import { entities, isKnown } from "./live.js";
import { session } from "./session.js";

/** Entities of a namespace that are kept; those that were looked at last stay. */
const KEPT_MAX = 1_000;

/** By the paths of entities, the one that was looked at last at the end. @type {import("./html.js").Signal<Map<string,
 * number>>} */
const seen = signal(new Map());

/** @returns {string | null} */
const placeOf = () =>
  session.peek() === null || session.peek()?.name === "" ? null : `jitney-seen-dead-letters ${session.peek()?.name}`;

function load() {
  const place = placeOf();
  try {
    const kept = JSON.parse((place !== null && localStorage.getItem(place)) || "[]");
    const isPair = (/** @type {unknown} */ each) =>
      Array.isArray(each) && typeof each[0] === "string" && Number.isInteger(each[1]);
    seen.value = new Map(Array.isArray(kept) ? kept.filter(isPair) : []);
  } catch {
    // The browser keeps nothing, or something else.
    seen.value = new Map();
  }
}

/** @param {Map<string, number>} next */
function keep(next) {
  seen.value = next;
  const place = placeOf();
  try {
    if (place !== null) localStorage.setItem(place, JSON.stringify([...next].slice(-KEPT_MAX)));
  } catch {
    // It is kept until the page is loaded again.
  }
}

effect(() => {
  session.value?.id;
  load();
});

// Another tab has looked.
addEventListener("storage", ({ key }) => {
  if (key === placeOf()) load();
});

// Of dead letters that are gone, none is missed when others come.
effect(() => {
  const now = entities.value;
  if (!isKnown.value) return;
  const less = [...seen.peek()].filter(([path, count]) => (now.get(path)?.dead_letters ?? 0) < count);
  if (less.length === 0) return;
  const next = new Map(seen.peek());
  for (const [path] of less) {
    const entity = now.get(path);
    if (entity === undefined) next.delete(path);
    else next.set(path, entity.dead_letters);
  }
  keep(next);
});

/** The reader sees so many dead letters of an entity.
 * @param {string} path
 * @param {number} dead */
export function see(path, dead) {
  if (document.hidden || seen.peek().get(path) === dead) return;
  const next = new Map(seen.peek());
  next.delete(path);
  next.set(path, dead);
  keep(next);
}

/** How many dead letters have come since the reader has looked; none if that never was.
 * @param {string} path
 * @param {number} dead how many there are now */
export const unseenOf = (path, dead) => Math.max(0, dead - (seen.value.get(path) ?? dead));
