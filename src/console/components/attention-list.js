// What needs attention, as the broker tells it, with what the reader has hidden.

import { acknowledge, markOf, mute, unmark } from "../lib/attention.js";
import { number, span } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { ageOf } from "../lib/links.js";
import { connectionHref, entityHref, jobHref } from "../lib/paths.js";
import { visible } from "../lib/visible.js";
import { EntityName, Text } from "./text.js";
import { S } from "../strings/attention.js";

/** @typedef {Schemas["AttentionItem"]} Item */

/** Where a reader finds more about an item; empty if nowhere. Another kind is on the page of its entity.
 * @param {Item} item */
function addressOf({ kind, entity, connection, job }) {
  if (job != null) return jobHref(job);
  if (connection != null) return connectionHref(connection);
  if (entity == null) return "";
  switch (kind) {
    case "recent_dead_letters":
    case "dead_letters":
    case "forwarding_failed":
    case "forwarding_blocked":
      return entityHref(entity, "dead-letters");
    case "stuck_receiver":
    case "locks_expire":
    case "old_lock":
      return entityHref(entity, "consumers");
    case "no_receiver":
      return entityHref(entity, "messages");
    case "disabled_with_messages":
      return entityHref(entity, "properties");
    default:
      return entityHref(entity);
  }
}

/** @param {{ item: Item }} properties */
function Since({ item: { since } }) {
  const age = ageOf(since);
  return age === null
    ? html`<span class="muted since" title=${S.sinceUnknownTitle}>${S.sinceUnknown}</span>`
    : html`<span class="muted since" title=${since}>${S.since(span(age))}</span>`;
}

/** @param {{ item: Item }} properties */
function One({ item }) {
  const { entity, client, text, urgency } = item;
  const [mark, address, name] = [markOf(item), addressOf(item), entity == null ? S.namespace : visible(entity)];
  return html`
    <li class=${mark === undefined ? "" : "hidden-item"}>
      ${address === ""
        ? html`<b>${name}</b>`
        : html`<a href=${address}><${EntityName} value=${entity ?? S.namespace} max=${200} /></a>`}
      <span class=${urgency === "alarm" ? "alarm-text what" : "muted what"}>
        ${client != null && html`<${Text} value=${client} max=${100} />: `}
        <${Text} value=${text} max=${500} />
      </span>
      <span class="marks">
        <${Since} item=${item} />
        ${mark === undefined
          ? html`
              <button
                type="button"
                class="link"
                title=${S.acknowledgeTitle}
                aria-label=${S.acknowledgeLabel(name, text)}
                onClick=${() => acknowledge(item)}
              >
                ${S.acknowledge}
              </button>
              <button
                type="button"
                class="link"
                title=${S.muteTitle}
                aria-label=${S.muteLabel(name, text)}
                onClick=${() => mute(item)}
              >
                ${S.mute}
              </button>
            `
          : mark.kind === "muted"
            ? html`
                <span class="muted">${S.muted}</span>
                <button
                  type="button"
                  class="link"
                  aria-label=${S.unmuteLabel(name, text)}
                  onClick=${() => unmark(item)}
                >
                  ${S.unmute}
                </button>
              `
            : html`
                <span class="muted">${S.acknowledged}</span>
                <button
                  type="button"
                  class="link"
                  aria-label=${S.showAgainLabel(name, text)}
                  onClick=${() => unmark(item)}
                >
                  ${S.showAgain}
                </button>
              `}
      </span>
    </li>
  `;
}

/** Shows items; `most` of them at first. What the reader has hidden is counted, and shown on request.
 * @param {{ items: Item[], leftOut?: number, most: number }} properties */
export function AttentionList({ items, leftOut = 0, most }) {
  const [isWhole, setIsWhole] = useState(false);
  const [showsHidden, setShowsHidden] = useState(false);
  const shown = items.filter((item) => markOf(item) === undefined);
  const hidden = items.filter((item) => markOf(item) !== undefined);
  const rows = [...(isWhole ? shown : shown.slice(0, most)), ...(showsHidden ? hidden : [])];
  return html`
    ${shown.length === 0 && html`<p class="muted">${hidden.length === 0 ? S.none : S.noneShown}</p>`}
    ${rows.length !== 0 && html`
      <ul class="matters">${rows.map((item) => html`<${One} key=${item.id} item=${item} />`)}</ul>
    `}
    ${!isWhole && most < shown.length && html`
      <p>
        <button type="button" class="link" onClick=${() => setIsWhole(true)}>
          ${S.more(number(shown.length - most))}
        </button>
      </p>
    `}
    ${leftOut !== 0 && html`<p class="muted">${S.leftOut(number(leftOut))}</p>`}
    ${hidden.length !== 0 && html`
      <p class="muted hidden-count">
        ${S.hidden(number(hidden.length))}${" "}
        <button type="button" class="link" aria-expanded=${showsHidden} onClick=${() => setShowsHidden(!showsHidden)}>
          ${showsHidden ? S.hideAgain : S.showHidden}
        </button>
      </p>
    `}
  `;
}
