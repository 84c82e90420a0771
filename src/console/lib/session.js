// Who is signed in, and what that allows. A credential is kept for the tab only.

import { ApiError, AwayError, call, callAs } from "./api.js";
import { clockDifference, now } from "./clock.js";
import { signal } from "./html.js";
import { bearer, finishSignIn, readOffer } from "./oidc.js";
import { digestOf, signer } from "./sign.js";

/** A credential. Another kind needs its case in `authorizationOf`, and a way to be entered.
 * @typedef {{ kind: "open" } | { kind: "operator", key: string } | { kind: "signature", token: string }
 *   | { kind: "key", name: string, key: string, path: string }
 *   | import("./oidc.js").OidcCredential} Credential */

/** `namespace` is as it was asked for, `""` for that of the address; `name` is what the broker calls it. The operator
 * may do everything on the server; `namespaces` has the names of all for him. `hasFleet` says that servers share
 * namespaces in a store.
 * @typedef {{ credential: Credential, namespace: string, name: string, id: string, rights: Rights, isOperator: boolean,
 *   hasFleet: boolean, namespaces: string[] }} Session */
/** What the credential allows; null where only a try tells.
 * @typedef {{ listen: boolean, manage: boolean, send: boolean | null }} Rights */

const STORED = "jitney-session";
/** A clock that is so much wrong makes tokens that are not good. */
const CLOCK_CHANGE_MILLISECONDS = 5_000;

/** @type {import("./html.js").Signal<Session | null>} */
export const session = signal(null);
/** `starting` until it is known whether a sign-in is needed.
 * @type {import("./html.js").Signal<"starting" | "signed-out" | "signed-in" | "away">} */
export const phase = signal("starting");
/** Why a session ended, or did not begin at the issuer. */
export const complaint = signal("");

/** What the tab keeps; what is renewed after a sign-out is not.
 * @type {{ credential: Credential, namespace: string } | null} */
let inUse = null;

/** Returns whether the session has a right. What it does not allow is not offered.
 * @param {keyof Rights} right */
export const can = (right) => session.value !== null && session.value.rights[right] !== false;

/** The entity of a key that is good for one entity only; empty for other credentials. */
export const ownEntity = () => (session.value?.credential.kind === "key" ? session.value.credential.path : "");

/** A page that came over plain HTTP from another machine: whoever is between sees everything, tokens too. */
export const isPlain = () => location.protocol === "http:" && !isLoopback(location.hostname);

/** @param {string} host */
const isLoopback = (host) =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d+){3}$/.test(host);

/** @param {Credential} credential
 * @returns {() => Promise<string | null>} */
function authorizationOf(credential) {
  switch (credential.kind) {
    case "open":
      return async () => null;
    case "operator":
      return async () => `Bearer ${credential.key}`;
    case "signature":
      return async () => credential.token;
    case "key":
      return signer(credential, now);
    case "oidc":
      return bearer(credential, {
        keep: () => inUse?.credential === credential && store(),
        over: (reason) => inUse?.credential === credential && endSession(reason),
      });
  }
}

/** The namespace that the address of the page names; empty if it names none. */
export const namedHere = () => new URLSearchParams(location.search).get("namespace") ?? "";

/** Puts a namespace into the address of the page: who opens the address gets the same entity.
 * @param {string} name empty for none */
function nameHere(name) {
  const query = name === "" ? "" : `?${new URLSearchParams({ namespace: name })}`;
  if (query !== location.search)
    history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
}

const store = () => sessionStorage.setItem(STORED, JSON.stringify(inUse));

/** @param {unknown} error */
const isRefused = (error) => error instanceof ApiError && (error.status === 401 || error.status === 403);

/** Finds out whether a call is allowed.
 * @param {() => Promise<unknown>} attempt */
async function allows(attempt) {
  try {
    await attempt();
    return true;
  } catch (error) {
    if (isRefused(error)) return false;
    throw error;
  }
}

/** Returns what a credential allows in the namespace. */
async function accessOf() {
  const { namespace: name, operator: isOperator, fleet: hasFleet, rights, namespaces } = await call("get_access");
  const has = (/** @type {"listen" | "manage" | "send"} */ right) => rights.includes(right);
  return {
    rights: { listen: has("listen"), manage: has("manage"), send: has("send") },
    name,
    isOperator,
    hasFleet,
    namespaces: namespaces ?? [],
  };
}

/** Finds out what a key of one entity allows: it cannot follow the namespace, and only a try tells whether it may send.
 * @param {string} path */
async function accessTo(path) {
  const listen = await call("get_entity", { path: { entity: path } }).then(
    () => true,
    async (error) => {
      if (!isRefused(error)) throw error;
      // Nothing is sent, to tell a key without this right from one that is wrong. The right that is left is Send.
      const isWrong = await call("send_messages", { path: { entity: path }, body: { messages: [] } }).then(
        () => false,
        isRefused,
      );
      if (isWrong) throw error;
      return false;
    },
  );
  const manage = listen && (await allows(() => call("list_authorization_rules", { path: { entity: path } })));
  return {
    rights: { listen, manage, send: listen ? null : true },
    name: "",
    isOperator: false,
    hasFleet: false,
    namespaces: /** @type {string[]} */ ([]),
  };
}

/** Signs in, or throws why not.
 * @param {Credential} credential
 * @param {string} namespace */
export async function signIn(credential, namespace) {
  inUse = { credential, namespace };
  callAs({ authorization: authorizationOf(credential), namespace });
  const path = credential.kind === "key" ? credential.path : "";
  const ask = async () => (path === "" ? accessOf() : accessTo(path));
  const difference = clockDifference();
  const { rights, name, isOperator, hasFleet, namespaces } = await ask().catch((error) => {
    // The refusal has told the broker's time: the token was made by a clock that is wrong, and the next one is not.
    const isClock = CLOCK_CHANGE_MILLISECONDS < Math.abs(clockDifference() - difference);
    if (!isClock || !(error instanceof ApiError) || error.status !== 401) throw error;
    return ask();
  });
  // Tokens change while a session lasts; whom they are for does not.
  const who = credential.kind === "oidc" ? [credential.issuer, credential.identity] : credential;
  const id = await digestOf(JSON.stringify([who, name || namespace]));
  store();
  nameHere(name || namespace);
  session.value = { credential, namespace, name, id, rights, isOperator, hasFleet, namespaces };
  phase.value = "signed-in";
}

/** Forgets the credential, and says why.
 * @param {string} reason */
export function endSession(reason) {
  complaint.value = reason;
  inUse = null;
  sessionStorage.removeItem(STORED);
  callAs({ authorization: async () => null, namespace: "" });
  session.value = null;
  phase.value = "signed-out";
}

/** Forgets the credential. The next may be for another namespace. */
export function signOut() {
  endSession("");
  nameHere("");
}

/** Uses what the issuer has answered, else the credential of the tab, or none where the broker is open; in the
 * namespace of the address, and in no other if it names one. */
export async function start() {
  const wanted = namedHere();
  let reason = "";
  const answered = await finishSignIn().catch((error) => {
    reason = error.message;
    return null;
  });
  const stored = sessionStorage.getItem(STORED);
  /** @type {{ credential: Credential, namespace: string } | null} */
  const given = answered ?? (stored === null ? null : JSON.parse(stored));
  for (;;) {
    try {
      if (given === null && !(await readOffer()).open) return endSession(reason);
      await signIn(
        given?.credential ?? { kind: "open" },
        answered === null && wanted !== "" ? wanted : (given?.namespace ?? ""),
      );
      complaint.value = reason;
      return;
    } catch (error) {
      // A namespace that moves to another server is away for a moment.
      const isAway = error instanceof AwayError || (error instanceof ApiError && error.status === 503);
      const isTold = given?.credential.kind === "oidc" || (wanted !== "" && wanted !== (given?.namespace ?? ""));
      if (!isAway) return endSession(isTold && error instanceof Error ? error.message : reason);
      phase.value = "away";
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
