// The messages that the reader keeps: chosen, saved, deleted, and as a file. A file has them as the API takes them.

import { canned, deleteCanned, keepCanned } from "../../lib/canned.js";
import { bytesOfText, download } from "../../lib/bytes.js";
import { html, useRef, useState } from "../../lib/html.js";
import { writeJson } from "../../lib/json.js";
import { visible } from "../../lib/visible.js";
import { Dialog, confirm, openDialog } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { draftOfNew, messageOf, parseSpelled } from "./draft.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/send.js";

/** @typedef {import("./draft.js").Draft} Draft */
/** @typedef {import("../../lib/canned.js").Canned} Canned */

const FILE = "jitney-messages.json";

/** @param {{ draft: Draft, path: string, onChoose: (chosen: Canned) => void }} properties */
export function Saved({ draft, path, onChoose }) {
  const [name, setName] = useState("");
  /** @type {{ current: HTMLInputElement | null }} */
  const file = useRef(null);
  const all = canned.value;
  const known = all.find((each) => each.name === name);
  const choose = (/** @type {string} */ next) => {
    setName(next);
    const chosen = all.find((each) => each.name === next);
    if (chosen !== undefined) onChoose(chosen);
  };
  const save = () =>
    openDialog(
      (close) => html`
        <${Save}
          name=${name}
          close=${close}
          onSave=${(/** @type {string} */ given) => {
            if (!keepCanned([{ name: given, entity: path, draft }])) throw new Error(S.savedFull);
            setName(given);
            toast(S.saved(visible(given)));
          }}
        />
      `,
    );
  const remove = () =>
    confirm({
      title: S.savedDeleteTitle(visible(name)),
      text: S.savedDeleteText,
      action: S.savedDelete,
      run: async () => {
        deleteCanned(name);
        setName("");
      },
    });
  const write = () =>
    download(
      FILE,
      bytesOfText(
        `${writeJson(
          all.map((each) => ({
            name: each.name,
            entity: each.entity,
            message: messageOf({ ...each.draft, fills: false }, 0),
          })),
          2,
        )}\n`,
      ),
    );
  const read = async (/** @type {File | undefined} */ chosen) => {
    if (chosen === undefined) return;
    try {
      const some = cannedOf(await chosen.text());
      if (!keepCanned(some)) throw new Error(S.savedFull);
      toast(S.savedRead(String(some.length)));
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), { tone: "alarm" });
    }
    if (file.current !== null) file.current.value = "";
  };
  return html`
    <section class="card saved">
      <${Field} label=${S.savedMessages} hint=${S.savedHint}>
        <select value=${name} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
          <option value="" selected=${known === undefined}>${all.length === 0 ? S.savedNone : S.savedChoose}</option>
          ${all.map(
            (each) => html`
              <option key=${each.name} value=${each.name} selected=${each.name === name}>${visible(each.name)}</option>
            `,
          )}
        </select>
      <//>
      <div class="actions">
        <button type="button" onClick=${save}>${S.savedSave}</button>
        ${known !== undefined && html`<button type="button" onClick=${remove}>${S.savedDelete}</button>`}
        <button type="button" class="quiet" disabled=${all.length === 0} onClick=${write}>${S.savedWrite}</button>
        <button type="button" class="quiet" onClick=${() => file.current?.click()}>${S.savedLoad}</button>
        <input
          ref=${file}
          type="file"
          accept=".json,application/json"
          hidden
          aria-label=${S.savedLoad}
          onChange=${(/** @type {any} */ event) => read(event.target.files?.[0])}
        />
      </div>
    </section>
  `;
}

/** Reads a file of messages, or throws what is wrong with it.
 * @param {string} text
 * @returns {Canned[]} */
function cannedOf(text) {
  /** @type {any} */
  let all;
  try {
    all = parseSpelled(text);
  } catch (error) {
    throw new Error(S.savedNotJson(error instanceof Error ? error.message : String(error)));
  }
  if (!Array.isArray(all)) throw new Error(S.savedNoList);
  return all.map((each, at) => {
    const { name, entity = "", message } = each ?? {};
    if (
      typeof name !== "string" ||
      name === "" ||
      typeof entity !== "string" ||
      message === null ||
      typeof message !== "object"
    )
      throw new Error(S.savedWrong(String(at + 1)));
    return { name, entity, draft: draftOfNew(message) };
  });
}

/** @param {{ name: string, close: () => void, onSave: (name: string) => void }} properties */
function Save({ name, close, onSave }) {
  const [value, setValue] = useState(name);
  const [error, setError] = useState("");
  const isKnown = canned.value.some((each) => each.name === value.trim());
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (value.trim() === "") return setError(S.nameNeeded);
    try {
      onSave(value.trim());
      return close();
    } catch (refused) {
      return setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  return html`
    <${Dialog} title=${S.savedSaveTitle}>
      <form onSubmit=${submit} noValidate>
        <${Field} label=${S.savedName} hint=${isKnown ? S.savedReplaces : ""} error=${error}>
          <input
            value=${value}
            autocomplete="off"
            spellcheck=${false}
            autofocus
            onInput=${(/** @type {any} */ event) => {
              setValue(event.target.value);
              setError("");
            }}
          />
        <//>
        <div class="dialog-actions">
          <button type="button" onClick=${close}>${C.cancel}</button>
          <button type="submit" class="primary">${isKnown ? S.savedReplace : S.savedSaveAction}</button>
        </div>
      </form>
    <//>
  `;
}
