// A topic as a map: what is published, and the subscriptions that it is copied to, those that need a person first.

import { number, rate } from "../../lib/format.js";
import { tenSeconds } from "../../lib/clock.js";
import { html, useMemo } from "../../lib/html.js";
import { entities, hasRates } from "../../lib/live.js";
import { entityHref } from "../../lib/paths.js";
import { href } from "../../lib/router.js";
import { wholeOf } from "../../lib/tree.js";
import { compare } from "../../components/table.js";
import { EntityName } from "../../components/text.js";
import { Count, Rate, Size } from "../../components/time.js";
import { Arrow, Happened, Held, Step, Target } from "./picture.js";
import { ShortRules } from "./short-rules.js";
import { NoSubscriptions, subscriptionsOf } from "./subscriptions.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/entity.js";

/** @typedef {import("../../lib/tree.js").Row} Row */

/** Subscriptions that the map has. The others are in the table of all. */
const SHOWN_MAX = 12;

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function TopicMap({ entity }) {
  const { path } = entity;
  const rows = subscriptionsOf(path, "name");
  const order = useWorstFirst(rows);
  const shown = order.slice(0, SHOWN_MAX).flatMap((each) => rows.find((row) => row.path === each) ?? []);
  const others = rows.length - shown.length;
  return html`
    <ol class="flow map" aria-label=${S.picture}>
      <${Step} name=${S.arrives}>
        <${Happened} label=${S.published} entity=${entity} counter="incoming" />
        <${Held} label=${S.scheduled} value=${entity.scheduled} to=${entityHref(path, "messages")} />
        <${Happened} label=${S.unmatched} entity=${entity} counter="unmatched" />
      <//>
      <li>
        <${Arrow} />
        <p class="flow-name">${S.copiedTo(number(rows.length), rows.length)}</p>
        ${rows.length === 0
          ? html`<${NoSubscriptions} topic=${path} />`
          : html`
              <ul class="branches" aria-label=${S.subscriptions}>
                ${shown.map((row) => html`<${Branch} key=${row.path} row=${row} />`)}
              </ul>
            `}
        ${0 < others && html`
          <p class="muted">
            ${S.othersAreCalmer(number(others), others)}${" "}
            <a href=${entityHref(path, "subscriptions")}>${S.showAll(number(rows.length))}</a>
          </p>
        `}
      </li>
    </ol>
    <${Together} entity=${entity} />
  `;
}

/** The paths of subscriptions, the worst first: with dead letters, with a backlog that no receiver takes, with a
 * backlog. The order changes every ten seconds only, so that rows can be read and clicked.
 * @param {Row[]} rows
 * @returns {string[]} */
function useWorstFirst(rows) {
  const unattended = (/** @type {Row} */ row) => (row.receivers === 0 && row.forwardTo === undefined ? row.active : 0);
  const order = (/** @type {Row} */ a, /** @type {Row} */ b) =>
    b.dead - a.dead || unattended(b) - unattended(a) || b.active - a.active || compare(a.name, b.name);
  return useMemo(() => [...rows].sort(order).map(({ path }) => path), [tenSeconds.value, rows.length]);
}

/** A subscription: what it takes, and what becomes of it.
 * @param {{ row: Row }} properties */
function Branch({ row }) {
  const { path, forwardTo } = row;
  const incoming = hasRates() ? row.incoming : null;
  const figure = (
    /** @type {string} */ label,
    /** @type {string} */ text,
    /** @type {any} */ shown,
    /** @type {string} */ to,
  ) => html`<div><dt>${label}</dt><dd><a href=${to} aria-label=${`${label}: ${text}`}>${shown}</a></dd></div>`;
  const count = (/** @type {string} */ label, /** @type {number} */ value, /** @type {string} */ to, tone = "") =>
    figure(label, number(value), html`<${Count} value=${value} tone=${tone} />`, to);
  return html`
    <li>
      <div class="branch-name">
        <a href=${entityHref(path)}><${EntityName} value=${row.name} max=${200} /></a>
        <div class="branch-rules"><${ShortRules} path=${path} /></div>
      </div>
      <dl>
        ${figure(
          S.in,
          `${rate(incoming)} ${C.perSecond}`,
          html`<${Rate} value=${incoming} hasUnit />`,
          entityHref(path),
        )}
        ${count(S.active, row.active, href(["entity", path], { tab: "messages", state: "active" }))}
        ${count(S.dead, row.dead, entityHref(path, "dead-letters"), 0 < row.fresh ? "alarm" : "")}
        ${count(S.receivers, row.receivers, entityHref(path, "consumers"))}
      </dl>
      ${forwardTo !== undefined && html`<p class="branch-target"><${Target} path=${forwardTo} /></p>`}
    </li>
  `;
}

/** The counts of all subscriptions of a topic.
 * @param {{ entity: Schemas["EntityNow"] }} properties */
function Together({ entity }) {
  const whole = wholeOf(entity, entities.value.values());
  return html`
    <dl class="figures">
      <div><dt>${S.copiesCompleted}</dt><dd><${Rate} value=${hasRates() ? whole.outgoing : null} hasUnit /></dd></div>
      <div><dt>${S.active}</dt><dd><${Count} value=${whole.active} /></dd></div>
      <div><dt>${S.locked}</dt><dd><${Count} value=${whole.locked} /></dd></div>
      <div><dt>${S.deferred}</dt><dd><${Count} value=${whole.deferred} /></dd></div>
      <div><dt>${S.dead}</dt><dd><${Count} value=${whole.dead} tone=${0 < whole.fresh ? "alarm" : ""} /></dd></div>
      <div><dt>${S.size}</dt><dd><${Size} value=${whole.size} /></dd></div>
      <div><dt>${S.receivers}</dt><dd><${Count} value=${whole.receivers} /></dd></div>
    </dl>
    <p class="muted">${S.topicCounts}</p>
  `;
}
