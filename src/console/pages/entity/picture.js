// A queue or a subscription as a picture: what arrives, what is here, and what leaves, as boxes with arrows between
// them.

import { number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entities, hasRates, rateOf } from "../../lib/live.js";
import { entityHref } from "../../lib/paths.js";
import { href } from "../../lib/router.js";
import { trendOf } from "../../lib/trends.js";
import { wholeOf } from "../../lib/tree.js";
import { EntityName } from "../../components/text.js";
import { Count, Rate } from "../../components/time.js";
import { WithTrend } from "../../components/trend.js";
import { S } from "../../strings/entity.js";

/** What is beside a figure, in lines below it.
 * @typedef {any[]} Lines */

/** @param {{ entity: Schemas["EntityNow"] }} properties */
export function Picture({ entity }) {
  const { path } = entity;
  const list = (/** @type {string} */ state) => href(["entity", path], { tab: "messages", state });
  return html`
    <ol class="flow" aria-label=${S.picture}>
      <${Step} name=${S.arrives}><${Happened} label=${S.in} entity=${entity} counter="incoming" /><//>
      <${Step} name=${S.isHere}>
        <${Held} label=${S.active} value=${entity.active} to=${list("active")} change=${trendOf(path)?.active} />
        <${Held}
          label=${S.locked}
          value=${entity.locked}
          to=${entityHref(path, "consumers")}
          lines=${[S.receiving(entity.receivers, number(entity.receivers))]}
        />
        <${Held} label=${S.scheduled} value=${entity.scheduled} to=${list("scheduled")} />
        <${Held} label=${S.deferred} value=${entity.deferred} to=${list("deferred")} />
      <//>
      <${Step} name=${S.leaves}>
        <${Happened} label=${S.out} entity=${entity} counter="completed" />
        <${Happened} label=${S.deadLettered} entity=${entity} counter="dead_lettered" lines=${deadLines(entity)} />
        <${Happened}
          label=${S.forwarded}
          entity=${entity}
          counter="forwarded"
          lines=${[entity.forward_to != null && html`<${Target} path=${entity.forward_to} />`]}
        />
        <${Happened} label=${S.expiredTotal} entity=${entity} counter="expired" />
      <//>
    </ol>
    <p class="muted">${S.pictureNote}</p>
  `;
}

/** Where dead letters are.
 * @param {Schemas["EntityNow"]} entity
 * @returns {Lines} */
function deadLines(entity) {
  const { path, dead_letters: count, forward_dead_letters_to: target } = entity;
  const tone = 0 < wholeOf(entity, entities.value.values()).fresh ? "alarm" : "";
  return [
    count !== 0 && html`
      <${WithTrend} value=${count} change=${trendOf(path)?.dead_letters} tone=${tone}>
        <a class=${tone === "alarm" ? "alarm-text" : ""} href=${entityHref(path, "dead-letters")}>
          ${S.deadLettersHere(count, number(count))}
        </a>
      <//>
    `,
    target != null && html`<${Target} path=${target} />`,
  ];
}

/** An entity that messages are forwarded to.
 * @param {{ path: string }} properties */
export function Target({ path }) {
  return html`${S.to} <a href=${entityHref(path)}><${EntityName} value=${path} max=${260} /></a>`;
}

/** Figures of one part of the way, behind an arrow if there is a part before it.
 * @param {{ name: string, children?: any }} properties */
export function Step({ name, children }) {
  return html`<li><${Arrow} /><p class="flow-name">${name}</p><dl class="figures">${children}</dl></li>`;
}

/** The order of the list says what the arrow shows. */
export function Arrow() {
  return html`
    <svg class="flow-arrow" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
      <path
        d="M2 12h20m-6-6l6 6-6 6"
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  `;
}

/** What happens to messages: how often it does, and how often it did.
 * @param {{ label: string, entity: Schemas["EntityNow"], counter: import("../../lib/live.js").Counter,
 *   lines?: Lines }} properties */
export function Happened({ label, entity, counter, lines = [] }) {
  const perSecond = hasRates() ? rateOf(entity.path, counter) : null;
  return html`
    <div>
      <dt>${label}</dt>
      <dd><${Rate} value=${perSecond} hasUnit /></dd>
      <${Below} lines=${[S.inAll(number(entity[counter])), ...lines]} />
    </div>
  `;
}

/** Messages that are here, with the way to them if there are any, and how their number has changed.
 * @param {{ label: string, value: number, to: string, change?: Schemas["ChangeShown"], lines?: Lines }} properties */
export function Held({ label, value, to, change, lines = [] }) {
  const count = html`<${Count} value=${value} />`;
  return html`
    <div>
      <dt>${label}</dt>
      <dd>
        <${WithTrend} value=${value} change=${change}>
          ${value === 0 ? count : html`<a href=${to} aria-label=${`${label}: ${number(value)}`}>${count}</a>`}
        <//>
      </dd>
      <${Below} lines=${lines} />
    </div>
  `;
}

/** @param {{ lines: Lines }} properties */
function Below({ lines }) {
  return lines.filter(Boolean).map((line) => html`<dd class="flow-more">${line}</dd>`);
}
