// A namespace without entities: how there will be some.

import { html } from "../lib/html.js";
import { href } from "../lib/router.js";
import { can } from "../lib/session.js";
import { Empty } from "./notice.js";
import { S } from "../strings/common.js";

export function NoEntities() {
  return html`
    <div class="card">
      <${Empty} title=${S.noEntities} text=${S.noEntitiesText} command=${S.noEntitiesCommand}>
        ${can("manage") && html`<a href=${href(["new-entity"])}>${S.noEntitiesLink}</a>`}
      <//>
    </div>
  `;
}
