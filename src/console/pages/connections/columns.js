// The cells of connections and links, and what may be done with them.

import { call } from "../../lib/api.js";
import { number, span } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { ageOf, isOfRequests } from "../../lib/links.js";
import { connectionHref, entityHref, entityOf, isDeadLetters, sessionHref } from "../../lib/paths.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { confirm } from "../../components/dialog.js";
import { RowAction } from "../../components/row-action.js";
import { Text } from "../../components/text.js";
import { Count, Rate } from "../../components/time.js";
import { toast } from "../../components/toast.js";
import { S } from "../../strings/connections.js";

/** @typedef {import("./rows.js").Row} Row */

/** @param {Schemas["Connection"]} connection */
export const nameOf = ({ container_id: name, peer }) => visible(name).slice(0, 200) || peer;

/** The client library of a connection; empty if it names none.
 * @param {Schemas["Connection"]} connection */
export const productOf = ({ product, version }) => visible([product, version].filter(Boolean).join(" "));

/** The address of a client with its port. Of IPv6 the address is a network.
 * @param {Schemas["Connection"]} connection */
export const addressOf = ({ peer, port }) => (port == null ? peer : S.addressOf(peer, String(port)));

/** What tells clients of one name apart.
 * @param {Schemas["Connection"]} connection */
const clientTexts = (connection) =>
  [productOf(connection), addressOf(connection), connection.secure ? S.tls : S.noTls].filter((text) => text !== "");

/** What becomes of the locks of links that are ended.
 * @param {Schemas["Link"][]} links */
function endOf(links) {
  const sessions = links.filter(({ session_id: session }) => session != null).length;
  const locked = links
    .filter(({ session_id: session }) => session == null)
    .reduce((sum, link) => sum + (link.locked ?? 0), 0);
  return [
    locked === 0 ? "" : S.locksEnd(number(locked)),
    sessions === 0 ? "" : S.sessionsEnd(number(sessions)),
    locked + sessions === 0 ? S.locksNone : "",
  ]
    .filter((text) => text !== "")
    .join(" ");
}

/** @param {Schemas["Connection"]} connection
 * @param {() => void} [done] */
export const close = (connection, done) =>
  confirm({
    title: S.closeTitle(nameOf(connection)),
    text: `${endOf(connection.links)} ${S.closeText}`,
    action: S.closeAction,
    run: async () => {
      await call("close_connection", { path: { id: connection.id } });
      toast(S.closed);
      done?.();
    },
  });

/** @param {Schemas["Connection"]} connection
 * @param {Schemas["Link"]} link */
export const detach = (connection, link) =>
  confirm({
    title: S.detachTitle(visible(link.entity) || S.noEntity),
    text: `${endOf([link])} ${S.detachText}`,
    action: S.detachAction,
    run: async () => {
      await call("close_link", { path: { id: connection.id, link: link.id } });
      toast(S.detached);
    },
  });

/** @param {{ connection: Schemas["Connection"], link: Schemas["Link"] | null }} properties */
export function Action({ connection, link }) {
  if (!can("manage")) return null;
  if (link === null) {
    return html`
      <${RowAction} icon="cancel" label=${S.closeLabel(nameOf(connection))} onClick=${() => close(connection)} />
    `;
  }
  return html`
    <${RowAction}
      icon="detach"
      label=${S.detachLabel(visible(link.entity) || S.noEntity)}
      onClick=${() => detach(connection, link)}
    />
  `;
}

/** The entity of a link, as a way to its page.
 * @param {{ link: { entity: string } }} properties */
export function Entity({ link }) {
  if (link.entity === "") return html`<span class="muted">${S.noEntity}</span>`;
  const path = entityOf(link.entity);
  if (!entities.value.has(path)) return html`<${Text} value=${link.entity} max=${260} />`;
  return html`
    <a href=${entityHref(path, isDeadLetters(link.entity) ? "dead-letters" : undefined)}>
      <${Text} value=${link.entity} max=${260} />
    </a>
  `;
}

/** @param {{ link: Schemas["Link"], isAlarm: boolean }} properties */
export function Credit({ link, isAlarm }) {
  if (link.credit == null) return null;
  if (link.credit !== 0) return html`<span class="number">${number(link.credit)}</span>`;
  return html`<span class=${isAlarm ? "number alarm" : "number no-credit"} title=${S.noCredit}>0</span>`;
}

/** Messages that wait for a receiver; not every receiver's are known.
 * @param {{ link: Schemas["Link"], isAlarm: boolean }} properties */
export function Waiting({ link, isAlarm }) {
  if (link.role !== "receiver" && link.role !== "waiting_receiver") return null;
  if (link.waiting == null) return html`<span class="muted" title=${S.waitingUnknown}>${S.notKnown}</span>`;
  return html`<${Count} value=${link.waiting} tone=${isAlarm ? "alarm" : ""} />`;
}

/** For how long something lasts, in words.
 * @param {{ since: string | null | undefined }} properties */
export function Lasting({ since }) {
  const age = ageOf(since);
  return age === null
    ? html`<span class="muted">${S.notKnown}</span>`
    : html`<span class="number" title=${since}>${span(age)}</span>`;
}

/** @param {{ rate: Row["rate"] }} properties */
export function LinkRate({ rate }) {
  return rate === null ? null : html`<span class="number" title=${S.rateTitle}><${Rate} value=${rate} /></span>`;
}

/** @param {{ link: Schemas["Link"] }} properties */
export function Held({ link }) {
  if (link.session_id == null) return null;
  return html`
    <a href=${sessionHref(entityOf(link.entity), link.session_id)}><${Text} value=${link.session_id} max=${100} /></a>
  `;
}

/** How many links are not shown.
 * @param {{ links: Schemas["Link"][] }} properties */
function Folded({ links }) {
  const folded = links.filter(isOfRequests).length;
  return folded === 0 ? null : html`<span class="muted client-peer">${S.folded(number(folded))}</span>`;
}

/** @param {{ row: Row }} properties */
function Name({ row: { connection, link, why } }) {
  if (link === null) {
    return html`
      <a class="client" href=${connectionHref(connection.id)} title=${visible(connection.container_id)}>
        <${Text} value=${connection.container_id} max=${200} none=${S.noName} />
      </a>
      <span
        class="muted client-peer"
        title=${clientTexts(connection).concat(connection.identities.map(visible)).join(", ")}
      >
        ${clientTexts(connection).join(", ")}
      </span>
      <${Folded} links=${connection.links} />
    `;
  }
  return html`
    <span class="link-name">
      <span class="muted verb">${S.roles[link.role]} </span>
      <${Entity} link=${link} />
      ${why !== null && html`<span class="alarm-text why" title=${why}>${why}</span>`}
    </span>
  `;
}

/** @param {Record<string, unknown>} sortable
 * @returns {import("../../components/table.js").Column<Row>[]} */
export function columns(sortable) {
  // The rows come sorted: these only say that their columns can be.
  const sort = (/** @type {string} */ id) => (id in sortable ? () => 0 : undefined);
  return [
    { id: "name", label: S.name, isWide: true, sort: sort("name"), cell: (row) => html`<${Name} row=${row} />` },
    {
      id: "session",
      label: S.session,
      hide: "medium",
      cell: ({ link }) => link !== null && html`<${Held} link=${link} />`,
    },
    {
      id: "credit",
      label: S.credit,
      align: "end",
      sort: sort("credit"),
      cell: ({ link, why }) => link !== null && html`<${Credit} link=${link} isAlarm=${why !== null} />`,
    },
    {
      id: "unsettled",
      label: S.unsettled,
      align: "end",
      sort: sort("unsettled"),
      cell: ({ link, locked, why }) =>
        (link === null ? 0 < locked : link.locked != null) && html`
          <${Count} value=${locked} tone=${why === null ? "" : "alarm"} />
        `,
    },
    {
      id: "waiting",
      label: S.waiting,
      align: "end",
      hide: "medium",
      cell: ({ link, why }) => link !== null && html`<${Waiting} link=${link} isAlarm=${why !== null} />`,
    },
    {
      id: "idle",
      label: S.idle,
      align: "end",
      hide: "medium",
      cell: ({ link }) => link !== null && link.idle_since != null && html`<${Lasting} since=${link.idle_since} />`,
    },
    {
      id: "rate",
      label: S.rate,
      align: "end",
      hide: "narrow",
      sort: sort("rate"),
      cell: ({ rate }) => html`<${LinkRate} rate=${rate} />`,
    },
    {
      id: "action",
      label: "",
      align: "end",
      cell: ({ connection, link }) => html`<${Action} connection=${connection} link=${link} />`,
    },
  ];
}
