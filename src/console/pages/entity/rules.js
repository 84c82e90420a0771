// Rules of a subscription.

import { call } from "../../lib/api.js";
import { html } from "../../lib/html.js";
import { href } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { useResource } from "../../lib/resource.js";
import { Empty, Loaded } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
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
  return html`
    <${Loaded} of=${rules}>
      ${(/** @type {Schemas["Rules"]} */ data) =>
        data.rules.length === 0
          ? html`<div class="card"><${Empty} title=${S.noRules}>${add}<//></div>`
          : html`
              ${add && html`<div class="tools">${add}</div>`}
              <ul class="rules">
                ${data.rules.map(
                  (rule) => html`
                    <li key=${rule.name} class="card">
                      <div class="card-head">
                        <h2><${Text} value=${rule.name} max=${200} /></h2>
                        <span class="muted"><${Time} at=${rule.created_at} /></span>
                        ${can("manage") && html`
                          <span class="actions">
                            <a
                              class="button"
                              aria-label=${S.changeRule(visible(rule.name))}
                              href=${edit({ rule: rule.name })}
                            >
                              ${S.change}
                            </a>
                          </span>
                        `}
                      </div>
                      <dl class="pairs">
                        <dt>${S.filter}</dt>
                        <dd><${Filter} filter=${rule.filter} /></dd>
                        ${rule.action && html`
                          <dt>${S.action}</dt>
                          <dd><code><${Text} value=${rule.action} /></code></dd>
                        `}
                      </dl>
                    </li>
                  `,
                )}
              </ul>
            `}
    <//>
  `;
}

/** Shows what a rule compares; of each text up to `max` characters.
 * @param {{ filter: Schemas["RuleFilter"], max?: number }} properties */
export function Filter({ filter, max }) {
  switch (filter.kind) {
    case "true":
      return S.all;
    case "false":
      return S.nothing;
    case "sql":
      return html`<code><${Text} value=${filter.expression} max=${max} /></code>`;
    case "correlation": {
      const { kind, properties, ...system } = filter;
      const compared = [
        ...Object.entries(system).map(([name, value]) => [`sys.${name}`, value]),
        ...Object.entries(properties ?? {}),
      ];
      return html`
        <code>
          ${compared.map(
            ([name, value], at) => html`
              ${at !== 0 && " and "}
              <${Text} value=${`${name} = ${JSON.stringify(value)}`} max=${max} />
            `,
          )}
        </code>
      `;
    }
  }
}
