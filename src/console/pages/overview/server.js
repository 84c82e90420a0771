// The server, for its operator: whether it is well, and what it takes.

import { call } from "../../lib/api.js";
import { tenSeconds } from "../../lib/clock.js";
import { html } from "../../lib/html.js";
import { useResource } from "../../lib/resource.js";
import { session } from "../../lib/session.js";
import { Count, Size, Time } from "../../components/time.js";
import { S } from "../../strings/server.js";

/** A disk that is nearly full needs a person: the part of it that is free. */
const LITTLE = 0.1;

export function ServerNow() {
  if (session.value?.isOperator !== true) return null;
  return html`<${Figures} />`;
}

function Figures() {
  const { data } = useResource((signal) => call("get_server", { signal }), [], [tenSeconds.value]);
  if (data === undefined) return null;
  const { version, started_at: started, process, data: disk, shards } = data;
  const sum = (/** @type {(shard: Schemas["ShardShown"]) => number} */ of) =>
    shards.reduce((total, shard) => total + of(shard), 0);
  const isWell = shards.every(({ healthy, accepts_messages: accepts }) => healthy && accepts);
  const isFull = disk?.free_bytes != null && disk.disk_bytes != null && disk.free_bytes < LITTLE * disk.disk_bytes;
  return html`
    <section aria-labelledby="server">
      <div class="card-head">
        <h2 id="server">${S.title} <span class="muted number server-version">${version}</span></h2>
        <span class="muted">${S.started} <${Time} at=${started} /></span>
      </div>
      ${!isWell && html`<p class="alarm-text" role="status">${S.notWell}</p>`}
      <dl class="figures server-figures">
        <div><dt>${S.memory}</dt><dd><${Size} value=${process.resident_bytes} /></dd></div>
        <div><dt>${S.log}</dt><dd><${Size} value=${sum((shard) => shard.log_bytes)} /></dd></div>
        ${disk?.free_bytes != null && html`
          <div><dt>${S.disk}</dt><dd class=${isFull ? "alarm-text" : ""}><${Size} value=${disk.free_bytes} /></dd></div>
        `}
        <div><dt>${S.connections}</dt><dd><${Count} value=${sum((shard) => shard.connections)} /></dd></div>
        <div>
          <dt>${S.descriptors}</dt>
          <dd>
            <${Count} value=${process.descriptors} />
            <small> ${S.of} <${Count} value=${process.descriptors_max} /></small>
          </dd>
        </div>
      </dl>
    </section>
  `;
}
