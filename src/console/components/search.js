// The box at the head of every page: entities, pages, and messages by id. `/` puts the cursor into it.

import { html, useId, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { entities } from "../lib/live.js";
import { go, href } from "../lib/router.js";
import { can } from "../lib/session.js";
import { navigation } from "../pages/index.js";
import { Text } from "./text.js";
import { S } from "../strings/common.js";

const SHOWN_MAX = 8;

/** @typedef {{ id: string, text: string, kind: string, address: string }} Result */

export function Search() {
  /** @type {{ current: HTMLInputElement | null }} */
  const input = useRef(null);
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const id = useId();
  const results = useMemo(() => (isOpen ? found(text.trim()) : []), [text, isOpen]);
  useLayoutEffect(() => {
    const focus = (/** @type {KeyboardEvent} */ event) => {
      const inField =
        event.target instanceof Element && event.target.matches("input, textarea, select, [contenteditable]");
      const isAsked = (event.key === "/" && !inField) || (event.key === "k" && (event.ctrlKey || event.metaKey));
      if (!isAsked || document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const choose = (/** @type {Result | undefined} */ result) => {
    if (result === undefined) return;
    setText("");
    setOpen(false);
    input.current?.blur();
    go(result.address);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt((at + step + results.length) % Math.max(1, results.length));
    } else if (event.key === "Enter") choose(results[at]);
    else if (event.key === "Escape") {
      setOpen(false);
      input.current?.blur();
    }
  };
  const isShown = isOpen && results.length !== 0;
  return html`
    <div class="search" role="search">
      <input
        ref=${input}
        type="text"
        role="combobox"
        aria-label=${S.search.label}
        aria-expanded=${isShown}
        aria-controls=${`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant=${isShown ? `${id}-${at}` : undefined}
        placeholder=${S.search.placeholder}
        autocomplete="off"
        spellcheck=${false}
        value=${text}
        onKeyDown=${onKeyDown}
        onBlur=${() => setOpen(false)}
        onInput=${(/** @type {any} */ event) => {
          setText(event.target.value);
          setOpen(event.target.value.trim() !== "");
          setAt(0);
        }}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id=${`${id}-list`} role="listbox" aria-label=${S.search.results} hidden=${!isShown}>
        ${results.map(
          (result, index) => html`
            <li
              key=${result.id}
              id=${`${id}-${index}`}
              role="option"
              aria-selected=${index === at}
              onMouseDown=${(/** @type {Event} */ event) => {
                event.preventDefault();
                choose(result);
              }}
            >
              <span><${Text} value=${result.text} max=${120} /></span>
              <span class="muted">${result.kind}</span>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

/** @param {string} text
 * @returns {Result[]} */
function found(text) {
  if (text === "") return [];
  const lower = text.toLowerCase();
  const matching = [];
  for (const { path, kind } of entities.peek().values()) {
    const place = path.toLowerCase().indexOf(lower);
    // Beginnings first, then the shortest.
    if (place !== -1) matching.push({ path, kind, rank: (place === 0 ? 0 : 1000) + path.length });
  }
  matching.sort((a, b) => a.rank - b.rank);
  const pages = navigation()
    .flat()
    .filter((name) => S.pages[name].toLowerCase().startsWith(lower));
  const messages = !can("listen")
    ? []
    : [
        ...(/^\d+$/.test(text)
          ? [{ id: "number", text: S.search.number(text), address: href(["messages"], { sequence_number: text }) }]
          : []),
        { id: "message", text: S.search.messageId(text), address: href(["messages"], { message_id: text }) },
        {
          id: "correlation",
          text: S.search.correlationId(text),
          address: href(["messages"], { correlation_id: text }),
        },
      ];
  return [
    ...matching.slice(0, SHOWN_MAX).map(({ path, kind }) => ({
      id: `entity ${path}`,
      text: path,
      kind: S.kinds[kind],
      address: href(["entity", path]),
    })),
    ...pages.map((name) => ({
      id: `page ${name}`,
      text: S.pages[name],
      kind: S.search.page,
      address: name === "overview" ? href([""]) : href([name]),
    })),
    ...messages.map((message) => ({ ...message, kind: "" })),
  ];
}
