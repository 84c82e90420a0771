// The dialog that begins a job: which messages, how many that are, and what is done to them. Any page may open it.

import { call } from "../lib/api.js";
import { number } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { remember } from "../lib/job-progress.js";
import { entities } from "../lib/live.js";
import { deadLettersOf, entityOf, isDeadLetters, jobHref } from "../lib/paths.js";
import { go } from "../lib/router.js";
import { ConditionError, conditionsOf, fieldOfCount, fieldOfError } from "../lib/selection.js";
import { visible } from "../lib/visible.js";
import { Dialog, openDialog } from "./dialog.js";
import { Choice, Field } from "./field.js";
import { ActionFields, actionOf, fieldsOf, kindsOf, NO_ACTION } from "./job-dialog/action.js";
import { Conditions, States, inputsOf } from "./job-dialog/conditions.js";
import { Meant, useMeant } from "./job-dialog/meant.js";
import { Problem } from "./notice.js";
import { Text } from "./text.js";
import { toast } from "./toast.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/jobs.js";

/** `redrive` is a move of dead letters to where they were dead-lettered.
 * @typedef {"delete" | "move" | "redrive" | "dead_letter" | "activate" | "reschedule"} Kind */
/** What a job is to be about. `entity` is a queue, a topic, a subscription, or the dead letters of one.
 * @typedef {{ entity: string, kind?: Kind, selection?: import("../lib/selection.js").Selection, onStarted?: (job: Schemas["Job"]) => void }} Proposal */

/** Opens the dialog. When the job has begun, `onStarted` gets it; without that, the page of the job is opened.
 * @param {Proposal} proposal */
export function openJobDialog(proposal) {
  openDialog((close) => html`<${JobDialog} ...${proposal} close=${close} />`);
}

/** @param {Proposal & { close: () => void }} properties */
function JobDialog({ entity: proposed, kind: proposedKind = "delete", selection = {}, onStarted, close }) {
  const path = entityOf(proposed);
  const entity = entities.value.get(path);
  const [isDead, setDead] = useState(isDeadLetters(proposed));
  const [wantedKind, setKind] = useState(proposedKind);
  const [states, setStates] = useState(/** @type {readonly Schemas["State"][]} */ (selection.states ?? []));
  const [conditions, setConditions] = useState(() => conditionsOf(selection));
  const [action, setAction] = useState(NO_ACTION);
  const [limit, setLimit] = useState("");
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const address = isDead ? deadLettersOf(path) : path;
  const kinds = kindsOf(entity?.kind ?? "queue", isDead);
  const kind = kinds.includes(wantedKind) ? wantedKind : kinds[0];
  const meant = useMeant({ address, entity, isDead, kind, states, conditions });
  const shownError = error ?? meant.error;
  const field = error === null ? fieldOfCount(meant.error) : fieldOfError(error);
  /** @param {string} name */
  const errorOf = (name) => (field === name ? shownError?.message ?? null : null);
  const isAtCondition = field === "limit" || inputsOf(isDead).some((name) => field === `selection.${name}`);
  const isAtField = isAtCondition || fieldsOf(kind).some((name) => field === `action.${name}`);
  const needsName = kind === "delete";
  const isReady = !isBusy && meant.error === null && (!needsName || typed === path);
  const change = (/** @type {() => void} */ set) => {
    setError(null);
    set();
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!isReady || meant.selection === null) return;
    setBusy(true);
    try {
      if (!/^\s*([1-9]\d{0,14})?\s*$/.test(limit)) throw new ConditionError("limit", S.limitWrong);
      const most = limit.trim() === "" ? undefined : Number(limit);
      const job = await call("start_job", { body: { entity: address, selection: meant.selection, action: actionOf(kind, action), limit: most } });
      if (meant.known !== null && meant.known.isWhole) remember(job, meant.known.count);
      close();
      if (onStarted === undefined) {
        toast(S.started(String(job.id)));
        go(jobHref(job.id));
      } else {
        toast(S.started(String(job.id)), { href: jobHref(job.id), linkText: S.toJob });
        onStarted(job);
      }
    } catch (refused) {
      setError(refused instanceof Error ? refused : new Error(String(refused)));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${S.dialogTitleOf(visible(path))}><form class="job-form" onSubmit=${submit} novalidate>
    ${entity?.kind !== "topic" && html`<${Choice} label=${S.of} value=${isDead ? "dead" : "messages"} onChange=${(/** @type {string} */ next) => change(() => setDead(next === "dead"))}
      options=${[{ value: "messages", label: S.ofMessages }, { value: "dead", label: html`${S.ofDead}${entity && html` <small class="tab-count">${number(entity.dead_letters)}</small>`}` }]} />`}
    ${!isDead && html`<${States} entity=${entity} kind=${kind} value=${states} onChange=${(/** @type {any} */ next) => change(() => setStates(next))} />`}
    <${Conditions} value=${conditions} isDead=${isDead} isWrong=${isAtCondition} errorOf=${errorOf} onChange=${(/** @type {any} */ next) => change(() => setConditions(next))}>
      <${Field} label=${S.limitLabel} hint=${S.limitHint} error=${errorOf("limit")}><input inputmode="numeric" autocomplete="off" value=${limit}
        onInput=${(/** @type {any} */ event) => change(() => setLimit(event.target.value))} /><//><//>
    <${Field} label=${S.action} hint=${S.does[kind]}><select value=${kind} onChange=${(/** @type {any} */ event) => change(() => setKind(event.target.value))}>
      ${kinds.map((each) => html`<option key=${each} value=${each} selected=${each === kind}>${S.kinds[each]}</option>`)}</select><//>
    <${ActionFields} kind=${kind} value=${action} from=${path} errorOf=${errorOf} onChange=${(/** @type {any} */ next) => change(() => setAction(next))} />
    ${needsName && html`<${Field} label=${html`${C.typeName("")}<b><${Text} value=${path} /></b>`}><input value=${typed} autocomplete="off" spellcheck=${false}
      onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /><//>`}
    ${shownError !== null && !isAtField && html`<${Problem} error=${shownError} />`}
    <div class="job-foot"><${Meant} meant=${meant} entity=${entity} isDead=${isDead} />
      <div class="dialog-actions"><button type="button" onClick=${close}>${C.cancel}</button>
      <button type="submit" class=${needsName ? "alarm" : "primary"} disabled=${!isReady}>${S.submit[kind]}</button></div></div>
  </form><//>`;
}
