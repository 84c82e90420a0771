// Parts of the form: body, system properties, application properties, what a template becomes.

import { base64OfBytes } from "../../lib/bytes.js";
import { number, size, utc } from "../../lib/format.js";
import { useAddedFocus } from "../../lib/focus.js";
import { html, useMemo } from "../../lib/html.js";
import { laidOut, writeJson } from "../../lib/json.js";
import { isoOf, timeOf } from "../../lib/local-time.js";
import { visible } from "../../lib/visible.js";
import { Choice, Field } from "../../components/field.js";
import { Text } from "../../components/text.js";
import { FIELDS, countOf, hasTemplate, lifeOf, messageOf, mistakesOf, sizeOf } from "./draft.js";
import { S } from "../../strings/send.js";

/** @typedef {import("./draft.js").Draft} Draft */
/** @typedef {{ draft: Draft, change: (part: Partial<Draft>) => void, errors: Record<string,
 *   string> }} PartProperties */

/** @param {PartProperties} properties */
export function BodyPart({ draft, change, errors }) {
  const { kind, text, hex, file } = draft;
  const bytes = useMemo(() => sizeOf(draft), [kind, text, hex, file]);
  const laid = kind === "json" ? laidOut(text) : null;
  const take = async (/** @type {File | undefined} */ chosen) => {
    if (chosen === undefined) return;
    change({ file: { name: chosen.name, base64: base64OfBytes(new Uint8Array(await chosen.arrayBuffer())) } });
  };
  return html`
    <section class="card">
      <div class="card-head"><h2>${S.body}</h2><span class="muted number">${size(bytes)}</span></div>
      <div class="tools body-kind">
        <${Choice}
          label=${S.as}
          value=${kind}
          onChange=${(/** @type {any} */ next) => change({ kind: next })}
          options=${
            /** @type {const} */ (["text", "json", "hex", "file"]).map((each) => ({ value: each, label: S[each] }))
          }
        />
        ${kind === "json" && html`
          <button
            type="button"
            class="quiet"
            disabled=${laid === null || laid === text}
            onClick=${() => change({ text: laid ?? text })}
          >
            ${S.layOut}
          </button>
        `}
      </div>
      ${kind === "file"
        ? html`
            <${Field}
              label=${html`<span class="hidden">${S.body}</span>`}
              hint=${file === null ? S.chooseFile : S.fileChosen(visible(file.name), size(bytes))}
              error=${errors.body}
            >
              <input type="file" onChange=${(/** @type {any} */ event) => take(event.target.files?.[0])} />
            <//>
          `
        : kind === "hex"
          ? html`
              <${Field} label=${html`<span class="hidden">${S.body}</span>`} hint=${S.hexHint} error=${errors.body}>
                <textarea
                  rows="8"
                  spellcheck=${false}
                  value=${hex}
                  onInput=${(/** @type {any} */ event) => change({ hex: event.target.value })}
                />
              <//>
            `
          : html`
              <${Field} label=${html`<span class="hidden">${S.body}</span>`} error=${errors.body}>
                <textarea
                  rows="8"
                  spellcheck=${false}
                  value=${text}
                  onInput=${(/** @type {any} */ event) => change({ text: event.target.value })}
                />
              <//>
            `}
    </section>
  `;
}

/** @param {PartProperties & { hints: Partial<Record<string, string>> }} properties */
export function SystemPart({ draft, change, errors, hints }) {
  const { fields, scheduled, life, kind } = draft;
  const at = timeOf(scheduled);
  const iso = lifeOf(life);
  const text = (/** @type {import("./draft.js").FieldName} */ name) => html`
    <${Field} key=${name} label=${S.fields[name]} hint=${hints[name]} error=${errors[name]}>
      <input
        value=${fields[name] ?? ""}
        autocomplete="off"
        spellcheck=${false}
        placeholder=${name === "content_type" && kind === "json" ? S.jsonType : ""}
        onInput=${(/** @type {any} */ event) => change({ fields: { ...fields, [name]: event.target.value } })}
      />
    <//>
  `;
  return html`
    <section class="card">
      <div class="card-head"><h2>${S.system}</h2></div>
      <div class="form-grid">
        ${FIELDS.map(text)}
        <${Field}
          label=${S.scheduled}
          hint=${at === null ? S.scheduledNow : utc(isoOf(at))}
          error=${errors.scheduled_for}
        >
          <input
            type="datetime-local"
            step="1"
            value=${scheduled}
            onInput=${(/** @type {any} */ event) => change({ scheduled: event.target.value })}
          />
        <//>
        <${Field}
          label=${S.life}
          hint=${life.trim() === "" || iso === life.trim() ? S.lifeHint : S.lifeIs(iso)}
          error=${errors.time_to_live}
        >
          <input
            value=${life}
            autocomplete="off"
            spellcheck=${false}
            onInput=${(/** @type {any} */ event) => change({ life: event.target.value })}
          />
        <//>
      </div>
    </section>
  `;
}

/** @param {PartProperties} properties */
export function ApplicationPart({ draft, change, errors }) {
  const { properties } = draft;
  const { list, added } = useAddedFocus(properties.length);
  const set = (/** @type {number} */ at, /** @type {Partial<import("./draft.js").Property>} */ part) =>
    change({ properties: properties.map((each, index) => (index === at ? { ...each, ...part } : each)) });
  const setType = (/** @type {number} */ at, /** @type {any} */ type) => {
    const { value } = properties[at];
    set(at, { type, value: type === "boolean" && value !== "true" && value !== "false" ? "true" : value });
  };
  return html`
    <section class="card">
      <div class="card-head"><h2>${S.application}</h2></div>
      ${properties.length !== 0 && html`
        <ul class="property-rows" ref=${list}>
          ${properties.map(({ name, type, value }, at) => {
            const place = number(at + 1);
            const error = errors[`properties.${at}`];
            const isOfName = error === S.nameNeeded || error === S.nameTwice;
            const described = error === undefined ? undefined : `property-error-${at}`;
            return html`
              <li key=${at}>
                <input
                  aria-label=${S.nameOf(place)}
                  placeholder=${S.name}
                  value=${name}
                  autocomplete="off"
                  spellcheck=${false}
                  aria-invalid=${error && isOfName ? "true" : undefined}
                  aria-describedby=${described}
                  onInput=${(/** @type {any} */ event) => set(at, { name: event.target.value })}
                />
                <select
                  aria-label=${S.typeOf(place)}
                  value=${type}
                  onChange=${(/** @type {any} */ event) => setType(at, event.target.value)}
                >
                  ${Object.entries(S.types).map(
                    ([id, label]) => html`<option key=${id} value=${id} selected=${id === type}>${label}</option>`,
                  )}
                </select>
                ${type === "boolean"
                  ? html`
                      <select
                        aria-label=${S.valueOf(place)}
                        value=${value}
                        onChange=${(/** @type {any} */ event) => set(at, { value: event.target.value })}
                      >
                        <option selected=${value === "true"}>true</option>
                        <option selected=${value !== "true"}>false</option>
                      </select>
                    `
                  : html`
                      <input
                        aria-label=${S.valueOf(place)}
                        placeholder=${S.value}
                        value=${value}
                        autocomplete="off"
                        spellcheck=${false}
                        aria-invalid=${error && !isOfName ? "true" : undefined}
                        aria-describedby=${described}
                        inputmode=${type === "text" ? undefined : "decimal"}
                        onInput=${(/** @type {any} */ event) => set(at, { value: event.target.value })}
                      />
                    `}
                <button
                  type="button"
                  class="quiet"
                  aria-label=${S.removeLabel(visible(name) || place)}
                  onClick=${() => change({ properties: properties.filter((_, index) => index !== at) })}
                >
                  ×
                </button>
                ${error && html`<p class="field-error" id=${described} role="alert"><${Text} value=${error} /></p>`}
              </li>
            `;
          })}
        </ul>
      `}
      <button
        type="button"
        onClick=${() => {
          added();
          change({ properties: [...properties, { name: "", type: "text", value: "" }] });
        }}
      >
        ${S.add}
      </button>
    </section>
  `;
}

/** Some of what a template becomes.
 * @param {{ draft: Draft }} properties */
export function Preview({ draft }) {
  const count = countOf(draft);
  const isShown = (1 < count || (draft.fills && hasTemplate(draft))) && Object.keys(mistakesOf(draft)).length === 0;
  const places = isShown ? [...new Set([0, 1, count - 1])].filter((at) => 0 <= at && at < count) : [];
  // Ids are made anew for what is sent: those that are shown change with the form, and with nothing else.
  const messages = useMemo(() => places.map((at) => messageOf(draft, Number(draft.start) + at)), [draft, isShown]);
  if (!isShown) return null;
  return html`
    <section class="card" aria-label=${S.preview}>
      <div class="card-head"><h2>${S.preview}</h2></div>
      <ol class="previews">
        ${places.map((at, index) => {
          const { body, message_id: id, session_id: session, properties } = messages[index];
          return html`
            <li key=${at} value=${at + 1}>
              <span class="number muted">${number(at + 1)}</span>
              <span>
                ${id == null
                  ? html`<span class="muted">${S.noId}</span>`
                  : html`<b><${Text} value=${id} max=${80} /></b>`}
                ${session != null && html` <span class="tag"><${Text} value=${session} max=${60} /></span>`}
                ${properties !== undefined && html`
                  ${" "}<code class="muted"><${Text} value=${writeJson(properties)} max=${120} /></code>
                `}
                ${body && html`<br /><code><${Text} value=${body.replace(/\s+/g, " ")} max=${160} /></code>`}
              </span>
            </li>
          `;
        })}
      </ol>
    </section>
  `;
}
