// Icons: lines on a grid of 16, in the colour of the text beside them. They add nothing to what a reader of the screen
// hears.

import { html } from "../lib/html.js";

/** The lines of each icon. */
const PATHS = {
  overview: "M2.5 13.5v-4m3.7 4v-7m3.6 7v-5m3.7 5v-11",
  entities: "M2.5 3.5h11m-11 4.5h11m-11 4.5h11",
  messages: "M2.5 3.5h11v9h-11zm0 .5L8 8.5 13.5 4",
  sessions: "M2.5 4.5h6v3h-6zm5 5h6v3h-6zm-2-2v3.5h2",
  connections: "M6.5 9.5l3-3M7 4.5l1.5-1.5a2.5 2.5 0 0 1 4.5 3.5L11 8.5M5 7.5L3 9.5A2.5 2.5 0 0 0 7 13l1.5-1.5",
  schedule: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11zm0 2.5v3l2 1.5",
  deferred: "M5.5 3.5v9m5-9v9",
  jobs: "M4.5 3l8 5-8 5z",
  send: "M2.5 8h10m-4-4l4 4-4 4",
  "rule-test": "M2.5 3.5h11L9.5 8.5v4.5l-3-1.5v-3z",
  servers: "M2.5 3h11v4h-11zm0 6h11v4h-11zM5 5h.5m-.5 6h.5",
  audit: "M4 2.5h8v11H4zm2 3h4m-4 2.5h4m-4 2.5h2",
  activate: "M4 3l8.5 5L4 13z",
  cancel: "M3.5 3.5l9 9m0-9l-9 9",
  detach: "M9.5 6.5l2-2a2.1 2.1 0 0 0-3-3l-1.2 1.2M6.5 9.5l-2 2a2.1 2.1 0 0 0 3 3l1.2-1.2M3 3l10 10",
  receive: "M8 2.5v7m-3.5-3.5L8 9.5 11.5 6M2.5 10.5v3h11v-3",
  settings: "M2.5 5h6m3 0h2m-11 6h2m3 0h6M8.5 3.5v3m-4 3v3",
};

/** @param {{ name: keyof typeof PATHS }} properties */
export function Icon({ name }) {
  return html`
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d=${PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  `;
}
