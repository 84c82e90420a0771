// Messages that a reader keeps to send them again: in the browser, until they are deleted, whoever is signed in; and as
// files.

import { signal } from "./html.js";

const STORED = "jitney-canned";
const COUNT_MAX = 200;
const CHARACTERS_MAX = 1024 * 1024;

/** `draft` is of the page that sends messages.
 * @typedef {{ name: string, entity: string, draft: import("../pages/send/draft.js").Draft }} Canned */

/** The messages, by name. @type {import("./html.js").Signal<Canned[]>} */
export const canned = signal(read());

// Another tab may keep some.
addEventListener("storage", ({ key }) => {
  if (key === STORED || key === null) canned.value = read();
});

/** @returns {Canned[]} */
function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(kept)
      ? kept.filter(
          (each) => typeof each?.name === "string" && typeof each.entity === "string" && typeof each.draft === "object",
        )
      : [];
  } catch {
    return [];
  }
}

/** Keeps messages; those of the same names are replaced. Returns whether the browser takes them.
 * @param {Canned[]} some */
export function keepCanned(some) {
  const names = new Set(some.map(({ name }) => name));
  return write([...canned.peek().filter(({ name }) => !names.has(name)), ...some]);
}

/** @param {string} name */
export const deleteCanned = (name) => write(canned.peek().filter((each) => each.name !== name));

/** @param {Canned[]} all */
function write(all) {
  const sorted = all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const text = JSON.stringify(sorted);
  if (COUNT_MAX < sorted.length || CHARACTERS_MAX < text.length) return false;
  try {
    localStorage.setItem(STORED, text);
  } catch {
    return false;
  }
  canned.value = sorted;
  return true;
}
