// Which messages a job is about: made of what is typed, counted, and said in words.

import { ApiError, call } from "./api.js";
import { isoOf, timeOf } from "./local-time.js";
import { number } from "./format.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/jobs.js";

/** @typedef {Partial<Schemas["MessageSelection"]>} Selection */
/** @typedef {Schemas["State"]} State */

/** The conditions that are typed, as fields have them; a box that is checked has "true".
 * @typedef {{ session_id: string, reason: string, without_reason: string, description: string,
 *   without_description: string, filter: string, text: string, json_path: string, message_id: string,
 *   correlation_id: string, numbers: string, enqueued_from: string, enqueued_before: string }} Conditions */

export const STATES = /** @type {const} */ (["active", "scheduled", "deferred"]);

/** @type {Conditions} */
export const NO_CONDITIONS = {
  session_id: "",
  reason: "",
  without_reason: "",
  description: "",
  without_description: "",
  filter: "",
  text: "",
  json_path: "",
  message_id: "",
  correlation_id: "",
  numbers: "",
  enqueued_from: "",
  enqueued_before: "",
};

/** Conditions that hold or do not. */
export const FLAGS = /** @type {const} */ (["without_reason", "without_description"]);

/** A job that cannot be sent. */
export class ConditionError extends Error {
  /** @param {string} field the one that is wrong, as `fieldOfError` names it
   * @param {string} message */
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/** The conditions of a selection, as fields have them.
 * @param {Selection} selection
 * @returns {Conditions} */
export function conditionsOf({ states: _, numbers, enqueued_from: from, enqueued_before: before, ...texts }) {
  const local = (/** @type {string | null | undefined} */ iso) =>
    iso == null
      ? ""
      : new Date(Date.parse(iso) - new Date(iso).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  const given = Object.entries(texts)
    .filter(([, value]) => value != null && value !== false)
    .map(([name, value]) => [name, String(value)]);
  return {
    ...NO_CONDITIONS,
    ...Object.fromEntries(given),
    numbers: (numbers ?? []).map(String).join(", "),
    enqueued_from: local(from),
    enqueued_before: local(before),
  };
}

/** Makes a selection; throws a ConditionError.
 * @param {readonly State[]} states
 * @param {Conditions} conditions
 * @returns {Selection} */
export function selectionOf(states, { numbers, enqueued_from: from, enqueued_before: before, ...texts }) {
  /** @type {Selection} */
  const selection = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== ""));
  for (const flag of FLAGS) if (texts[flag] !== "") selection[flag] = true;
  if (states.length !== 0) selection.states = [...states];
  const words = numbers.split(/[\s,;]+/).filter((word) => word !== "");
  const wrong = words.find((word) => !/^\d+$/.test(word));
  if (wrong !== undefined) throw new ConditionError("selection.numbers", S.notNumber(wrong));
  // Numbers of partitioned entities are larger than what a number holds.
  if (words.length !== 0)
    selection.numbers = /** @type {any} */ (
      words.map((word) => (Number.isSafeInteger(Number(word)) ? Number(word) : BigInt(word)))
    );
  for (const [name, value] of /** @type {const} */ ([
    ["enqueued_from", from],
    ["enqueued_before", before],
  ])) {
    const at = timeOf(value);
    if (at !== null) selection[name] = isoOf(at);
  }
  return selection;
}

/** The field of a job that an error is about, as the API names it: `selection.filter`, `action.to`, `limit`.
 * `""` if none is named.
 * @param {unknown} error
 * @returns {string} */
export function fieldOfError(error) {
  if (error instanceof ConditionError) return error.field;
  // Of a list it names the entry.
  return error instanceof ApiError ? error.field.replace(/\[\d+\]$/, "") : "";
}

/** A selection in words, for lists.
 * @param {Selection} selection */
export function inWords(selection) {
  const { states, numbers, ...others } = selection;
  const words = [];
  if (states?.length) words.push(states.map((state) => C.states[state]).join(", "));
  if (numbers?.length)
    words.push(
      S.words.numbers(numbers.length === 1 ? String(numbers[0]) : number(numbers.length), numbers.length === 1),
    );
  for (const [name, value] of Object.entries(others)) {
    if (value == null || value === false) continue;
    const field = S.fields[/** @type {keyof typeof S.fields} */ (name)] ?? name;
    words.push(value === true ? field : `${field}: ${value}`);
  }
  return words.length === 0 ? S.words.all : words.join("; ");
}

/** How many messages would be changed. Those that a receiver has locked would stay as they are, and those for which the
 * conditions take too long. `isWhole` if all were looked at; else `next` is where to count on.
 * @typedef {{ count: number, locked: number, undecided: number, isWhole: boolean, next?: number }} Counted */

/** Whether counts of the entity tell how many there are.
 * @param {Selection} selection */
export const isByState = (selection) => Object.keys(selection).every((name) => name === "states");

/** Counts messages of states.
 * @param {Schemas["EntityNow"] | undefined} entity
 * @param {boolean} isDead
 * @param {readonly State[]} states
 * @returns {Counted} */
export function countOfStates(entity, isDead, states) {
  const counted = (/** @type {number} */ count, locked = 0) => ({
    count: Math.max(0, count - locked),
    locked,
    undecided: 0,
    isWhole: true,
  });
  if (entity === undefined) return counted(0);
  // Dead letters are active ones, but for the few that were deferred.
  if (isDead) return counted(states.length === 0 || states.includes("active") ? entity.dead_letters : 0);
  const wanted = states.length === 0 ? STATES : states;
  return counted(
    wanted.reduce((sum, state) => sum + entity[state], 0),
    wanted.includes("active") ? entity.locked : 0,
  );
}

/** Requests of one count: each looks at a bounded number of messages. */
const REQUESTS_MAX = 20;

/** Counts the messages of a selection, as many as a few requests find.
 * @param {string} address
 * @param {Selection} selection
 * @param {Counted | undefined} before what was counted, to count on
 * @param {AbortSignal} signal
 * @returns {Promise<Counted>} */
export async function countOf(address, selection, before, signal) {
  let { count, locked, undecided } = before ?? { count: 0, locked: 0, undecided: 0 };
  let next = before?.next ?? 0;
  for (let requests = 0; requests < REQUESTS_MAX; requests += 1) {
    const found = await call("count_selection", { body: { entity: address, selection, from: next }, signal });
    count += found.messages - found.locked;
    locked += found.locked;
    undecided += found.undecided ?? 0;
    if (found.next == null) return { count, locked, undecided, isWhole: true };
    next = found.next;
  }
  return { count, locked, undecided, isWhole: false, next };
}
