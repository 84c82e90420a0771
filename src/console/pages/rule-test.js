// Why does this subscription not get it: a message is tested against the rules of a topic.

import { ApiError, call } from "../lib/api.js";
import { useDraft } from "../lib/draft.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib/html.js";
import { entities, isKnown } from "../lib/live.js";
import { writeJson } from "../lib/json.js";
import { useResource } from "../lib/resource.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { EntityField } from "../components/entity-field.js";
import { Choice } from "../components/field.js";
import { Empty, Loading, Problem } from "../components/notice.js";
import { Paste, Pick } from "./rule-test/message.js";
import { readPasted } from "./rule-test/read.js";
import { Results, addValues } from "./rule-test/results.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/rule-test.js";

/** Requests of one test; each has up to a hundred subscriptions. */
const PAGES = 5;
/** What is typed is tested after a pause. */
const PAUSE_MS = 250;

/** @typedef {{ subscriptions: Schemas["SubscriptionTest"][], next: boolean }} Tested */
/** @typedef {Loose<Schemas["RuleTestRequest"]>} Request */

/** @param {import("./index.js").PageProperties} properties */
export default function RuleTest({ query }) {
  const { of = "", number = "" } = query;
  const isKept = query.by === "keep" || query.of !== undefined;
  const [text, setText] = useDraft("rule-test", "");
  const [pages, setPages] = useState(PAGES);
  const choices = [...entities.value.values()]
    .filter(({ kind }) => kind !== "queue")
    .map(({ path }) => path)
    .sort();
  const topics = choices.filter((path) => entities.value.get(path)?.kind === "topic");
  // Where there is one topic, it is the one.
  const path = query.entity ?? (topics.length === 1 ? topics[0] : "");
  const settled = useSettled(text);
  const read = useMemo(() => readPasted(settled), [settled]);
  /** @type {Request | null} */
  const request = isKept
    ? of === "" || number === ""
      ? null
      : { kept: { entity: of, sequence_number: /** @type {any} */ (BigInt(/^\d+$/.test(number) ? number : "0")) } }
    : read.message === null
      ? null
      : { message: read.message };
  const tested = useResource(
    (signal) => test(path, request, pages, signal),
    [path, request === null ? "" : writeJson(request), pages],
  );
  const last = useRef(/** @type {Tested | null} */ (null));
  if (tested.data !== undefined) last.current = tested.data;
  if (path === "" || request === null) last.current = null;
  const data = tested.error ? null : (tested.data ?? last.current);
  const where = placeOf(tested.error, isKept);
  const error = tested.error?.message ?? "";
  const head = html`
    <div class="page-head"><h1 tabindex="-1">${C.pages["rule-test"]}</h1><span class="muted">${S.sendIt}</span></div>
  `;
  if (isKnown.value && choices.length === 0 && path === "")
    return html`
      ${head}
      <div class="card">
        <${Empty} title=${S.noTopics} text=${S.noTopicsText} command=${S.command}>
          ${can("manage") && html`<a href=${href(["new-entity"], { kind: "topic" })}>${S.create}</a>`}
        <//>
      </div>
    `;
  if (!isKnown.value && choices.length === 0 && path === "") return html`${head}<${Loading} />`;
  return html`
    ${head}
    <div class="test-columns">
      <section class="card test-message">
        <${EntityField}
          label=${S.topic}
          value=${path}
          choices=${choices}
          none=${S.choose}
          onChange=${(/** @type {string} */ next) => setQuery({ entity: next })}
          error=${where === "entity" ? error : null}
        />
        <${Choice}
          label=${S.by}
          value=${isKept ? "keep" : "paste"}
          onChange=${(/** @type {string} */ next) =>
            setQuery(next === "keep" ? { by: "keep" } : { by: undefined, of: undefined, number: undefined })}
          options=${[
            { value: "paste", label: S.paste },
            { value: "keep", label: S.keep },
          ]}
        />
        ${isKept
          ? html`<${Pick} of=${of} number=${number} error=${where === "number" ? error : ""} />`
          : html`
              <${Paste}
                text=${text}
                onText=${setText}
                note=${read.note}
                error=${read.error || (where === "message" ? error : "")}
              />
            `}
      </section>
      <section class="test-results">
        ${where === "page" && html`<${Problem} error=${tested.error} onRetry=${tested.reload} />`}
        ${path === "" || request === null
          ? html`<div class="card"><${Empty} title=${S.readyTitle} text=${S.ready} /></div>`
          : data === null
            ? !tested.error && html`<${Loading} />`
            : html`
                <${Results}
                  subscriptions=${data.subscriptions}
                  next=${data.next}
                  isTopic=${entities.value.get(path)?.kind === "topic"}
                  onMore=${() => setPages(pages + PAGES)}
                />
                <p><button type="button" disabled=${tested.isLoading} onClick=${tested.reload}>${S.again}</button></p>
              `}
      </section>
    </div>
  `;
}

/** A text when nothing was typed for a moment.
 * @param {string} text */
function useSettled(text) {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** @param {string} path
 * @param {Request | null} request
 * @param {number} pages
 * @param {AbortSignal} signal
 * @returns {Promise<Tested>} */
async function test(path, request, pages, signal) {
  if (path === "" || request === null) return { subscriptions: [], next: false };
  const subscriptions = [];
  /** @type {number | null | undefined} */
  let skip = 0;
  for (let page = 0; page < pages && skip != null; page += 1) {
    /** @type {Schemas["RuleTests"]} */
    const found = await call("test_rules", { path: { entity: path }, body: { ...request, skip }, signal });
    for (const subscription of found.subscriptions)
      for (const rule of subscription.rules) addValues(rule, found.values ?? {});
    subscriptions.push(...found.subscriptions);
    skip = found.next_skip;
  }
  return { subscriptions, next: skip != null };
}

/** Where a refusal stands: at the field that it speaks of.
 * @param {Error | undefined} error
 * @param {boolean} isKept */
function placeOf(error, isKept) {
  if (error === undefined) return "";
  if (!(error instanceof ApiError)) return "page";
  if (isKept && error.field === "kept.sequence_number") return "number";
  if (error.field.startsWith("message") || (!isKept && error.status === 400)) return "message";
  return error.status === 404 ? "entity" : "page";
}
