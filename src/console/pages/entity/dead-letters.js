// Dead letters of an entity: grouped by reason, and one by one.

import { call } from "../../lib/api.js";
import { digits, number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { reasonsOf, selectionOfRow } from "../../lib/dead-letters.js";
import { deadLettersOf } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { setQuery } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { MessageList } from "../../components/message-list.js";
import { Empty, Loaded } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { openVerb } from "../../components/verb-dialog.js";
import { S } from "../../strings/entity.js";

/** Dead letters up to which their groups follow every change: grouping looks at each of them. */
const FOLLOWED_MAX = 1_000;
/** Descriptions of a reason that are shown at first, and at most. */
const FIRST_SHOWN = 5;
const SHOWN_MAX = 200;

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function DeadLetters({ entity }) {
  const { path, dead_letters: count } = entity;
  const [from, setFrom] = useState(/** @type {number | undefined} */ (undefined));
  const [changes, setChanges] = useState(0);
  const seen = count <= FOLLOWED_MAX ? count : -1;
  const groups = useResource(
    (signal) => call("group_dead_letters", { path: { entity: path }, query: { from }, signal }),
    [path, from],
    [seen],
  );
  const reload = () => {
    groups.reload();
    setChanges(changes + 1);
  };
  if (count === 0 && groups.data?.messages === 0)
    return html`<div class="card"><${Empty} title=${S.noDead} text=${S.noDeadText} /></div>`;
  return html`
    <section class="card" aria-labelledby="groups">
      <div class="card-head">
        <h2 id="groups">${S.groups}</h2>
        <span class="actions">
          ${groups.data && html`<span class="muted">${S.groupsLooked(number(groups.data.messages))}</span>`}
          <button type="button" class="quiet" onClick=${groups.reload}>${S.refresh}</button>
        </span>
      </div>
      <${Loaded} of=${groups}>
        ${(/** @type {Schemas["DeadLetterGroups"]} */ data) => html`
          ${(data.next != null || from !== undefined) && html`<p class="muted">${S.groupsPart}</p>`}
          <ul class="groups">
            ${reasonsOf(data.groups).map(
              (of) => html`<${Reason} key=${JSON.stringify([of.reason])} of=${of} path=${path} reload=${reload} />`,
            )}
          </ul>
          ${data.next != null && html`
            <button type="button" onClick=${() => setFrom(data.next ?? undefined)}>${S.groupsMore}</button>
          `}
        `}
      <//>
    </section>
    <${MessageList} address=${deadLettersOf(path)} newest=${count} changes=${changes} hasReasons=${true} />
  `;
}

/** A reason. If its messages have one description, or none has one, that is in its row; else they are below it.
 * @param {{ of: import("../../lib/dead-letters.js").Reason, path: string, reload: () => void }} properties */
function Reason({ of: { reason, messages, first, last, descriptions }, path, reload }) {
  const [isOpen, setOpen] = useState(false);
  const name = reason ?? S.noReason;
  const only = descriptions.length === 1 ? descriptions[0] : undefined;
  const shown = isOpen ? descriptions.slice(0, SHOWN_MAX) : descriptions.slice(0, FIRST_SHOWN);
  const label =
    reason === null
      ? html`<span class="muted">${S.noReason}</span>`
      : html`
          <button type="button" class="link" onClick=${() => setQuery({ by: "reason", value: reason })}>
            <${Text} value=${reason} max=${300} />
          </button>
        `;
  return html`
    <li>
      <${Row}
        count=${messages}
        first=${first}
        last=${last}
        label=${label}
        description=${only?.description}
        name=${visible(name)}
        path=${path}
        selection=${selectionOfRow(reason, only)}
        reload=${reload}
      />
      ${only === undefined && html`
        <ul class="descriptions" aria-label=${S.descriptionsOf(visible(name))}>
          ${shown.map(
            (group) => html`
              <li key=${group.description ?? ""}>
                <${Row}
                  count=${group.messages}
                  first=${group.first_number}
                  last=${group.last_number}
                  label=${
                    group.description == null
                      ? html`<span class="muted">${S.noDescription}</span>`
                      : html`<${Text} value=${group.description} max=${300} />`
                  }
                  name=${visible(`${name}, ${group.description ?? S.noDescription}`)}
                  path=${path}
                  selection=${selectionOfRow(reason, group)}
                  reload=${reload}
                />
              </li>
            `,
          )}
        </ul>
        ${shown.length < descriptions.length && !isOpen && html`
          <button type="button" class="link more-descriptions" onClick=${() => setOpen(true)}>
            ${S.moreDescriptions(number(descriptions.length - shown.length))}
          </button>
        `}
        ${shown.length < descriptions.length && isOpen && html`
          <p class="muted more-descriptions">${S.andMore(number(descriptions.length - shown.length))}</p>
        `}
      `}
    </li>
  `;
}

/** What is counted, and what can be done with it.
 * @param {{ count: number, first: number | bigint, last: number | bigint, label: any, description?: string | null,
 *   name: string, path: string, selection: import("../../lib/selection.js").Selection, reload: () =>
 *   void }} properties */
function Row({ count, first, last, label, description, name, path, selection, reload }) {
  // The reader stays here: the next reason may want something else.
  const begin = (/** @type {import("../../components/verb-dialog.js").Kind} */ kind) => () =>
    openVerb({ entity: deadLettersOf(path), kind, selection, onDone: reload });
  return html`
    <div class="group">
      <span class="group-count number alarm-text">${number(count)}</span>
      <span class="group-reason">
        ${label} <span class="muted group-description"><${Text} value=${description} max=${300} /></span>
      </span>
      <span class="muted number hide-narrow">${digits(first)}${first !== last && ` – ${digits(last)}`}</span>
      ${can("manage") && html`
        <span class="actions">
          <button type="button" aria-label=${S.resendLabel(name)} onClick=${begin("redrive")}>${S.resend}</button>
          <button type="button" class="hide-narrow" aria-label=${S.moveLabel(name)} onClick=${begin("move")}>
            ${S.move}
          </button>
          <button type="button" aria-label=${S.purgeLabel(name)} onClick=${begin("delete")}>${S.deleteGroup}</button>
        </span>
      `}
    </div>
  `;
}
