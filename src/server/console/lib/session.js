// Who is signed in, and what that allows. A credential is kept for the tab only.

import { ApiError, AwayError, call, callAs } from "./api.js";
import { now } from "./clock.js";
import { signal } from "./html.js";
import { digestOf, signer } from "./sign.js";

/** A credential. Another kind (an identity provider's token, say) needs its case in `authorizationOf`, and a way to be entered.
 * @typedef {{ kind: "open" } | { kind: "operator", key: string } | { kind: "signature", token: string }
 *   | { kind: "key", name: string, key: string, path: string }} Credential */

/** @typedef {{ credential: Credential, namespace: string, id: string, rights: Rights }} Session */
/** What the credential allows; null where only a try tells.
 * @typedef {{ listen: boolean, manage: boolean, send: boolean | null }} Rights */

const STORED = "jitney-session";

/** @type {import("./html.js").Signal<Session | null>} */
export const session = signal(null);
/** `starting` until it is known whether a sign-in is needed.
 * @type {import("./html.js").Signal<"starting" | "signed-out" | "signed-in" | "away">} */
export const phase = signal("starting");

/** Returns whether the session has a right. What it does not allow is not offered.
 * @param {keyof Rights} right */
export const can = (right) => session.value !== null && session.value.rights[right] !== false;

/** A page that came over plain HTTP from another machine: whoever is between sees everything, tokens too. */
export const isPlain = () => location.protocol === "http:" && !isLoopback(location.hostname);

/** @param {string} host */
const isLoopback = (host) => host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(\.\d+){3}$/.test(host);

/** @param {Credential} credential
 * @returns {() => Promise<string | null>} */
function authorizationOf(credential) {
  switch (credential.kind) {
    case "open": return async () => null;
    case "operator": return async () => `Bearer ${credential.key}`;
    case "signature": return async () => credential.token;
    case "key": return signer(credential, now);
  }
}

/** Finds out whether a call is allowed.
 * @param {() => Promise<unknown>} attempt */
async function allows(attempt) {
  try {
    await attempt();
    return true;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return false;
    throw error;
  }
}

/** Signs in, or throws why not.
 * @param {Credential} credential
 * @param {string} namespace */
export async function signIn(credential, namespace) {
  callAs({ authorization: authorizationOf(credential), namespace });
  const path = credential.kind === "key" ? credential.path : "";
  // One entity's key sees that entity; it cannot follow the namespace.
  const look = path === "" ? () => call("get_history") : () => call("get_entity", { path: { entity: path } });
  // A namespace that is new, or empty, has no history, which is an answer too.
  await look().catch((error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  });
  const rights = { listen: true, manage: await allows(() => call("list_audit", { query: { limit: 1 } })), send: null };
  const id = await digestOf(JSON.stringify([credential, namespace]));
  sessionStorage.setItem(STORED, JSON.stringify({ credential, namespace }));
  session.value = { credential, namespace, id, rights };
  phase.value = "signed-in";
}

/** Forgets the credential. */
export function signOut() {
  sessionStorage.removeItem(STORED);
  callAs({ authorization: async () => null, namespace: "" });
  session.value = null;
  phase.value = "signed-out";
}

/** Uses the credential of the tab, or none where the broker is open. */
export async function start() {
  const stored = sessionStorage.getItem(STORED);
  /** @type {{ credential: Credential, namespace: string }} */
  const { credential, namespace } = stored === null ? { credential: { kind: "open" }, namespace: "" } : JSON.parse(stored);
  for (;;) {
    try {
      return await signIn(credential, namespace);
    } catch (error) {
      if (!(error instanceof AwayError)) return signOut();
      phase.value = "away";
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
