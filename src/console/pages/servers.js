// The servers that share namespaces in a store: their beats, who has which namespace, and what needs the operator.

import { ApiError, call } from "../lib/api.js";
import { number, span } from "../lib/format.js";
import { html, useEffect } from "../lib/html.js";
import { useResource } from "../lib/resource.js";
import { session } from "../lib/session.js";
import { Empty, Loaded, Notice } from "../components/notice.js";
import { Text } from "../components/text.js";
import { Attention } from "./servers/attention.js";
import { Namespaces } from "./servers/namespaces.js";
import { Servers } from "./servers/list.js";
import { Store } from "./servers/store.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/servers.js";

/** @typedef {Schemas["FleetShown"]} Fleet */

/** Between two looks: the servers look at the store twice a second. */
const LOOK_MILLISECONDS = 1_000;
/** A look at the store that is older is told. */
const STALE_MILLISECONDS = 3_000;

export default function ServersPage() {
  const isOperator = session.value?.isOperator === true;
  return html`
    ${isOperator
      ? html`<${Known} />`
      : html`
          <div class="page-head"><h1 tabindex="-1">${C.pages.servers}</h1></div>
          <div class="card"><${Empty} title=${S.forbiddenTitle} text=${S.forbiddenText} /></div>
        `}
  `;
}

/** Returns the fleet, or null where the server shares no store.
 * @param {AbortSignal} signal
 * @returns {Promise<Fleet | null>} */
async function look(signal) {
  try {
    return await call("get_fleet", { signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

function Known() {
  const fleet = useResource(look, []);
  const { data, isLoading } = fleet;
  useEffect(() => {
    if (isLoading || data === null) return undefined;
    const timer = setTimeout(fleet.reload, LOOK_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [isLoading, data === null]);
  return html`
    <div class="page-head">
      <h1 tabindex="-1">${C.pages.servers}</h1>
      ${data && html`<span class="muted">${countsOf(data)}</span>`}
    </div>
    <${Loaded} of=${fleet}>
      ${(/** @type {Fleet | null} */ found) =>
        found === null
          ? html`
              <div class="card">
                <${Empty} title=${S.noFleetTitle} text=${S.noFleetText} command=${S.noFleetCommand} />
              </div>
            `
          : html`<${All} fleet=${found} reload=${fleet.reload} />`}
    <//>
  `;
}

/** @param {Fleet} fleet */
function countsOf({ servers, namespaces }) {
  const alive = servers.filter((server) => server.alive).length;
  return S.counts(number(alive), number(servers.length), number(namespaces.length));
}

/** @param {{ fleet: Fleet, reload: () => void }} properties */
function All({ fleet, reload }) {
  const looked = fleet.looked_ms_ago ?? 0;
  const away = fleet.stores.filter(({ reached }) => !reached);
  return html`
    ${away.length !== 0 && 1 < fleet.stores.length
      ? html`
          <${Notice} tone="alarm"><${Text} value=${S.away(away.map(({ name }) => name).join(", "))} max=${400} /><//>
        `
      : STALE_MILLISECONDS < looked
        ? html`<${Notice} tone="alarm">${S.stale(span(looked))}<//>`
        : !fleet.lease_held && html`<${Notice} tone="alarm">${S.noLease}<//>`}
    <${Attention} namespaces=${fleet.namespaces} reload=${reload} />
    ${fleet.stores.map(
      (store) => html`
        <${Store}
          key=${store.name}
          store=${store}
          isOne=${fleet.stores.length === 1}
          configuration=${fleet.configuration}
        />
      `,
    )}
    <${Servers} fleet=${fleet} />
    <${Namespaces} namespaces=${fleet.namespaces} stores=${fleet.stores.length} />
  `;
}
