// A dead letter is repaired: its body and properties are changed, the difference is shown, and it is sent again.

import { actOn } from "../../lib/actions.js";
import { bytesOfText } from "../../lib/bytes.js";
import { difference } from "../../lib/diff.js";
import { digits, size } from "../../lib/format.js";
import { html, useMemo, useState } from "../../lib/html.js";
import { laidOut } from "../../lib/json.js";
import { entityOf } from "../../lib/paths.js";
import { visible } from "../../lib/visible.js";
import { Dialog } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { Notice, Problem } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/message.js";

/** @param {string} text */
const plain = (text) => text.replaceAll("\r\n", "\n");

/** @param {string} text */
const sizeOf = (text) => size(bytesOfText(text).length);

/** @param {{ address: string, message: Schemas["MessageShown"], close: () => void, onDone: (job: Schemas["Job"]) =>
 *   void }} properties */
export function Repair({ address, message, close, onDone }) {
  const original = message.body?.text ?? "";
  const [body, setBody] = useState(original);
  const [action, setAction] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const laid = useMemo(() => laidOut(body), [body]);
  const laidOriginal = useMemo(() => laidOut(original), [original]);
  // The values of JSON are compared, line by line; what is sent is the text as it stands.
  const lines = useMemo(
    () => (laid === null || laidOriginal === null ? difference(original, body) : difference(laidOriginal, laid)),
    [original, body, laid, laidOriginal],
  );
  const isSame = body === original;
  const hasOtherLayout =
    !isSame && laid !== null && laidOriginal !== null && plain(body) === laid && plain(original) !== laidOriginal;
  const hasOtherValues = lines.some(({ sign }) => sign !== " ");
  // A text area knows no other ends of lines.
  const hasCarriageReturns = /\r\n/.test(original) && !/(^|[^\r])\n/.test(original);
  const change = (/** @type {string} */ text) => setBody(hasCarriageReturns ? text.replaceAll("\n", "\r\n") : text);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const job = await actOn(address, message.sequence_number, {
        kind: "move",
        action: action.trim() || undefined,
        body: isSame ? undefined : body,
      });
      toast(S.resentDone(digits(message.sequence_number)));
      close();
      onDone(job);
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title=${S.repairTitle(digits(message.sequence_number), visible(entityOf(address)))} isWide=${true}>
      <form onSubmit=${submit}>
        <${Field} label=${S.repairBody}>
          <textarea
            rows="10"
            spellcheck=${false}
            value=${body}
            onInput=${(/** @type {any} */ event) => change(event.target.value)}
          />
        <//>
        ${laid !== null && html`
          <div class="tools">
            <button type="button" class="quiet" disabled=${laid === plain(body)} onClick=${() => change(laid)}>
              ${S.repairFormat}
            </button>
          </div>
        `}
        ${(hasOtherLayout || (!isSame && !hasOtherValues)) && html`
          <${Notice}>${S.repairLayout(sizeOf(original), sizeOf(body))}<//>
        `}
        ${body.includes("{{") && !isSame && html`<${Notice}>${S.repairBraces}<//>`}
        <${Field} label=${S.repairAction} hint=${S.repairActionHint}>
          <input
            spellcheck=${false}
            value=${action}
            onInput=${(/** @type {any} */ event) => setAction(event.target.value)}
          />
        <//>
        <section>
          <h3>${S.repairDifference}</h3>
          ${!hasOtherValues
            ? html`<p class="muted">${S.repairSame}</p>`
            : html`
                <pre class="difference" tabindex="0" aria-label=${S.repairDifference}>
                  ${lines.map(
                    ({ sign, text }, at) => html`
                      <span key=${at} class=${sign === "+" ? "added" : sign === "-" ? "removed" : ""}>
                        ${sign} <${Text} value=${text} max=${500} />
                        ${"\n"}
                      </span>
                    `,
                  )}
                </pre>
              `}
        </section>
        <${Problem} error=${error} />
        <div class="dialog-actions">
          <button type="button" onClick=${close}>${C.cancel}</button>
          <button type="submit" class="primary" disabled=${isBusy}>${S.repairSubmit}</button>
        </div>
      </form>
    <//>
  `;
}
