// What a job does to each message.

import { html, useEffect, useMemo, useState } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { isoOf, timeOf } from "../../lib/local-time.js";
import { ConditionError } from "../../lib/selection.js";
import { EntityField } from "../entity-field.js";
import { Field } from "../field.js";
import { S } from "../../strings/jobs.js";

/** @typedef {import("../verb-dialog.js").Kind} Kind */
/** @typedef {{ to: string, action: string, body: string, reason: string, description: string,
 *   scheduled_for: string }} Values */

/** @type {Values} */
export const NO_ACTION = { to: "", action: "", body: "", reason: "", description: "", scheduled_for: "" };

/** What can be done to messages of an entity.
 * @param {Schemas["Kind"]} kind
 * @param {boolean} isDead
 * @returns {Kind[]} */
export function kindsOf(kind, isDead) {
  if (isDead) return ["delete", "redrive", "move"];
  return kind === "topic"
    ? ["delete", "activate", "reschedule"]
    : [
        "delete",
        "move",
        "dead_letter",
        "activate",
        ...(kind === "queue" ? /** @type {Kind[]} */ (["reschedule"]) : []),
      ];
}

/** What is typed for an action.
 * @param {Kind} kind
 * @returns {(keyof Values)[]} */
export function fieldsOf(kind) {
  switch (kind) {
    case "move":
      return ["to", "action", "body"];
    case "redrive":
      return ["action", "body"];
    case "dead_letter":
      return ["reason", "description"];
    case "reschedule":
      return ["scheduled_for"];
    default:
      return [];
  }
}

/** Makes the action; throws a ConditionError.
 * @param {Kind} kind
 * @param {Values} values
 * @returns {Loose<Schemas["Action"]>} */
export function actionOf(kind, { to, action, body, reason, description, scheduled_for: at }) {
  const given = (/** @type {string} */ text) => (text.trim() === "" ? undefined : text);
  switch (kind) {
    case "move":
      if (to === "") throw new ConditionError("action.to", S.toMissing);
      return { kind: "move", to, action: given(action), body: given(body) };
    case "redrive":
      return { kind: "move", action: given(action), body: given(body) };
    case "dead_letter":
      return { kind, reason: given(reason), description: given(description) };
    case "reschedule": {
      const time = timeOf(at);
      if (time === null) throw new ConditionError("action.scheduled_for", S.scheduledMissing);
      return { kind, scheduled_for: isoOf(time) };
    }
    default:
      return { kind };
  }
}

/** What an action must have, or mostly has.
 * @param {{ kind: Kind, value: Values, from: string, errorOf: (name: string) => string | null,
 *   onChange: (next: Values) => void }} properties */
export function ActionFields({ kind, value, from, errorOf, onChange }) {
  const choices = useMemo(() => [...entities.peek().keys()].filter((path) => path !== from), [from]);
  const input = (/** @type {keyof Values} */ name) => html`
    <input
      autocomplete="off"
      spellcheck=${false}
      value=${value[name]}
      onInput=${(/** @type {any} */ event) => onChange({ ...value, [name]: event.target.value })}
    />
  `;
  switch (kind) {
    case "move":
      return html`
        <${EntityField}
          label=${S.to}
          value=${value.to}
          choices=${choices}
          none=${S.toNone}
          error=${errorOf("action.to")}
          onChange=${(/** @type {string} */ to) => onChange({ ...value, to })}
        />
      `;
    case "dead_letter":
      return html`
        <${Field} label=${S.newReason} error=${errorOf("action.reason")}>${input("reason")}<//>
        <${Field} label=${S.newDescription} error=${errorOf("action.description")}>${input("description")}<//>
      `;
    case "reschedule":
      return html`
        <${Field} label=${S.scheduledFor} error=${errorOf("action.scheduled_for")}>
          <input
            type="datetime-local"
            step="1"
            value=${value.scheduled_for}
            onInput=${(/** @type {any} */ event) => onChange({ ...value, scheduled_for: event.target.value })}
          />
        <//>
      `;
    default:
      return null;
  }
}

/** What an action may have, folded: how messages are changed while they are moved.
 * @param {{ kind: Kind, value: Values, errorOf: (name: string) => string | null, onChange: (next: Values) =>
 *   void }} properties */
export function ActionMore({ kind, value, errorOf, onChange }) {
  const [isOpen, setOpen] = useState(false);
  const isWrong = errorOf("action.action") !== null || errorOf("action.body") !== null;
  useEffect(() => {
    if (isWrong) setOpen(true);
  }, [isWrong]);
  if (kind !== "move" && kind !== "redrive") return null;
  const onInput = (/** @type {keyof Values} */ name) => (/** @type {any} */ event) =>
    onChange({ ...value, [name]: event.target.value });
  return html`
    <details class="folded" open=${isOpen} onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
      <summary>${S.changes}</summary>
      <div class="folded-fields">
        <${Field} label=${S.statements} hint=${S.statementsHint} error=${errorOf("action.action")}>
          <input autocomplete="off" spellcheck=${false} value=${value.action} onInput=${onInput("action")} />
        <//>
        <${Field} label=${S.body} hint=${S.bodyHint} error=${errorOf("action.body")}>
          <textarea rows="2" spellcheck=${false} value=${value.body} onInput=${onInput("body")} />
        <//>
      </div>
    </details>
  `;
}
