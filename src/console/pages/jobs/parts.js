// What the list of jobs and the page of one share.

import { call } from "../../lib/api.js";
import { digits, number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { totalOf } from "../../lib/job-progress.js";
import { jobs } from "../../lib/live.js";
import { attempt } from "../../components/toast.js";
import { S } from "../../strings/jobs.js";

/** @typedef {Schemas["Job"]} Job */

/** @param {Job} job */
export const stateTag = ({ state }) => html`
  <span class=${state === "failed" ? "tag alarm" : state === "running" ? "tag accent" : "tag"}>${S.states[state]}</span>
`;

/** @param {Job} job */
export const cancel = ({ id }) =>
  attempt(
    async () => {
      const job = await call("cancel_job", { path: { id } });
      // The stream says it too, within a second.
      jobs.value = new Map(jobs.peek()).set(job.id, job);
    },
    S.cancelled(digits(id)),
  );

/** How far a job is, as far as that is known.
 * @param {{ job: Job }} properties */
export function Bar({ job }) {
  const total = totalOf(job);
  const part = total === null ? null : total === 0 ? 1 : Math.min(1, job.matched / total);
  return html`
    <span
      class=${`progress-bar ${part === null ? "unknown" : ""}`}
      role="progressbar"
      aria-label=${S.progress}
      aria-valuemin="0"
      aria-valuemax="100"
      aria-valuenow=${part === null ? undefined : Math.floor(part * 100)}
      aria-valuetext=${part === null ? S.ofUnknown(number(job.matched)) : undefined}
    >
      <i style=${{ width: `${(part ?? 0) * 100}%` }}></i>
    </span>
  `;
}
