// The console: a page on the broker's JSON API, and nothing else.

import { effect, html, render, untracked, useEffect } from "./lib/html.js";
import { begin, forget } from "./lib/live.js";
import { route } from "./lib/router.js";
import { phase, session, start } from "./lib/session.js";
import { Layout } from "./components/layout.js";
import { Loading } from "./components/notice.js";
import { SignIn } from "./components/sign-in.js";
import { loadPage, pageAt } from "./pages/index.js";
import { S as C } from "./strings/common.js";
import { S } from "./strings/sign-in.js";

function App() {
  const now = phase.value;
  useEffect(() => {
    if (now === "signed-out") document.title = `${S.title} · ${C.product}`;
  }, [now]);
  if (now === "signed-in") return html`<${Layout} />`;
  if (now === "signed-out") return html`<${SignIn} />`;
  return html`
    <main id="main" class="sign-in">
      ${now === "away" ? html`<h1>${C.status.away}</h1><p>${S.away}</p>` : html`<${Loading} />`}
    </main>
  `;
}

/** What ends following, while a session lasts.
 * @type {(() => void) | undefined} */
let end;
effect(() => {
  end?.();
  const { id, rights } = session.value ?? {};
  // Who may not listen may not follow either.
  end = id === undefined ? undefined : untracked(() => (rights?.listen ? begin(id) : forget()));
});

// The page of the address is needed whoever signs in.
const first = pageAt(untracked(() => route.value.path));
if (first !== null) loadPage(first.page).catch(() => {});

const place = document.getElementById("app");
if (place !== null) render(html`<${App} />`, place);
void start();
