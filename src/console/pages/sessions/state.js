// The state of a message session, shown and set: bytes, which clients mostly make of a text or JSON.

import { call } from "../../lib/api.js";
import { base64OfBytes, bytesOfBase64, bytesOfText } from "../../lib/bytes.js";
import { useDraft } from "../../lib/draft.js";
import { size } from "../../lib/format.js";
import { html, useMemo, useState } from "../../lib/html.js";
import { laidOut } from "../../lib/json.js";
import { can } from "../../lib/session.js";
import { Body } from "../../components/body.js";
import { Dialog, confirm, openDialog } from "../../components/dialog.js";
import { Choice, Field } from "../../components/field.js";
import { Notice } from "../../components/notice.js";
import { toast } from "../../components/toast.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/sessions.js";

/** @typedef {"text" | "json" | "hex"} Form */

/** Returns bytes as a text, null if they are none.
 * @param {Uint8Array} bytes */
function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** @param {{ path: string, session: Schemas["Session"], reload: () => void }} properties */
export function State({ path, session, reload }) {
  const { id, state_base64: base64, lock } = session;
  const bytes = useMemo(() => bytesOfBase64(base64 ?? ""), [base64]);
  const text = useMemo(() => textOf(bytes), [bytes]);
  const body = useMemo(
    () => ({ text, base64: text === null ? base64 : undefined, size_bytes: bytes.length, truncated: false }),
    [bytes, text],
  );
  const isHeld = lock != null;
  const edit = () =>
    openDialog(
      (close) => html`
        <${Editor} path=${path} id=${id} bytes=${bytes} isHeld=${isHeld} close=${close} onDone=${reload} />
      `,
    );
  const clear = () =>
    confirm({
      title: S.clearTitle,
      text: S.clearText,
      action: S.clearState,
      run: async () => {
        await call("set_session_state", { path: { entity: path, id }, body: { state_base64: null } });
        toast(S.cleared);
        reload();
      },
    });
  return html`
    <section class="card" aria-labelledby="state">
      <div class="card-head">
        <h2 id="state">${S.stateTitle}</h2>
        ${can("manage") && html`
          <span class="actions">
            <button type="button" onClick=${edit}>${base64 == null ? S.set : S.change}</button>
            ${base64 != null && html`<button type="button" onClick=${clear}>${S.clearState}</button>`}
          </span>
        `}
      </div>
      ${base64 == null
        ? html`<p class="muted">${S.stateNone}</p>`
        : bytes.length === 0
          ? html`<p class="muted">${S.stateEmpty}</p>`
          : html`<${Body} body=${body} name=${`${path}-${id}-state`} />`}
    </section>
  `;
}

/** Bytes in the form in which they are written.
 * @param {Uint8Array} bytes
 * @param {Form} form */
function written(bytes, form) {
  if (form === "hex")
    return Array.from(bytes, (byte, at) => byte.toString(16).padStart(2, "0") + (at % 16 === 15 ? "\n" : " "))
      .join("")
      .trim();
  const text = textOf(bytes) ?? "";
  return form === "json" ? (laidOut(text) ?? text) : text;
}

/** Bytes of what is written, or why they are none.
 * @param {string} value
 * @param {Form} form
 * @returns {{ bytes: Uint8Array, error: string | null }} */
function read(value, form) {
  const none = { bytes: new Uint8Array() };
  if (form === "hex") {
    const digits = value.replace(/\s+/g, "");
    if (digits.length % 2 !== 0 || /[^0-9a-f]/i.test(digits)) return { ...none, error: S.notHex };
    return { bytes: Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16)), error: null };
  }
  if (form === "json" && laidOut(value) === null) return { ...none, error: S.notJson };
  return { bytes: bytesOfText(value), error: null };
}

/** @param {Uint8Array} bytes
 * @returns {Form} */
function formOf(bytes) {
  const text = textOf(bytes);
  if (text === null) return "hex";
  return /^\s*[{[]/.test(text) && laidOut(text) !== null ? "json" : "text";
}

/** @param {{ path: string, id: string, bytes: Uint8Array, isHeld: boolean, close: () => void, onDone: () =>
 *   void }} properties */
function Editor({ path, id, bytes, isHeld, close, onDone }) {
  const [draft, setDraft, forget] = useDraft(`state ${JSON.stringify([path, id])}`, {
    form: formOf(bytes),
    value: written(bytes, formOf(bytes)),
  });
  const { form, value } = /** @type {{ form: Form, value: string }} */ (draft);
  const [refused, setRefused] = useState("");
  const [isBusy, setBusy] = useState(false);
  const { bytes: next, error } = useMemo(() => read(value, form), [value, form]);
  const change = (/** @type {string} */ to) => {
    const nextForm = /** @type {Form} */ (to);
    // What cannot be read in its form stays as it is written.
    setDraft({
      form: nextForm,
      value: error === null && (nextForm === "hex" || textOf(next) !== null) ? written(next, nextForm) : value,
    });
  };
  const leave = () => {
    forget();
    close();
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (error !== null) return;
    setBusy(true);
    try {
      await call("set_session_state", { path: { entity: path, id }, body: { state_base64: base64OfBytes(next) } });
      toast(S.saved);
      leave();
      onDone();
    } catch (reason) {
      setRefused(reason instanceof Error ? reason.message : String(reason));
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title=${S.editTitle} isWide=${true}>
      <form onSubmit=${submit}>
        ${isHeld && html`<${Notice}>${S.heldNotice}<//>`}
        <div class="tools">
          <${Choice}
            label=${S.as}
            value=${form}
            onChange=${change}
            options=${[
              { value: "text", label: S.text },
              { value: "json", label: S.json },
              { value: "hex", label: S.hex },
            ]}
          />
          <span class="muted number">${size(next.length)}</span>
        </div>
        <${Field} label=${S.editLabel} error=${error ?? (refused || null)}>
          <textarea
            rows="10"
            spellcheck=${false}
            autofocus
            value=${value}
            onInput=${(/** @type {any} */ event) => {
              setRefused("");
              setDraft({ form, value: event.target.value });
            }}
          />
        <//>
        <div class="dialog-actions">
          <button type="button" onClick=${leave}>${C.cancel}</button>
          <button type="submit" class="primary" disabled=${isBusy || error !== null}>${S.save}</button>
        </div>
      </form>
    <//>
  `;
}
