// Settings: who is signed in, the keys of queues and topics, and the namespace as a file.

import { html } from "../lib/html.js";
import { can } from "../lib/session.js";
import { Empty } from "../components/notice.js";
import { Tabs } from "../components/tabs.js";
import { Access } from "./settings/access.js";
import { File } from "./settings/file.js";
import { Keys } from "./settings/keys.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/settings.js";

const TABS = /** @type {const} */ (["access", "keys", "file"]);

/** @param {import("./index.js").PageProperties} properties */
export default function Settings({ query }) {
  const current = TABS.find((id) => id === query.tab) ?? "access";
  return html`
    <div class="page-head"><h1 tabindex="-1">${C.pages.settings}</h1></div>
    <${Tabs} label=${S.tabs} tabs=${TABS.map((id) => ({ id, label: S[id] }))} current=${current} />
    ${current === "access"
      ? html`<${Access} />`
      : !can("manage")
        ? html`<div class="card"><${Empty} title=${S.forbiddenTitle} text=${S.forbiddenText} /></div>`
        : current === "keys"
          ? html`<${Keys} entity=${query.entity ?? ""} />`
          : html`<${File} />`}
  `;
}
