// Messages are sent by hand: one, or many of a template; a new one, or one like another.

import { request } from "../lib/api.js";
import { useDraft } from "../lib/draft.js";
import { useRefusedFocus } from "../lib/focus.js";
import { digits, number, topicOf } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { entities, isKnown } from "../lib/live.js";
import { entityHref, entityOf, messageHref } from "../lib/paths.js";
import { useResource } from "../lib/resource.js";
import { call } from "../lib/api.js";
import { href, setQuery } from "../lib/router.js";
import { can, ownEntity } from "../lib/session.js";
import { visible } from "../lib/visible.js";
import { EntityField } from "../components/entity-field.js";
import { Field } from "../components/field.js";
import { NoEntities } from "../components/no-entities.js";
import { Empty, Loaded, Loading, Notice, Problem } from "../components/notice.js";
import { Text } from "../components/text.js";
import { Time } from "../components/time.js";
import { toast } from "../components/toast.js";
import { deliver } from "./send/deliver.js";
import {
  EMPTY,
  countOf,
  draftOf,
  fieldOf,
  hasCounter,
  hasTemplate,
  messageOf,
  mistakesOf,
  parseSpelled,
} from "./send/draft.js";
import { ApplicationPart, BodyPart, Preview, SystemPart } from "./send/parts.js";
import { Saved } from "./send/saved.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/send.js";

/** Entries of the list of what was sent. */
const SENT_MAX = 10;

/** @typedef {{ at: string, path: string, count: number, dropped: number, first: string | null, last: string |
 *   null }} Entry */

/** @param {import("./index.js").PageProperties} properties */
export default function Send({ query }) {
  const { entity: source = "", number: sequence } = query;
  const own = ownEntity();
  const path = query.to ?? (sequence === undefined ? source || own : (topicOf(entityOf(source)) ?? entityOf(source)));
  // Who may not listen knows the paths, or has the key of one.
  const isTyped = !can("listen") && own === "";
  const choices = !can("listen")
    ? [own].filter(Boolean)
    : [...entities.value.values()]
        .filter(({ kind }) => kind !== "subscription")
        .map((each) => each.path)
        .sort();
  const isRepeat = sequence !== undefined && source !== "";
  const choose = (/** @type {string} */ next) => setQuery(isRepeat ? { to: next } : { entity: next });
  const head = html`<div class="page-head"><h1 tabindex="-1">${C.pages.send}</h1></div>`;
  if (!can("send"))
    return html`${head}<div class="card"><${Empty} title=${S.notAllowed} text=${S.notAllowedText} /></div>`;
  if (!isTyped && isKnown.value && choices.length === 0 && path === "") return html`${head}<${NoEntities} />`;
  if (!isTyped && !isKnown.value && choices.length === 0 && path === "") return html`${head}<${Loading} />`;
  const shared = { path, choices, choose, isTyped };
  return html`
    ${head}
    ${isRepeat
      ? html`<${Repeat} key=${`${source} ${sequence}`} source=${source} sequence=${sequence} ...${shared} />`
      : html`<${Form} key="new" name="send" initial=${EMPTY} ...${shared} />`}
  `;
}

/** Reads the message that is repeated first.
 * @param {{ source: string, sequence: string, path: string, choices: string[], choose: (path: string) => void,
 *   isTyped: boolean }} properties */
function Repeat({ source, sequence, ...shared }) {
  const found = useResource(
    async (signal) => {
      const answer = await request("get_message", {
        path: { entity: source, number: /** @type {any} */ (sequence) },
        signal,
      });
      return parseSpelled(await answer.text());
    },
    [source, sequence],
  );
  const name = `${source}-${sequence}`;
  return html`
    <${Loaded} of=${found}>
      ${(/** @type {Schemas["MessageShown"]} */ message) => html`
        <${Form}
          name=${`send ${source} ${sequence}`}
          initial=${draftOf(message, name)}
          original=${{ source, sequence, encoded: message.encoded ?? null }}
          ...${shared}
        />
      `}
    <//>
  `;
}

/** @param {{ name: string, initial: import("./send/draft.js").Draft, original?: { source: string, sequence: string,
 *   encoded: string | null }, path: string, choices: string[], choose: (path: string) => void,
 *   isTyped: boolean }} properties */
function Form({ name, initial, original, path, choices, choose, isTyped }) {
  const [draft, setDraft, forget] = useDraft(name, initial);
  const [sent, setSent] = useDraft("sent", /** @type {Entry[]} */ ([]));
  const [errors, setErrors] = useState(/** @type {Record<string, string>} */ ({}));
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const [progress, setProgress] = useState(/** @type {number | null} */ (null));
  const form = useRefusedFocus(errors);
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  useEffect(() => {
    // Where it goes is known: the body is next. The heading has the focus first, as on every page.
    if (path === "" || !matchMedia("(pointer: fine)").matches) return undefined;
    const timer = setTimeout(
      () =>
        /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector("textarea"))?.focus({
          preventScroll: true,
        }),
      0,
    );
    return () => clearTimeout(timer);
  }, []);
  const about = useResource(
    async (signal) =>
      path === "" || !can("listen")
        ? null
        : await call("get_entity", { path: { entity: path }, signal }).catch(() => null),
    [path],
  );
  const { requires_session: hasSessions, requires_duplicate_detection: hasDuplicates } = about.data?.properties ?? {};
  const count = countOf(draft);
  const change = (/** @type {Partial<import("./send/draft.js").Draft>} */ part) => {
    setDraft({ ...draft, ...part });
    setErrors({});
    setProblem(null);
  };
  const run = async (
    /** @type {Iterable<import("./send/draft.js").NewMessage>} */ messages,
    /** @type {number} */ total,
  ) => {
    setErrors({});
    setProblem(null);
    if (path === "") return setErrors({ entity: S.toNeeded });
    stop.current = new AbortController();
    setProgress(0);
    const done = await deliver(path, messages, (delivered) => setProgress(delivered.count), stop.current.signal);
    setProgress(null);
    if (done.count !== 0) {
      const entry = {
        at: new Date().toISOString(),
        path,
        count: done.count,
        dropped: done.dropped,
        first: textOf(done.first),
        last: textOf(done.last),
      };
      setSent((now) => [entry, ...now].slice(0, SENT_MAX));
      say(entry, total);
    }
    if (done.error === null) return undefined;
    const field = fieldOf(done.error, draft);
    if (field !== "" && done.count === 0) return setErrors({ [field]: done.error.message });
    const why = done.count === 0 ? done.error : new Error(S.partly(number(done.count), done.error.message));
    setProblem(why);
    return undefined;
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (progress !== null) return;
    const mistakes = mistakesOf(draft);
    if (Object.keys(mistakes).length !== 0) setErrors(mistakes);
    else void run(messagesOf(draft, count), count);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  const hints = {
    session_id: hasSessions ? S.sessionNeeded : undefined,
    message_id: hasDuplicates ? S.duplicates : undefined,
  };
  const part = { draft, change, errors };
  const take = (/** @type {import("../lib/canned.js").Canned} */ chosen) => {
    change({ ...EMPTY, ...chosen.draft });
    if (chosen.entity !== "") choose(chosen.entity);
  };
  return html`
    ${original && html`
      <${Notice}>
        <span>
          ${S.repeats(original.sequence, visible(original.source))}${" "}
          <a href=${messageHref(original.source, /** @type {any} */ (original.sequence))}>${S.original}</a>
        </span>
        <span class="actions">
          ${original.encoded !== null && html`
            <button
              type="button"
              title=${S.exactHint}
              disabled=${progress !== null}
              onClick=${() => run([{ encoded: original.encoded ?? "" }], 1)}
            >
              ${S.exact}
            </button>
          `}
          <a href=${href(["send"], { entity: path })}>${S.anew}</a>
        </span>
      <//>
    `}
    ${original === undefined && html`<${Saved} draft=${draft} path=${path} onChoose=${take} />`}
    <form ref=${form} class="send-form" onSubmit=${submit} onKeyDown=${onKeyDown} noValidate>
      <section class="card send-head">
        <${EntityField}
          label=${S.to}
          value=${path}
          choices=${choices}
          isTyped=${isTyped}
          none=${isTyped ? "" : S.choose}
          error=${errors.entity}
          onChange=${(/** @type {string} */ next) => {
            setErrors({});
            choose(next);
          }}
        />
        <${Field} label=${S.many} error=${errors.count}>
          <input
            inputmode="numeric"
            value=${draft.count}
            autocomplete="off"
            onInput=${(/** @type {any} */ event) => change({ count: event.target.value })}
          />
        <//>
        ${1 < count && html`
          <${Field} label=${S.start} error=${errors.start}>
            <input
              inputmode="numeric"
              value=${draft.start}
              autocomplete="off"
              onInput=${(/** @type {any} */ event) => change({ start: event.target.value })}
            />
          <//>
        `}
        ${1 < count
          ? html`<p class="hint">${S.manyHint}</p>`
          : hasCounter(draft) && html`<p class="hint">${S.singleBraces}</p>`}
        <details class="hint"><summary>${S.templates}</summary>${S.templatesHint}</details>
        ${hasTemplate(draft) && html`
          <label class="fills-templates">
            <input
              type="checkbox"
              checked=${draft.fills}
              onChange=${(/** @type {any} */ event) => change({ fills: event.target.checked })}
            />${" "}
            ${S.fills}
          </label>
        `}
      </section>
      <div class="send-columns">
        <div class="send-main">
          <${BodyPart} ...${part} />
          <${ApplicationPart} ...${part} />
          <${Preview} draft=${draft} />
        </div>
        <${SystemPart} ...${part} hints=${hints} />
      </div>
      <${Problem} error=${problem} />
      <div class="send-foot">
        <button type="submit" class="primary" disabled=${progress !== null}>
          ${S.submit(number(Math.max(1, count)))}
        </button>
        ${progress !== null && html`
          <span class="number" role="status">${S.progress(number(progress), number(count))}</span>
          <button type="button" onClick=${() => stop.current.abort()}>${S.stop}</button>
        `}
        <span class="muted hint hide-narrow">${S.keys}</span>
        <button type="button" class="quiet" onClick=${forget}>${S.clear}</button>
      </div>
    </form>
    ${sent.length !== 0 && html`<${Sent} entries=${sent} onForget=${() => setSent([])} />`}
  `;
}

/** @param {import("./send/draft.js").Draft} draft
 * @param {number} count */
function* messagesOf(draft, count) {
  for (let at = 0; at < count; at += 1) yield messageOf(draft, Number(draft.start) + at);
}

/** @param {number | bigint | null} value */
const textOf = (value) => (value === null ? null : digits(value));

/** Topics have no numbers for what they give to subscriptions at once.
 * @param {Entry} entry */
const linkOf = ({ path, count, first }) => {
  if (!can("listen")) return {};
  if (entities.value.get(path)?.kind === "topic" || first === null)
    return { href: entityHref(path), linkText: visible(path) };
  return count === 1
    ? { href: messageHref(path, /** @type {any} */ (first)), linkText: S.toMessage }
    : { href: entityHref(path, "messages"), linkText: S.toMessages };
};

/** @param {Entry} entry
 * @param {number} total */
function say(entry, total) {
  const { path, count, dropped, first } = entry;
  const isTopic = entities.value.get(path)?.kind === "topic";
  const text =
    count !== 1
      ? S.sentMany(visible(path), number(count))
      : first === null || isTopic
        ? S.sentTopic(visible(path))
        : S.sentOne(visible(path), first);
  toast(
    [text, dropped === 0 ? "" : S.dropped(number(dropped)), count < total ? S.stopped : ""].filter(Boolean).join(" "),
    linkOf(entry),
  );
}

/** @param {{ entries: Entry[], onForget: () => void }} properties */
function Sent({ entries, onForget }) {
  return html`
    <section class="card" aria-label=${S.sentHere}>
      <div class="card-head">
        <h2>${S.sentHere}</h2>
        <button type="button" class="quiet" onClick=${onForget}>${S.again}</button>
      </div>
      <ul class="sent">
        ${entries.map((entry) => {
          const { href: address, linkText } = linkOf(entry);
          return html`
            <li key=${entry.at}>
              <span class="muted"><${Time} at=${entry.at} /></span>
              <span><${Text} value=${entry.path} max=${120} /></span>
              <span class="number">
                ${S.messages(number(entry.count))}
                ${entry.first !== null && entry.last !== null && `, ${S.numbers(entry.first, entry.last)}`}
                ${entry.dropped !== 0 && ` ${S.dropped(number(entry.dropped))}`}
              </span>
              ${address !== undefined && html`<a href=${address}>${linkText}</a>`}
            </li>
          `;
        })}
      </ul>
    </section>
  `;
}
