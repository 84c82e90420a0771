// The pages: addresses, and where their code is. A page is loaded when it is first shown, or when there is nothing else
// to do.

import { match } from "../lib/router.js";
import { can, session } from "../lib/session.js";

/** What a page's component gets: the parameters of its address, and its query.
 * @typedef {{ parameters: Record<string, string>, query: Record<string, string> }} PageProperties */
/** `nav` is the entry of the navigation that is marked. `style` is its file in styles/.
 * @typedef {{ pattern: string, nav: NavName, style?: string, load: () => Promise<{
 *   default: (properties: PageProperties) => any }> }} Page */
/** @typedef {"overview" | "entities" | "messages" | "sessions" | "connections" | "schedule" | "deferred" | "jobs" |
 *   "send" | "rule-test" | "servers" | "audit" | "settings"} NavName */

/** @type {Page[]} */
export const PAGES = [
  { pattern: "/", nav: "overview", style: "overview", load: () => import("./overview.js") },
  { pattern: "/entities", nav: "entities", style: "entities", load: () => import("./entities.js") },
  { pattern: "/entity/:path", nav: "entities", style: "entity", load: () => import("./entity.js") },
  { pattern: "/entity/:path/edit", nav: "entities", style: "new-entity", load: () => import("./new-entity.js") },
  { pattern: "/new-entity", nav: "entities", style: "new-entity", load: () => import("./new-entity.js") },
  { pattern: "/entity/:path/message/:number", nav: "entities", style: "message", load: () => import("./message.js") },
  { pattern: "/messages", nav: "messages", style: "messages", load: () => import("./messages.js") },
  { pattern: "/sessions", nav: "sessions", style: "sessions", load: () => import("./sessions.js") },
  { pattern: "/sessions/:path", nav: "sessions", style: "sessions", load: () => import("./sessions.js") },
  { pattern: "/sessions/:path/:id", nav: "sessions", style: "sessions", load: () => import("./sessions.js") },
  { pattern: "/connections", nav: "connections", style: "connections", load: () => import("./connections.js") },
  { pattern: "/connections/:id", nav: "connections", style: "connections", load: () => import("./connections.js") },
  { pattern: "/schedule", nav: "schedule", style: "schedule", load: () => import("./schedule.js") },
  { pattern: "/deferred", nav: "deferred", style: "deferred", load: () => import("./deferred.js") },
  { pattern: "/jobs", nav: "jobs", style: "jobs", load: () => import("./jobs.js") },
  { pattern: "/jobs/:id", nav: "jobs", style: "jobs", load: () => import("./jobs.js") },
  { pattern: "/send", nav: "send", style: "send", load: () => import("./send.js") },
  { pattern: "/rule-test", nav: "rule-test", style: "rule-test", load: () => import("./rule-test.js") },
  { pattern: "/servers", nav: "servers", style: "servers", load: () => import("./servers.js") },
  { pattern: "/audit", nav: "audit", style: "audit", load: () => import("./audit.js") },
  { pattern: "/settings", nav: "settings", style: "settings", load: () => import("./settings.js") },
];

/** The entries of the navigation, in groups.
 * @type {NavName[][]} */
const ENTRIES = [
  ["overview", "entities", "messages", "sessions"],
  ["connections", "schedule", "deferred", "jobs"],
  ["send", "rule-test"],
  ["servers", "audit", "settings"],
];

/** Returns the entries of the navigation for who is signed in, in groups: the operator of servers that share namespaces
 * sees them.
 * @returns {NavName[][]} */
export function navigation() {
  const { isOperator = false, hasFleet = false } = session.value ?? {};
  if (session.value !== null && !can("listen")) return [["send"]];
  return ENTRIES.map((group) => group.filter((name) => name !== "servers" || (isOperator && hasFleet)));
}

/** Finds the page of a path.
 * @param {string} path
 * @returns {{ page: Page, parameters: Record<string, string> } | null} */
export function pageAt(path) {
  for (const page of PAGES) {
    const parameters = match(page.pattern, path);
    if (parameters !== null) return { page, parameters };
  }
  return null;
}

/** Loads a page's code and style.
 * @param {Page} page */
export async function loadPage({ load, style }) {
  const [module] = await Promise.all([load(), style === undefined ? undefined : loadStyle(style)]);
  return module.default;
}

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/** @param {string} name
 * @returns {Promise<void>} */
function loadStyle(name) {
  let loaded = styles.get(name);
  if (loaded === undefined) {
    loaded = new Promise((done) => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.href = new URL(`../styles/${name}.css`, import.meta.url).href;
      link.onload = () => done();
      // A page without its style can be read.
      link.onerror = () => done();
      document.head.append(link);
    });
    styles.set(name, loaded);
  }
  return loaded;
}
