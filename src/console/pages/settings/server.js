// The server, for its operator: its version, its process, its disk and its namespaces.

import { call } from "../../lib/api.js";
import { number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { useResource } from "../../lib/resource.js";
import { session, signIn } from "../../lib/session.js";
import { confirm } from "../../components/dialog.js";
import { Loaded } from "../../components/notice.js";
import { Text } from "../../components/text.js";
import { Size, Time } from "../../components/time.js";
import { toast } from "../../components/toast.js";
import { S } from "../../strings/server.js";

export function Server() {
  const server = useResource((signal) => call("get_server", { signal }), []);
  const namespaces = useResource((signal) => call("list_namespaces", { signal }), []);
  return html`
    <div class="columns">
      <section class="card" aria-labelledby="server">
        <div class="card-head"><h2 id="server">${S.title}</h2></div>
        <${Loaded} of=${server}>${(/** @type {Schemas["Server"]} */ found) => html`<${About} server=${found} />`}<//>
      </section>
      <section class="card" aria-labelledby="namespaces">
        <div class="card-head"><h2 id="namespaces">${S.namespaces}</h2></div>
        <${Loaded} of=${namespaces}>
          ${(/** @type {Schemas["NamespaceList"]} */ { namespaces: all }) => html`
            <ul class="plain">
              ${all.map((each) => html`<${Namespace} key=${each.name} of=${each} onDropped=${namespaces.reload} />`)}
            </ul>
          `}
        <//>
      </section>
    </div>
  `;
}

/** @param {{ server: Schemas["Server"] }} properties */
function About({ server: { version, started_at: started, process, data, shards } }) {
  const sum = (/** @type {(shard: Schemas["ShardShown"]) => number} */ of) =>
    shards.reduce((total, shard) => total + of(shard), 0);
  const isWell = shards.every(({ healthy, accepts_messages: accepts }) => healthy && accepts);
  return html`
    <dl class="pairs">
      <dt>${S.version}</dt>
      <dd>${version}</dd>
      <dt>${S.state}</dt>
      <dd class=${isWell ? "" : "alarm-text"}>${isWell ? S.well : S.notWell}</dd>
      <dt>${S.started}</dt>
      <dd><${Time} at=${started} /></dd>
      <dt>${S.memory}</dt>
      <dd><${Size} value=${process.resident_bytes} /></dd>
      <dt>${S.log}</dt>
      <dd><${Size} value=${sum((shard) => shard.log_bytes)} /></dd>
      <dt>${S.disk}</dt>
      <dd>
        ${data == null
          ? html`<span class="muted">${S.inMemory}</span>`
          : html`
              <${Size} value=${data.free_bytes ?? 0} />${" "}
              <span class="muted"><${Text} value=${data.directory} max=${200} /></span>
            `}
      </dd>
      <dt>${S.connections}</dt>
      <dd class="number">${number(sum((shard) => shard.connections))}</dd>
      <dt>${S.shards}</dt>
      <dd class="number">${number(shards.length)}</dd>
    </dl>
  `;
}

/** @param {{ of: Schemas["Namespace"], onDropped: () => void }} properties */
function Namespace({ of: { name, shard, first, configured }, onDropped }) {
  const { credential, namespace } = /** @type {import("../../lib/session.js").Session} */ (session.value);
  const isHere = namespace === name || (namespace === "" && first);
  const go = async () => {
    await signIn(credential, name);
    toast(S.now(name));
  };
  const drop = () =>
    confirm({
      title: S.dropTitle(name),
      text: S.dropText,
      name,
      action: S.drop,
      run: async () => {
        await call("delete_namespace", { path: { name } });
        toast(S.dropped(name));
        onDropped();
      },
    });
  return html`
    <li>
      <span>${name}</span>
      ${isHere && html` <span class="tag accent">${S.here}</span>`}${" "}
      <span class="muted">
        ${shard == null ? S.elsewhere : S.inShard(String(shard))}
        ${configured ? `, ${S.configured}` : ""}
      </span>
      ${!isHere && html` <button type="button" class="quiet" aria-label=${S.goTo(name)} onClick=${go}>${S.go}</button>`}
      ${!configured && !isHere && html`
        ${" "}<button type="button" class="quiet" aria-label=${S.dropLabel(name)} onClick=${drop}>${S.drop}</button>
      `}
    </li>
  `;
}
