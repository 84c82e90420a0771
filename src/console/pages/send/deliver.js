// Messages are sent in batches, each of them whole or not at all.

import { call } from "../../lib/api.js";
import { writeJson } from "../../lib/json.js";

/** Messages, and characters, of one request. */
const [MESSAGES_MAX, CHARACTERS_MAX] = [1_000, 1_000_000];

/** @typedef {{ count: number, dropped: number, first: number | bigint | null, last: number | bigint |
 *   null }} Delivered */

/** Sends messages, and tells after each batch how many were. Returns what was sent, and why there are no more of them.
 * @param {string} entity
 * @param {Iterable<import("./draft.js").NewMessage>} messages
 * @param {(delivered: Delivered) => void} onBatch
 * @param {AbortSignal} signal
 * @returns {Promise<Delivered & { error: Error | null }>} */
export async function deliver(entity, messages, onBatch, signal) {
  /** @type {Delivered} */
  let delivered = { count: 0, dropped: 0, first: null, last: null };
  try {
    for (const batch of batchesOf(messages)) {
      if (signal.aborted) break;
      const { sequence_numbers: numbers } = await call("send_messages", {
        path: { entity },
        body: { messages: batch },
      });
      const taken = numbers.filter((number) => Number(number) !== 0);
      delivered = {
        count: delivered.count + batch.length,
        dropped: delivered.dropped + numbers.length - taken.length,
        first: delivered.first ?? taken[0] ?? null,
        last: taken.at(-1) ?? delivered.last,
      };
      onBatch(delivered);
    }
    return { ...delivered, error: null };
  } catch (error) {
    return { ...delivered, error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/** @template M
 * @param {Iterable<M>} messages */
function* batchesOf(messages) {
  let [batch, characters] = [/** @type {M[]} */ ([]), 0];
  for (const message of messages) {
    const length = writeJson(message).length;
    if (batch.length === MESSAGES_MAX || (batch.length !== 0 && CHARACTERS_MAX < characters + length)) {
      yield batch;
      [batch, characters] = [[], 0];
    }
    batch.push(message);
    characters += length;
  }
  if (batch.length !== 0) yield batch;
}
