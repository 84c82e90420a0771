// The receivers that are stuck, as the broker says: those that hold most first.

import { second } from "../../lib/clock.js";
import { computed } from "../../lib/html.js";
import { whyStuck } from "../../lib/links.js";
import { connections } from "../../lib/live.js";

/** @typedef {{ connection: Schemas["Connection"], link: Schemas["Link"], why: string }} StuckLink */

/** @type {import("../../lib/html.js").Signal<StuckLink[]>} */
export const stuckLinks = /** @type {any} */ (
  computed(() => {
    second.value;
    const found = [];
    for (const connection of connections.value.values()) {
      for (const link of connection.links) {
        const why = whyStuck(link);
        if (why !== null) found.push({ connection, link, why });
      }
    }
    return found.sort((a, b) => (b.link.locked ?? 0) - (a.link.locked ?? 0));
  })
);
