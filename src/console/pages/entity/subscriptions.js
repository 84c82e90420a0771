// Subscriptions of a topic: all of them as a table.

import { topicOf } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entities, hasRates } from "../../lib/live.js";
import { entityHref } from "../../lib/paths.js";
import { href } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { KEYS, treeOf } from "../../lib/tree.js";
import { Empty } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { useQuery } from "../../components/tabs.js";
import { Text } from "../../components/text.js";
import { Count, Rate } from "../../components/time.js";
import { ShortRules } from "./short-rules.js";
import { S as E } from "../../strings/entities.js";
import { S } from "../../strings/entity.js";

/** @typedef {import("../../lib/tree.js").Row} Row */

/** The subscriptions of a topic, with their counts.
 * @param {string} topic
 * @param {string} sort
 * @returns {Row[]} */
export function subscriptionsOf(topic, sort) {
  const own = [...entities.value.values()].filter((entity) => entity.path === topic || topicOf(entity.path) === topic);
  return treeOf(own, { filter: "", kind: "", sort, closed: new Set() }).slice(1);
}

/** @param {{ topic: string }} properties */
export function Subscriptions({ topic }) {
  const [sort, setSort] = useQuery("sort", "name");
  const rows = subscriptionsOf(topic, sort);
  if (rows.length === 0) return html`<${NoSubscriptions} topic=${topic} />`;
  return html`
    <${Table}
      label=${S.subscriptions}
      columns=${COLUMNS}
      rows=${rows}
      keyOf=${(/** @type {Row} */ row) => row.path}
      sort=${sort}
      onSort=${setSort}
      hrefOf=${(/** @type {Row} */ row) => entityHref(row.path)}
      isSorted=${true}
      fills=${true}
    />
  `;
}

/** @param {{ topic: string }} properties */
export function NoSubscriptions({ topic }) {
  return html`
    <div class="card">
      <${Empty} title=${S.noSubscriptions}>
        ${can("manage") && html`
          <a href=${href(["new-entity"], { kind: "subscription", topic })}>${S.createSubscription}</a>
        `}
      <//>
    </div>
  `;
}

/** @type {import("../../components/table.js").Column<Row>[]} */
const COLUMNS = [
  {
    id: "name",
    label: E.name,
    sort: KEYS.name,
    isWide: true,
    cell: (row) => html`<a href=${entityHref(row.path)}><${Text} value=${row.name} max=${200} /></a>`,
  },
  {
    id: "rules",
    label: S.rules,
    hide: "medium",
    isWide: true,
    cell: (row) => html`<${ShortRules} path=${row.path} />`,
  },
  {
    id: "in",
    label: E.in,
    align: "end",
    hide: "narrow",
    sort: KEYS.in,
    cell: (row) => html`<${Rate} value=${hasRates() ? row.incoming : null} />`,
  },
  {
    id: "active",
    label: E.active,
    align: "end",
    sort: KEYS.active,
    cell: (row) => html`<${Count} value=${row.active} />`,
  },
  {
    id: "locked",
    label: E.locked,
    align: "end",
    hide: "narrow",
    sort: KEYS.locked,
    cell: (row) => html`<${Count} value=${row.locked} />`,
  },
  {
    id: "dead",
    label: E.dead,
    align: "end",
    sort: KEYS.dead,
    cell: (row) => html`<${Count} value=${row.dead} tone=${0 < row.fresh ? "alarm" : ""} />`,
  },
  {
    id: "receivers",
    label: E.receivers,
    align: "end",
    hide: "narrow",
    sort: KEYS.receivers,
    cell: (row) => html`<${Count} value=${row.receivers} />`,
  },
  {
    id: "target",
    label: S.forwardsTo,
    hide: "medium",
    cell: (row) =>
      row.forwardTo !== undefined && html`
        <a href=${entityHref(row.forwardTo)}><${Text} value=${row.forwardTo} max=${120} /></a>
      `,
  },
];
