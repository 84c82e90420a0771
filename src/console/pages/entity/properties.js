// How an entity is set.

import { call } from "../../lib/api.js";
import { duration, number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { entityHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { Loaded } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { S as C } from "../../strings/common.js";
import { PROPERTIES, S } from "../../strings/entity.js";

const DURATIONS = new Set([
  "lock_duration",
  "default_time_to_live",
  "duplicate_detection_window",
  "auto_delete_on_idle",
]);
const PATHS = new Set(["forward_to", "forward_dead_letters_to"]);

/** @param {{ path: string }} properties */
export function Properties({ path }) {
  const entity = useResource((signal) => call("get_entity", { path: { entity: path }, signal }), [path]);
  return html`
    <${Loaded} of=${entity}>
      ${(/** @type {Schemas["Entity"]} */ data) => html`
        <div class="card">
          <dl class="pairs">
            ${Object.entries(data.properties).map(
              ([name, value]) => html`
                <dt>${PROPERTIES[name] ?? name}</dt>
                <dd><${Value} name=${name} value=${value} /></dd>
              `,
            )}
            <dt>${S.createdAt}</dt>
            <dd><${Time} at=${data.created_at} /></dd>
            <dt>${S.updatedAt}</dt>
            <dd><${Time} at=${data.updated_at} /></dd>
            <dt>${S.accessedAt}</dt>
            <dd><${Time} at=${data.accessed_at ?? undefined} none=${C.never} /></dd>
          </dl>
        </div>
      `}
    <//>
  `;
}

/** @param {{ name: string, value: unknown }} properties */
function Value({ name, value }) {
  if (typeof value === "boolean") return value ? C.yes : html`<span class="muted">${C.no}</span>`;
  if (typeof value === "number") return number(value);
  const text = String(value);
  if (DURATIONS.has(name)) return html`<span title=${text}>${duration(text)}</span>`;
  if (PATHS.has(name)) return html`<a href=${entityHref(text)}><${Text} value=${text} /></a>`;
  return html`<${Text} value=${text.replaceAll("_", name === "status" ? " " : "_")} />`;
}
