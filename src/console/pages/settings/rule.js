// One authorization rule: its rights, its two keys, and its connection strings.

import { ApiError, call } from "../../lib/api.js";
import { html, useId, useState } from "../../lib/html.js";
import { session } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { Dialog, confirm, openDialog } from "../../components/dialog.js";
import { Copy, Problem } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { toast } from "../../components/toast.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/settings.js";

/** @typedef {Schemas["AuthorizationRuleShown"]} Shown */
/** @typedef {Schemas["RightName"][]} Rights */

/** What clients connect with. The development profile is what the SDKs know as the emulator.
 * @param {string} entity
 * @param {string} name
 * @param {string} key */
export function connectionString(entity, name, key) {
  const isOpen = session.peek()?.credential.kind === "open";
  return `Endpoint=sb://${location.hostname}/;SharedAccessKeyName=${name};SharedAccessKey=${key};EntityPath=${entity}${isOpen ? ";UseDevelopmentEmulator=true" : ""}`;
}

/** @param {{ entity: string, rule: Shown, reload: () => void }} properties */
export function Rule({ entity, rule, reload }) {
  const name = visible(rule.name);
  const remove = () =>
    confirm({
      title: S.removeTitle(name),
      text: S.removeText,
      name: rule.name,
      action: S.remove,
      run: async () => {
        await call("delete_authorization_rule", { path: { entity, name: rule.name } });
        toast(S.removed(name));
        reload();
      },
    });
  const change = () =>
    openDialog((close) => html`<${ChangeRights} entity=${entity} rule=${rule} close=${close} onDone=${reload} />`);
  return html`
    <section class="card" aria-label=${name}>
      <div class="card-head">
        <h2><${Text} value=${rule.name} max=${260} /></h2>
        <span class="rule-rights">
          ${rule.rights.map((right) => html`<span key=${right} class="tag accent">${S.right[right]}</span>`)}
        </span>
        <span class="muted">${rule.modified_at && html`${S.changedAt} <${Time} at=${rule.modified_at} />`}</span>
        <span class="actions">
          <button type="button" class="quiet" aria-label=${S.changeRightsLabel(name)} onClick=${change}>
            ${S.changeRights}
          </button>
          <button type="button" class="quiet" aria-label=${S.removeLabel(name)} onClick=${remove}>${S.remove}</button>
        </span>
      </div>
      <div class="key-lines">
        <${Key} entity=${entity} rule=${rule} which="primary" value=${rule.primary_key} reload=${reload} />
        <${Key} entity=${entity} rule=${rule} which="secondary" value=${rule.secondary_key ?? ""} reload=${reload} />
      </div>
    </section>
  `;
}

/** A key is not shown before the reader asks: others may look at the screen.
 * @param {{ entity: string, rule: Shown, which: "primary" | "secondary", value: string, reload: () =>
 *   void }} properties */
function Key({ entity, rule, which, value, reload }) {
  const [isShown, setShown] = useState(false);
  const [name, label] = [visible(rule.name), S[which]];
  const rotate = () =>
    confirm({
      title: S.rotateTitle(label, name),
      text: S.rotateText,
      action: S.rotate,
      run: async () => {
        await call("rotate_key", { path: { entity, name: rule.name }, body: { key: which } });
        toast(S.rotated(label, name));
        reload();
      },
    });
  return html`
    <div class="key-line">
      <span class="muted">${label}</span>
      <code class="key-value">${value === "" ? S.noKey : isShown ? html`<${Text} value=${value} />` : S.hidden}</code>
      <span class="actions">
        ${value !== "" && html`
          <button
            type="button"
            class="quiet"
            aria-label=${(isShown ? S.hideLabel : S.showLabel)(label, name)}
            onClick=${() => setShown(!isShown)}
          >
            ${isShown ? S.hide : S.show}
          </button>
          <${Copy} text=${connectionString(entity, rule.name, value)} label=${S.copyString} />
        `}
        <button type="button" class="quiet" aria-label=${S.rotateLabel(label, name)} onClick=${rotate}>
          ${S.rotate}
        </button>
      </span>
    </div>
  `;
}

/** @param {{ rights: Rights, error: string | undefined, onChange: (rights: Rights) => void }} properties */
export function RightsOf({ rights, error, onChange }) {
  const id = useId();
  const isManage = rights.includes("manage");
  const set = (/** @type {Rights[number]} */ right, /** @type {boolean} */ isOn) =>
    onChange(isOn ? [...rights, right] : rights.filter((each) => each !== right));
  return html`
    <fieldset class="rights" aria-describedby=${`${id}-hint ${error ? `${id}-error` : ""}`}>
      <legend>${S.rights}</legend>
      ${
        /** @type {const} */ (["send", "listen", "manage"]).map(
          (right) => html`
            <label key=${right}>
              <input
                type="checkbox"
                checked=${rights.includes(right) || isManage}
                disabled=${isManage && right !== "manage"}
                aria-invalid=${error ? "true" : undefined}
                onChange=${(/** @type {any} */ event) => set(right, event.target.checked)}
              />
              ${S.right[right]}
            </label>
          `,
        )
      }
      <p class="hint" id=${`${id}-hint`}>${S.manageIncludes}</p>
      ${error && html`<p class="field-error" id=${`${id}-error`} role="alert"><${Text} value=${error} /></p>`}
    </fieldset>
  `;
}

/** @param {{ entity: string, rule: Shown, close: () => void, onDone: () => void }} properties */
function ChangeRights({ entity, rule, close, onDone }) {
  const [rights, setRights] = useState(rule.rights);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const name = visible(rule.name);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await call("put_authorization_rule", { path: { entity, name: rule.name }, body: { rights } });
      toast(S.rightsChanged(name));
      close();
      onDone();
    } catch (refused) {
      setError(/** @type {Error} */ (refused));
    }
  };
  const isOfRights = error instanceof ApiError && error.field === "rights";
  return html`
    <${Dialog} title=${S.changeRightsLabel(name)}>
      <form onSubmit=${submit}>
        <${RightsOf} rights=${rights} error=${isOfRights ? error.message : undefined} onChange=${setRights} />
        ${!isOfRights && html`<${Problem} error=${error} />`}
        <div class="dialog-actions">
          <button type="button" onClick=${close}>${C.cancel}</button>
          <button type="submit" class="primary">${S.save}</button>
        </div>
      </form>
    <//>
  `;
}
