// Fields of forms: label, hint and error belong to the input.

import { cloneElement } from "../vendor/preact.js";
import { html, useId } from "../lib/html.js";
import { Text } from "./text.js";

/** A field: its only child is the input. An error is in the broker's words.
 * @param {{ label: any, hint?: any, error?: string | null, children?: any }} properties */
export function Field({ label, hint, error, children }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const child = Array.isArray(children) ? children[0] : children;
  const input = cloneElement(child, {
    id,
    "aria-describedby": described || undefined,
    "aria-invalid": error ? "true" : undefined,
  });
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${input}
      ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
      ${error && html`<p class="field-error" id=${`${id}-error`} role="alert"><${Text} value=${error} /></p>`}
    </div>
  `;
}

/** A text by which a list is filtered. The label is in the field while that is empty.
 * @param {{ label: string, value: string, title?: string, onInput: (value: string) => void }} properties */
export function Filter({ label, value, title, onInput }) {
  return html`
    <input
      class="filter"
      type="search"
      aria-label=${label}
      placeholder=${label}
      title=${title}
      value=${value}
      spellcheck=${false}
      onInput=${(/** @type {any} */ event) => onInput(event.target.value)}
    />
  `;
}

/** One of a few choices, side by side.
 * @param {{ label: string, value: string, options: { value: string, label: any }[], onChange: (value: string) =>
 *   void }} properties */
export function Choice({ label, value, options, onChange }) {
  const name = useId();
  return html`
    <fieldset class="choice">
      <legend class="hidden">${label}</legend>
      ${options.map(
        (option) => html`
          <label key=${option.value}>
            <input
              type="radio"
              name=${name}
              value=${option.value}
              checked=${option.value === value}
              onChange=${() => onChange(option.value)}
            />
            <span>${option.label}</span>
          </label>
        `,
      )}
    </fieldset>
  `;
}
