// What can be done to the messages that are ticked in a list.

import { download } from "../lib/bytes.js";
import { number, size } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { FILE_MAX, linesOf } from "../lib/message-file.js";
import { isDeadLetters } from "../lib/paths.js";
import { can } from "../lib/session.js";
import { toast } from "./toast.js";
import { openVerb } from "./verb-dialog.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/message-list.js";

/** Messages that one job may name by number. */
const NUMBERS_MAX = 1_000;

/** `every` is set if all that the list's query finds are meant, also those that are not loaded. `numbers` are in their
 * order.
 * @param {{ address: string, query: Record<string, any>, numbers: (number | bigint)[], every: boolean,
 *   canHaveEvery: boolean, isSearch: boolean, onEvery: () => void, onClear: () => void, onDone: () =>
 *   void }} properties */
export function MessageBar({ address, query, numbers, every, canHaveEvery, isSearch, onEvery, onClear, onDone }) {
  const [isBusy, setBusy] = useState(false);
  const isDead = isDeadLetters(address);
  const { body: _, state: states, ...conditions } = query;
  const selection = every
    ? { ...conditions, ...(states ? { states } : {}) }
    : { numbers: /** @type {number[]} */ (numbers) };
  const open = (/** @type {import("./verb-dialog.js").Kind} */ kind) => () =>
    openVerb({ entity: address, kind, selection, onDone });
  const isTooMany = !every && NUMBERS_MAX < numbers.length;
  const save = async () => {
    setBusy(true);
    try {
      const { text, count, isWhole } = await linesOf(address, query, every ? null : numbers);
      download(`${address}.jsonl`, text);
      toast(isWhole ? S.downloaded(number(count)) : S.downloadedPart(number(count), size(FILE_MAX)));
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), { tone: "alarm" });
    }
    setBusy(false);
  };
  const button = (/** @type {string} */ label, /** @type {import("./verb-dialog.js").Kind} */ kind) => html`
    <button type="button" disabled=${isTooMany} onClick=${open(kind)}>${label}</button>
  `;
  return html`
    <div class="tools message-bar" role="group" aria-label=${S.bar}>
      <b class="number" role="status">
        ${every ? (isSearch ? S.everyMatch : S.every) : S.selected(number(numbers.length))}
      </b>
      ${can("manage") && html`
        ${isDead && button(S.resend, "redrive")}
        ${button(S.move, "move")}
        ${!isDead && button(S.deadLetter, "dead_letter")}
        ${button(S.remove, "delete")}
      `}
      <button type="button" disabled=${isBusy} onClick=${save}>${S.download}</button>
      ${canHaveEvery && !every && html`
        <button type="button" class="quiet" onClick=${onEvery}>${isSearch ? S.selectMatch : S.selectEvery}</button>
      `}
      <button type="button" class="quiet" onClick=${onClear}>${C.clear}</button>
      ${isTooMany && html`<span class="muted">${S.tooMany(number(NUMBERS_MAX))}</span>`}
    </div>
  `;
}
