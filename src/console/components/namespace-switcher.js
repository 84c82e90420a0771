// The namespace that all of the page is about, in the head. Who may see others chooses one here, and stays on the page.

import { ApiError, call } from "../lib/api.js";
import { html, useEffect, useId, useRef, useState } from "../lib/html.js";
import { entityOf } from "../lib/paths.js";
import { go, href, match, route } from "../lib/router.js";
import { session, signIn } from "../lib/session.js";
import { visible } from "../lib/visible.js";
import { Field } from "./field.js";
import { Text } from "./text.js";
import { toast } from "./toast.js";
import { S } from "../strings/common.js";

/** Names that this browser remembers. */
const REMEMBERED = "jitney-namespaces";
const REMEMBERED_MAX = 5;
/** Names that are listed; a server may have a thousand. */
const LISTED_MAX = 50;
/** Pages of one entity. */
const ENTITY_PAGES = [
  "/entity/:path",
  "/entity/:path/edit",
  "/entity/:path/message/:number",
  "/sessions/:path",
  "/sessions/:path/:id",
];

export function NamespaceSwitcher() {
  const now = session.value;
  const shown = now?.name || now?.namespace || location.host;
  // Keys and signatures hold for one namespace.
  if (now === null || now.credential.kind === "key" || now.credential.kind === "signature") {
    return html`
      <span class="top-namespace" title=${visible(shown)}>
        <span class="hidden">${S.namespace} </span>
        <${Text} value=${shown} max=${260} />
      </span>
    `;
  }
  return html`<${Switcher} shown=${shown} />`;
}

/** @param {{ shown: string }} properties */
function Switcher({ shown }) {
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  /** @type {{ current: HTMLButtonElement | null }} */
  const button = useRef(null);
  const id = useId();
  useEffect(() => remember(shown), [shown]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const close = (/** @type {Event} */ event) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    };
    for (const event of ["pointerdown", "focusin"]) addEventListener(event, close);
    return () => {
      for (const event of ["pointerdown", "focusin"]) removeEventListener(event, close);
    };
  }, [isOpen]);
  const choose = async (/** @type {string} */ next) => {
    setError("");
    try {
      await switchTo(next);
      setName("");
      setOpen(false);
      button.current?.focus();
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !isOpen) return;
    setOpen(false);
    button.current?.focus();
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name.trim() !== "") void choose(name.trim());
  };
  const known = [...new Set([shown, ...(session.value?.namespaces ?? []), ...remembered()])];
  const listed = known.filter((each) => each.includes(name.trim().toLowerCase())).slice(0, LISTED_MAX);
  return html`
    <div ref=${box} class="namespaces" onKeyDown=${onKeyDown}>
      <button
        ref=${button}
        type="button"
        class="quiet top-namespace"
        title=${visible(shown)}
        aria-expanded=${isOpen}
        aria-controls=${id}
        onClick=${() => setOpen(!isOpen)}
      >
        <span class="hidden">${S.namespace} </span>
        <${Text} value=${shown} max=${260} />
      </button>
      ${isOpen && html`
        <div id=${id} class="namespaces-box">
          <form onSubmit=${submit}>
            <${Field} label=${S.switchTo} error=${error}>
              <input
                value=${name}
                autocomplete="off"
                spellcheck=${false}
                autofocus
                onInput=${(/** @type {any} */ event) => setName(event.target.value)}
              />
            <//>
          </form>
          <ul>
            ${listed.map(
              (each) => html`
                <li key=${each}>
                  <button
                    type="button"
                    class="quiet"
                    aria-current=${each === shown ? "true" : undefined}
                    onClick=${() => choose(each)}
                  >
                    <${Text} value=${each} max=${260} />
                  </button>
                </li>
              `,
            )}
          </ul>
        </div>
      `}
    </div>
  `;
}

/** Shows another namespace, on the same page if it has that entity.
 * @param {string} name */
async function switchTo(name) {
  const before = /** @type {import("../lib/session.js").Session} */ (session.value);
  try {
    await signIn(before.credential, name);
  } catch (error) {
    // The client asks for that of before again.
    await signIn(before.credential, before.namespace);
    throw error;
  }
  toast(S.switched(visible(name)));
  const { path } = route.value;
  const found = ENTITY_PAGES.map((pattern) => match(pattern, path)).find((parameters) => parameters !== null);
  if (found === undefined) return;
  const isThere = await call("get_entity", { path: { entity: entityOf(found.path) } }).then(
    () => true,
    (error) => !(error instanceof ApiError && error.status === 404),
  );
  if (!isThere) go(href(["entities"]));
}

/** @returns {string[]} */
function remembered() {
  try {
    const names = JSON.parse(localStorage.getItem(REMEMBERED) ?? "[]");
    return Array.isArray(names) ? names.filter((name) => typeof name === "string").slice(0, REMEMBERED_MAX) : [];
  } catch {
    return [];
  }
}

/** @param {string} name */
function remember(name) {
  try {
    localStorage.setItem(
      REMEMBERED,
      JSON.stringify([name, ...remembered().filter((each) => each !== name)].slice(0, REMEMBERED_MAX)),
    );
  } catch {
    // A browser that keeps nothing lists what the session has.
  }
}
