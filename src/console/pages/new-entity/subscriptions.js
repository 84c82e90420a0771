// The subscriptions of a new topic: a line each, with a filter. There is always an empty one at the end.

import { html } from "../../lib/html.js";
import { Field } from "../../components/field.js";
import { Problem } from "../../components/notice.js";
import { RuleFields } from "./rule-fields.js";
import { NEW_RULE } from "./rule-model.js";
import { subscriptionPath } from "./make.js";
import { S } from "../../strings/new-entity.js";

/** @typedef {import("./make.js").SubscriptionDraft} SubscriptionDraft */

/** @param {SubscriptionDraft[]} subscriptions
 * @returns {SubscriptionDraft[]} */
export function withEmpty(subscriptions) {
  const last = subscriptions.at(-1);
  if (last !== undefined && last.name === "" && last.rule.expression === "") return subscriptions;
  return [
    ...subscriptions,
    { id: 1 + Math.max(0, ...subscriptions.map(({ id }) => id)), name: "", rule: NEW_RULE, isOpen: false },
  ];
}

/** @param {{ topic: string, subscriptions: SubscriptionDraft[], made: string[], errors: Record<number,
 *   import("./rule-model.js").RuleErrors>, onChange: (subscriptions: SubscriptionDraft[]) => void }} properties */
export function NewSubscriptions({ topic, subscriptions, made, errors, onChange }) {
  const set = (/** @type {number} */ id, /** @type {Partial<SubscriptionDraft>} */ part) =>
    onChange(withEmpty(subscriptions.map((each) => (each.id === id ? { ...each, ...part } : each))));
  return html`
    <fieldset class="field-group">
      <legend>${S.subscriptions}</legend>
      <p class="hint">${S.subscriptionsHint}</p>
      <ul class="new-subscriptions">
        ${subscriptions.map(
          (each, at) => html`
            <li key=${each.id}>
              <${One}
                subscription=${each}
                number=${at + 1}
                isMade=${made.includes(subscriptionPath(topic, each.name))}
                errors=${errors[each.id] ?? {}}
                onChange=${(/** @type {Partial<SubscriptionDraft>} */ part) => set(each.id, part)}
                onRemove=${
                  at === subscriptions.length - 1
                    ? undefined
                    : () => onChange(withEmpty(subscriptions.filter(({ id }) => id !== each.id)))
                }
              />
            </li>
          `,
        )}
      </ul>
    </fieldset>
  `;
}

/** @param {{ subscription: SubscriptionDraft, number: number, isMade: boolean,
 *   errors: import("./rule-model.js").RuleErrors, onChange: (part: Partial<SubscriptionDraft>) => void,
 *   onRemove: (() => void) | undefined }} properties */
function One({ subscription: { name, rule, isOpen }, number, isMade, errors, onChange, onRemove }) {
  const shown = name || S.subscription(number);
  if (isMade)
    return html`
      <div class="made-subscription"><span>${name}</span><span class="tag accent">${S.madeAlready}</span></div>
    `;
  return html`
    <div class="new-subscription">
      <${Field} label=${html`${S.subscriptionName} <span class="hidden">${number}</span>`} error=${errors.name}>
        <input
          value=${name}
          spellcheck=${false}
          autocomplete="off"
          placeholder=${S.nameExample.subscription}
          onInput=${(/** @type {any} */ event) => onChange({ name: event.target.value })}
        />
      <//>
      ${!isOpen && html`
        <${Field} label=${html`${S.expression} <span class="hidden">${number}</span>`} error=${errors.expression}>
          <input
            value=${rule.expression}
            spellcheck=${false}
            autocomplete="off"
            placeholder=${S.expressionNone}
            onInput=${(/** @type {any} */ event) => onChange({ rule: { ...rule, expression: event.target.value } })}
          />
        <//>
      `}
      <span class="subscription-actions">
        ${!isOpen && html`
          <button
            type="button"
            class="quiet"
            aria-label=${S.moreOfLabel(shown)}
            onClick=${() => onChange({ isOpen: true })}
          >
            ${S.moreOf}
          </button>
        `}
        ${onRemove && html`
          <button type="button" class="quiet" aria-label=${S.without(shown)} onClick=${onRemove}>×</button>
        `}
      </span>
      ${isOpen && html`
        <div class="subscription-rule">
          <${RuleFields}
            rule=${rule}
            errors=${errors}
            onChange=${(/** @type {any} */ next) => onChange({ rule: next })}
          />
        </div>
      `}
    </div>
    ${errors[""] && html`<${Problem} error=${new Error(errors[""])} />`}
  `;
}
