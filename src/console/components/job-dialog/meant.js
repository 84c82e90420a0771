// How many messages a job would be about, counted while its conditions are typed.

import { number } from "../../lib/format.js";
import { html, useEffect, useMemo, useState } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { countOf, countOfStates, isByState, selectionOf } from "../../lib/selection.js";
import { S } from "../../strings/jobs.js";

/** A count is begun when the reader has not typed for so long. */
const PAUSE_MILLISECONDS = 300;

/** @typedef {import("../../lib/selection.js").Meant} Known */
/** `known` is null while it is counted; `selection` is what is sent, null if a condition cannot be.
 * @typedef {{ selection: import("../../lib/selection.js").Selection | null, known: Known | null, error: Error | null, countOn: () => void }} Counted */

/** States of messages to which an action can be done; none means all.
 * @type {Partial<Record<import("../job-dialog.js").Kind, readonly Schemas["State"][]>>} */
export const STATES_OF = { activate: ["scheduled", "deferred"], reschedule: ["scheduled"] };

/** @param {{ address: string, entity: Schemas["EntityNow"] | undefined, isDead: boolean, kind: import("../job-dialog.js").Kind,
 *   states: readonly Schemas["State"][], conditions: import("../../lib/selection.js").Conditions }} options
 * @returns {Counted} */
export function useMeant({ address, entity, isDead, kind, states, conditions }) {
  const wanted = isDead ? [] : statesFor(kind, states);
  const [counted, setCounted] = useState(/** @type {{ key: string, known: Known | null, error: Error | null }} */ ({ key: "", known: null, error: null }));
  const [more, setMore] = useState(0);
  const key = JSON.stringify([address, wanted, conditions]);
  const { selection, wrong } = useMemo(() => {
    try {
      return { selection: selectionOf(wanted, conditions), wrong: null };
    } catch (error) {
      return { selection: null, wrong: /** @type {Error} */ (error) };
    }
  }, [key]);
  const isLive = selection !== null && isByState(selection);
  useEffect(() => {
    if (selection === null || isLive) return undefined;
    const aborted = new AbortController();
    const before = counted.key === key && counted.known !== null ? counted.known : undefined;
    const timer = setTimeout(() => countOf(address, selection, before, aborted.signal).then(
      (known) => setCounted({ key, known, error: null }),
      (error) => !aborted.signal.aborted && setCounted({ key, known: null, error }),
    ), before === undefined ? PAUSE_MILLISECONDS : 0);
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [key, more]);
  const countOn = () => setMore(more + 1);
  if (wrong !== null) return { selection, known: null, error: wrong, countOn };
  if (isLive) return { selection, known: { count: countOfStates(entity ?? entities.value.get(address), isDead, wanted), isWhole: true }, error: null, countOn };
  const isCurrent = counted.key === key;
  return { selection, known: isCurrent ? counted.known : null, error: isCurrent ? counted.error : null, countOn };
}

/** @param {import("../job-dialog.js").Kind} kind
 * @param {readonly Schemas["State"][]} states */
function statesFor(kind, states) {
  const possible = STATES_OF[kind];
  if (possible === undefined) return states;
  const chosen = states.filter((state) => possible.includes(state));
  return chosen.length === 0 ? possible : chosen;
}

/** @param {{ meant: Counted, entity: Schemas["EntityNow"] | undefined, isDead: boolean }} properties */
export function Meant({ meant: { known, error, selection, countOn }, entity, isDead }) {
  if (error !== null) return null;
  const count = known === null ? "" : number(known.count);
  const isNumbers = selection?.numbers !== undefined;
  const text = known === null ? S.counting : known.isWhole ? S.meant(count) : isNumbers ? S.meantAtMost(count) : S.meantAtLeast(count);
  const locked = isDead ? 0 : entity?.locked ?? 0;
  return html`<div class="meant" role="status"><b class="number">${text}</b>
    ${known?.next !== undefined && html`<button type="button" class="quiet" onClick=${countOn}>${S.countOn}</button>`}
    ${0 < locked && html`<span class="muted">${S.lockedStay(number(locked))}</span>`}</div>`;
}
