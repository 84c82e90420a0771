// The choice of an entity: a list while there are few, a box that finds one where there are many.

import { html, useEffect, useId, useRef, useState } from "../lib/html.js";
import { visible } from "../lib/visible.js";
import { Field } from "./field.js";

/** Choices up to which they are a list. */
const LISTED_MAX = 100;
/** Matches that the box offers. */
const OFFERED_MAX = 50;

/** @param {{ label: string, value: string, choices: string[], onChange: (value: string) => void, none?: string,
 *   hint?: any, error?: string | null, isTyped?: boolean }} properties `none` names the choice of none; with `isTyped`
 *   there may be others than the choices */
export function EntityField({ label, value, choices, onChange, none = "", hint, error, isTyped = false }) {
  if (choices.length <= LISTED_MAX && !isTyped) {
    const all = value === "" || choices.includes(value) ? choices : [value, ...choices];
    return html`
      <${Field} label=${label} hint=${hint} error=${error}>
        <select value=${value} onChange=${(/** @type {any} */ event) => onChange(event.target.value)}>
          <option value="" selected=${value === ""}>${none}</option>
          ${all.map(
            (path) => html`<option key=${path} value=${path} selected=${path === value}>${visible(path)}</option>`,
          )}
        </select>
      <//>
    `;
  }
  return html`
    <${Box}
      label=${label}
      value=${value}
      choices=${choices}
      onChange=${onChange}
      none=${none}
      hint=${hint}
      error=${error}
      isTyped=${isTyped}
    />
  `;
}

/** @param {Parameters<typeof EntityField>[0]} properties */
function Box({ label, value, choices, onChange, none, hint, error, isTyped = false }) {
  const id = useId();
  const [text, setText] = useState(value);
  // What was said from here comes back later, when more may have been typed.
  const said = useRef(value);
  useEffect(() => {
    if (value !== said.current) setText(value);
    said.current = value;
  }, [value]);
  const say = (/** @type {string} */ next) => {
    said.current = next;
    onChange(next);
  };
  const lower = text.toLowerCase();
  const offered = choices.filter((path) => path.toLowerCase().includes(lower)).slice(0, OFFERED_MAX);
  const change = (/** @type {string} */ next) => {
    setText(next);
    // A path that is typed is taken when it is one.
    if (next === "" || isTyped || choices.includes(next)) say(next.trim());
  };
  return html`
    <${Field} label=${label} hint=${hint} error=${error}>
      <input
        list=${id}
        value=${text}
        placeholder=${none}
        autocomplete="off"
        spellcheck=${false}
        onInput=${(/** @type {any} */ event) => change(event.target.value)}
        onChange=${(/** @type {any} */ event) => say(event.target.value.trim())}
      />
    <//>
    <datalist id=${id}>${offered.map((path) => html`<option key=${path} value=${path} />`)}</datalist>
  `;
}
