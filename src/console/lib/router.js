// Addresses of pages: `/#/entity/orders?tab=rules`. A page's state that is worth sharing is in its query.

import { signal } from "./html.js";

/** @typedef {{ path: string, query: Record<string, string> }} Route */

/** @returns {Route} */
function read() {
  const hash = location.hash.replace(/^#/, "") || "/";
  const [path, query] = hash.split(/\?(.*)/s);
  return { path, query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

/** @type {import("./html.js").Signal<Route>} */
export const route = signal(read());
addEventListener("hashchange", () => {
  route.value = read();
});

/** Makes the address of a page. Segments are encoded: `href(["entity", path], { tab: "rules" })`.
 * @param {(string | number | bigint)[]} segments
 * @param {Record<string, string | number | undefined>} [query] */
export function href(segments, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const pairs = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  const path = segments.map((segment) => encodeURIComponent(String(segment))).join("/");
  return `#/${path}${pairs.size === 0 ? "" : `?${pairs}`}`;
}

/** Goes to a page.
 * @param {string} address of `href` */
export function go(address) {
  location.hash = address;
}

/** Changes the query of the page. Empty values are removed. The reader's way back is not lengthened.
 * @param {Record<string, string | undefined>} changes */
export function setQuery(changes) {
  const { path, query } = route.peek();
  const next = Object.fromEntries(
    Object.entries({ ...query, ...changes }).filter(([, value]) => value !== undefined && value !== ""),
  );
  const pairs = new URLSearchParams(/** @type {Record<string, string>} */ (next));
  history.replaceState(history.state, "", `#${path}${pairs.size === 0 ? "" : `?${pairs}`}`);
  route.value = read();
}

/** Compares a path with a pattern, `/entity/:path`; returns the parameters, or null.
 * @param {string} pattern
 * @param {string} path
 * @returns {Record<string, string> | null} */
export function match(pattern, path) {
  const [expected, found] = [pattern.split("/"), path.split("/")];
  if (expected.length !== found.length) return null;
  /** @type {Record<string, string>} */
  const parameters = {};
  for (const [at, word] of expected.entries()) {
    if (!word.startsWith(":")) {
      if (word !== found[at]) return null;
      continue;
    }
    try {
      parameters[word.slice(1)] = decodeURIComponent(found[at]);
    } catch {
      return null;
    }
  }
  return parameters;
}
