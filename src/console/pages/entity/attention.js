// What needs attention with one entity.

import { call } from "../../lib/api.js";
import { tenSeconds } from "../../lib/clock.js";
import { html } from "../../lib/html.js";
import { attention } from "../../lib/live.js";
import { useResource } from "../../lib/resource.js";
import { AttentionList } from "../../components/attention-list.js";
import { S } from "../../strings/attention.js";

const SHOWN_MAX = 8;

/** The stream has the most urgent items of the namespace. Where there are more, those of the entity are asked for.
 * @param {{ path: string }} properties */
export function Attention({ path }) {
  const now = attention.value;
  const isWhole = now !== null && now.left_out === 0;
  const asked = useResource(
    async (signal) => (isWhole ? null : call("get_attention", { query: { entity: path }, signal })),
    [path, isWhole],
    isWhole ? [] : [tenSeconds.value],
  );
  const items = isWhole
    ? now.items.filter(({ entity }) => entity?.toLowerCase() === path.toLowerCase())
    : asked.data?.items;
  if (items === undefined) return html`<p class="muted">${S.notKnown}</p>`;
  if (items.length === 0) return null;
  return html`
    <section class="card" aria-labelledby="attention">
      <div class="card-head"><h2 id="attention">${S.title}</h2></div>
      <${AttentionList} items=${items} leftOut=${isWhole ? 0 : asked.data?.left_out} most=${SHOWN_MAX} />
    </section>
  `;
}
