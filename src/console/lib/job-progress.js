// How far a job is: the API says what it has done, the console remembers how much was meant.

import { second } from "./clock.js";
import { useRef } from "./html.js";
import { entities } from "./live.js";
import { entityOf, isDeadLetters } from "./paths.js";
import { countOfStates, isByState } from "./selection.js";

const STORED = "jitney-jobs-meant";
/** Jobs of which it is remembered. */
const REMEMBERED_MAX = 200;
const RATE_SECONDS = 5;

/** @returns {Record<string, number>} */
function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? "{}");
  } catch {
    return {};
  }
}

/** A broker that has begun anew gives the same ids again.
 * @param {Schemas["Job"]} job */
const nameOf = ({ id, created_at: at }) => `${id} ${at}`;

/** Remembers how many messages a job is about, for as long as the tab is open.
 * @param {Schemas["Job"]} job
 * @param {number} count */
export function remember(job, count) {
  const kept = Object.entries(remembered()).slice(1 - REMEMBERED_MAX);
  sessionStorage.setItem(STORED, JSON.stringify(Object.fromEntries([...kept, [nameOf(job), count]])));
}

/** About how many messages a job is about; null if it is not known.
 * @param {Schemas["Job"]} job */
export function totalOf(job) {
  const { entity, selection, action, matched, limit, state } = job;
  const known = remembered()[nameOf(job)];
  // What takes messages away leaves the rest to be counted.
  const shrinks = action.kind !== "reschedule" && isByState(selection);
  const rest = () =>
    countOfStates(entities.value.get(entityOf(entity)), isDeadLetters(entity), selection.states ?? []).count;
  const total = state === "completed" ? matched : known !== undefined ? known : shrinks ? matched + rest() : null;
  if (total === null) return null;
  return Math.max(matched, limit == null ? total : Math.min(total, limit));
}

/** Messages a second of a job over the last seconds; 0 while that is not known.
 * @param {Schemas["Job"]} job */
export function useJobRate(job) {
  second.value;
  /** @type {{ current: { at: number, matched: number }[] }} */
  const looks = useRef([]);
  const last = looks.current.at(-1);
  if (last === undefined || last.matched !== job.matched)
    looks.current = [...looks.current.slice(-RATE_SECONDS), { at: performance.now(), matched: job.matched }];
  const first = looks.current[0];
  const seconds = (performance.now() - first.at) / 1000;
  return job.state !== "running" || seconds < 1 ? 0 : (job.matched - first.matched) / seconds;
}
