// Which messages: their states, and what they are like.

import { number } from "../../lib/format.js";
import { html, useEffect, useState } from "../../lib/html.js";
import { FLAGS } from "../../lib/selection.js";
import { Field } from "../field.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/jobs.js";

/** @typedef {import("../../lib/selection.js").Conditions} Values */
/** @typedef {Schemas["State"]} State */

/** Conditions that come first. */
const FIRST = /** @type {const} */ (["session_id", "filter", "text"]);
const FIRST_OF_DEAD = /** @type {const} */ (["reason", "description", "filter", "text"]);
/** What only dead letters have. */
const OF_DEAD = ["reason", "description", "without_reason", "without_description"];
const ALL = /** @type {(keyof Values)[]} */ ([
  "session_id",
  "reason",
  "description",
  "without_reason",
  "without_description",
  "filter",
  "text",
  "json_path",
  "message_id",
  "correlation_id",
  "numbers",
  "enqueued_from",
  "enqueued_before",
]);
const TIMES = ["enqueued_from", "enqueued_before"];

/** @param {{ entity: Schemas["EntityNow"] | undefined, possible: readonly State[], value: readonly State[],
 *   error: string | null, onChange: (next: State[]) => void }} properties */
export function States({ entity, possible, value, error, onChange }) {
  if (possible.length === 1) return null;
  const toggle = (/** @type {State} */ state) =>
    onChange(value.includes(state) ? value.filter((each) => each !== state) : [...value, state]);
  return html`
    <fieldset class="states">
      <legend>${S.statesLabel}</legend>
      ${possible.map(
        (state) => html`
          <label key=${state}>
            <input
              type="checkbox"
              checked=${value.includes(state)}
              aria-invalid=${error !== null ? "true" : undefined}
              onChange=${() => toggle(state)}
            />${" "}
            ${C.states[state]} ${entity && html`<span class="number muted">${number(entity[state])}</span>`}
          </label>
        `,
      )}
      ${error !== null && html`<p class="field-error" role="alert">${error}</p>`}
    </fieldset>
  `;
}

/** @param {keyof Values} name */
const isFlag = (name) => FLAGS.some((each) => each === name);
/** The conditions that are shown.
 * @param {boolean} isDead */
const shownOf = (isDead) => ALL.filter((name) => isDead || !OF_DEAD.includes(name));

/** The conditions whose input can show an error.
 * @param {boolean} isDead */
export const inputsOf = (isDead) => shownOf(isDead).filter((name) => !isFlag(name));

/** @param {{ value: Values, isDead: boolean, isWrong: boolean, errorOf: (name: string) => string | null,
 *   onChange: (next: Values) => void, states?: any, children?: any }} properties */
export function Conditions({ value, isDead, isWrong, errorOf, onChange, states, children }) {
  const first = isDead ? FIRST_OF_DEAD : FIRST;
  const others = shownOf(isDead).filter((name) => !first.some((each) => each === name));
  const flag = (/** @type {keyof Values} */ name) => html`
    <label key=${name} class="condition-flag">
      <input
        type="checkbox"
        checked=${value[name] !== ""}
        onChange=${(/** @type {any} */ event) => onChange({ ...value, [name]: event.target.checked ? "true" : "" })}
      />${" "}
      ${S.fields[name]}
    </label>
  `;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isWrong) setOpen(true);
  }, [isWrong]);
  const field = (/** @type {keyof Values} */ name) =>
    isFlag(name)
      ? flag(name)
      : html`
          <${Field}
            key=${name}
            label=${S.fields[name]}
            hint=${S.hints[/** @type {keyof typeof S.hints} */ (name)]}
            error=${errorOf(`selection.${name}`)}
          >
            <input
              type=${TIMES.includes(name) ? "datetime-local" : "text"}
              step=${TIMES.includes(name) ? "1" : undefined}
              autocomplete="off"
              spellcheck=${false}
              value=${value[name]}
              onInput=${(/** @type {any} */ event) => onChange({ ...value, [name]: event.target.value })}
            />
          <//>
        `;
  return html`
    <details
      class="conditions"
      open=${isOpen}
      onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}
    >
      <summary>${S.conditions}</summary>
      ${states}
      <div class="condition-fields">${[...first, ...others].map(field)}${children}</div>
    </details>
  `;
}
