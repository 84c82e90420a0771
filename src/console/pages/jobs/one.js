// One job: how far it is, its end, and its result.

import { ApiError, call } from "../../lib/api.js";
import { digits, number, span } from "../../lib/format.js";
import { html, useEffect, useRef } from "../../lib/html.js";
import { totalOf, useJobRate } from "../../lib/job-progress.js";
import { isKnown, jobs } from "../../lib/live.js";
import { kindOf, tookOf } from "../../lib/outcome.js";
import { entityHref, entityOf, isDeadLetters, jobHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { go, href } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { Empty, Loading, Problem } from "../../components/notice.js";
import { EntityName, Text } from "../../components/text.js";
import { Count, Rate, Time } from "../../components/time.js";
import { announce } from "../../components/toast.js";
import { openVerb } from "../../components/verb-dialog.js";
import { Bar, cancel, stateTag } from "./parts.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/jobs.js";

/** @typedef {Schemas["Job"]} Job */

/** @param {{ id: number }} properties */
export function One({ id }) {
  const live = jobs.value.get(id);
  // One that has just begun comes with the next events.
  const read = useResource(
    (signal) => call("get_job", { path: { id }, signal }),
    [id],
    [live === undefined ? "missing" : "live"],
  );
  const job = live ?? read.data;
  const isGone = job === undefined && read.error instanceof ApiError && read.error.status < 500;
  return html`
    <div class="page-head">
      <p class="crumbs"><a href=${href(["jobs"])}>${C.pages.jobs}</a></p>
      <h1 tabindex="-1">${S.title(digits(id))}</h1>
      ${job && html`${stateTag(job)}<${Actions} job=${job} />`}
    </div>
    ${job !== undefined
      ? html`<${Shown} job=${job} />`
      : isGone
        ? html`
            <div class="card">
              <${Empty} title=${S.gone} text=${S.goneText}><a href=${href(["jobs"])}>${S.toAll}</a><//>
            </div>
          `
        : read.error && isKnown.value
          ? html`<${Problem} error=${read.error} onRetry=${read.reload} />`
          : html`<${Loading} />`}
  `;
}

/** @param {{ job: Job }} properties */
function Actions({ job }) {
  if (!can("manage")) return null;
  const again = () =>
    openVerb({ entity: job.entity, kind: kindOf(job), selection: job.selection, onDone: ({ id }) => go(jobHref(id)) });
  return html`
    <div class="actions">
      ${job.state === "running"
        ? html`<button type="button" onClick=${() => cancel(job)}>${S.cancel}</button>`
        : html`<button type="button" onClick=${again}>${S.again}</button>`}
    </div>
  `;
}

/** What has become of a job, in a sentence.
 * @param {Job} job */
function resultOf(job) {
  if (job.state === "running") return "";
  return S.result[job.state](number(job.changed), S.done[kindOf(job)]);
}

/** @param {{ job: Job }} properties */
function Shown({ job }) {
  const { entity, state, changed, matched, skipped, error, last_skipped: lastSkipped } = job;
  const result = resultOf(job);
  const before = useRef(state);
  useEffect(() => {
    if (before.current === "running" && state !== "running") announce(result);
    before.current = state;
  }, [state]);
  return html`
    <section class="card job" aria-label=${S.progress}>
      ${state === "running" ? html`<${Progress} job=${job} />` : html`<p class="result"><b>${result}</b></p>`}
      ${state === "failed" && html`<${Problem} error=${new Error(error ?? "")} />`}
      ${0 < skipped && html`<p>${S.result.skipped(number(skipped))} <${Text} value=${lastSkipped} max=${500} /></p>`}
    </section>
    <dl class="figures">
      <div><dt>${S.matched}</dt><dd><${Count} value=${matched} /></dd></div>
      <div><dt>${S.changed}</dt><dd><${Count} value=${changed} /></dd></div>
      <div><dt>${S.skipped}</dt><dd><${Count} value=${skipped} /></dd></div>
    </dl>
    <section class="card" aria-labelledby="details">
      <div class="card-head"><h2 id="details">${S.details}</h2></div>
      <dl class="pairs">
        <dt>${S.what}</dt>
        <dd>${S.kinds[kindOf(job)]}</dd>
        <dt>${S.entity}</dt>
        <dd>
          <a href=${entityHref(entityOf(entity), isDeadLetters(entity) ? "dead-letters" : undefined)}>
            <${EntityName} value=${entity} />
          </a>
        </dd>
        <${Selected} job=${job} />
        <${ActionPairs} job=${job} />
        <dt>${S.began}</dt>
        <dd><${Time} at=${job.created_at} /></dd>
        ${job.ended_at != null && html`<dt>${S.took}</dt><dd class="number">${tookOf(job)}</dd>`}
      </dl>
    </section>
  `;
}

/** @param {{ job: Job }} properties */
function Progress({ job }) {
  const [perSecond, total] = [useJobRate(job), totalOf(job)];
  const rest = total === null ? 0 : total - job.matched;
  const percent = total === null || total === 0 ? "" : `${Math.floor((100 * job.matched) / total)} %`;
  return html`
    <p class="progress-text">
      <b class="number">
        ${total === null
          ? S.ofUnknown(S.messages(number(job.matched)))
          : S.ofTotal(number(job.matched), number(total), percent)}
      </b>
      ${0 < perSecond && html`
        <span class="muted"><${Rate} value=${perSecond} hasUnit /></span>
        ${0 < rest && html`<span class="muted">${S.left(span((1000 * rest) / perSecond))}</span>`}
      `}
    </p>
    <${Bar} job=${job} />
    <p class="muted">${S.others}</p>
  `;
}

/** @param {{ job: Job }} properties */
function Selected({ job: { selection, limit } }) {
  const { states, numbers, ...others } = selection;
  const given = Object.entries(others).filter(([, value]) => value != null);
  const isAll = !states?.length && !numbers?.length && given.length === 0;
  return html`
    ${isAll && html`<dt>${S.selection}</dt><dd>${S.words.all}</dd>`}
    ${states?.length && html`<dt>${S.statesLabel}</dt><dd>${states.map((state) => C.states[state]).join(", ")}</dd>`}
    ${numbers?.length && html`
      <dt>${S.fields.numbers}</dt>
      <dd class="number-list">${numbers.map(digits).join(", ")}</dd>
    `}
    ${given.map(
      ([name, value]) => html`
        <dt key=${name}>${S.fields[/** @type {keyof typeof S.fields} */ (name)] ?? name}</dt>
        <dd>
          ${name.startsWith("enqueued")
            ? html`<${Time} at=${value} />`
            : html`<code><${Text} value=${String(value)} /></code>`}
        </dd>
      `,
    )}
    ${limit != null && html`<dt>${S.limit}</dt><dd class="number">${number(limit)}</dd>`}
  `;
}

/** @param {{ job: Job }} properties */
function ActionPairs({ job: { action } }) {
  switch (action.kind) {
    case "move":
      return html`
        ${action.to != null && html`
          <dt>${S.to}</dt>
          <dd><a href=${entityHref(action.to)}><${Text} value=${action.to} /></a></dd>
        `}
        ${action.action != null && html`
          <dt>${S.statements}</dt>
          <dd><code><${Text} value=${action.action} /></code></dd>
        `}
        ${action.body != null && html`<dt>${S.body}</dt><dd><code><${Text} value=${action.body} /></code></dd>`}
      `;
    case "dead_letter":
      return html`
        ${action.reason != null && html`<dt>${S.newReason}</dt><dd><${Text} value=${action.reason} /></dd>`}
        ${action.description != null && html`
          <dt>${S.newDescription}</dt>
          <dd><${Text} value=${action.description} /></dd>
        `}
      `;
    case "reschedule":
      return html`<dt>${S.scheduledFor}</dt><dd><${Time} at=${action.scheduled_for} /></dd>`;
    default:
      return null;
  }
}
