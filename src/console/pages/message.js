// One message: its whole situation, its properties, its body, and what may be done with it.

import { call } from "../lib/api.js";
import { digits, duration, lastName, topicOf } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { entities } from "../lib/live.js";
import { outcomeOf } from "../lib/outcome.js";
import { connectionHref, entityHref, entityOf, isDeadLetters, sessionHref } from "../lib/paths.js";
import { useResource } from "../lib/resource.js";
import { href } from "../lib/router.js";
import { can } from "../lib/session.js";
import { Body } from "../components/body.js";
import { openDialog } from "../components/dialog.js";
import { Empty, Loaded, Problem } from "../components/notice.js";
import { EntityName, Text } from "../components/text.js";
import { Size, Time } from "../components/time.js";
import { Value } from "../components/value.js";
import { openVerb } from "../components/verb-dialog.js";
import { stateOf } from "../components/message-list.js";
import { ApiError } from "../lib/api.js";
import { Neighbours } from "./message/neighbours.js";
import { Repair } from "./message/repair.js";
import { openChange } from "./schedule/change.js";
import { S as C } from "../strings/common.js";
import { S as E } from "../strings/entity.js";
import { S } from "../strings/message.js";

/** @typedef {Schemas["MessageShown"]} Message */

/** @param {import("./index.js").PageProperties} properties */
export default function MessagePage({ parameters }) {
  const { path: address, number } = parameters;
  const live = entities.value.get(entityOf(address));
  // What happens in the queue may be about this message.
  const stirred =
    live === undefined
      ? []
      : [
          live.locked,
          live.completed,
          live.abandoned,
          live.locks_expired,
          live.deferred,
          live.scheduled,
          live.dead_letters,
        ];
  const current = useResource((signal) => readMessage(address, number, signal), [address, number], stirred);
  const isGone = current.error instanceof ApiError && current.error.status === 404;
  const [done, setDone] = useState(/** @type {{ of: string, job: Schemas["Job"] } | null} */ (null));
  const key = `${address} ${number}`;
  const onDone = (/** @type {Schemas["Job"]} */ job) => {
    if (0 < job.changed) setDone({ of: key, job });
    current.reload();
  };
  return html`
    <${Heading}
      address=${address}
      number=${number}
      message=${isGone ? undefined : current.data}
      reload=${current.reload}
      onDone=${onDone}
    />
    ${isGone
      ? html`<${Gone} address=${address} job=${done?.of === key ? done.job : undefined} />`
      : html`
          <${Loaded} of=${current}>
            ${(/** @type {Message} */ message) => html`<${Shown} address=${address} message=${message} />`}
          <//>
        `}
  `;
}

/** What is said where the message is not there, or not any more: what was done to it here, or that it is gone.
 * @param {{ address: string, job: Schemas["Job"] | undefined }} properties */
function Gone({ address, job }) {
  const back = html`<a href=${listHref(address)}>${isDeadLetters(address) ? S.backToDead : S.back}</a>`;
  if (job === undefined) return html`<div class="card"><${Empty} title=${S.gone}>${back}<//></div>`;
  const { text, href: to, linkText } = outcomeOf(job);
  return html`
    <div class="card">
      <${Empty} title=${html`<${Text} value=${text} max=${400} />`}><a href=${to}>${linkText}</a>${back}<//>
    </div>
  `;
}

/** @param {string} address
 * @param {string} number
 * @param {AbortSignal} signal */
const readMessage = (address, number, signal) =>
  call("get_message", { path: { entity: address, number: /** @type {any} */ (number) }, signal });

/** @param {string} address */
const listHref = (address) => entityHref(entityOf(address), isDeadLetters(address) ? "dead-letters" : "messages");

/** @param {{ address: string, number: string, message: Message | undefined, reload: () => void,
 *   onDone: (job: Schemas["Job"]) => void }} properties */
function Heading({ address, number, message, reload, onDone }) {
  const entity = entityOf(address);
  return html`
    <div class="page-head">
      <p class="crumbs">
        <a href=${href(["entities"])}>${C.pages.entities}</a> / <a href=${entityHref(entity)}>
          <${EntityName} value=${lastName(entity)} max=${260} />
        </a> / <a href=${listHref(address)}>${isDeadLetters(address) ? E.dead : E.messages}</a>
      </p>
      <h1 tabindex="-1">${S.title(number)}</h1>
      <${Neighbours} />
      ${message && html`
        <span class=${`tag ${isDeadLetters(address) ? "alarm" : message.lock == null ? "" : "accent"}`}>
          ${isDeadLetters(address) && message.lock == null ? S.dead : stateOf(message)}
        </span>
      `}
      ${message && html`
        <div class="actions">
          ${can("send") && html`<a class="button" href=${href(["send"], { entity: address, number })}>${S.copyOf}</a>`}
          <a class="button" href=${href(["rule-test"], { entity: topicOf(entity) ?? undefined, of: address, number })}>
            ${C.pages["rule-test"]}
          </a>
          ${can("manage") && html`
            <${Actions} address=${address} message=${message} reload=${reload} onDone=${onDone} />
          `}
        </div>
      `}
    </div>
  `;
}

/** @param {{ address: string, message: Message, reload: () => void, onDone: (job: Schemas["Job"]) =>
 *   void }} properties */
function Actions({ address, message, reload, onDone }) {
  const { sequence_number: number, state, lock } = message;
  if (lock != null) return html`<span class="muted actions">${S.lockedActions}</span>`;
  const open = (/** @type {import("../components/verb-dialog.js").Kind} */ kind) => () =>
    openVerb({ entity: address, kind, selection: { numbers: [number] }, onDone });
  const repair = () =>
    openDialog((close) => html`<${Repair} address=${address} message=${message} close=${close} onDone=${onDone} />`);
  const reschedule = () =>
    openChange({ entity: address, sequence_number: number, scheduled_for: message.scheduled_for }, reload);
  const isDead = isDeadLetters(address);
  return html`
    <div class="actions">
      ${isDead && html`
        ${message.body?.text != null && !message.body.truncated && html`
          <button type="button" class="primary" onClick=${repair}>${S.repair}</button>
        `}
        <button type="button" onClick=${open("redrive")}>${S.resend}</button>
      `}
      ${state === "deferred" && html`<button type="button" onClick=${open("activate")}>${S.activate}</button>`}
      ${state === "scheduled" && html`
        <button type="button" onClick=${reschedule}>${S.changeTime}</button>
        <button type="button" onClick=${open("activate")}>${S.sendNow}</button>
      `}
      ${state !== "scheduled" && html`<button type="button" onClick=${open("move")}>${S.move}</button>`}
      ${!isDead && state !== "scheduled" && html`
        <button type="button" onClick=${open("dead_letter")}>${S.deadLetter}</button>
      `}
      <button type="button" onClick=${open("delete")}>${state === "scheduled" ? S.cancel : S.remove}</button>
    </div>
  `;
}

/** @param {{ address: string, message: Message }} properties */
function Shown({ address, message }) {
  const name = `${entityOf(address)}-${digits(message.sequence_number)}`;
  return html`
    <div class="columns message">
      <section class="card">
        <div class="card-head"><h2>${S.situation}</h2></div>
        <${Situation} address=${address} message=${message} />
      </section>
      <section class="card">
        <div class="card-head"><h2>${S.properties}</h2></div>
        <${Properties} address=${address} message=${message} />
      </section>
    </div>
    <section class="card">
      <div class="card-head"><h2>${S.body}</h2></div>
      ${message.damaged
        ? html`<${Problem} error=${new Error(S.state.damaged)} />`
        : html`<${Body} body=${message.body} contentType=${message.content_type} name=${name} />`}
    </section>
  `;
}

/** The state in a sentence.
 * @param {string} address
 * @param {Message} message */
function sentence(address, message) {
  if (message.lock != null) return S.state.locked;
  if (isDeadLetters(address)) return S.state.dead;
  if (message.state !== "active") return S.state[message.state];
  const entity = entities.value.get(address);
  if (entity?.receivers === 0) return S.state.noReceiver;
  return message.session_id != null && 0 < (entity?.sessions ?? 0) ? S.state.session : S.state.active;
}

/** @param {{ address: string, message: Message }} properties */
function Situation({ address, message }) {
  const { lock, dead_letter: dead } = message;
  return html`
    <p class="sentence">${sentence(address, message)}</p>
    <dl class="pairs">
      ${lock != null && html`
        <dt>${S.heldBy}</dt>
        <dd>
          ${lock.holder == null
            ? html`<span class="muted">${S.holderUnknown}</span>`
            : html`
                <a href=${connectionHref(lock.holder.connection)}>
                  <${Text} value=${lock.holder.container_id} max=${200} />
                </a>${" "}
                <span class="muted">${lock.holder.peer}</span>
              `}
        </dd>
        ${lock.until != null && html`<dt>${S.lockedUntil}</dt><dd><${Time} at=${lock.until} /></dd>`}
      `}
      ${dead != null && html`
        <dt>${S.reason}</dt>
        <dd class="alarm-text"><${Text} value=${dead.reason} none=${E.noReason} /></dd>
        ${dead.description && html`<dt>${S.description}</dt><dd><${Text} value=${dead.description} /></dd>`}
        ${dead.source && html`
          <dt>${S.source}</dt>
          <dd><a href=${entityHref(dead.source)}><${Text} value=${dead.source} /></a></dd>
        `}
      `}
      ${message.scheduled_for != null && html`
        <dt>${S.scheduledFor}</dt>
        <dd><${Time} at=${message.scheduled_for} /></dd>
      `}
      <dt>${S.deliveries}</dt>
      <dd class="number">${message.delivery_count}</dd>
      <dt>${S.enqueued}</dt>
      <dd><${Time} at=${message.enqueued_at} /></dd>
      <dt>${S.expires}</dt>
      <dd><${Time} at=${message.expires_at ?? undefined} none=${S.never} /></dd>
      <dt>${S.number}</dt>
      <dd class="number">${digits(message.sequence_number)}</dd>
      ${message.enqueued_sequence_number != null && html`
        <dt>${S.enqueuedNumber}</dt>
        <dd class="number">${digits(message.enqueued_sequence_number)}</dd>
      `}
      <dt>${S.size}</dt>
      <dd><${Size} value=${message.size_bytes} /></dd>
    </dl>
  `;
}

/** @param {{ address: string, message: Message }} properties */
function Properties({ address, message }) {
  const fields = /** @type {(keyof typeof S.fields)[]} */ (Object.keys(S.fields)).filter(
    (name) => message[name] != null,
  );
  const application = Object.entries(message.properties ?? {});
  return html`
    <dl class="pairs">
      ${fields.map(
        (name) => html`
          <dt>${S.fields[name]}</dt>
          <dd>
            ${name === "session_id"
              ? html`
                  <a href=${sessionHref(entityOf(address), message.session_id ?? "")}>
                    <${Text} value=${message[name]} />
                  </a>
                `
              : html`<${Text} value=${name === "time_to_live" ? duration(message[name] ?? "") : message[name]} />`}
          </dd>
        `,
      )}
    </dl>
    <h3>${S.application}</h3>
    ${application.length === 0
      ? html`<p class="muted">${S.noApplication}</p>`
      : html`
          <dl class="pairs">
            ${application.map(
              ([name, value]) => html`
                <dt><${Text} value=${name} max=${200} /></dt>
                <dd><${Value} value=${value} type=${message.property_types?.[name]} /></dd>
              `,
            )}
          </dl>
        `}
  `;
}
