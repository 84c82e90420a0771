// A database with namespaces: where it is, and what ends in a stop of it if it is left alone.

import { number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { Text } from "../../components/text.js";
import { Count, Size } from "../../components/time.js";
import { S } from "../../strings/servers.js";

/** Transactions from which on the age needs a person: three quarters of those that there can be. */
const AGE_ALARM = 1_500_000_000;
/** Milliseconds between the clocks that the servers warn of. */
const CLOCK_ALARM = 200;

/** @param {{ store: Schemas["FleetStore"], isOne: boolean,
 *   configuration: Schemas["FleetConfiguration"] }} properties */
export function Store({ store, isOne, configuration }) {
  const {
    name,
    place,
    identity,
    standby_lag_bytes: lag,
    transaction_age: age,
    inactive_slots: slots,
    clock_offset_ms: clock,
  } = store;
  const alarm = (/** @type {boolean} */ is) => (is ? "alarm-text" : "");
  const title = isOne ? S.store(place) : S.namedStore(name, place);
  return html`
    <section aria-label=${title}>
      <div class="card-head">
        <h2><${Text} value=${title} max=${200} /></h2>
        <span class="muted">${S.identity} <code class="store-identity">${identity}</code></span>
      </div>
      <dl class="figures store-figures">
        <div title=${S.lagTitle}><dt>${S.lag}</dt><dd><${Size} value=${lag} /></dd></div>
        <div title=${S.ageTitle}>
          <dt>${S.age}</dt>
          <dd class=${alarm(AGE_ALARM < age)}><${Count} value=${age} /></dd>
        </div>
        <div title=${S.slotsTitle}>
          <dt>${S.slots}</dt>
          <dd class=${alarm(0 < slots)}><${Count} value=${slots} /></dd>
        </div>
        <div title=${S.clockTitle}>
          <dt>${S.clock}</dt>
          <dd class=${alarm(CLOCK_ALARM < Math.abs(clock))}><span class="number">${S.millis(number(clock))}</span></dd>
        </div>
        <div title=${S.configurationTitle}>
          <dt>${S.configuration}</dt>
          <dd>
            <span class="number" title=${configuration.hash ?? ""}>
              ${configuration.number === 0 ? S.noConfiguration : number(configuration.number)}
            </span>
          </dd>
        </div>
      </dl>
    </section>
  `;
}
