// The fields of a rule: what it takes, by SQL or by correlation, and what it changes.

import { useAddedFocus } from "../../lib/focus.js";
import { html } from "../../lib/html.js";
import { Choice, Field } from "../../components/field.js";
import { NEW_PAIR } from "./rule-model.js";
import { S } from "../../strings/new-entity.js";

/** @typedef {import("./rule-model.js").RuleDraft} RuleDraft */
/** @typedef {import("./rule-model.js").Pair} Pair */

/** @param {{ rule: RuleDraft, errors: import("./rule-model.js").RuleErrors, onChange: (rule: RuleDraft) =>
 *   void }} properties */
export function RuleFields({ rule, errors, onChange }) {
  const set = (/** @type {Partial<RuleDraft>} */ part) => onChange({ ...rule, ...part });
  return html`
    <div class="field">
      <span class="field-label" aria-hidden="true">${S.filter}</span>
      <${Choice}
        label=${S.filter}
        value=${rule.kind}
        onChange=${(/** @type {RuleDraft["kind"]} */ kind) => set({ kind })}
        options=${
          /** @type {const} */ (["sql", "correlation", "true", "false"]).map((kind) => ({
            value: kind,
            label: S.filters[kind],
          }))
        }
      />
    </div>
    ${rule.kind === "sql" && html`
      <${Field} label=${S.expression} error=${errors.expression}>
        <textarea
          rows="2"
          spellcheck=${false}
          placeholder=${S.expressionExample}
          value=${rule.expression}
          onInput=${(/** @type {any} */ event) => set({ expression: event.target.value })}
        />
      <//>
    `}
    ${rule.kind === "correlation" && html`
      <${Pairs}
        pairs=${rule.pairs}
        error=${errors.pairs}
        refused=${errors.pair ?? 0}
        onChange=${(/** @type {Pair[]} */ pairs) => set({ pairs })}
      />
    `}
    <${Field} label=${S.action} hint=${S.actionHint} error=${errors.action}>
      <input
        spellcheck=${false}
        autocomplete="off"
        value=${rule.action}
        onInput=${(/** @type {any} */ event) => set({ action: event.target.value })}
      />
    <//>
  `;
}

/** @param {{ pairs: Pair[], error: string | undefined, refused: number, onChange: (pairs: Pair[]) =>
 *   void }} properties */
function Pairs({ pairs, error, refused, onChange }) {
  const { list, added } = useAddedFocus(pairs.length);
  const set = (/** @type {number} */ at, /** @type {Partial<Pair>} */ part) =>
    onChange(pairs.map((pair, index) => (index === at ? { ...pair, ...part } : pair)));
  return html`
    <fieldset class="pairs-of-rule">
      <legend class="hint">${S.correlationHint}</legend>
      <div class="pair-rows" ref=${list}>
        ${pairs.map(
          (pair, at) => html`
            <${OnePair}
              key=${at}
              pair=${pair}
              number=${at + 1}
              error=${at === Math.min(refused, pairs.length - 1) ? error : undefined}
              onChange=${(/** @type {Partial<Pair>} */ part) => set(at, part)}
              onRemove=${pairs.length === 1 ? undefined : () => onChange(pairs.filter((_, index) => index !== at))}
            />
          `,
        )}
      </div>
      <button
        type="button"
        class="quiet"
        onClick=${() => {
          added();
          onChange([...pairs, NEW_PAIR]);
        }}
      >
        ${S.addPair}
      </button>
    </fieldset>
  `;
}

/** @param {{ pair: Pair, number: number, error: string | undefined, onChange: (part: Partial<Pair>) => void,
 *   onRemove: (() => void) | undefined }} properties */
function OnePair({ pair, number, error, onChange, onRemove }) {
  const value = (/** @type {any} */ event) => onChange({ value: event.target.value });
  const label = html`<span class="hidden">${S.value} ${number}</span>`;
  return html`
    <div class="pair">
      <select
        aria-label=${`${S.field} ${number}`}
        value=${pair.field}
        onChange=${(/** @type {any} */ event) => onChange({ field: event.target.value })}
      >
        <option value="" selected=${pair.field === ""}>${S.own}</option>
        ${Object.entries(S.fields).map(
          ([name, shown]) => html`<option key=${name} value=${name} selected=${name === pair.field}>${shown}</option>`,
        )}
      </select>
      ${pair.field === "" && html`
        <input
          aria-label=${`${S.propertyName} ${number}`}
          placeholder=${S.propertyName}
          value=${pair.name}
          spellcheck=${false}
          autocomplete="off"
          onInput=${(/** @type {any} */ event) => onChange({ name: event.target.value })}
        />
        <select
          aria-label=${`${S.type} ${number}`}
          value=${pair.type}
          onChange=${(/** @type {any} */ event) =>
            onChange({ type: event.target.value, value: event.target.value === "boolean" ? "true" : pair.value })}
        >
          ${Object.entries(S.types).map(
            ([name, shown]) => html`<option key=${name} value=${name} selected=${name === pair.type}>${shown}</option>`,
          )}
        </select>
      `}
      ${pair.field === "" && pair.type === "boolean"
        ? html`
            <${Field} key="boolean" label=${label} error=${error}>
              <select value=${pair.value} onChange=${value}>
                ${["true", "false"].map(
                  (each) => html`<option key=${each} value=${each} selected=${each === pair.value}>${each}</option>`,
                )}
              </select>
            <//>
          `
        : html`
            <${Field} key="text" label=${label} error=${error}>
              <input
                placeholder=${S.value}
                value=${pair.value}
                spellcheck=${false}
                autocomplete="off"
                onInput=${value}
              />
            <//>
          `}
      ${onRemove && html`
        <button type="button" class="quiet" aria-label=${S.removePair(number)} onClick=${onRemove}>×</button>
      `}
    </div>
  `;
}
