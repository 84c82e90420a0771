// Connections as rows, with their links below them.

import { isOfRequests, linkKey, rateOfLink } from "../../lib/links.js";
import { compare } from "../../components/table.js";

/** A row: a connection, or one of its links; `why` says why a receiver is stuck.
 * @typedef {{ key: string, connection: Schemas["Connection"], link: Schemas["Link"] | null, why: string | null,
 *   rate: number | null, locked: number }} Row */

/** What connections are sorted by: what their links have together. @type {Record<string, (rows: Row[]) => string |
 * number>} */
export const KEYS = {
  name: ([{ connection }]) => connection.container_id,
  address: ([{ connection }]) => connection.peer,
  credit: (rows) => sum(rows, ({ link }) => link?.credit ?? 0),
  unsettled: (rows) => sum(rows, ({ locked }) => locked),
  rate: (rows) => sum(rows, ({ rate }) => rate ?? 0),
};

/** @param {Row[]} rows
 * @param {(row: Row) => number} of */
const sum = (rows, of) => rows.reduce((total, row) => total + of(row), 0);

/** Links in the order in which they are looked at.
 * @type {Schemas["Link"]["role"][]} */
const ROLES = ["receiver", "waiting_receiver", "sender", "coordinator", "requests", "responses"];

/** @param {Row} row */
const place = ({ link }) => (link === null ? -1 : ROLES.indexOf(link.role));

/** @param {Row} row */
const rank = ({ why }) => (why === null ? 1 : 0);

/** Makes the rows: the connections that match, with the links that do. What is stuck is first.
 * @param {Iterable<Schemas["Connection"]>} connections
 * @param {{ filter: string, show: string, sort: string, stuck: import("./stuck.js").StuckLink[] }} options
 * @returns {Row[]} */
export function rowsOf(connections, { filter, show, sort, stuck }) {
  const wanted = filter.toLowerCase();
  const byLink = new Map(stuck.map(({ connection, link, why }) => [linkKey(connection, link), why]));
  const has = (/** @type {(string | null | undefined)[]} */ ...texts) =>
    texts.some((text) => text?.toLowerCase().includes(wanted));
  /** @type {{ own: Row, links: Row[] }[]} */
  const groups = [];
  for (const connection of connections) {
    const { container_id: client, peer, port, host, product, identities } = connection;
    const isWanted = has(client, `${peer}:${port ?? ""}`, host, product, ...identities);
    /** @type {Row[]} */
    const links = [];
    for (const link of connection.links) {
      const why = byLink.get(linkKey(connection, link)) ?? null;
      if (!isShown(link, why, show) || !(isWanted || has(link.entity, link.session_id))) continue;
      links.push({
        key: linkKey(connection, link),
        connection,
        link,
        why,
        rate: rateOfLink(connection, link),
        locked: link.locked ?? 0,
      });
    }
    if (links.length === 0 && !(isWanted && show === "")) continue;
    links.sort(
      (a, b) => rank(a) - rank(b) || place(a) - place(b) || compare(a.link?.entity ?? "", b.link?.entity ?? ""),
    );
    const own = {
      key: `${connection.id}`,
      connection,
      link: null,
      why: null,
      rate: null,
      locked: sum(links, ({ locked }) => locked),
    };
    groups.push({ own, links });
  }
  const key = KEYS[sort.replace(/^-/, "")] ?? (({ 0: { connection } }) => connection.id);
  const sign = sort.startsWith("-") ? -1 : 1;
  const first = (/** @type {{ links: Row[] }} */ { links }) => (sort === "" ? Math.min(2, ...links.map(rank)) : 0);
  groups.sort(
    (a, b) =>
      first(a) - first(b) ||
      sign * compare(key(a.links.length === 0 ? [a.own] : a.links), key(b.links.length === 0 ? [b.own] : b.links)) ||
      a.own.connection.id - b.own.connection.id,
  );
  return groups.flatMap(({ own, links }) => [own, ...links]);
}

/** @param {Schemas["Link"]} link
 * @param {Row["why"]} why
 * @param {string} show */
function isShown(link, why, show) {
  const { role } = link;
  switch (show) {
    case "requests":
      return isOfRequests(link);
    case "receivers":
      return role === "receiver" || role === "waiting_receiver";
    case "senders":
      return role === "sender";
    case "stuck":
      return why !== null;
    default:
      return !isOfRequests(link);
  }
}
