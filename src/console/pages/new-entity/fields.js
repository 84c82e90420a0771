// The fields of an entity's properties, in groups.

import { html, useId } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { visible } from "../../lib/visible.js";
import { Field } from "../../components/field.js";
import { fieldsOf } from "./model.js";
import { PROPERTIES } from "../../strings/entity.js";
import { S } from "../../strings/new-entity.js";

/** Suggestions of paths. */
const SUGGESTED_MAX = 50;

/** @typedef {import("./model.js").Values} Values */

/** @param {{ kind: Schemas["Kind"], values: Values, errors: Record<string, string>, isEdit?: boolean, own?: string,
 *   onChange: (values: Values) => void }} properties `own` is the path of the entity itself, to which it cannot
 *   forward */
export function Fields({ kind, values, errors, isEdit = false, own = "", onChange }) {
  const fields = fieldsOf(kind);
  const groups = /** @type {(keyof typeof S.groups)[]} */ (Object.keys(S.groups)).map((group) => ({
    group,
    fields: fields.filter((field) => field.group === group),
  }));
  const order = kind === "topic" ? groups : [groups[1], groups[0], ...groups.slice(2)];
  return order
    .filter((group) => group.fields.length !== 0)
    .map(
      ({ group, fields: own_ }) => html`
        <fieldset key=${group} class="field-group">
          <legend>${S.groups[group]}</legend>
          <div class="field-grid">
            ${own_.map(
              (field) => html`
                <${One}
                  key=${field.name}
                  field=${field}
                  value=${values[field.name]}
                  error=${errors[field.name]}
                  isEdit=${isEdit}
                  own=${own}
                  onChange=${(/** @type {string | boolean} */ value) => onChange({ ...values, [field.name]: value })}
                />
              `,
            )}
          </div>
        </fieldset>
      `,
    );
}

/** @param {{ field: import("./model.js").FieldOf, value: string | boolean | undefined, error: string | undefined,
 *   isEdit: boolean, own: string, onChange: (value: string | boolean) => void }} properties */
function One({ field: { name, type, example, isFixed }, value, error, isEdit, own, onChange }) {
  const label = PROPERTIES[name] ?? name;
  const isLocked = isEdit && isFixed === true;
  const hint = isLocked ? S.fixed : /** @type {Record<string, string>} */ (S.hints)[name];
  const text = typeof value === "string" ? value : "";
  const onInput = (/** @type {any} */ event) => onChange(event.target.value);
  switch (type) {
    case "boolean":
      return html`
        <${Switch}
          label=${label}
          hint=${hint}
          error=${error}
          isOn=${value === true}
          isLocked=${isLocked}
          onChange=${onChange}
        />
      `;
    case "path":
      return html`
        <${PathField} label=${label} hint=${hint} error=${error} value=${text} own=${own} onChange=${onChange} />
      `;
    case "status":
      return html`
        <${Field} label=${label} error=${error}>
          <select value=${text || "active"} onChange=${onInput}>
            ${Object.entries(S.statuses).map(
              ([status, shown]) => html`
                <option key=${status} value=${status} selected=${status === (text || "active")}>${shown}</option>
              `,
            )}
          </select>
        <//>
      `;
    case "text":
      return html`
        <${Field} label=${label} hint=${hint} error=${error}>
          <input value=${text} spellcheck=${false} autocomplete="off" onInput=${onInput} />
        <//>
      `;
    default:
      return html`
        <${Field} label=${label} hint=${hint} error=${error}>
          <input
            value=${text}
            placeholder=${example}
            spellcheck=${false}
            autocomplete="off"
            inputmode=${type === "number" ? "numeric" : undefined}
            onInput=${onInput}
          />
        <//>
      `;
  }
}

/** @param {{ label: string, hint: string, error: string | undefined, isOn: boolean, isLocked: boolean,
 *   onChange: (isOn: boolean) => void }} properties */
function Switch({ label, hint, error, isOn, isLocked, onChange }) {
  const id = useId();
  return html`
    <div class="field switch">
      <label>
        <input
          type="checkbox"
          checked=${isOn}
          disabled=${isLocked}
          aria-describedby=${hint || error ? id : undefined}
          aria-invalid=${error ? "true" : undefined}
          onChange=${(/** @type {any} */ event) => onChange(event.target.checked)}
        />
        <span>${label}</span>
      </label>
      ${(hint || error) && html`
        <div id=${id}>
          ${hint && html`<p class="hint">${hint}</p>`}
          ${error && html`<p class="field-error" role="alert">${visible(error)}</p>`}
        </div>
      `}
    </div>
  `;
}

/** A path that is typed, with what there is as suggestions.
 * @param {{ label: string, hint?: string, error: string | undefined, value: string, own?: string,
 *   kinds?: Schemas["Kind"][], onChange: (value: string) => void }} properties */
export function PathField({ label, hint, error, value, own = "", kinds = ["queue", "topic"], onChange }) {
  const id = useId();
  const lower = value.toLowerCase();
  const found = [];
  for (const { path, kind } of entities.value.values()) {
    if (path === own || !kinds.includes(kind) || !path.toLowerCase().includes(lower)) continue;
    found.push(path);
    if (found.length === SUGGESTED_MAX) break;
  }
  return html`
    <${Field} label=${label} hint=${hint} error=${error}>
      <input
        value=${value}
        placeholder=${S.none}
        list=${id}
        spellcheck=${false}
        autocomplete="off"
        onInput=${(/** @type {any} */ event) => onChange(event.target.value)}
      />
    <//>
    <datalist id=${id}>${found.map((path) => html`<option key=${path} value=${path} />`)}</datalist>
  `;
}
