// Namespaces in quarantine, why, and an end to that.

import { call } from "../../lib/api.js";
import { html } from "../../lib/html.js";
import { confirm } from "../../components/dialog.js";
import { Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { S } from "../../strings/servers.js";

/** @param {{ namespaces: Schemas["FleetNamespace"][], reload: () => void }} properties */
export function Attention({ namespaces, reload }) {
  const held = namespaces.filter(({ quarantined }) => quarantined != null);
  if (held.length === 0) return null;
  return html`
    <section class="card" aria-labelledby="quarantine">
      <div class="card-head"><h2 id="quarantine">${S.attention}</h2></div>
      <ul class="plain quarantines">
        ${held.map(
          ({ name, quarantined }) => html`
            <li key=${name}>
              <div>
                <b class="alarm-text"><${Text} value=${S.isQuarantined(name)} /></b>
                <div class="muted"><${Text} value=${quarantined ?? ""} max=${600} /></div>
              </div>
              <${Release} name=${name} reload=${reload} />
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

/** @param {{ name: string, reload: () => void }} properties */
function Release({ name, reload }) {
  const ask = () =>
    confirm({
      title: S.releaseTitle(name),
      text: S.releaseText,
      action: S.release,
      isAlarm: false,
      run: async () => {
        await call("release_namespace", { path: { name } });
        toast(S.released(name));
        reload();
      },
    });
  return html`<button type="button" aria-label=${S.releaseLabel(name)} onClick=${ask}>${S.release}</button>`;
}
