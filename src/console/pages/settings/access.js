// Who is signed in, with which rights, to which namespace.

import { call } from "../../lib/api.js";
import { number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { entities, totals } from "../../lib/live.js";
import { useResource } from "../../lib/resource.js";
import { can, session, signIn, signOut } from "../../lib/session.js";
import { freshTotal } from "../../lib/trends.js";
import { visible } from "../../lib/visible.js";
import { Field } from "../../components/field.js";
import { Command } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { Count, Size } from "../../components/time.js";
import { toast } from "../../components/toast.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/settings.js";
import { Server } from "./server.js";

export function Access() {
  const signedIn = session.value;
  if (signedIn === null) return null;
  return html`
    <div class="columns"><${SignedIn} session=${signedIn} /><${Namespace} name=${signedIn.namespace} /></div>
    <div class="columns">
      <${Other} session=${signedIn} />
      <section class="card" aria-labelledby="root-keys">
        <div class="card-head"><h2 id="root-keys">${S.rootKeys}</h2></div>
        <p class="muted">${S.rootKeysText}</p>
        <${Command} text=${S.rootKeysCommand} />
      </section>
    </div>
    ${signedIn.isOperator && html`<${Server} />`}
  `;
}

/** @param {{ session: import("../../lib/session.js").Session }} properties */
function SignedIn({ session: { credential, rights } }) {
  const who = credential.kind === "key" ? C.signedInAs.key(credential.name) : C.signedInAs[credential.kind];
  const kept = credential.kind === "open" ? S.keptOpen : credential.kind === "key" ? S.keptKey : S.keptToken;
  return html`
    <section class="card" aria-labelledby="signed-in">
      <div class="card-head">
        <h2 id="signed-in">${S.signedIn}</h2>
        ${credential.kind !== "open" && html`
          <button type="button" class="quiet" onClick=${signOut}>${S.signOut}</button>
        `}
      </div>
      <dl class="pairs">
        <dt>${S.who}</dt>
        <dd><${Text} value=${who} /></dd>
        ${credential.kind === "key" && credential.path !== "" && html`
          <dt>${S.onlyEntity}</dt>
          <dd><${Text} value=${credential.path} /></dd>
        `}
        ${
          /** @type {const} */ (["listen", "send", "manage"]).map(
            (right) => html`
              <dt key=${right}>${S.right[right]}</dt>
              <dd>
                ${rights[right] === null && !rights.manage
                  ? html`<span class="muted">${S.onlyTry}</span>`
                  : rights[right] !== false
                    ? S.has
                    : html`<span class="muted">${S.hasNot}</span>`}
              </dd>
            `,
          )
        }
        <dt>${S.kept}</dt>
        <dd class="muted">${kept}</dd>
      </dl>
    </section>
  `;
}

/** Only an export names the namespace and its tier.
 * @param {AbortSignal} signal
 * @returns {Promise<{ Name?: string, Sku?: string }>} */
async function describe(signal) {
  if (!can("manage")) return {};
  const configuration = /** @type {any} */ (await call("get_configuration", { signal }));
  return configuration?.UserConfig?.Namespaces?.[0] ?? {};
}

/** @param {{ name: string }} properties */
function Namespace({ name }) {
  const described = useResource(describe, [name]);
  const count = (/** @type {Schemas["Kind"]} */ kind) =>
    [...entities.value.values()].filter((entity) => entity.kind === kind).length;
  const { active, scheduled, deferred, dead_letters: dead, size_bytes: size } = totals.value;
  return html`
    <section class="card" aria-labelledby="namespace">
      <div class="card-head"><h2 id="namespace">${S.namespace}</h2></div>
      <dl class="pairs">
        <dt>${S.name}</dt>
        <dd><${Text} value=${described.data?.Name ?? name} none=${S.thisAddress} /></dd>
        ${described.data?.Sku && html`<dt>${S.tier}</dt><dd><${Text} value=${described.data.Sku} /></dd>`}
        <dt>${S.queues}</dt>
        <dd class="number">${number(count("queue"))}</dd>
        <dt>${S.topics}</dt>
        <dd class="number">${number(count("topic"))}</dd>
        <dt>${S.subscriptions}</dt>
        <dd class="number">${number(count("subscription"))}</dd>
        <dt>${S.messages}</dt>
        <dd><${Count} value=${active + scheduled + deferred} /></dd>
        <dt>${S.dead}</dt>
        <dd><${Count} value=${dead} tone=${0 < freshTotal.value ? "alarm" : ""} /></dd>
        <dt>${S.size}</dt>
        <dd><${Size} value=${size} /></dd>
      </dl>
    </section>
  `;
}

/** @param {{ session: import("../../lib/session.js").Session }} properties */
function Other({ session: { credential, namespace } }) {
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await signIn(credential, name.trim());
      toast(S.otherNow(visible(name.trim())));
      setName("");
      setError("");
    } catch (refused) {
      // The client asks for that of before again.
      await signIn(credential, namespace);
      setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  const isOfOne = credential.kind === "key" || credential.kind === "signature";
  return html`
    <section class="card" aria-labelledby="other">
      <div class="card-head"><h2 id="other">${S.other}</h2></div>
      <p class="muted">${isOfOne ? S.otherKey : S.otherText}</p>
      ${!isOfOne && html`
        <form class="settings-line" onSubmit=${submit}>
          <${Field} label=${S.otherName} error=${error}>
            <input
              value=${name}
              placeholder=${namespace || S.thisAddress}
              spellcheck=${false}
              autocomplete="off"
              onInput=${(/** @type {any} */ event) => setName(event.target.value)}
            />
          <//>
          <button type="submit">${S.otherGo}</button>
        </form>
      `}
    </section>
  `;
}
