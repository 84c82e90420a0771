// The namespace as a Config.json: written, and read again with a look at what it would do.

import { JsonText, call } from "../../lib/api.js";
import { useDraft } from "../../lib/draft.js";
import { number } from "../../lib/format.js";
import { html, useMemo, useRef, useState } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { useResource } from "../../lib/resource.js";
import { Field } from "../../components/field.js";
import { Command, Notice, Problem } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { EntityLink, Text } from "../../components/text.js";
import { attempt, toast } from "../../components/toast.js";
import { exportConfiguration } from "../new-entity/make.js";
import { chosen, mistakesOf, namespacesOf, offsetOf, preview } from "./preview.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/settings.js";

/** @typedef {import("./preview.js").Named} Named */

export function File() {
  return html`<${Export} /><${Import} />`;
}

function Export() {
  const [keys, setKeys] = useState(false);
  return html`
    <section class="card" aria-labelledby="export">
      <div class="card-head"><h2 id="export">${S.exportTitle}</h2></div>
      <div class="settings-form">
        <p class="muted">${S.exportText}</p>
        <label class="check">
          <input
            type="checkbox"
            checked=${keys}
            aria-describedby="export-hint"
            onChange=${(/** @type {any} */ event) => setKeys(event.target.checked)}
          />
          <span>${S.exportKeys}<span class="hint" id="export-hint"> ${S.exportKeysHint}</span></span>
        </label>
        <div class="actions">
          <button type="button" class="primary" onClick=${() => attempt(() => exportConfiguration(keys), S.exported)}>
            ${S.exportButton}
          </button>
        </div>
        <${Command} text=${S.exportCommand} />
      </div>
    </section>
  `;
}

/** Entities up to which what happens is shown in full; more are a table that scrolls. */
const LISTED_MAX = 100;

/** Keys are not kept over a reload.
 * @param {string} text */
const hasSecrets = (text) => /"(Primary|Secondary)Key"/i.test(text);

function Import() {
  const [kept, setKept, forget] = useDraft("configuration", "");
  const [text, setText] = useState(kept);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [applied, setApplied] = useState(/** @type {Schemas["Applied"] | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  const current = useResource((signal) => call("get_configuration", { signal }), []);
  const change = (/** @type {string} */ next) => {
    setText(next);
    if (hasSecrets(next)) forget();
    else setKept(next);
    setError(null);
    setApplied(null);
  };
  const take = async (/** @type {any} */ event) => {
    const [file] = event.target.files;
    if (file !== undefined) change(await file.text());
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const done = await call("put_configuration", { body: /** @type {any} */ (new JsonText(text)) });
      setApplied(done);
      toast(S.applied(number(done.made), number(done.changed)), { tone: done.refused.length === 0 ? "done" : "alarm" });
      current.reload();
    } catch (refused) {
      setError(/** @type {Error} */ (refused));
    } finally {
      setBusy(false);
    }
  };
  const mistakes = error === null ? [] : mistakesOf(error.message);
  const goTo = (/** @type {{ line: number, column: number }} */ { line, column }) => {
    const area = box.current?.querySelector("textarea");
    if (!area) return;
    const at = offsetOf(text, line, column);
    area.focus();
    area.setSelectionRange(at, Math.min(text.length, at + 1));
    area.scrollTop = Math.max(0, (line - 4) * 18);
  };
  return html`
    <section class="card" aria-labelledby="import">
      <div class="card-head"><h2 id="import">${S.importTitle}</h2></div>
      <form class="settings-form" onSubmit=${submit}>
        <p class="muted">${S.importText}</p>
        <${Field} label=${S.importFile}><input type="file" accept=".json,application/json" onChange=${take} /><//>
        <div ref=${box}>
          <${Field}
            label=${S.importArea}
            hint=${S.importHint}
            error=${error !== null && mistakes.length === 0 ? error.message : null}
          >
            <textarea
              rows="10"
              spellcheck=${false}
              value=${text}
              aria-invalid=${error === null ? undefined : "true"}
              onInput=${(/** @type {any} */ event) => change(event.target.value)}
            />
          <//>
        </div>
        ${mistakes.length !== 0 && html`
          <div role="alert">
            <ul class="mistakes">
              ${mistakes.map(
                (mistake, at) => html`
                  <li key=${at}>
                    <button type="button" class="link number" title=${S.toPlace} onClick=${() => goTo(mistake)}>
                      ${mistake.line}:${mistake.column}
                    </button>
                    <span><${Text} value=${mistake.text} /></span>
                  </li>
                `,
              )}
            </ul>
          </div>
        `}
        ${applied !== null && html`
          <${Notice} tone=${applied.refused.length === 0 ? "info" : "alarm"}>
            <div>
              <p>${S.applied(number(applied.made), number(applied.changed))}</p>
              ${applied.refused.length !== 0 && html`
                <p>${S.refused}</p>
                <ul>${applied.refused.map((each, at) => html`<li key=${at}><${Text} value=${each} /></li>`)}</ul>
              `}
            </div>
          <//>
        `}
        ${text.trim() !== "" && html`<${Preview} text=${text} current=${current.data} />`}
        <${Problem} error=${current.error} />
        <div class="actions">
          <button type="submit" class="primary" disabled=${isBusy || text.trim() === ""}>
            ${isBusy ? S.importBusy : S.importButton}
          </button>
        </div>
        <${Command} text=${S.importCommand} />
      </form>
    </section>
  `;
}

/** @param {{ text: string, current: any }} properties */
function Preview({ text, current }) {
  const there = current?.UserConfig?.Namespaces?.[0];
  const read = useMemo(() => {
    try {
      const namespaces = namespacesOf(text);
      return {
        isSeveral: 1 < namespaces.length,
        named: preview(chosen(namespaces, there?.Name), there, (path) => entities.peek().has(path)),
        error: "",
      };
    } catch (error) {
      return { isSeveral: false, named: [], error: /** @type {Error} */ (error).message };
    }
  }, [text, there]);
  if (read.error !== "")
    return html`<p class="muted" role="status">${S.notRead} <${Text} value=${read.error} max=${200} /></p>`;
  if (read.named.length === 0) return html`<p class="muted" role="status">${S.previewNone}</p>`;
  return html`
    <div class="preview">
      <h3>${S.preview} <span class="number">${number(read.named.length)}</span></h3>
      ${read.isSeveral && html`<p class="muted">${S.previewOther} <b><${Text} value=${there?.Name} /></b></p>`}
      ${LISTED_MAX < read.named.length
        ? html`
            <${Table}
              label=${S.preview}
              columns=${COLUMNS}
              rows=${read.named}
              keyOf=${(/** @type {Named} */ { path }) => path}
              isSorted=${true}
              heightMax=${320}
            />
          `
        : html`
            <ul class="named">
              ${read.named.map(
                (named) => html`
                  <li key=${named.path}>
                    ${COLUMNS.map(({ id, cell }) => html`<span key=${id} class=${`named-${id}`}>${cell(named)}</span>`)}
                  </li>
                `,
              )}
            </ul>
          `}
    </div>
  `;
}

/** @type {import("../../components/table.js").Column<Named>[]} */
const COLUMNS = [
  {
    id: "path",
    label: S.path,
    cell: ({ path, effect }) =>
      effect === "new" ? html`<${Text} value=${path} max=${260} />` : html`<${EntityLink} path=${path} />`,
  },
  { id: "kind", label: S.kind, hide: "narrow", cell: ({ kind }) => html`<span class="muted">${C.kinds[kind]}</span>` },
  { id: "effect", label: S.effect, isWide: true, cell: (named) => html`<${Effect} named=${named} />` },
];

/** @param {{ named: Named }} properties */
function Effect({ named: { effect, changes, areRulesNew, keys } }) {
  const says = changes.map(
    ({ name, was, is }) => html`
      <span class="change">
        <${Text} value=${name} max=${80} />: <${Text} value=${was} max=${80} none=${S.unset} /> → <b>
          <${Text} value=${is} max=${80} none=${S.unset} />
        </b>
      </span>
    `,
  );
  return html`
    ${effect === "new" && html`<span class="tag accent">${S.effectNew}</span>`}
    ${effect === "same" && html`<span class="muted">${S.effectSame}</span>`}
    ${effect === "unknown" && html`<span class="muted">${S.effectUnknown}</span>`}
    ${says}
    ${areRulesNew && html`<span class="change">${S.rulesChange}</span>`}
    ${0 < keys && html` <span class="muted">${S.withKeys(keys)}</span>`}
  `;
}
