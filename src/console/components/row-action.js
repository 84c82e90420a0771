// What can be done with a row of a table: an icon, whose label says what, and with which row.

import { html } from "../lib/html.js";
import { Icon } from "./icon.js";

/** @param {{ icon: Parameters<typeof Icon>[0]["name"], label: string, onClick: () => void }} properties */
export function RowAction({ icon, label, onClick }) {
  return html`
    <button type="button" class="quiet row-action" aria-label=${label} title=${label} onClick=${onClick}>
      <${Icon} name=${icon} />
    </button>
  `;
}
