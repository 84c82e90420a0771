// Signing in at the OIDC issuer that the broker trusts: authorization code with PKCE, as a public client. The tokens are the tab's.

import { ApiError, AwayError } from "./api.js";
import { bytesOfBase64, bytesOfText, base64OfBytes } from "./bytes.js";
import { observe } from "./clock.js";
import { signal } from "./html.js";
import { hasSubtle } from "./sign.js";
import { S } from "../strings/sign-in.js";

/** The console's client at an issuer. The endpoints are null as long as the broker does not know them; `unavailable` says why.
 * @typedef {{ issuer: string, client_id: string, scope: string, authorization_endpoint: string | null, token_endpoint: string | null,
 *   unavailable: string | null }} Client */
/** How a reader may sign in: /$console/sign-in.json.
 * @typedef {{ open: boolean, oidc: Client | null }} Offer */
/** Tokens of an issuer. `identity` tells those who sign in apart, `name` is for people. `nearEnd` and `end` are by this machine's clock,
 * because they come from a span: the clocks of issuer and broker do not matter.
 * @typedef {{ kind: "oidc", issuer: string, client: string, access: string, refresh: string | null, subject: string, identity: string,
 *   name: string, nearEnd: number, end: number }} OidcCredential */
/** What is kept until the issuer answers.
 * @typedef {{ state: string, nonce: string, verifier: string, namespace: string, hash: string }} Pending */

const PENDING = "jitney-sign-in";
const WAIT_MILLISECONDS = 30_000;
/** A token is renewed, or the end of the sign-in told, when it has less left; a quarter of a life that is short. */
const NEAR_END_MILLISECONDS = 300_000;
/** So that an issuer that gives shorter lives is not asked with every call. */
const LIFE_MILLISECONDS_MIN = 30_000;
const RETRY_MILLISECONDS = 10_000;
const TEXT_MAX = 1_000;

/** @type {import("./html.js").Signal<Offer | null>} */
export const offer = signal(null);

/** What the issuer has refused, in its words. */
class IssuerError extends Error {}

/** Asks the broker how to sign in.
 * @returns {Promise<Offer>} */
export async function readOffer() {
  const response = await fetch("/$console/sign-in.json", { cache: "no-store", credentials: "omit", redirect: "error" }).catch(() => {
    throw new AwayError();
  });
  // The first token is made by the broker's clock.
  observe(response.headers.get("date"));
  // What is refused here is refused at the API too, which says why.
  const told = response.ok ? await response.json() : { open: true, oidc: null };
  offer.value = told;
  return told;
}

/** Leaves the page for the issuer's.
 * @param {string} namespace */
export async function leaveForIssuer(namespace) {
  const { oidc } = await readOffer();
  if (oidc === null || oidc.authorization_endpoint === null) throw new Error(S.issuerUnavailable(oidc?.unavailable ?? S.noIssuer));
  const [state, nonce, verifier] = [random(), random(), random()];
  /** @type {Pending} */
  const pending = { state, nonce, verifier, namespace, hash: location.hash };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const target = new URL(oidc.authorization_endpoint);
  const asked = {
    response_type: "code", client_id: oidc.client_id, redirect_uri: ownAddress(), scope: oidc.scope, state, nonce,
    code_challenge: base64UrlOf(await sha256(verifier)), code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) target.searchParams.set(name, value);
  location.assign(target.href);
}

/** Where the issuer sends its answer: this page, whatever was asked for. */
const ownAddress = () => `${location.origin}/`;

/** Takes the issuer's answer from the page's address, and gets the tokens. Returns null if the address has none; throws why not.
 * @returns {Promise<{ credential: OidcCredential, namespace: string } | null>} */
export async function finishSignIn() {
  const answer = new URLSearchParams(location.search);
  if (!["state", "code", "error"].some((name) => answer.has(name))) return null;
  const stored = sessionStorage.getItem(PENDING);
  // Good for one answer, and gone before anything else is loaded or asked.
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", `/${location.hash}`);
  /** @type {Pending | null} */
  const pending = stored === null ? null : JSON.parse(stored);
  // Without the state it may be a link that another has made: its words are not shown.
  if (pending === null || answer.get("state") !== pending.state) throw new Error(S.stateWrong);
  if (pending.hash.startsWith("#")) location.replace(pending.hash);
  const { oidc } = await readOffer();
  if (oidc === null) throw new Error(S.noIssuer);
  // [RFC 9207]
  if ((answer.get("iss") ?? oidc.issuer) !== oidc.issuer) throw new Error(S.otherIssuer);
  const refused = wordsOf(Object.fromEntries(answer));
  if (refused !== null) throw new IssuerError(refused);
  const tokens = await askForTokens(oidc, {
    grant_type: "authorization_code", code: answer.get("code") ?? "", redirect_uri: ownAddress(), code_verifier: pending.verifier,
  });
  const who = claimsOf(tokens.id_token);
  const asksForWho = oidc.scope.split(" ").includes("openid");
  // The token came from the issuer itself, so its signature need not be checked (OpenID Connect Core 1.0, 3.1.3.7).
  if ((asksForWho || who !== null) && (who?.iss !== oidc.issuer || !isFor(who, oidc.client_id) || who.nonce !== pending.nonce)) {
    throw new Error(S.idTokenWrong);
  }
  const claims = claimsOf(tokens.access_token);
  const { sub = claims?.sub, name } = who ?? {};
  const subject = String(sub ?? "");
  const credential = {
    kind: /** @type {const} */ ("oidc"), issuer: oidc.issuer, client: oidc.client_id, subject,
    identity: claims === null ? random() : JSON.stringify([subject, claims.roles, claims.scp, claims.scope]),
    name: String(who?.preferred_username ?? name ?? who?.email ?? subject).slice(0, TEXT_MAX), ...kept(tokens),
  };
  return { credential, namespace: pending.namespace };
}

/** Returns what gives the header of a call: the token, renewed where the issuer allows. `keep` stores the credential after a renewal;
 * `over` is called when the sign-in has ended.
 * @param {OidcCredential} credential
 * @param {{ keep: () => void, over: (reason: string) => void }} events */
export function bearer(credential, { keep, over }) {
  /** @type {Promise<void> | null} */
  let renewal = null;
  let retryAt = 0;
  const renew = async () => {
    try {
      Object.assign(credential, await renewed(credential));
      keep();
    } catch (error) {
      retryAt = Date.now() + RETRY_MILLISECONDS;
      const isOver = credential.end <= Date.now();
      const reason = error instanceof Error ? error.message : String(error);
      // A token that is still good is used while it lasts.
      if (error instanceof IssuerError) credential.refresh = null;
      if (error instanceof IssuerError && isOver) over(reason);
      if (isOver) throw new ApiError({ status: 401, title: S.title, detail: reason, reason: "issuer" });
    }
  };
  return async () => {
    const now = Date.now();
    if (credential.refresh === null && credential.end <= now) {
      over(S.ended);
      throw new ApiError({ status: 401, title: S.title, detail: S.ended, reason: "issuer" });
    }
    if (credential.refresh !== null && credential.nearEnd <= now && (retryAt <= now || credential.end <= now)) {
      renewal ??= renew().finally(() => {
        renewal = null;
      });
      await renewal;
    }
    return `Bearer ${credential.access}`;
  };
}

/** @param {OidcCredential} credential */
async function renewed(credential) {
  const { oidc } = await readOffer();
  // Tokens go to the issuer that made them, as long as the broker trusts it.
  if (oidc?.issuer !== credential.issuer || oidc.client_id !== credential.client) throw new IssuerError(S.otherIssuer);
  const tokens = await askForTokens(oidc, { grant_type: "refresh_token", refresh_token: credential.refresh ?? "" });
  const who = claimsOf(tokens.id_token);
  if (who !== null && (who.iss !== oidc.issuer || who.sub !== credential.subject)) throw new IssuerError(S.idTokenWrong);
  return { ...kept(tokens), refresh: tokens.refresh_token ?? credential.refresh };
}

/** @param {Client} oidc
 * @param {Record<string, string>} fields */
async function askForTokens({ client_id, token_endpoint }, fields) {
  if (token_endpoint === null) throw new Error(S.issuerUnavailable(S.noIssuer));
  const response = await fetch(token_endpoint, {
    method: "POST", body: new URLSearchParams({ ...fields, client_id }), headers: { Accept: "application/json" },
    cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(WAIT_MILLISECONDS),
  }).catch(() => {
    throw new Error(S.issuerAway(token_endpoint, location.origin));
  });
  const told = await response.json().catch(() => null);
  if (response.ok && typeof told?.access_token === "string" && /^bearer$/i.test(told.token_type)) return told;
  const words = wordsOf(told ?? {});
  // What is no refusal, such as an issuer that is busy, may pass.
  if (words === null || 500 <= response.status) throw new Error(words ?? S.noToken(token_endpoint, response.status));
  throw new IssuerError(words);
}

/** Returns what an issuer says of an error, null if there is none [RFC 6749, 4.1.2.1 and 5.2].
 * @param {{ error?: unknown, error_description?: unknown }} answer */
function wordsOf({ error, error_description: description }) {
  if (typeof error !== "string") return null;
  const words = typeof description === "string" && description !== "" ? `${description} (${error})` : error;
  return S.issuerSays(words.slice(0, TEXT_MAX));
}

/** Returns what is kept of an answer with tokens.
 * @param {any} tokens */
function kept({ access_token: access, refresh_token: refresh, expires_in: told }) {
  const { exp, iat } = claimsOf(access) ?? {};
  const seconds = [Number(told), exp - iat, exp - Date.now() / 1000].find((span) => 0 < span) ?? 0;
  const life = Math.max(seconds * 1000, LIFE_MILLISECONDS_MIN);
  const end = Date.now() + life;
  return {
    access: /** @type {string} */ (access), refresh: typeof refresh === "string" ? refresh : null, end,
    nearEnd: end - Math.min(NEAR_END_MILLISECONDS, life / 4),
  };
}

/** Returns the claims of a token, null if it has none that can be read.
 * @param {unknown} token
 * @returns {Record<string, any> | null} */
function claimsOf(token) {
  try {
    const part = String(token).split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const claims = JSON.parse(new TextDecoder().decode(bytesOfBase64(part)));
    return typeof claims === "object" ? claims : null;
  } catch {
    return null;
  }
}

/** @param {Record<string, any>} claims
 * @param {string} client */
const isFor = ({ aud, azp }, client) => [aud].flat().includes(client) && (azp ?? client) === client;

/** @param {Uint8Array} bytes */
const base64UrlOf = (bytes) => base64OfBytes(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const random = () => base64UrlOf(crypto.getRandomValues(new Uint8Array(32)));

/** @param {string} text */
async function sha256(text) {
  if (hasSubtle()) return new Uint8Array(await crypto.subtle.digest("SHA-256", bytesOfText(text)));
  const library = await import("../vendor/noble/sha2.js");
  return library.sha256(bytesOfText(text));
}
