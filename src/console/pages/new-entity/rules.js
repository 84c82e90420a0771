// The rules of a subscription: made, changed and deleted.

import { ApiError, call } from "../../lib/api.js";
import { useDraft } from "../../lib/draft.js";
import { useRefusedFocus } from "../../lib/focus.js";
import { html, useState } from "../../lib/html.js";
import { writeJson } from "../../lib/json.js";
import { useResource } from "../../lib/resource.js";
import { setQuery } from "../../lib/router.js";
import { visible } from "../../lib/visible.js";
import { confirm } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { Empty, Loaded, Notice, Problem } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { Filter, allRules } from "../entity/rules.js";
import { RuleFields } from "./rule-fields.js";
import { NEW_RULE, draftOf, errorsOf, requestOf } from "./rule-model.js";
import { S as C } from "../../strings/common.js";
import { S as E } from "../../strings/entity.js";
import { S } from "../../strings/new-entity.js";

/** @typedef {Schemas["Rule"]} Rule */

/** `rule` of the query is the one that is changed; `add` opens a new one.
 * @param {{ path: string, query: Record<string, string> }} properties */
export function EditRules({ path, query }) {
  const rules = useResource((signal) => allRules(path, signal), [path]);
  const open = (/** @type {Record<string, string | undefined>} */ which) =>
    setQuery({ rule: undefined, add: undefined, ...which });
  const done = (/** @type {string} */ text) => {
    toast(text);
    open({});
    rules.reload();
  };
  return html`
    <section class="card rule-list" aria-labelledby="rules">
      <div class="card-head">
        <h2 id="rules">${S.rules}</h2>
        ${query.add === undefined && html`
          <button type="button" onClick=${() => open({ add: "rule" })}>${S.addRule}</button>
        `}
      </div>
      <p class="hint">${S.rulesHint}</p>
      ${query.add !== undefined && html`
        <${RuleForm} key="new" path=${path} onClose=${() => open({})} onDone=${done} />
      `}
      <${Loaded} of=${rules}>
        ${(/** @type {Schemas["Rules"]} */ { rules: all }) => html`
          ${query.rule !== undefined && !all.some(({ name }) => name === query.rule) && html`
            <${Notice}>${S.ruleGone}<//>
          `}
          ${all.length === 0 && query.add === undefined
            ? html`<${Empty} title=${S.noRules} />`
            : html`
                <ul class="rule-list">
                  ${all.map(
                    (rule) => html`
                      <li key=${rule.name}>
                        ${query.rule === rule.name
                          ? html`
                              <${RuleForm}
                                key=${rule.name}
                                path=${path}
                                rule=${rule}
                                onClose=${() => open({})}
                                onDone=${done}
                              />
                            `
                          : html`
                              <${Shown}
                                path=${path}
                                rule=${rule}
                                isLast=${all.length === 1}
                                onEdit=${() => open({ rule: rule.name })}
                                onDone=${done}
                              />
                            `}
                      </li>
                    `,
                  )}
                </ul>
              `}
        `}
      <//>
    </section>
  `;
}

/** @param {{ path: string, rule: Rule, isLast: boolean, onEdit: () => void, onDone: (text: string) =>
 *   void }} properties */
function Shown({ path, rule, isLast, onEdit, onDone }) {
  const name = visible(rule.name);
  const remove = () =>
    confirm({
      title: S.deleteRuleTitle(name),
      text: isLast ? S.deleteLastRuleText : S.deleteRuleText,
      action: S.deleteRule,
      run: async () => {
        await call("delete_rule", { path: { entity: path, rule: rule.name } });
        onDone(S.ruleDeleted(name));
      },
    });
  return html`
    <div class="rule-shown">
      <div class="card-head">
        <h3><${Text} value=${rule.name} max=${260} /></h3>
        <span class="actions">
          <button type="button" class="quiet" aria-label=${S.editRuleLabel(name)} onClick=${onEdit}>
            ${S.editRule}
          </button>
          <button type="button" class="quiet" aria-label=${S.deleteRuleLabel(name)} onClick=${remove}>
            ${S.deleteRule}
          </button>
        </span>
      </div>
      <dl class="pairs">
        <dt>${E.filter}</dt>
        <dd><${Filter} filter=${rule.filter} /></dd>
        ${rule.action && html`<dt>${E.action}</dt><dd><code><${Text} value=${rule.action} /></code></dd>`}
      </dl>
    </div>
  `;
}

/** @param {{ path: string, rule?: Rule, onClose: () => void, onDone: (text: string) => void }} properties */
function RuleForm({ path, rule, onClose, onDone }) {
  const [draft, setDraft, forget] = useDraft(`rule ${path} ${rule?.name ?? ""}`, {
    name: rule?.name ?? "",
    rule: rule === undefined ? NEW_RULE : draftOf(rule),
    base: rule === undefined ? "" : baseOf(rule),
  });
  const [errors, setErrors] = useState(/** @type {import("./rule-model.js").RuleErrors} */ ({}));
  const [theirs, setTheirs] = useState(/** @type {Rule | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const form = useRefusedFocus(
    errors,
    Object.keys(errors).length !== 0 ? undefined : rule === undefined ? "input" : "textarea",
  );
  const close = () => {
    forget();
    onClose();
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (draft.name.trim() === "") return setErrors({ name: S.ruleNameNeeded });
    setBusy(true);
    try {
      const request = requestOf(draft.rule);
      const at = { entity: path, rule: draft.name.trim() };
      if (rule === undefined) await call("put_rule", { path: at, body: request });
      else {
        // Rules have no versions: what is there is compared with what was read.
        const now = await call("get_rule", { path: at });
        if (baseOf(now) !== draft.base) {
          setDraft((typed) => ({ ...typed, base: baseOf(now) }));
          return setTheirs(now);
        }
        await call("put_rule", { path: at, headers: { "If-Match": "*" }, body: request });
      }
      forget();
      onDone((rule === undefined ? S.ruleMade : S.ruleSaved)(visible(at.rule)));
    } catch (error) {
      const refused = /** @type {Error} */ (error);
      setErrors(
        rule !== undefined && refused instanceof ApiError && refused.status === 404
          ? { "": S.ruleGone }
          : errorsOf(refused, draft.rule),
      );
    } finally {
      setBusy(false);
    }
  };
  const loose = errors[""] ?? (rule === undefined ? undefined : errors.name);
  return html`
    <form
      ref=${form}
      class="rule-form entity-form"
      aria-label=${rule === undefined ? S.newRule : S.editRuleLabel(visible(rule.name))}
      onSubmit=${submit}
      noValidate
    >
      ${rule === undefined
        ? html`
            <${Field} label=${S.ruleName} error=${errors.name}>
              <input
                value=${draft.name}
                spellcheck=${false}
                autocomplete="off"
                onInput=${(/** @type {any} */ event) => setDraft({ ...draft, name: event.target.value })}
              />
            <//>
          `
        : html`<h3><${Text} value=${rule.name} max=${260} /></h3>`}
      ${theirs !== null && html`
        <${Notice} tone="alarm">
          <div>
            <p>${S.ruleConflict}</p>
            <p>
              <${Filter} filter=${theirs.filter} />${" "}
              ${theirs.action && html`<code><${Text} value=${theirs.action} /></code>`}
            </p>
          </div>
        <//>
      `}
      <${RuleFields}
        rule=${draft.rule}
        errors=${errors}
        onChange=${(/** @type {any} */ next) => setDraft({ ...draft, rule: next })}
      />
      ${loose && html`<${Problem} error=${new Error(loose)} />`}
      <div class="actions">
        <button type="submit" class="primary" disabled=${isBusy}>
          ${rule === undefined ? S.makeRule : S.saveRule}
        </button>
        <button type="button" onClick=${close}>${C.cancel}</button>
      </div>
    </form>
  `;
}

/** What tells one version of a rule from another.
 * @param {Rule} rule */
const baseOf = ({ filter, action, created_at: at }) => writeJson([filter, action ?? null, at]);
