// A dead letter is repaired: its body and properties are changed, the difference is shown, and it is sent again.

import { actOn } from "../../lib/actions.js";
import { difference } from "../../lib/diff.js";
import { digits } from "../../lib/format.js";
import { html, useMemo, useState } from "../../lib/html.js";
import { laidOut } from "../../lib/json.js";
import { Dialog } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { Notice, Problem } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/message.js";

/** @param {{ address: string, message: Schemas["MessageShown"], close: () => void, onDone: () => void }} properties */
export function Repair({ address, message, close, onDone }) {
  const original = message.body?.text ?? "";
  const [body, setBody] = useState(() => laidOut(original) ?? original);
  const [action, setAction] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const lines = useMemo(() => difference(laidOut(original) ?? original, laidOut(body) ?? body), [original, body]);
  const isSame = lines.every(({ sign }) => sign === " ");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await actOn(address, message.sequence_number, { kind: "move", action: action.trim() || undefined, body: isSame ? undefined : body });
      toast(S.resentDone(digits(message.sequence_number)));
      close();
      onDone();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${S.repairTitle} isWide=${true}><form onSubmit=${submit}>
    <${Field} label=${S.repairBody}><textarea rows="10" spellcheck=${false} value=${body} onInput=${(/** @type {any} */ event) => setBody(event.target.value)} /><//>
    ${body.includes("{{") && !isSame && html`<${Notice}>${S.repairBraces}<//>`}
    <${Field} label=${S.repairAction} hint=${S.repairActionHint}><input spellcheck=${false} value=${action} onInput=${(/** @type {any} */ event) => setAction(event.target.value)} /><//>
    <section><h3>${S.repairDifference}</h3>${isSame ? html`<p class="muted">${S.repairSame}</p>` : html`<pre class="difference" tabindex="0" aria-label=${S.repairDifference}>${
      lines.map(({ sign, text }, at) => html`<span key=${at} class=${sign === "+" ? "added" : sign === "-" ? "removed" : ""}>${sign} <${Text} value=${text} max=${500} />${"\n"}</span>`)}</pre>`}</section>
    <${Problem} error=${error} />
    <div class="dialog-actions"><button type="button" onClick=${close}>${C.cancel}</button><button type="submit" class="primary" disabled=${isBusy}>${S.repairSubmit}</button></div>
  </form><//>`;
}
