// The rules of a subscription in a line or two. They are read where they are in sight.

import { call } from "../../lib/api.js";
import { number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entityHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { Text } from "../../components/text.js";
import { Filter } from "./rules.js";
import { S } from "../../strings/entity.js";

/** Rules that are shown, and characters of each. */
const RULES_MAX = 2;
const LENGTH_MAX = 120;

/** @param {{ path: string }} properties */
export function ShortRules({ path }) {
  const { data, error } = useResource((signal) => call("list_rules", { path: { entity: path }, signal }), [path]);
  if (error !== undefined) return html`<span class="muted"><${Text} value=${error.message} max=${LENGTH_MAX} /></span>`;
  if (data === undefined) return null;
  const { rules, next_skip: next } = /** @type {Schemas["Rules"]} */ (data);
  const to = entityHref(path, "rules");
  if (rules.length === 0) return html`<a href=${to}>${S.noRules}</a>`;
  const others = rules.length - RULES_MAX;
  return html`
    <a href=${to}>
      ${rules
        .slice(0, RULES_MAX)
        .map((rule, at) => html`${at !== 0 && html` <span class="muted">${S.or}</span> `}<${Short} rule=${rule} />`)}
      ${0 < others && html`
        <span class="muted">${S.moreRules(next == null ? number(others) : `${number(others)}+`)}</span>
      `}
    </a>
  `;
}

/** @param {{ rule: Schemas["Rule"] }} properties */
function Short({ rule: { filter, action } }) {
  return html`
    <${Filter} filter=${filter} max=${LENGTH_MAX} />
    ${action && html` <span class="muted">${S.then}</span> <code><${Text} value=${action} max=${LENGTH_MAX} /></code>`}
  `;
}
