// One connection: its client, its links, the messages that it holds.

import { call } from "../../lib/api.js";
import { digits, number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { isOfRequests, oldestLocked, rateOfLink, whyStuck } from "../../lib/links.js";
import { connections, isKnown } from "../../lib/live.js";
import { messageHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { href } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { Empty, Loaded, Loading } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { Text } from "../../components/text.js";
import { Count, Time } from "../../components/time.js";
import { Action, Credit, Entity, Held, Lasting, LinkRate, Waiting, addressOf, close, productOf } from "./columns.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/connections.js";

/** @typedef {{ queue: string, message: Schemas["MessageShown"] }} HeldMessage */

/** Entities of one connection whose messages are looked at. */
const ENTITIES_MAX = 8;

/** @param {{ id: number }} properties */
export function One({ id }) {
  const connection = connections.value.get(id);
  return html`
    <div class="page-head">
      <p class="crumbs"><a href=${href(["connections"])}>${C.pages.connections}</a></p>
      <h1 tabindex="-1">${S.title(String(id))}</h1>
      ${connection && can("manage") && html`
        <div class="actions"><button type="button" onClick=${() => close(connection)}>${S.closeAction}</button></div>
      `}
    </div>
    ${connection !== undefined
      ? html`<${Shown} connection=${connection} />`
      : !isKnown.value
        ? html`<${Loading} />`
        : html`
            <div class="card">
              <${Empty} title=${S.gone} text=${S.goneText}><a href=${href(["connections"])}>${S.toAll}</a><//>
            </div>
          `}
  `;
}

/** @param {{ connection: Schemas["Connection"] }} properties */
function Shown({ connection }) {
  const { id, container_id: client, host, authorized, links, identities, secure, opened_at: opened } = connection;
  const [own, requests] = [links.filter((link) => !isOfRequests(link)), links.filter(isOfRequests)];
  return html`
    <section class="card">
      <dl class="pairs">
        <dt>${S.client}</dt>
        <dd><${Text} value=${client} none=${S.noName} /></dd>
        <dt>${S.product}</dt>
        <dd><${Text} value=${productOf(connection)} none=${S.noProduct} /></dd>
        <dt>${S.address}</dt>
        <dd class="number">${addressOf(connection)}</dd>
        <dt>${S.transport}</dt>
        <dd>${secure ? S.tls : S.noTls}</dd>
        <dt>${S.since}</dt>
        <dd><${Time} at=${opened} /></dd>
        <dt>${S.identity}</dt>
        <dd><${Text} value=${identities.join(", ")} none=${S.noIdentity} /></dd>
        <dt>${S.host}</dt>
        <dd><${Text} value=${host} none=${C.none} /></dd>
        <dt>${S.authorized}</dt>
        <dd>${authorized ? S.authorizedYes : html`<span class="muted">${S.authorizedNo}</span>`}</dd>
        <dt>${S.id}</dt>
        <dd class="number">${digits(id)}</dd>
      </dl>
    </section>
    <section class="card" aria-labelledby="links">
      <div class="card-head"><h2 id="links">${S.links}</h2><span class="muted">${number(own.length)}</span></div>
      ${own.length === 0
        ? html`<p class="muted">${S.noLinks}</p>`
        : html`<${Links} connection=${connection} links=${own} />`}
      ${requests.length !== 0 && html`
        <details>
          <summary>${S.folded(number(requests.length))}</summary>
          <${Links} connection=${connection} links=${requests} />
        </details>
      `}
    </section>
    ${links.some(({ locked }) => locked) && html`<${HeldMessages} connection=${connection} />`}
  `;
}

/** @param {{ connection: Schemas["Connection"], links: Schemas["Link"][] }} properties */
const Links = ({ connection, links }) => html`
  <ul class="links">
    ${links.map((link) => html`<${OneLink} key=${link.id} connection=${connection} link=${link} />`)}
  </ul>
`;

/** @param {{ connection: Schemas["Connection"], link: Schemas["Link"] }} properties */
function OneLink({ connection, link }) {
  const why = whyStuck(link);
  const rate = rateOfLink(connection, link);
  return html`
    <li>
      <span class="link-head">
        <span class="muted">${S.roles[link.role]}</span> <${Entity} link=${link} />
        ${why !== null && html`<span class="alarm-text why">${why}</span>`}
      </span>
      <span class="link-values">
        ${link.credit != null && html`
          <span><span class="muted">${S.credit}</span> <${Credit} link=${link} isAlarm=${why !== null} /></span>
        `}
        ${link.locked != null && html`
          <span>
            <span class="muted">${S.unsettled}</span>${" "}
            <${Count} value=${link.locked} tone=${why === null ? "" : "alarm"} />
          </span>
        `}
        ${link.locked != null && link.locked !== 0 && html`
          <span><span class="muted">${S.oldestLock}</span> <${Lasting} since=${link.oldest_lock_at} /></span>
        `}
        ${(link.role === "receiver" || link.role === "waiting_receiver") && html`
          <span><span class="muted">${S.waiting}</span> <${Waiting} link=${link} isAlarm=${why !== null} /></span>
          <span><span class="muted">${S.idle}</span> <${Lasting} since=${link.idle_since} /></span>
        `}
        ${link.deliveries != null && html`
          <span>
            <span class="muted">${S.rate}</span>${" "}
            ${rate === null ? html`<span class="muted">${S.notKnownYet}</span>` : html`<${LinkRate} rate=${rate} />`}
          </span>
        `}
        ${link.session_id != null && html`
          <span><span class="muted">${S.session}</span> <${Held} link=${link} /></span>
        `}
        ${link.selector != null && html`
          <span><span class="muted">${S.selector}</span> <${Text} value=${link.selector} max=${300} /></span>
        `}
      </span>
      <${Action} connection=${connection} link=${link} />
    </li>
  `;
}

/** @param {{ connection: Schemas["Connection"] }} properties */
function HeldMessages({ connection }) {
  const paths = [...new Set(connection.links.filter(({ locked }) => locked).map(({ entity }) => entity))].slice(
    0,
    ENTITIES_MAX,
  );
  const locked = connection.links.map((link) => `${link.locked ?? 0} ${link.oldest_locked ?? ""}`).join();
  const held = useResource((signal) => readHeld(connection, paths, signal), [connection.id, paths], [locked]);
  return html`
    <section class="card" aria-labelledby="held">
      <div class="card-head"><h2 id="held">${S.heldTitle}</h2></div>
      <${Loaded} of=${held}>
        ${(/** @type {HeldMessage[]} */ rows) =>
          rows.length === 0
            ? html`<p class="muted">${S.heldNone}</p>`
            : html`
                <${Table}
                  label=${S.heldTitle}
                  columns=${HELD_COLUMNS}
                  rows=${rows}
                  heightMax=${320}
                  keyOf=${(/** @type {HeldMessage} */ row) => `${row.queue} ${row.message.sequence_number}`}
                  hrefOf=${(/** @type {HeldMessage} */ row) => messageHref(row.queue, row.message.sequence_number)}
                />
              `}
      <//>
    </section>
  `;
}

/** Finds what a connection holds, beginning with the oldest.
 * @param {Schemas["Connection"]} connection
 * @param {string[]} paths
 * @param {AbortSignal} signal
 * @returns {Promise<HeldMessage[]>} */
async function readHeld({ id, links }, paths, signal) {
  const pages = await Promise.all(
    paths.map(async (queue) => {
      const { messages } = await call("list_messages", {
        path: { entity: queue },
        query: { body: "none", limit: 100, from: oldestLocked(links, queue) },
        signal,
      });
      return messages.filter(({ lock }) => lock?.holder?.connection === id).map((message) => ({ queue, message }));
    }),
  );
  return pages.flat();
}

/** @type {import("../../components/table.js").Column<HeldMessage>[]} */
const HELD_COLUMNS = [
  {
    id: "number",
    label: S.number,
    align: "end",
    cell: ({ queue, message }) => html`
      <a class="number" href=${messageHref(queue, message.sequence_number)}>${digits(message.sequence_number)}</a>
    `,
  },
  { id: "entity", label: S.entity, isWide: true, cell: ({ queue }) => html`<${Text} value=${queue} max=${120} />` },
  {
    id: "until",
    label: S.lockedUntil,
    cell: ({ message }) => html`<${Time} at=${message.lock?.until ?? undefined} />`,
  },
  {
    id: "deliveries",
    label: S.deliveries,
    align: "end",
    hide: "narrow",
    cell: ({ message }) => html`<${Count} value=${message.delivery_count} />`,
  },
  {
    id: "enqueued",
    label: S.enqueued,
    align: "end",
    hide: "medium",
    cell: ({ message }) => html`<${Time} at=${message.enqueued_at} />`,
  },
];
