// The frame of every page: navigation, search, whether it is live, and the place of the page.

import { href, route } from "../lib/router.js";
import { Component, computed, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { entities, refusal, returns, spelled, status, totals } from "../lib/live.js";
import { can, complaint, isPlain, session, signOut } from "../lib/session.js";
import { compact } from "../lib/format.js";
import { useFocusOnPage } from "../lib/focus.js";
import { placeOf, scrollBack } from "../lib/place.js";
import { freshTotal, useTrends } from "../lib/trends.js";
import { PAGES, loadPage, navigation, pageAt } from "../pages/index.js";
import { Dialogs, closeDialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { NamespaceSwitcher } from "./namespace-switcher.js";
import { Empty, Loading, Notice, Problem } from "./notice.js";
import { Search } from "./search.js";
import { Shortcuts } from "./shortcuts.js";
import { SignInEnd } from "./sign-in-end.js";
import { Text } from "./text.js";
import { Toasts, announce } from "./toast.js";
import { S } from "../strings/common.js";

/** After so long a page has its data, if the broker is near. */
const SETTLED_MILLISECONDS = 1_000;
const MARK = new URL("../icon.svg", import.meta.url).href;

export function Layout() {
  const [isOpen, setOpen] = useState(false);
  const { path } = route.value;
  useTrends();
  useFocusOnPage();
  useEffect(() => setOpen(false), [path]);
  const toMain = (/** @type {Event} */ event) => {
    event.preventDefault();
    document.querySelector("main")?.focus();
  };
  return html`
    <div class="frame">
      <a class="skip" href="#main" onClick=${toMain}>${S.skip}</a>
      <header class="top">
        <button
          type="button"
          class="menu"
          aria-expanded=${isOpen}
          aria-controls="navigation"
          onClick=${() => setOpen(!isOpen)}
        >
          ${S.menu}
        </button>
        <a class="brand" href=${href([""])}>
          <img src=${MARK} width="20" height="20" alt="" />
          <span class="brand-name">${S.product}</span>
        </a>
        <${NamespaceSwitcher} />
        <${Search} />
        <${Shortcuts} />
        <${LiveStatus} />
      </header>
      <${Navigation} isOpen=${isOpen} path=${path} />
      <main id="main" tabindex="-1"><${Notices} /><${CurrentPage} /></main>
      <${Dialogs} />
      <${Toasts} />
    </div>
  `;
}

/** @param {{ isOpen: boolean, path: string }} properties */
function Navigation({ isOpen, path }) {
  const current = pageAt(path)?.page.nav;
  const { dead_letters: dead } = totals.value;
  const badge = 0 < freshTotal.value ? "badge" : "badge quiet";
  return html`
    <nav id="navigation" class=${isOpen ? "open" : ""} aria-label=${S.navigation}>
      ${navigation().map(
        (group, at) => html`
          <ul key=${at}>
            ${group.map(
              (name) => html`
                <li key=${name}>
                  <a href=${addressOf(name)} aria-current=${name === current ? "page" : undefined}>
                    <${Icon} name=${name} />
                    <span class="nav-name">${S.pages[name]}</span>
                    ${name === "entities" && 0 < dead && html`
                      <span class=${badge} title=${`${dead}`}>${compact(dead)}</span>
                    `}
                  </a>
                </li>
              `,
            )}
          </ul>
        `,
      )}
      <${Account} />
    </nav>
  `;
}

/** @param {import("../pages/index.js").NavName} name */
const addressOf = (name) => (name === "overview" ? href([""]) : href([name]));

function Account() {
  const signedIn = session.value;
  if (signedIn === null) return null;
  const { credential } = signedIn;
  const isNamed = credential.kind === "key" || credential.kind === "oidc";
  const who = isNamed ? S.signedInAs[credential.kind](credential.name) : S.signedInAs[credential.kind];
  return html`
    <div class="account">
      <span class="muted"><${Text} value=${who} /></span>
      ${credential.kind !== "open" && html`
        <button type="button" class="quiet" onClick=${signOut}>${S.signOut}</button>
      `}
    </div>
  `;
}

function LiveStatus() {
  const now = status.value;
  const before = useRef(now);
  useEffect(() => {
    if (now === "away") announce(S.awayAnnouncement);
    else if (before.current === "away" && (now === "live" || now === "polling")) announce(S.backAnnouncement);
    before.current = now;
  }, [now]);
  return html`
    <span class=${`status ${now}`} title=${refusal.value || `${entities.value.size}`}>
      <i aria-hidden="true"></i>
      ${S.status[now]}
    </span>
  `;
}

function Notices() {
  const isOpen = session.value?.credential.kind === "open";
  return html`
    ${status.value === "away" && html`<${Notice} tone="alarm">${S.awayNotice}<//>`}
    ${status.value === "refused" && html`<${Notice}><${Text} value=${refusal.value} /><//>`}
    ${isPlain() && html`<${Notice} tone="alarm">${S.plainNotice}<//>`}
    ${complaint.value && html`<${Notice} tone="alarm"><${Text} value=${complaint.value} /><//>`}
    <${SignInEnd} />
    ${isOpen && route.value.path === "/" && html`<${Notice}>${S.openNotice}<//>`}
  `;
}

/** Shows the page of the address, and moves the focus to its heading when it changes. */
function CurrentPage() {
  const { path, query } = route.value;
  const found = pageAt(path);
  const parameters = useSpelled(found?.parameters ?? {}, "path");
  const spelledQuery = useSpelled(query, "entity");
  const [loaded, setLoaded] = useState(/** @type {{ page: any, Page: any } | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const page = found?.page;
  // A page whose code could not be loaded is loaded when the broker is back.
  const returned = error === null ? 0 : returns.value;
  useEffect(() => {
    let isCurrent = true;
    setError(null);
    closeDialog();
    if (page !== undefined) {
      loadPage(page).then(
        (Page) => isCurrent && setLoaded({ page, Page }),
        (reason) => {
          console.error(reason);
          if (isCurrent) setError(reason);
        },
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [page, returned]);
  useHeadingFocus(path, loaded?.page === page);
  usePlace(path, loaded?.page === page);
  const isFirstShown = loaded !== null;
  useEffect(() => {
    if (isFirstShown) loadOtherPages();
  }, [isFirstShown]);
  if (found === null) return html`<h1 tabindex="-1">${S.notFound}</h1><p><a href=${href([""])}>${S.toOverview}</a></p>`;
  if (error) return html`<h1 tabindex="-1">${S.pages[page?.nav ?? "overview"]}</h1><p class="muted">${S.notLoaded}</p>`;
  if (loaded === null || loaded.page !== page) return html`<${Loading} />`;
  if (!can("listen") && page?.nav !== "send") return html`<${SendOnly} name=${S.pages[page?.nav ?? "overview"]} />`;
  return html`<${Boundary} key=${path}><${loaded.Page} parameters=${parameters} query=${spelledQuery} /><//>`;
}

/** What an address says, with the entity that it names spelled as the broker does it. The address stays as it is.
 * @param {Record<string, string>} values
 * @param {string} name of the value that is a path */
function useSpelled(values, name) {
  const given = values[name];
  const path = useMemo(() => computed(() => (given === undefined ? "" : spelled(given))), [given]).value;
  return given === undefined || given === path ? values : { ...values, [name]: path };
}

/** A page for who may send, and nothing else.
 * @param {{ name: string }} properties */
function SendOnly({ name }) {
  return html`
    <div class="page-head"><h1 tabindex="-1">${name}</h1></div>
    <div class="card">
      <${Empty} title=${S.sendOnly} text=${S.sendOnlyText}><a href=${href(["send"])}>${S.pages.send}</a><//>
    </div>
  `;
}

/** @param {string} path
 * @param {boolean} isShown */
function useHeadingFocus(path, isShown) {
  const before = useRef(path);
  useEffect(() => {
    if (!isShown) return;
    const heading = document.querySelector("main h1");
    document.title = [heading?.textContent?.trim(), session.peek()?.name, S.product].filter(Boolean).join(" · ");
    // The first page is read from the top by itself.
    if (before.current !== path && heading instanceof HTMLElement) heading.focus({ preventScroll: true });
    before.current = path;
  }, [path, isShown]);
}

/** Scrolls a page to where it was, and keeps how far it is scrolled. That ends before the next page is painted: a page
 * that is shorter scrolls by itself.
 * @param {string} path
 * @param {boolean} isShown */
function usePlace(path, isShown) {
  useLayoutEffect(() => {
    if (!isShown) return undefined;
    const main = document.querySelector("main");
    if (main === null) return undefined;
    const place = placeOf("page");
    const end = scrollBack(main, place.before?.top ?? 0);
    const keep = () => place.keep({ top: main.scrollTop });
    main.addEventListener("scroll", keep, { passive: true });
    // What was scrolled last is told in the next frame only, and the page may have gone by then.
    addEventListener("hashchange", keep, { capture: true });
    return () => {
      end();
      removeEventListener("hashchange", keep, { capture: true });
      main.removeEventListener("scroll", keep);
    };
  }, [path, isShown]);
}

/** A page that fails leaves the frame as it is. */
class Boundary extends Component {
  /** @param {any} error */
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render() {
    const { error } = /** @type {any} */ (this.state);
    return error ? html`<${Problem} error=${error} />` : this.props.children;
  }
}

/** Loads the pages that were not shown yet, so that they are there when the broker is away. What is shown comes
 * first. */
async function loadOtherPages() {
  await new Promise((done) => setTimeout(done, SETTLED_MILLISECONDS));
  for (const page of PAGES) {
    await idle();
    await loadPage(page).catch(() => {});
  }
}

/** @returns {Promise<void>} when the browser has nothing else to do; not every browser tells */
const idle = () =>
  new Promise((done) => {
    if (typeof requestIdleCallback === "function") requestIdleCallback(() => done(), { timeout: 5_000 });
    else setTimeout(done, 100);
  });
