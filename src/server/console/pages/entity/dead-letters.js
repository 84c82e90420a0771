// Dead letters of an entity: grouped by reason, and one by one.

import { call } from "../../lib/api.js";
import { digits, number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { deadLettersOf } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { setQuery } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { openJobDialog } from "../../components/job-dialog.js";
import { MessageList } from "../../components/message-list.js";
import { Empty, Loaded } from "../../components/notice.js";
import { Text } from "../../components/text.js";
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
        <ul class="groups">${data.groups.map((group) => html`<${Group} key=${JSON.stringify([group.reason, group.description])} group=${group} path=${path} reload=${groups.reload} />`)}</ul>
        ${data.next != null && html`<button type="button" onClick=${() => setFrom(data.next ?? undefined)}>${S.groupsMore}</button>`}`}<//></section>
    <${MessageList} address=${deadLettersOf(path)} newest=${count} hasReasons=${true} />`;
}

/** @param {{ group: Schemas["DeadLetterGroup"], path: string, reload: () => void }} properties */
function Group({ group, path, reload }) {
  const { reason, description, messages, first_number: first, last_number: last } = group;
  const select = () => setQuery({ by: "reason", value: reason ?? undefined });
  const [count, name] = [number(messages), visible(reason ?? "")];
  // The reader stays here: the next reason may want something else.
  const begin = (/** @type {import("../../components/job-dialog.js").Kind} */ kind) => () => openJobDialog({ entity: deadLettersOf(path), kind, selection: { reason }, onStarted: reload });
  return html`<li><span class="group-count number alarm-text">${count}</span>
    <span class="group-reason">${reason ? html`<button type="button" class="link" onClick=${select}><${Text} value=${reason} max=${300} /></button>`
      : html`<span class="muted">${S.noReason}</span>`}
      <span class="muted group-description"><${Text} value=${description} max=${300} /></span></span>
    <span class="muted number hide-narrow">${digits(first)}${first !== last && ` – ${digits(last)}`}</span>
    ${reason && can("manage") && html`<span class="actions"><button type="button" aria-label=${S.resendLabel(name)} onClick=${begin("redrive")}>${S.resend}</button>
      <button type="button" class="hide-narrow" aria-label=${S.moveLabel(name)} onClick=${begin("move")}>${S.move}</button>
      <button type="button" aria-label=${S.purgeLabel(name)} onClick=${begin("delete")}>${S.purge}</button></span>`}</li>`;
}
