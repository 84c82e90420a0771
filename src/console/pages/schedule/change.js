// A scheduled message gets another time, is sent now, or is cancelled.

import { actOn } from "../../lib/actions.js";
import { now } from "../../lib/clock.js";
import { digits, local, utc } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { fieldOf, isoOf, timeOf } from "../../lib/local-time.js";
import { visible } from "../../lib/visible.js";
import { Dialog, confirm, openDialog } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/schedule.js";

/** A scheduled message, and where it waits.
 * @typedef {{ entity: string, sequence_number: number, scheduled_for?: string | null }} Scheduled */

/** Opens the dialog in which a message gets another time.
 * @param {Scheduled} message
 * @param {() => void} onDone */
export const openChange = (message, onDone) =>
  openDialog((close) => html`<${Change} message=${message} close=${close} onDone=${onDone} />`);

/** @param {Scheduled} message
 * @param {() => void} onDone */
export function sendNow({ entity, sequence_number: number }, onDone) {
  // Rows move up when others become active: the question names the message.
  confirm({
    title: S.sendTitle(digits(number), visible(entity)),
    text: S.sendText,
    action: S.sendNow,
    isAlarm: false,
    run: async () => {
      await actOn(entity, number, { kind: "activate" });
      toast(S.sent(digits(number)));
      onDone();
    },
  });
}

/** @param {Scheduled} message
 * @param {() => void} onDone */
export function cancel({ entity, sequence_number: number }, onDone) {
  confirm({
    title: S.cancelTitle(digits(number)),
    text: S.cancelText(visible(entity)),
    action: S.cancelAction,
    run: async () => {
      await actOn(entity, number, { kind: "delete" });
      toast(S.cancelled(digits(number)));
      onDone();
    },
  });
}

/** How a message gets the time that it had; undefined if that has passed.
 * @param {Scheduled} message
 * @param {() => void} onDone
 * @returns {import("../../components/toast.js").Undo | undefined} */
function undoOf({ entity, sequence_number: number, scheduled_for: before }, onDone) {
  if (before == null || Date.parse(before) <= now()) return undefined;
  return async () => {
    await actOn(entity, number, { kind: "reschedule", scheduled_for: before });
    onDone();
    return S.changed(digits(number), local(before));
  };
}

/** @param {{ message: Scheduled, close: () => void, onDone: () => void }} properties */
function Change({ message, close, onDone }) {
  const { entity, sequence_number: number } = message;
  const [value, setValue] = useState(() => fieldOf(Date.parse(message.scheduled_for ?? "") || Date.now()));
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const at = timeOf(value);
  const change = (/** @type {string} */ next) => {
    setValue(next);
    setError("");
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (at === null) {
      setError(S.timeNeeded);
      return;
    }
    setBusy(true);
    try {
      await actOn(entity, number, { kind: "reschedule", scheduled_for: isoOf(at) });
      toast(S.changed(digits(number), local(at)), { undo: undoOf(message, onDone) });
      close();
      onDone();
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title=${S.changeTitle(digits(number))}>
      <form onSubmit=${submit} noValidate>
        <p class="dialog-text"><${Text} value=${entity} max=${200} /></p>
        <${Field} label=${S.newTime} hint=${at === null ? "" : S.newTimeHint(utc(isoOf(at)))} error=${error}>
          <input
            type="datetime-local"
            step="1"
            value=${value}
            autofocus
            onInput=${(/** @type {any} */ event) => change(event.target.value)}
          />
        <//>
        <div class="tools" role="group" aria-label=${S.shift}>
          ${S.shifts.map(
            ([label, by]) => html`
              <button
                key=${label}
                type="button"
                disabled=${at === null}
                onClick=${() => change(fieldOf(Number(at) + by))}
              >
                ${label}
              </button>
            `,
          )}
        </div>
        <div class="dialog-actions">
          <button type="button" class="start" onClick=${() => sendNow(message, onDone)}>${S.sendNow}</button>
          <button type="button" onClick=${() => cancel(message, onDone)}>${S.cancelAction}</button>
          <button type="button" onClick=${close}>${C.close}</button>
          <button type="submit" class="primary" disabled=${isBusy}>${S.save}</button>
        </div>
      </form>
    <//>
  `;
}
