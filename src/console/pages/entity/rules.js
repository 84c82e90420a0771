// Rules of a subscription, and subscriptions of a topic.

import { call } from "../../lib/api.js";
import { topicOf } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { entityHref } from "../../lib/paths.js";
import { href } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { useResource } from "../../lib/resource.js";
import { treeOf } from "../../lib/tree.js";
import { Empty, Loaded } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { useQuery } from "../../components/tabs.js";
import { Text } from "../../components/text.js";
import { Count, Time } from "../../components/time.js";
import { S as E } from "../../strings/entities.js";
import { S } from "../../strings/entity.js";

/** All rules of a subscription, page by page.
 * @param {string} path
 * @param {AbortSignal} signal
 * @returns {Promise<{ rules: Schemas["Rule"][] }>} */
export async function allRules(path, signal) {
  /** @type {Schemas["Rule"][]} */
  const all = [];
  /** @type {number | null | undefined} */
  let skip = 0;
  while (skip != null) {
    /** @type {Schemas["Rules"]} */
    const { rules, next_skip: next } = await call("list_rules", { path: { entity: path }, query: { skip }, signal });
    all.push(...rules);
    skip = next;
  }
  return { rules: all };
}

/** @param {{ path: string }} properties */
export function Rules({ path }) {
  const rules = useResource((signal) => allRules(path, signal), [path]);
  const edit = (/** @type {Record<string, string>} */ query) => href(["entity", path, "edit"], query);
  const add = can("manage") && html`<a class="button" href=${edit({ add: "rule" })}>${S.addRule}</a>`;
  return html`<${Loaded} of=${rules}>${(/** @type {Schemas["Rules"]} */ data) => (data.rules.length === 0 ? html`<div class="card"><${Empty} title=${S.noRules}>${add}<//></div>` : html`
    ${add && html`<div class="tools">${add}</div>`}<ul class="rules">${data.rules.map((rule) => html`<li key=${rule.name} class="card"><div class="card-head"><h2><${Text} value=${rule.name} max=${200} /></h2>
      <span class="muted"><${Time} at=${rule.created_at} /></span>
      ${can("manage") && html`<span class="actions"><a class="button" aria-label=${S.changeRule(visible(rule.name))} href=${edit({ rule: rule.name })}>${S.change}</a></span>`}</div>
      <dl class="pairs"><dt>${S.filter}</dt><dd><${Filter} filter=${rule.filter} /></dd>
        ${rule.action && html`<dt>${S.action}</dt><dd><code><${Text} value=${rule.action} /></code></dd>`}</dl></li>`)}</ul>`)}<//>`;
}

/** Shows what a rule compares.
 * @param {{ filter: Schemas["RuleFilter"] }} properties */
export function Filter({ filter }) {
  switch (filter.kind) {
    case "true": return S.all;
    case "false": return S.nothing;
    case "sql": return html`<code><${Text} value=${filter.expression} /></code>`;
    case "correlation": {
      const { kind, properties, ...system } = filter;
      const compared = [...Object.entries(system).map(([name, value]) => [`sys.${name}`, value]), ...Object.entries(properties ?? {})];
      return html`<code>${compared.map(([name, value], at) => html`${at !== 0 && " and "}<${Text} value=${`${name} = ${JSON.stringify(value)}`} />`)}</code>`;
    }
  }
}

/** @typedef {import("../../lib/tree.js").Row} Row */

/** @param {{ topic: string }} properties */
export function Subscriptions({ topic }) {
  const [sort, setSort] = useQuery("sort", "name");
  const own = [...entities.value.values()].filter((entity) => entity.path === topic || topicOf(entity.path) === topic);
  const rows = treeOf(own, { filter: "", kind: "", sort, closed: new Set() }).slice(1);
  if (rows.length === 0) return html`<div class="card"><${Empty} title=${S.noSubscriptions} /></div>`;
  return html`<${Table} label=${S.subscriptions} columns=${COLUMNS} rows=${rows} keyOf=${(/** @type {Row} */ row) => row.path} sort=${sort} onSort=${setSort}
    hrefOf=${(/** @type {Row} */ row) => entityHref(row.path)} fills=${true} />`;
}

/** @type {import("../../components/table.js").Column<Row>[]} */
const COLUMNS = [
  { id: "name", label: E.name, isWide: true, sort: (row) => row.name, cell: (row) => html`<a href=${entityHref(row.path)}><${Text} value=${row.name} max=${200} /></a>` },
  { id: "active", label: E.active, align: "end", sort: (row) => row.active, cell: (row) => html`<${Count} value=${row.active} />` },
  { id: "locked", label: E.locked, align: "end", hide: "narrow", sort: (row) => row.locked, cell: (row) => html`<${Count} value=${row.locked} />` },
  { id: "dead", label: E.dead, align: "end", sort: (row) => row.dead, cell: (row) => html`<${Count} value=${row.dead} tone="alarm" />` },
  { id: "receivers", label: E.receivers, align: "end", hide: "narrow", sort: (row) => row.receivers, cell: (row) => html`<${Count} value=${row.receivers} />` },
];
