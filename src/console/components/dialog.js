// Dialogs: one at a time, with the browser's own focus trap, Escape and backdrop.

import { html, signal, useId, useLayoutEffect, useRef, useState } from "../lib/html.js";
import { Field } from "./field.js";
import { Problem } from "./notice.js";
import { Text } from "./text.js";
import { S } from "../strings/common.js";

/** @type {import("../lib/html.js").Signal<any>} */
const current = signal(null);

/** Opens a dialog. `content` gets a function that closes it.
 * @param {(close: () => void) => any} content */
export function openDialog(content) {
  current.value = content(closeDialog);
}

export function closeDialog() {
  current.value = null;
}

/** The place of the dialog; the frame has it once. */
export function Dialogs() {
  return current.value;
}

/** A dialog with a title.
 * @param {{ title: any, children?: any, isWide?: boolean }} properties */
export function Dialog({ title, children, isWide = false }) {
  /** @type {{ current: HTMLDialogElement | null }} */
  const element = useRef(null);
  const id = useId();
  // Before the next key: what is typed at once goes into the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const onClick = (/** @type {MouseEvent} */ event) => {
    // A click on the backdrop has the dialog itself as its target.
    if (event.target === element.current) closeDialog();
  };
  return html`
    <dialog
      ref=${element}
      class=${isWide ? "wide" : ""}
      aria-labelledby=${id}
      onClose=${closeDialog}
      onClick=${onClick}
    >
      <div class="dialog"><h2 id=${id}>${title}</h2>${children}</div>
    </dialog>
  `;
}

/** A dialog that asks before something is done that cannot be undone. With `name`, the reader types it.
 * @param {{ title: string, text: any, name?: string, action: string, isAlarm?: boolean, run: () =>
 *   Promise<unknown> }} question */
export function confirm(question) {
  openDialog((close) => html`<${Confirm} ...${question} close=${close} />`);
}

/** @param {Parameters<typeof confirm>[0] & { close: () => void }} properties */
function Confirm({ title, text, name, action, isAlarm = true, run, close }) {
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await run();
      close();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  const isReady = (name === undefined || typed === name) && !isBusy;
  return html`
    <${Dialog} title=${title}>
      <form onSubmit=${submit}>
        <div class="dialog-text">${text}</div>
        ${name !== undefined && html`
          <${Field} label=${html`${S.typeName("")}<b><${Text} value=${name} /></b>`}>
            <input
              value=${typed}
              autocomplete="off"
              spellcheck=${false}
              onInput=${(/** @type {any} */ event) => setTyped(event.target.value)}
            />
          <//>
        `}
        <${Problem} error=${error} />
        <div class="dialog-actions">
          <button type="button" onClick=${close}>${S.cancel}</button>
          <button type="submit" class=${isAlarm ? "alarm" : "primary"} disabled=${!isReady}>${action}</button>
        </div>
      </form>
    <//>
  `;
}
