// The links that stand out, those that need a person first.

import { second } from "../../lib/clock.js";
import { computed } from "../../lib/html.js";
import { troubleOf } from "../../lib/links.js";
import { connections } from "../../lib/live.js";

/** @typedef {{ connection: Schemas["Connection"], link: Schemas["Link"], trouble: import("../../lib/links.js").Trouble }} Troubled */

/** @type {import("../../lib/html.js").Signal<Troubled[]>} */
export const troubles = /** @type {any} */ (computed(() => {
  second.value;
  const found = [];
  for (const connection of connections.value.values()) {
    for (const link of connection.links) {
      const trouble = troubleOf(link);
      if (trouble !== null) found.push({ connection, link, trouble });
    }
  }
  return found.sort((a, b) => Number(b.trouble.isAlarm) - Number(a.trouble.isAlarm) || (b.link.locked ?? 0) - (a.link.locked ?? 0));
}));
