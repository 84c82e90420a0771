// To how many messages something would be done, counted while the conditions are typed.

import { number } from "../../lib/format.js";
import { html, useEffect, useMemo, useRef, useState } from "../../lib/html.js";
import { ConditionError, STATES, countOf, countOfStates, isByState, selectionOf } from "../../lib/selection.js";
import { S } from "../../strings/jobs.js";

/** A count is begun when the reader has not typed for so long. */
const PAUSE_MILLISECONDS = 300;

/** @typedef {import("../../lib/selection.js").Counted} Known */
/** `known` is null while it is counted; `selection` is what is sent, null if a condition cannot be.
 * @typedef {{ selection: import("../../lib/selection.js").Selection | null, known: Known | null, error: Error | null,
 *   countOn: () => void }} Count */

/** States of messages to which an action can be done, where these are not all.
 * @type {Partial<Record<import("../verb-dialog.js").Kind, readonly Schemas["State"][]>>} */
export const STATES_OF = { activate: ["scheduled", "deferred"], reschedule: ["scheduled"] };

/** @param {{ address: string, entity: Schemas["EntityNow"] | undefined, isDead: boolean,
 *   kind: import("../verb-dialog.js").Kind, states: readonly Schemas["State"][],
 *   conditions: import("../../lib/selection.js").Conditions }} options
 * @returns {Count} */
export function useCount({ address, entity, isDead, kind, states, conditions }) {
  const possible = STATES_OF[kind] ?? states;
  const wanted = isDead ? [] : states.filter((state) => possible.includes(state));
  const [counted, setCounted] = useState(
    /** @type {{ key: string, known: Known | null, error: Error | null }} */ ({ key: "", known: null, error: null }),
  );
  const [more, setMore] = useState(0);
  const key = JSON.stringify([address, wanted, conditions]);
  const { selection, wrong } = useMemo(() => {
    try {
      if (!isDead && wanted.length === 0) throw new ConditionError("selection.states", S.stateMissing);
      const chosen = selectionOf([], conditions);
      // With other conditions, all states need not be named.
      const isEvery = isDead || (STATES.every((state) => wanted.includes(state)) && Object.keys(chosen).length !== 0);
      return { selection: isEvery ? chosen : selectionOf(wanted, conditions), wrong: null };
    } catch (error) {
      return { selection: null, wrong: /** @type {Error} */ (error) };
    }
  }, [key]);
  const isLive = selection !== null && isByState(selection);
  // What is proposed is counted at once, what is typed after a pause.
  const hasBegun = useRef(false);
  useEffect(() => {
    if (selection === null || isLive) {
      hasBegun.current = true;
      return undefined;
    }
    const aborted = new AbortController();
    const isFirst = !hasBegun.current;
    hasBegun.current = true;
    const before = counted.key === key && counted.known !== null ? counted.known : undefined;
    const timer = setTimeout(
      () =>
        countOf(address, selection, before, aborted.signal).then(
          (known) => setCounted({ key, known, error: null }),
          (error) => !aborted.signal.aborted && setCounted({ key, known: null, error }),
        ),
      before === undefined && !isFirst ? PAUSE_MILLISECONDS : 0,
    );
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [key, more]);
  const countOn = () => setMore(more + 1);
  if (wrong !== null) return { selection, known: null, error: wrong, countOn };
  if (isLive) return { selection, known: countOfStates(entity, isDead, wanted), error: null, countOn };
  const isCurrent = counted.key === key;
  return { selection, known: isCurrent ? counted.known : null, error: isCurrent ? counted.error : null, countOn };
}

/** What is to be known of a count beside the number.
 * @param {{ count: Count }} properties */
export function CountNotes({ count: { known, error, countOn } }) {
  if (error !== null) return null;
  if (known === null) return html`<p role="status">${S.counting}</p>`;
  return html`
    ${known.next !== undefined && html`
      <p>${S.partlyCounted} <button type="button" class="quiet" onClick=${countOn}>${S.countOn}</button></p>
    `}
    ${0 < known.locked && html`<p>${S.lockedStay(number(known.locked))}</p>`}
    ${0 < known.undecided && html`<p>${S.undecidedStay(number(known.undecided))}</p>`}
  `;
}
