// What has come of a job: in a sentence, and where it is to be seen.

import { digits, number, span } from "./format.js";
import { entityHref, entityOf, isDeadLetters, jobHref } from "./paths.js";
import { href } from "./router.js";
import { subjectOf } from "./sentence.js";
import { S } from "../strings/jobs.js";

/** @typedef {Schemas["Job"]} Job */

/** A move without a destination brings dead letters back.
 * @param {Job} job
 * @returns {import("../components/verb-dialog.js").Kind} */
export const kindOf = ({ action }) => (action.kind === "move" && action.to == null ? "redrive" : action.kind);

/** How long a job took.
 * @param {Job} job */
export function tookOf({ created_at: from, ended_at: to }) {
  const took = Date.parse(to ?? "") - Date.parse(from);
  return took < 1000 ? `${Math.max(0, took)}ms` : span(took);
}

/** What a job has done, in a sentence with its number, its entity and its time.
 * @param {Job} job
 * @returns {{ text: string, tone: "done" | "alarm", href: string, linkText: string }} */
export function outcomeOf(job) {
  const { id, entity, selection, state, changed, skipped, error, last_skipped: why } = job;
  const toJob = { href: jobHref(id), linkText: S.toJob };
  const isOne = changed === 1;
  const subject = subjectOf(entity, entityOf(entity), selection, number(changed), isOne);
  const done = `${subject} ${S.wasDone(S.done[kindOf(job)], isOne)}`;
  if (state === "running") return { text: S.runs(digits(id), done), tone: "done", ...toJob };
  if (state !== "completed")
    return { text: S.endedEarly[state](digits(id), done, error ?? ""), tone: "alarm", ...toJob };
  if (changed === 0) return { text: S.nothingDone(S.done[kindOf(job)], why ?? ""), tone: "alarm", ...toJob };
  const took = isOne ? "" : tookOf(job);
  return { text: S.outcome(done, took, number(skipped), why ?? ""), tone: "done", ...(resultOf(job) ?? toJob) };
}

/** Where what a job has made is to be seen; null if nothing is left of it.
 * @param {Job} job
 * @returns {{ href: string, linkText: string } | null} */
function resultOf({ entity, action }) {
  const path = entityOf(entity);
  switch (action.kind) {
    case "move": {
      const to = action.to ?? (isDeadLetters(entity) ? path : null);
      return to === null ? null : { href: entityHref(to, "messages"), linkText: S.toMessages };
    }
    case "dead_letter": {
      const by = action.reason == null ? {} : { by: "reason", value: action.reason };
      return { href: href(["entity", path], { tab: "dead-letters", ...by }), linkText: S.toDead };
    }
    case "activate":
      return { href: href(["entity", path], { tab: "messages", state: "active" }), linkText: S.toMessages };
    case "reschedule":
      return { href: href(["schedule"], { entity: path }), linkText: S.toSchedule };
    default:
      return null;
  }
}
