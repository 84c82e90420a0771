// Messages as lines of JSON, as `jitney export messages` writes them and `jitney import messages` reads them.

import { call } from "./api.js";
import { writeJson } from "./json.js";

/** Bytes of a file: it is made in the memory of the tab. */
export const FILE_MAX = 64 * 1024 * 1024;

/** Reads messages of a list with all that is needed to make them again. Without `numbers` all that the query finds.
 * @param {string} address
 * @param {Record<string, unknown>} query of the list
 * @param {(number | bigint)[] | null} numbers in their order
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ text: string, count: number, isWhole: boolean }>} */
export async function linesOf(address, query, numbers, signal) {
  const wanted = numbers === null ? null : new Set(numbers.map(String));
  /** @type {string[]} */
  const lines = [];
  let bytes = 0;
  /** @type {any} */
  let next = numbers === null ? 0 : numbers[0];
  while (next != null && (wanted === null || lines.length < wanted.size)) {
    /** @type {Schemas["Messages"]} */
    const page = await call("list_messages", {
      path: { entity: address },
      query: { ...query, body: "none", encoded: true, from: next, limit: 100 },
      signal,
    });
    for (const message of page.messages) {
      if (wanted !== null && !wanted.has(String(message.sequence_number))) continue;
      const line = `${writeJson(message)}\n`;
      if (FILE_MAX < bytes + line.length) return { text: lines.join(""), count: lines.length, isWhole: false };
      bytes += line.length;
      lines.push(line);
    }
    next = page.next;
  }
  return { text: lines.join(""), count: lines.length, isWhole: true };
}
