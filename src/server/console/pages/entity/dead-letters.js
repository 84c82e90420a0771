// Dead letters of an entity: grouped by reason, and one by one.

import { call } from "../../lib/api.js";
import { startJob } from "../../lib/actions.js";
import { digits, number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { deadLettersOf } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { href, setQuery } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { confirm } from "../../components/dialog.js";
import { MessageList } from "../../components/message-list.js";
import { Empty, Loaded } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { S } from "../../strings/entity.js";

/** Dead letters up to which their groups follow every change: grouping looks at each of them. */
const FOLLOWED_MAX = 1_000;

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function DeadLetters({ entity }) {
  const { path, dead_letters: count } = entity;
  const [from, setFrom] = useState(/** @type {number | undefined} */ (undefined));
  const seen = count <= FOLLOWED_MAX ? count : -1;
  const groups = useResource((signal) => call("group_dead_letters", { path: { entity: path }, query: { from }, signal }), [path, from], [seen]);
  if (count === 0 && groups.data?.messages === 0) return html`<div class="card"><${Empty} title=${S.noDead} text=${S.noDeadText} /></div>`;
  return html`<section class="card" aria-labelledby="groups"><div class="card-head"><h2 id="groups">${S.groups}</h2>
      <span class="actions">${groups.data && html`<span class="muted">${S.groupsLooked(number(groups.data.messages))}</span>`}
        <button type="button" class="quiet" onClick=${groups.reload}>${S.refresh}</button></span></div>
      <${Loaded} of=${groups}>${(/** @type {Schemas["DeadLetterGroups"]} */ data) => html`
        <ul class="groups">${data.groups.map((group) => html`<${Group} key=${JSON.stringify([group.reason, group.description])} group=${group} path=${path} />`)}</ul>
        ${data.next != null && html`<button type="button" onClick=${() => setFrom(data.next ?? undefined)}>${S.groupsMore}</button>`}`}<//></section>
    <${MessageList} address=${deadLettersOf(path)} newest=${count} hasReasons=${true} />`;
}

/** @param {{ group: Schemas["DeadLetterGroup"], path: string }} properties */
function Group({ group, path }) {
  const { reason, description, messages, first_number: first, last_number: last } = group;
  const select = () => setQuery({ by: "reason", value: reason ?? undefined });
  const start = async (/** @type {Loose<Schemas["Action"]>} */ action) => {
    const job = await startJob(deadLettersOf(path), { reason }, action);
    toast(S.jobStarted(String(job.id)), { href: href(["jobs"]), linkText: S.toJobs });
  };
  const [count, name] = [number(messages), visible(reason ?? "")];
  const resend = () => confirm({
    title: S.resendTitle(count, name), text: S.resendText(visible(path)), action: S.resend, isAlarm: false, run: () => start({ kind: "move" }),
  });
  const remove = () => confirm({
    title: S.deleteGroupTitle(count, name), text: S.deleteGroupText, name: reason ?? "", action: S.deleteGroup, run: () => start({ kind: "delete" }),
  });
  return html`<li><span class="group-count number alarm-text">${count}</span>
    <span class="group-reason">${reason ? html`<button type="button" class="link" onClick=${select}><${Text} value=${reason} max=${300} /></button>`
      : html`<span class="muted">${S.noReason}</span>`}
      <span class="muted group-description"><${Text} value=${description} max=${300} /></span></span>
    <span class="muted number hide-narrow">${digits(first)}${first !== last && ` – ${digits(last)}`}</span>
    ${reason && can("manage") && html`<span class="actions"><button type="button" onClick=${resend}>${S.resend}</button>
      <button type="button" onClick=${remove}>${S.deleteGroup}</button></span>`}</li>`;
}
