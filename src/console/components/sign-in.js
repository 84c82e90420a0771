// The sign-in: at the issuer that the broker trusts, by connection string, or by the operator's key.

import { ApiError } from "../lib/api.js";
import { html, useEffect, useState } from "../lib/html.js";
import { leaveForIssuer, offer, readOffer } from "../lib/oidc.js";
import { complaint, isPlain, namedHere, signIn } from "../lib/session.js";
import { parseConnectionString } from "../lib/sign.js";
import { Choice, Field } from "./field.js";
import { Command, Notice } from "./notice.js";
import { Text } from "./text.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/sign-in.js";

export function SignIn() {
  const [chosen, setBy] = useState("");
  const issuer = offer.value?.oidc?.issuer;
  const by = chosen || (issuer === undefined ? "connection-string" : "issuer");
  const [text, setText] = useState("");
  // A link is opened in its own namespace.
  const [namespace, setNamespace] = useState(namedHere);
  const [error, setError] = useState(complaint.value);
  const [isBusy, setBusy] = useState(false);
  const isOperator = by === "operator";
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (by === "issuer") return attempt(() => leaveForIssuer(namespace.trim()));
    const credential = isOperator ? operatorOf(text) : parseConnectionString(text);
    if (credential === null) {
      setError(isOperator ? S.operatorEmpty : S.connectionStringWrong);
      return;
    }
    await attempt(() => signIn(credential, namespace.trim()));
  };
  const attempt = async (/** @type {() => Promise<void>} */ action) => {
    setBusy(true);
    setError("");
    complaint.value = "";
    try {
      await action();
    } catch (refused) {
      // What is not the operator's key is read as a token, and refused as one.
      const isWrongKey = isOperator && refused instanceof ApiError && refused.status === 401;
      const isWrongSignature = !isOperator && refused instanceof ApiError && /InvalidSignature/.test(refused.message);
      setError(
        isWrongKey
          ? S.operatorWrong
          : isWrongSignature
            ? S.keyWrong
            : refused instanceof Error
              ? refused.message
              : String(refused),
      );
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    // A session that has ended may have begun without a look at how to sign in.
    if (offer.value === null) readOffer().catch(() => {});
  }, []);
  const onText = (/** @type {any} */ event) => {
    setText(event.target.value);
    setError("");
  };
  const host = issuer === undefined || !URL.canParse(issuer) ? issuer : new URL(issuer).host;
  const options = [
    { value: "connection-string", label: S.byConnectionString },
    { value: "operator", label: S.byOperator },
  ];
  if (issuer !== undefined) options.unshift({ value: "issuer", label: S.byIssuer });
  // A password field: what is typed is not shown, and a password manager may keep it.
  const input = html`
    <input
      type="password"
      value=${text}
      onInput=${onText}
      autocomplete="current-password"
      spellcheck=${false}
      autofocus
    />
  `;
  return html`
    <main id="main" class="sign-in">
      <h1>${S.title}</h1>
      <p class="muted"><${Text} value=${by === "issuer" ? S.issuerLead(host ?? "") : S.lead} /></p>
      ${isPlain() && html`<${Notice} tone="alarm">${C.plainNotice}<//>`}
      <form onSubmit=${submit}>
        <${Choice}
          label=${S.by}
          value=${by}
          onChange=${(/** @type {string} */ next) => {
            setBy(next);
            setText("");
            setError("");
          }}
          options=${options}
        />
        ${by === "issuer"
          ? error && html`<p class="field-error" role="alert"><${Text} value=${error} /></p>`
          : isOperator
            ? html`
                <${Field} key="operator" label=${S.operator} hint=${S.operatorHint} error=${error}>${input}<//>
                <${Command} label=${S.operatorCommandLabel} text=${S.operatorCommand} />
              `
            : html`
                <${Field} key="connection" label=${S.connectionString} hint=${S.connectionStringHint} error=${error}>
                  ${input}
                <//>
              `}
        <${Field} label=${S.namespace} hint=${S.namespaceHint}>
          <input
            value=${namespace}
            autocomplete="off"
            spellcheck=${false}
            onInput=${(/** @type {any} */ event) => setNamespace(event.target.value)}
          />
        <//>
        <button type="submit" class="primary" disabled=${isBusy}>
          ${isBusy ? S.busy : by === "issuer" ? html`<${Text} value=${S.submitIssuer(host ?? "")} />` : S.submit}
        </button>
      </form>
    </main>
  `;
}

/** @param {string} text
 * @returns {import("../lib/session.js").Credential | null} */
const operatorOf = (text) => (text.trim() === "" ? null : { kind: "operator", key: text.trim() });
