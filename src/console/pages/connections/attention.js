// The receivers for which others wait, above all connections.

import { html } from "../../lib/html.js";
import { connectionHref } from "../../lib/paths.js";
import { setQuery } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { Text } from "../../components/text.js";
import { Entity, addressOf, close, detach } from "./columns.js";
import { S } from "../../strings/connections.js";

const SHOWN_MAX = 5;

/** @param {{ found: import("./stuck.js").StuckLink[] }} properties */
export function Attention({ found }) {
  if (found.length === 0) return null;
  return html`
    <section class="card stuck-links" aria-labelledby="stuck">
      <div class="card-head"><h2 id="stuck">${S.attention}</h2></div>
      <ul>
        ${found
          .slice(0, SHOWN_MAX)
          .map(
            ({ connection, link, why }) => html`
              <li key=${`${connection.id} ${link.id}`}>
                <span>
                  <a href=${connectionHref(connection.id)}>
                    <${Text} value=${connection.container_id} max=${200} none=${S.noName} />
                  </a>
                  <span class="muted"> ${addressOf(connection)} ${S.roles[link.role]} </span>
                  <${Entity} link=${link} />
                  <span class="alarm-text why">${why}</span>
                </span>
                ${can("manage") && html`
                  <span class="actions">
                    <button type="button" onClick=${() => detach(connection, link)}>${S.detachAction}</button>
                    <button type="button" onClick=${() => close(connection)}>${S.closeAction}</button>
                  </span>
                `}
              </li>
            `,
          )}
      </ul>
      ${SHOWN_MAX < found.length && html`
        <p>
          <button type="button" class="link" onClick=${() => setQuery({ show: "stuck", filter: undefined })}>
            ${S.attentionMore}
          </button>
        </p>
      `}
    </section>
  `;
}
