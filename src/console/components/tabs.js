// Parts of a page, each with an address.

import { html, useEffect, useRef } from "../lib/html.js";
import { route, setQuery } from "../lib/router.js";

/** Shows the parts of a page as links. The current one is `tab` of the query.
 * @param {{ label: string, tabs: { id: string, label: any, count?: any }[], current: string }} properties */
export function Tabs({ label, tabs, current }) {
  const { path } = route.value;
  /** @type {{ current: HTMLElement | null }} */
  const bar = useRef(null);
  useEffect(
    () => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [current],
  );
  return html`
    <nav ref=${bar} class="tabs" aria-label=${label}>
      ${tabs.map(
        ({ id, label: text, count }, at) => html`
          <a
            key=${id}
            href=${at === 0 ? `#${path}` : `#${path}?tab=${id}`}
            aria-current=${id === current ? "page" : undefined}
          >
            ${text}
            ${count !== undefined && html` <span class="tab-count">${count}</span>`}
          </a>
        `,
      )}
    </nav>
  `;
}

/** Returns a filter of the page that is kept in its address, and a function that sets it.
 * @param {string} name
 * @returns {[string, (value: string) => void]} */
export function useQuery(name, initial = "") {
  return [route.value.query[name] ?? initial, (value) => setQuery({ [name]: value === initial ? undefined : value })];
}
