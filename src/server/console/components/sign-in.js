// The sign-in: by connection string, or by the operator's key. Identity providers will be a choice of their own here.

import { html, useState } from "../lib/html.js";
import { isPlain, signIn } from "../lib/session.js";
import { parseConnectionString } from "../lib/sign.js";
import { Choice, Field } from "./field.js";
import { Command, Notice } from "./notice.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/sign-in.js";

export function SignIn() {
  const [by, setBy] = useState("connection-string");
  const [text, setText] = useState("");
  const [namespace, setNamespace] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isOperator = by === "operator";
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const credential = isOperator ? operatorOf(text) : parseConnectionString(text);
    if (credential === null) {
      setError(isOperator ? S.operatorEmpty : S.connectionStringWrong);
      return;
    }
    setBusy(true);
    setError("");
    try {
      await signIn(credential, namespace.trim());
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
    } finally {
      setBusy(false);
    }
  };
  const onText = (/** @type {any} */ event) => {
    setText(event.target.value);
    setError("");
  };
  // A password field: what is typed is not shown, and a password manager may keep it.
  const input = html`<input type="password" value=${text} onInput=${onText} autocomplete="current-password" spellcheck=${false} autofocus />`;
  return html`<main id="main" class="sign-in"><h1>${S.title}</h1><p class="muted">${S.lead}</p>
    ${isPlain() && html`<${Notice} tone="alarm">${C.plainNotice}<//>`}
    <form onSubmit=${submit}>
      <${Choice} label=${S.by} value=${by} onChange=${(/** @type {string} */ next) => { setBy(next); setText(""); setError(""); }}
        options=${[{ value: "connection-string", label: S.byConnectionString }, { value: "operator", label: S.byOperator }]} />
      ${isOperator ? html`<${Field} key="operator" label=${S.operator} hint=${S.operatorHint} error=${error}>${input}<//>
          <${Command} label=${S.operatorCommandLabel} text=${S.operatorCommand} />`
        : html`<${Field} key="connection" label=${S.connectionString} hint=${S.connectionStringHint} error=${error}>${input}<//>`}
      <${Field} label=${S.namespace} hint=${S.namespaceHint}><input value=${namespace} autocomplete="off" spellcheck=${false}
        onInput=${(/** @type {any} */ event) => setNamespace(event.target.value)} /><//>
      <button type="submit" class="primary" disabled=${isBusy}>${isBusy ? S.busy : S.submit}</button>
    </form></main>`;
}

/** @param {string} text
 * @returns {import("../lib/session.js").Credential | null} */
const operatorOf = (text) => (text.trim() === "" ? null : { kind: "operator", key: text.trim() });
