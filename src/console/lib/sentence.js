// What is done to which messages, as a sentence that begins with the verb and the number.

import { isDeadLetters } from "./paths.js";
import { visible } from "./visible.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/jobs.js";

/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {{ one: string, many: string }} Noun */

/** Texts of others are cut behind so many characters: the whole is below the title. */
const LENGTH_MAX = 80;

/** @param {string} text */
function short(text) {
  const shown = visible(text.slice(0, LENGTH_MAX));
  return text.length <= LENGTH_MAX ? shown : `${shown}…`;
}

/** What messages are called.
 * @param {string} address
 * @param {Selection} selection
 * @returns {Noun} */
export function nounOf(address, { states }) {
  if (isDeadLetters(address)) return S.nouns.dead;
  const only = states?.length === 1 ? states[0] : undefined;
  return only === undefined
    ? S.nouns.message
    : { one: `${C.states[only]} ${S.nouns.message.one}`, many: `${C.states[only]} ${S.nouns.message.many}` };
}

/** The only number of a selection that has nothing else.
 * @param {Selection} selection */
const onlyNumber = ({ states: _, numbers, ...others }) =>
  numbers?.length === 1 && Object.keys(others).length === 0 ? String(numbers[0]) : undefined;

/** Where the messages are, and what is alike in them: `session cart-018 of orders`.
 * @param {string} path
 * @param {Selection} selection */
function whereOf(path, { states: _, numbers, ...conditions }) {
  const {
    session_id: session,
    reason,
    without_reason: isWithout,
    description,
    without_description: isBare,
    ...others
  } = conditions;
  const place = session == null ? visible(path) : S.inSession(short(session), visible(path));
  const ofReason = reason != null ? S.withReason(short(reason)) : isWithout ? S.withoutReason : "";
  const ofDescription =
    description != null
      ? ofReason
        ? S.andDescription
        : S.withDescription
      : isBare
        ? ofReason
          ? S.andNoDescription
          : S.withoutDescription
        : "";
  const isMore = Object.values(others).some(Boolean);
  return [place, ofReason, ofDescription, isMore ? S.thatMatch : ""].filter(Boolean).join(" ");
}

/** The title of what is to be done. `count` is null while it is not known.
 * @param {import("../components/verb-dialog.js").Kind} kind
 * @param {Noun} noun
 * @param {string | null} count
 * @param {boolean} isOne
 * @param {string} path
 * @param {Selection} selection
 * @param {boolean} isAll */
export function titleOf(kind, noun, count, isOne, path, selection, isAll) {
  const only = onlyNumber(selection);
  const what =
    only !== undefined
      ? `${noun.one} ${only}`
      : count === null
        ? noun.many
        : isAll && !isOne
          ? S.allOf(count, noun.many)
          : `${count} ${isOne ? noun.one : noun.many}`;
  return S.titles[kind](`${what} ${S.ofPlace(whereOf(path, selection))}`);
}

/** What was done, as the beginning of a sentence: `6 messages of session cart-018 of orders`.
 * @param {string} address
 * @param {string} path
 * @param {Selection} selection
 * @param {string} count
 * @param {boolean} isOne */
export function subjectOf(address, path, selection, count, isOne) {
  const noun = nounOf(address, selection);
  const only = isOne ? onlyNumber(selection) : undefined;
  const what =
    only === undefined
      ? `${count} ${isOne ? noun.one : noun.many}`
      : `${noun.one.replace(/^./, (first) => first.toUpperCase())} ${only}`;
  return `${what} ${S.ofPlace(whereOf(path, selection))}`;
}
