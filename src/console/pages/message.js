// One message: its whole situation, its properties, its body, and what may be done with it.

import { call } from "../lib/api.js";
import { actOn } from "../lib/actions.js";
import { digits, lastName, topicOf } from "../lib/format.js";
import { html } from "../lib/html.js";
import { writeJson } from "../lib/json.js";
import { entities } from "../lib/live.js";
import { connectionHref, entityHref, entityOf, isDeadLetters, sessionHref } from "../lib/paths.js";
import { useResource } from "../lib/resource.js";
import { href } from "../lib/router.js";
import { can } from "../lib/session.js";
import { Body } from "../components/body.js";
import { confirm, openDialog } from "../components/dialog.js";
import { openJobDialog } from "../components/job-dialog.js";
import { Empty, Loaded, Problem } from "../components/notice.js";
import { Text } from "../components/text.js";
import { Size, Time } from "../components/time.js";
import { attempt } from "../components/toast.js";
import { stateOf } from "../components/message-list.js";
import { ApiError } from "../lib/api.js";
import { Repair } from "./message/repair.js";
import { openChange, sendNow } from "./schedule/change.js";
import { S as C } from "../strings/common.js";
import { S as E } from "../strings/entity.js";
import { S } from "../strings/message.js";

/** @typedef {Schemas["MessageShown"]} Message */

/** @param {import("./index.js").PageProperties} properties */
export default function MessagePage({ parameters }) {
  const { path: address, number } = parameters;
  const live = entities.value.get(entityOf(address));
  // What happens in the queue may be about this message.
  const stirred = live === undefined ? [] : [live.locked, live.completed, live.abandoned, live.locks_expired, live.deferred, live.scheduled, live.dead_letters];
  const current = useResource((signal) => readMessage(address, number, signal), [address, number], stirred);
  const isGone = current.error instanceof ApiError && current.error.status === 404;
  return html`<${Heading} address=${address} number=${number} message=${isGone ? undefined : current.data} reload=${current.reload} />
    ${isGone ? html`<div class="card"><${Empty} title=${S.gone}><a href=${listHref(address)}>${S.back}</a><//></div>`
      : html`<${Loaded} of=${current}>${(/** @type {Message} */ message) => html`<${Shown} address=${address} message=${message} />`}<//>`}`;
}

/** @param {string} address
 * @param {string} number
 * @param {AbortSignal} signal */
const readMessage = (address, number, signal) => call("get_message", { path: { entity: address, number: /** @type {any} */ (number) }, signal });

/** @param {string} address */
const listHref = (address) => entityHref(entityOf(address), isDeadLetters(address) ? "dead-letters" : "messages");

/** @param {{ address: string, number: string, message: Message | undefined, reload: () => void }} properties */
function Heading({ address, number, message, reload }) {
  const entity = entityOf(address);
  return html`<div class="page-head"><p class="crumbs"><a href=${href(["entities"])}>${C.pages.entities}</a> / <a href=${entityHref(entity)}><${Text} value=${lastName(entity)} max=${260} /></a> / <a
      href=${listHref(address)}>${isDeadLetters(address) ? E.dead : E.messages}</a></p>
    <h1 tabindex="-1">${S.title(number)}</h1>
    ${message && html`<span class=${`tag ${isDeadLetters(address) ? "alarm" : message.lock == null ? "" : "accent"}`}>${isDeadLetters(address) && message.lock == null ? S.dead : stateOf(message)}</span>`}
    ${message && html`<div class="actions">${can("send") && html`<a class="button" href=${href(["send"], { entity: address, number })}>${S.copyOf}</a>`}
      <a class="button" href=${href(["rule-test"], { entity: topicOf(entity) ?? undefined, of: address, number })}>${C.pages["rule-test"]}</a>
      ${can("manage") && html`<${Actions} address=${address} message=${message} reload=${reload} />`}</div>`}</div>`;
}

/** @param {{ address: string, message: Message, reload: () => void }} properties */
function Actions({ address, message, reload }) {
  const { sequence_number: number, state, lock } = message;
  const shown = digits(number);
  if (lock != null) return html`<span class="muted actions">${S.lockedActions}</span>`;
  const ask = (/** @type {string} */ title, /** @type {string} */ text, /** @type {string} */ name, /** @type {any} */ action, /** @type {string} */ done, isAlarm = false) =>
    confirm({ title, text, action: name, isAlarm, run: () => actOn(address, number, action).then(() => attempt(async () => {}, done)).finally(reload) });
  const resend = () => ask(S.resendTitle(shown), S.resendText, S.resend, { kind: "move" }, S.resentDone(shown));
  const deadLetter = () => ask(S.deadTitle(shown), S.deadText, S.deadLetter, { kind: "dead_letter" }, S.deadDone(shown));
  const remove = () => ask(S.removeTitle(shown), S.removeText, state === "scheduled" ? S.cancel : S.remove, { kind: "delete" }, S.removedDone(shown), true);
  const activate = () => ask(S.activateTitle(shown), S.activateText, S.activate, { kind: "activate" }, S.activeDone(shown));
  const repair = () => openDialog((close) => html`<${Repair} address=${address} message=${message} close=${close} onDone=${reload} />`);
  const move = () => openJobDialog({ entity: address, kind: "move", selection: { numbers: [number] }, onStarted: reload });
  const isDead = isDeadLetters(address);
  const scheduled = { entity: address, sequence_number: number, scheduled_for: message.scheduled_for };
  return html`<div class="actions">
    ${isDead && html`${message.body?.text != null && !message.body.truncated && html`<button type="button" class="primary" onClick=${repair}>${S.repair}</button>`}
      <button type="button" onClick=${resend}>${S.resend}</button>`}
    ${state === "deferred" && html`<button type="button" onClick=${activate}>${S.activate}</button>`}
    ${state === "scheduled" && html`<button type="button" onClick=${() => openChange(scheduled, reload)}>${S.changeTime}</button>
      <button type="button" onClick=${() => sendNow(scheduled, reload)}>${S.sendNow}</button>`}
    ${state !== "scheduled" && html`<button type="button" onClick=${move}>${S.move}</button>`}
    ${!isDead && state !== "scheduled" && html`<button type="button" onClick=${deadLetter}>${S.deadLetter}</button>`}
    <button type="button" onClick=${remove}>${state === "scheduled" ? S.cancel : S.remove}</button></div>`;
}

/** @param {{ address: string, message: Message }} properties */
function Shown({ address, message }) {
  const name = `${entityOf(address)}-${digits(message.sequence_number)}`;
  return html`<div class="columns message"><section class="card"><div class="card-head"><h2>${S.situation}</h2></div><${Situation} address=${address} message=${message} /></section>
      <section class="card"><div class="card-head"><h2>${S.properties}</h2></div><${Properties} address=${address} message=${message} /></section></div>
    <section class="card"><div class="card-head"><h2>${S.body}</h2></div>
      ${message.damaged ? html`<${Problem} error=${new Error(S.state.damaged)} />` : html`<${Body} body=${message.body} contentType=${message.content_type} name=${name} />`}</section>`;
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
  return html`<p class="sentence">${sentence(address, message)}</p><dl class="pairs">
    ${lock != null && html`<dt>${S.heldBy}</dt><dd>${lock.holder == null ? html`<span class="muted">${S.holderUnknown}</span>`
      : html`<a href=${connectionHref(lock.holder.connection)}><${Text} value=${lock.holder.container_id} max=${200} /></a> <span class="muted">${lock.holder.peer}</span>`}</dd>
      ${lock.until != null && html`<dt>${S.lockedUntil}</dt><dd><${Time} at=${lock.until} /></dd>`}`}
    ${dead != null && html`<dt>${S.reason}</dt><dd class="alarm-text"><${Text} value=${dead.reason} none=${E.noReason} /></dd>
      ${dead.description && html`<dt>${S.description}</dt><dd><${Text} value=${dead.description} /></dd>`}
      ${dead.source && html`<dt>${S.source}</dt><dd><a href=${entityHref(dead.source)}><${Text} value=${dead.source} /></a></dd>`}`}
    ${message.scheduled_for != null && html`<dt>${S.scheduledFor}</dt><dd><${Time} at=${message.scheduled_for} /></dd>`}
    <dt>${S.deliveries}</dt><dd class="number">${message.delivery_count}</dd>
    <dt>${S.enqueued}</dt><dd><${Time} at=${message.enqueued_at} /></dd>
    <dt>${S.expires}</dt><dd><${Time} at=${message.expires_at ?? undefined} none=${S.never} /></dd>
    <dt>${S.number}</dt><dd class="number">${digits(message.sequence_number)}</dd>
    ${message.enqueued_sequence_number != null && html`<dt>${S.enqueuedNumber}</dt><dd class="number">${digits(message.enqueued_sequence_number)}</dd>`}
    <dt>${S.size}</dt><dd><${Size} value=${message.size_bytes} /></dd></dl>`;
}

/** @param {{ address: string, message: Message }} properties */
function Properties({ address, message }) {
  const fields = /** @type {(keyof typeof S.fields)[]} */ (Object.keys(S.fields)).filter((name) => message[name] != null);
  const application = Object.entries(message.properties ?? {});
  return html`<dl class="pairs">${fields.map((name) => html`<dt>${S.fields[name]}</dt><dd>${name === "session_id"
      ? html`<a href=${sessionHref(entityOf(address), message.session_id ?? "")}><${Text} value=${message[name]} /></a>` : html`<${Text} value=${message[name]} />`}</dd>`)}</dl>
    <h3>${S.application}</h3>${application.length === 0 ? html`<p class="muted">${S.noApplication}</p>` : html`<dl class="pairs">${application.map(([name, value]) => html`
      <dt><${Text} value=${name} max=${200} /></dt><dd><code><${Text} value=${typeof value === "string" ? value : writeJson(value)} /></code></dd>`)}</dl>`}`;
}
