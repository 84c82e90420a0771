// What is done to messages: each is a job of the broker, so it survives a crash, and neither loses nor doubles a
// message.

import { call } from "./api.js";
import { number } from "./format.js";
import { deadLettersOf } from "./paths.js";
import { S } from "../strings/jobs.js";

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
  const job = await call("start_job", {
    query: { wait: WAIT_SECONDS },
    body: { entity, selection: { numbers }, action },
  });
  if (job.changed === 1) return job;
  throw new Error(job.error ?? job.last_skipped ?? "The message is no longer there, or a receiver has locked it.");
}

/** Messages that a selection may name by number. */
const NUMBERS_MAX = 1_000;
/** Requests that look for their numbers. */
const REQUESTS_MAX = 20;

/** Returns the numbers of a selection's messages, so that what is done to them can be undone; null if they are too
 * many.
 * @param {string} entity
 * @param {Partial<Schemas["MessageSelection"]>} selection
 * @returns {Promise<number[] | null>} */
export async function numbersOf(entity, selection) {
  if (selection.numbers !== undefined) return selection.numbers;
  const { states, numbers: _, ...conditions } = selection;
  const query = {
    .../** @type {Record<string, string>} */ (conditions),
    state: states,
    body: /** @type {const} */ ("none"),
    limit: 100,
  };
  /** @type {number[]} */
  const found = [];
  /** @type {number | null | undefined} */
  let next = 0;
  for (let requests = 0; requests < REQUESTS_MAX && found.length <= NUMBERS_MAX; requests += 1) {
    /** @type {Schemas["Messages"]} */
    const page = await call("list_messages", { path: { entity }, query: { ...query, from: next } });
    found.push(...page.messages.filter(({ lock }) => lock == null).map((message) => message.sequence_number));
    next = page.next;
    if (next == null) return found.length <= NUMBERS_MAX ? found : null;
  }
  return null;
}

/** How a job is undone; undefined if it cannot be. Dead letters keep their numbers: those that it made go back.
 * @param {Schemas["Job"]} job
 * @param {number[] | null} numbers of the messages that it was about
 * @returns {import("../components/toast.js").Undo | undefined} */
export function undoOf({ state, changed, entity, action }, numbers) {
  if (state !== "completed" || changed === 0 || action.kind !== "dead_letter" || !numbers?.length) return undefined;
  return async () => {
    const back = await call("start_job", {
      query: { wait: WAIT_SECONDS },
      body: { entity: deadLettersOf(entity), selection: { numbers }, action: { kind: "move" } },
    });
    if (back.changed === 0) throw new Error(back.error ?? back.last_skipped ?? S.undoneNot);
    return S.undone(number(back.changed), back.changed === 1, entity);
  };
}
