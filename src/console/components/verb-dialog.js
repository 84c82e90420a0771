// The dialog that does one thing to messages: its title says what, to how many and to which. Any page may open it.

import { call } from "../lib/api.js";
import { numbersOf, undoOf } from "../lib/actions.js";
import { number } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { remember } from "../lib/job-progress.js";
import { entities } from "../lib/live.js";
import { entityOf, isDeadLetters } from "../lib/paths.js";
import { outcomeOf } from "../lib/outcome.js";
import { ConditionError, conditionsOf, fieldOfError, inWords, isByState } from "../lib/selection.js";
import { nounOf, titleOf } from "../lib/sentence.js";
import { Dialog, openDialog } from "./dialog.js";
import { Field } from "./field.js";
import { ActionFields, ActionMore, actionOf, fieldsOf, kindsOf, NO_ACTION } from "./verb-dialog/action.js";
import { Conditions, States, inputsOf } from "./verb-dialog/conditions.js";
import { CountNotes, STATES_OF, useCount } from "./verb-dialog/count.js";
import { Problem } from "./notice.js";
import { Text } from "./text.js";
import { toast } from "./toast.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/jobs.js";

/** Seconds for which the dialog waits for the end of its job. */
const WAIT_SECONDS = 5;
/** Messages up to which the name of the entity is not asked for. */
const UNNAMED_MAX = 100;

/** `redrive` is a move of dead letters to where they were dead-lettered.
 * @typedef {"delete" | "move" | "redrive" | "dead_letter" | "activate" | "reschedule"} Kind */
/** What is to be done. `entity` is a queue, a topic, a subscription, or the dead letters of one. `onDone` gets the job
 * when it has ended, or when it runs longer than the dialog waits. With `canChoose` the reader may choose another kind.
 * @typedef {{ entity: string, kind: Kind, selection?: import("../lib/selection.js").Selection, canChoose?: boolean,
 *   onDone?: (job: Schemas["Job"]) => void }} Proposal */

/** Opens the dialog.
 * @param {Proposal} proposal */
export function openVerb(proposal) {
  openDialog((close) => html`<${VerbDialog} ...${proposal} close=${close} />`);
}

/** Kinds that the reader may choose of, for the states that are proposed.
 * @param {string} address
 * @param {import("../lib/selection.js").Selection} selection */
function choicesOf(address, { states }) {
  const kinds = kindsOf(entities.peek().get(entityOf(address))?.kind ?? "queue", isDeadLetters(address));
  return kinds.filter((kind) => !states?.length || (STATES_OF[kind] ?? states).some((state) => states.includes(state)));
}

/** @param {Proposal & { close: () => void }} properties */
function VerbDialog({ entity: address, kind: proposedKind, selection = {}, canChoose = false, onDone, close }) {
  const path = entityOf(address);
  const isDead = isDeadLetters(address);
  const entity = entities.value.get(path);
  const [kind, setKind] = useState(proposedKind);
  const [states, setStates] = useState(() => selection.states ?? possibleOf(proposedKind, entity));
  const [conditions, setConditions] = useState(() => conditionsOf(selection));
  const [action, setAction] = useState(NO_ACTION);
  const [limit, setLimit] = useState("");
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const count = useCount({ address, entity, isDead, kind, states, conditions });
  const shownError = error ?? count.error;
  const field = fieldOfError(shownError);
  /** @param {string} name */
  const errorOf = (name) => (field === name ? (shownError?.message ?? null) : null);
  const isAtCondition =
    ["limit", "selection.states"].includes(field) || inputsOf(isDead).some((name) => field === `selection.${name}`);
  const isAtField = isAtCondition || fieldsOf(kind).some((name) => field === `action.${name}`);
  const most = limitOf(limit);
  const known = count.known === null ? null : Math.min(count.known.count, most ?? Infinity);
  const isWhole = count.known?.isWhole === true || known === most;
  const isAll = count.selection !== null && isByState(count.selection);
  const isMany = known !== null && (!isWhole || UNNAMED_MAX < known);
  const needsName = kind === "delete" ? isAll || isMany : (kind === "move" || kind === "dead_letter") && isMany;
  const isReady = !isBusy && known !== null && known !== 0 && (!needsName || typed === path);
  const change = (/** @type {() => void} */ set) => {
    setError(null);
    set();
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!isReady || count.selection === null) return;
    setBusy(true);
    try {
      if (most === null) throw new ConditionError("limit", S.limitWrong);
      const done = actionOf(kind, action);
      // It is undone by numbers, which are not known after it.
      const numbers = kind === "dead_letter" && most === undefined ? await numbersOf(address, count.selection) : null;
      const body = { entity: address, selection: count.selection, action: done, limit: most };
      const job = await call("start_job", { query: { wait: WAIT_SECONDS }, body });
      if (known !== null && isWhole) remember(job, known);
      close();
      const { text, ...options } = outcomeOf(job);
      toast(text, { ...options, undo: undoOf(job, numbers) });
      onDone?.(job);
    } catch (refused) {
      setError(refused instanceof Error ? refused : new Error(String(refused)));
      setBusy(false);
    }
  };
  const noun = nounOf(address, count.selection ?? selection);
  const text = known === null ? null : isWhole ? number(known) : S.atLeast(number(known));
  const isOne = isWhole && known === 1;
  const title = titleOf(kind, noun, text, isOne, path, count.selection ?? selection, isAll && most === undefined);
  const cancels = kind === "delete" && !isDead && states.includes("scheduled") && entity?.scheduled !== 0;
  const isPlain = isAll || (count.selection !== null && Object.keys(count.selection).join() === "numbers");
  return html`
    <${Dialog} title=${title}>
      <form class="verb-form" onSubmit=${submit} novalidate>
        ${canChoose && html`
          <${Field} label=${S.action}>
            <select value=${kind} onChange=${(/** @type {any} */ event) => change(() => setKind(event.target.value))}>
              ${choicesOf(address, selection).map(
                (each) => html`<option key=${each} value=${each} selected=${each === kind}>${S.kinds[each]}</option>`,
              )}
            </select>
          <//>
        `}
        <div class="dialog-text">
          <p>${cancels && `${S.cancels} `}${S.does[kind]}</p>
          ${!isPlain && count.selection !== null && html`
            <p>${S.chosen} <${Text} value=${inWords(count.selection)} max=${400} /></p>
          `}
          <${CountNotes} count=${count} />
        </div>
        <${ActionFields}
          kind=${kind}
          value=${action}
          from=${path}
          errorOf=${errorOf}
          onChange=${(/** @type {any} */ next) => change(() => setAction(next))}
        />
        <${ActionMore}
          kind=${kind}
          value=${action}
          errorOf=${errorOf}
          onChange=${(/** @type {any} */ next) => change(() => setAction(next))}
        />
        <${Conditions}
          value=${conditions}
          isDead=${isDead}
          isWrong=${isAtCondition}
          errorOf=${errorOf}
          onChange=${(/** @type {any} */ next) => change(() => setConditions(next))}
          states=${
            !isDead && html`
              <${States}
                entity=${entity}
                possible=${possibleOf(kind, entity)}
                value=${states}
                error=${errorOf("selection.states")}
                onChange=${(/** @type {any} */ next) => change(() => setStates(next))}
              />
            `
          }
        >
          <${Field} label=${S.limit} hint=${S.limitHint} error=${errorOf("limit")}>
            <input
              inputmode="numeric"
              autocomplete="off"
              value=${limit}
              onInput=${(/** @type {any} */ event) => change(() => setLimit(event.target.value))}
            />
          <//>
        <//>
        ${needsName && html`
          <${Field} label=${html`${C.typeName("")}<b><${Text} value=${path} /></b>`}>
            <input
              value=${typed}
              autocomplete="off"
              spellcheck=${false}
              onInput=${(/** @type {any} */ event) => setTyped(event.target.value)}
            />
          <//>
        `}
        ${shownError !== null && !isAtField && html`<${Problem} error=${shownError} />`}
        <div class="verb-foot">
          <div class="dialog-actions">
            <button type="button" onClick=${close}>${C.cancel}</button>
            <button
              type="submit"
              class=${kind === "delete" ? "alarm" : "primary"}
              disabled=${!isReady}
              aria-busy=${isBusy}
            >
              ${S.submit[kind](text === null ? noun.many : `${text} ${isOne ? noun.one : noun.many}`)}
            </button>
          </div>
        </div>
      </form>
    <//>
  `;
}

/** States of an entity's messages to which something can be done.
 * @param {Kind} kind
 * @param {Schemas["EntityNow"] | undefined} entity
 * @returns {Schemas["State"][]} */
function possibleOf(kind, entity) {
  if (entity?.kind === "topic") return ["scheduled"];
  return [...(STATES_OF[kind] ?? /** @type {const} */ (["active", "scheduled", "deferred"]))];
}

/** How many at most; undefined if nothing is typed, null if that is no number.
 * @param {string} text */
function limitOf(text) {
  if (!/^\s*([1-9]\d{0,14})?\s*$/.test(text)) return null;
  return text.trim() === "" ? undefined : Number(text);
}
