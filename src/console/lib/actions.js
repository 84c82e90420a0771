// What is done to messages: each is a job of the broker, so it survives a crash, and neither loses nor doubles a message.

import { call } from "./api.js";

/** Seconds for which a job of one message is waited for. */
const WAIT_SECONDS = 10;

/** Starts a job of many messages. Its page shows how far it is.
 * @param {string} entity a queue, or dead letters
 * @param {Partial<Schemas["MessageSelection"]>} selection
 * @param {Loose<Schemas["Action"]>} action */
export const startJob = (entity, selection, action) => call("start_job", { body: { entity, selection, action } });

/** Does something to one message, and waits until it is done; throws why not.
 * @param {string} entity
 * @param {number | bigint} number
 * @param {Loose<Schemas["Action"]>} action */
export async function actOn(entity, number, action) {
  const numbers = /** @type {number[]} */ ([number]);
  const job = await call("start_job", { query: { wait: WAIT_SECONDS }, body: { entity, selection: { numbers }, action } });
  if (job.changed === 1) return job;
  throw new Error(job.error ?? job.last_skipped ?? `Job ${job.id} has changed nothing: the message is not there any more, or a receiver has locked it.`);
}
