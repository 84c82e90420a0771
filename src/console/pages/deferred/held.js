// A deferred message that is locked here: its lock's time left, its content, and how it is settled.

import { call } from "../../lib/api.js";
import { now, second } from "../../lib/clock.js";
import { digits, span } from "../../lib/format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../lib/html.js";
import { messageHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { Body } from "../../components/body.js";
import { Field } from "../../components/field.js";
import { Loaded, Problem } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { announce, toast } from "../../components/toast.js";
import { Value } from "../../components/value.js";
import { S as C } from "../../strings/common.js";
import { S as M } from "../../strings/message.js";
import { S } from "../../strings/deferred.js";

/** Seconds before its end at which a lock's time is announced. */
const ANNOUNCED = 10;
/** How young a lock is when its message has just been received. */
const FRESH_MS = 3_000;

/** A message that was received here. Its number is digits: it may be larger than a number can hold.
 * @typedef {{ entity: string, number: string, token: string, until: string, from: number }} Held */
/** @typedef {"complete" | "abandon" | "defer" | "dead_letter"} Outcome */

/** @param {{ held: Held, onEnd: () => void, onDone: () => void }} properties */
export function HeldMessage({ held, onEnd, onDone }) {
  const { entity, number, token, until, from } = held;
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isDead, setDead] = useState(false);
  /** @type {{ current: HTMLElement | null }} */
  const heading = useRef(null);
  // What was received just now is what comes next for the keyboard.
  useLayoutEffect(() => {
    if (now() - from < FRESH_MS) heading.current?.focus();
  }, []);
  second.value;
  const left = Math.max(0, Date.parse(until) - now());
  const isOver = left === 0;
  const isClose = !isOver && left <= ANNOUNCED * 1000;
  useEffect(() => {
    if (isClose) announce(S.leftAnnouncement(String(ANNOUNCED)));
    if (isOver) announce(S.ended);
  }, [isClose, isOver]);
  const settle = async (/** @type {Outcome} */ outcome, reason = "", description = "") => {
    setBusy(true);
    setError(null);
    try {
      const settlement = {
        lock_token: token,
        outcome,
        ...(reason === "" ? {} : { reason }),
        ...(description === "" ? {} : { description }),
      };
      const { results } = await call("settle_messages", { path: { entity }, body: { settlements: [settlement] } });
      if (!results[0].settled) throw new Error(results[0].detail ?? results[0].code ?? "");
      toast(S.done[outcome](number));
      onDone();
    } catch (refused) {
      setError(refused instanceof Error ? refused : new Error(String(refused)));
      setBusy(false);
    }
  };
  const button = (/** @type {"complete" | "abandon" | "defer"} */ outcome) => html`
    <button
      type="button"
      class=${outcome === "complete" ? "primary" : ""}
      disabled=${isBusy}
      title=${S[/** @type {const} */ (`${outcome}Hint`)]}
      onClick=${() => settle(outcome)}
    >
      ${S[outcome]}
    </button>
  `;
  return html`
    <section class="card held" aria-label=${S.heldTitle(number)}>
      <div class="card-head">
        <h2 ref=${heading} tabindex="-1">
          ${S.heldTitle(number)}${" "}
          <a class="held-page" href=${messageHref(entity, /** @type {any} */ (number))}>${S.page}</a>
        </h2>
        <span class=${isOver ? "tag" : isClose ? "tag alarm" : "tag accent"}>
          ${isOver ? S.ended : S.left(span(Math.ceil(left / 1000) * 1000))}
        </span>
      </div>
      ${!isOver && html`
        <div
          class="lock-left"
          role="progressbar"
          aria-label=${S.lockLeft}
          aria-valuemin="0"
          aria-valuemax="100"
          aria-valuenow=${Math.round(shareOf(left, from, until))}
        >
          <i style=${{ width: `${shareOf(left, from, until)}%` }}></i>
        </div>
      `}
      <${Content} held=${held} />
      <${Problem} error=${error} />
      ${isOver
        ? html`<div class="actions"><button type="button" onClick=${onEnd}>${S.dismiss}</button></div>`
        : isDead
          ? html`
              <${DeadLetterForm}
                isBusy=${isBusy}
                onBack=${() => setDead(false)}
                onSettle=${(/** @type {string} */ reason, /** @type {string} */ description) =>
                  settle("dead_letter", reason, description)}
              />
            `
          : html`
              <div class="actions">
                ${button("complete")}
                ${button("abandon")}
                ${button("defer")}
                <button type="button" disabled=${isBusy} onClick=${() => setDead(true)}>${S.deadLetter}…</button>
              </div>
            `}
    </section>
  `;
}

/** The share of a lock's time that is left, in percent.
 * @param {number} left
 * @param {number} from
 * @param {string} until */
const shareOf = (left, from, until) => Math.max(0, Math.min(100, (left / Math.max(1, Date.parse(until) - from)) * 100));

/** @param {{ isBusy: boolean, onBack: () => void, onSettle: (reason: string, description: string) =>
 *   void }} properties */
function DeadLetterForm({ isBusy, onBack, onSettle }) {
  const [reason, setReason] = useState("");
  const [description, setDescription] = useState("");
  /** @type {{ current: HTMLFormElement | null }} */
  const form = useRef(null);
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), []);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    onSettle(reason, description);
  };
  return html`
    <form ref=${form} class="held-form" onSubmit=${submit} aria-label=${S.deadLetterTitle}>
      <${Field} label=${S.reason}>
        <input
          value=${reason}
          autocomplete="off"
          onInput=${(/** @type {any} */ event) => setReason(event.target.value)}
        />
      <//>
      <${Field} label=${S.description}>
        <input
          value=${description}
          autocomplete="off"
          onInput=${(/** @type {any} */ event) => setDescription(event.target.value)}
        />
      <//>
      <div class="actions">
        <button type="submit" class="primary" disabled=${isBusy}>${S.deadLetter}</button>
        <button type="button" onClick=${onBack}>${S.back}</button>
      </div>
    </form>
  `;
}

/** @param {{ held: Held }} properties */
function Content({ held }) {
  const { entity, number } = held;
  const found = useResource(
    (signal) => call("get_message", { path: { entity, number: /** @type {any} */ (number) }, signal }),
    [entity, number],
  );
  return html`
    <${Loaded} of=${found}>
      ${(/** @type {Schemas["MessageShown"]} */ message) => {
        const fields = /** @type {(keyof typeof M.fields)[]} */ (Object.keys(M.fields)).filter(
          (name) => message[name] != null,
        );
        const own = Object.entries(message.properties ?? {});
        return html`
          ${fields.length + own.length !== 0 && html`
            <dl class="pairs">
              ${fields.map(
                (name) => html`<dt>${M.fields[name]}</dt><dd><${Text} value=${String(message[name])} /></dd>`,
              )}
              ${own.map(
                ([name, value]) => html`
                  <dt><code><${Text} value=${name} max=${200} /></code></dt>
                  <dd><${Value} value=${value} type=${message.property_types?.[name]} /></dd>
                `,
              )}
            </dl>
          `}
          <div class="held-body">
            <${Body}
              body=${message.body}
              contentType=${message.content_type}
              name=${`${entity}-${digits(message.sequence_number)}`}
            />
          </div>
        `;
      }}
    <//>
  `;
}
