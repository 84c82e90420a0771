// Signing in at the OIDC issuer that the broker trusts: authorization code with PKCE, as a public client. The tokens
// are the tab's.
//
// oauth4webapi makes the requests and checks the answers; it is loaded when someone signs in at an issuer. This file
// has what is kept, when tokens are renewed, and the words for readers.

import { ApiError, AwayError } from "./api.js";
import { bytesOfBase64, bytesOfText, base64OfBytes } from "./bytes.js";
import { clockDifference, observe } from "./clock.js";
import { signal } from "./html.js";
import { hasSubtle } from "./sign.js";
import { S } from "../strings/sign-in.js";

/** The console's client at an issuer. The endpoints are null as long as the broker does not know them; `unavailable`
 * says why.
 * @typedef {{ issuer: string, client_id: string, scope: string, authorization_endpoint: string | null,
 *   token_endpoint: string | null, unavailable: string | null }} Client */
/** How a reader may sign in: /$console/sign-in.json.
 * @typedef {{ open: boolean, oidc: Client | null }} Offer */
/** Tokens of an issuer. `identity` tells those who sign in apart, `name` is for people. `nearEnd` and `end` are by this
 * machine's clock, because they come from a span: the clocks of issuer and broker do not matter.
 * @typedef {{ kind: "oidc", issuer: string, client: string, access: string, refresh: string | null, subject: string,
 *   identity: string, name: string, nearEnd: number, end: number }} OidcCredential */
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
/** Between the clocks of the issuer and of the broker. */
const CLOCK_TOLERANCE_SECONDS = 60;
/** Algorithms of signatures that ID tokens may have: those with a public key. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "Ed25519",
  "EdDSA",
];

const library = () => import("../vendor/oauth4webapi.js");
/** @typedef {Awaited<ReturnType<typeof library>>} Library */

/** @type {import("./html.js").Signal<Offer | null>} */
export const offer = signal(null);

/** What the issuer has refused, in its words. */
class IssuerError extends Error {}

/** Asks the broker how to sign in.
 * @returns {Promise<Offer>} */
export async function readOffer() {
  const response = await fetch("/$console/sign-in.json", {
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  }).catch(() => {
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
  if (oidc === null || oidc.authorization_endpoint === null)
    throw new Error(S.issuerUnavailable(oidc?.unavailable ?? S.noIssuer));
  const oauth = await library();
  const [state, nonce, verifier] = [
    oauth.generateRandomState(),
    oauth.generateRandomNonce(),
    oauth.generateRandomCodeVerifier(),
  ];
  /** @type {Pending} */
  const pending = { state, nonce, verifier, namespace, hash: location.hash };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const target = new URL(oidc.authorization_endpoint);
  const asked = {
    response_type: "code",
    client_id: oidc.client_id,
    redirect_uri: ownAddress(),
    scope: oidc.scope,
    state,
    ...(asksForWho(oidc) ? { nonce } : {}),
    code_challenge: await challengeOf(oauth, verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) target.searchParams.set(name, value);
  location.assign(target.href);
}

/** Where the issuer sends its answer: this page, whatever was asked for. */
const ownAddress = () => `${location.origin}/`;

/** Without this scope there is no ID token.
 * @param {Client} oidc */
const asksForWho = ({ scope }) => scope.split(" ").includes("openid");

/** Takes the issuer's answer from the page's address, and gets the tokens. Returns null if the address has none; throws
 * why not.
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
  const oauth = await library();
  const { issuer, client } = partiesOf(oauth, oidc);
  const nonce = asksForWho(oidc) ? { expectedNonce: pending.nonce, requireIdToken: true } : {};
  const tokens = await inWords(oauth, async () => {
    const accepted = oauth.validateAuthResponse(issuer, client, answer, pending.state);
    const response = await oauth.authorizationCodeGrantRequest(
      issuer,
      client,
      oauth.None(),
      accepted,
      ownAddress(),
      pending.verifier,
      optionsOf(oauth, oidc),
    );
    return oauth.processAuthorizationCodeResponse(issuer, client, response, nonce);
  });
  // The token came from the issuer itself, so its signature need not be checked (OpenID Connect Core 1.0, 3.1.3.7).
  const who = whoOf(oauth, oidc, tokens);
  const claims = claimsOf(tokens.access_token);
  const subject = String(who?.sub ?? claims?.sub ?? "");
  const credential = {
    kind: /** @type {const} */ ("oidc"),
    issuer: oidc.issuer,
    client: oidc.client_id,
    subject,
    identity: claims === null ? random() : JSON.stringify([subject, claims.roles, claims.scp, claims.scope]),
    name: String(who?.preferred_username ?? who?.name ?? who?.email ?? subject).slice(0, TEXT_MAX),
    ...kept(tokens),
  };
  return { credential, namespace: pending.namespace };
}

/** Returns what gives the header of a call: the token, renewed where the issuer allows. `keep` stores the credential
 * after a renewal; `over` is called when the sign-in has ended.
 * @param {OidcCredential} credential
 * @param {{ keep: () => void, over: (reason: string) => void }} events */
export function bearer(credential, { keep, over }) {
  /** @type {Promise<void> | null} */
  let renewal = null;
  let retryAt = 0;
  // A renewal needs the issuer alone, and not the broker's files.
  if (credential.refresh !== null) library().catch(() => {});
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
  const oauth = await library();
  const { issuer, client } = partiesOf(oauth, oidc);
  const tokens = await inWords(oauth, async () => {
    const response = await oauth.refreshTokenGrantRequest(
      issuer,
      client,
      oauth.None(),
      credential.refresh ?? "",
      optionsOf(oauth, oidc),
    );
    return oauth.processRefreshTokenResponse(issuer, client, response);
  });
  const who = whoOf(oauth, oidc, tokens);
  if (who !== undefined && who.sub !== credential.subject) throw new IssuerError(S.idTokenWrong("sub"));
  return { ...kept(tokens), refresh: tokens.refresh_token ?? credential.refresh };
}

/** The issuer and the client, as the library knows them. ID tokens are compared with the broker's clock.
 * @param {Library} oauth
 * @param {Client} oidc */
function partiesOf(oauth, { issuer, client_id, token_endpoint }) {
  if (token_endpoint === null) throw new Error(S.issuerUnavailable(S.noIssuer));
  return {
    issuer: { issuer, token_endpoint, id_token_signing_alg_values_supported: ALGORITHMS },
    client: {
      client_id,
      [oauth.clockSkew]: Math.round(clockDifference() / 1000),
      [oauth.clockTolerance]: CLOCK_TOLERANCE_SECONDS,
    },
  };
}

/** How the token endpoint is asked.
 * @param {Library} oauth
 * @param {Client} oidc */
function optionsOf(oauth, { token_endpoint }) {
  const endpoint = token_endpoint ?? "";
  return {
    // An issuer of this machine; the broker does not trust another without TLS.
    [oauth.allowInsecureRequests]: endpoint.startsWith("http:"),
    [oauth.customFetch]: (/** @type {string} */ address, /** @type {object} */ options) =>
      fetch(address, {
        ...options,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
      }).catch(() => {
        throw new Error(S.issuerAway(endpoint, location.origin));
      }),
    signal: () => AbortSignal.timeout(WAIT_MILLISECONDS),
  };
}

/** Carries a step out, and throws in words for readers what the issuer has refused, or what is wrong with its answer.
 * @template T
 * @param {Library} oauth
 * @param {() => Promise<T>} step
 * @returns {Promise<T>} */
async function inWords(oauth, step) {
  try {
    return await step();
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
      const words = error.error_description ? `${error.error_description} (${error.error})` : error.error;
      throw new IssuerError(S.issuerSays(words.slice(0, TEXT_MAX)));
    }
    // What is no refusal, such as an issuer that is busy, may pass.
    if (error instanceof oauth.WWWAuthenticateChallengeError)
      throw new Error(S.noToken(error.response.url, error.status));
    if (!(error instanceof oauth.OperationProcessingError || error instanceof oauth.UnsupportedOperationError))
      throw error;
    const { cause } = error;
    if (cause instanceof Response) throw new Error(S.noToken(cause.url, cause.status));
    throw new IssuerError(S.idTokenWrong(error.message));
  }
}

/** Returns the claims of the ID token, which the library has checked. It looks at the authorized party only where there
 * are several audiences.
 * @param {Library} oauth
 * @param {Client} oidc
 * @param {import("../vendor/oauth4webapi.js").TokenEndpointResponse} tokens */
function whoOf(oauth, { client_id }, tokens) {
  const who = oauth.getValidatedIdTokenClaims(tokens);
  if (who !== undefined && (who.azp ?? client_id) !== client_id) throw new IssuerError(S.idTokenWrong("azp"));
  return who;
}

/** Returns what is kept of an answer with tokens.
 * @param {any} tokens */
function kept({ access_token: access, refresh_token: refresh, expires_in: told }) {
  const { exp, iat } = claimsOf(access) ?? {};
  const seconds = [Number(told), exp - iat, exp - Date.now() / 1000].find((span) => 0 < span) ?? 0;
  const life = Math.max(seconds * 1000, LIFE_MILLISECONDS_MIN);
  const end = Date.now() + life;
  return {
    access: /** @type {string} */ (access),
    refresh: typeof refresh === "string" ? refresh : null,
    end,
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

/** @param {Uint8Array} bytes */
const base64UrlOf = (bytes) => base64OfBytes(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const random = () => base64UrlOf(crypto.getRandomValues(new Uint8Array(32)));

/** @param {Library} oauth
 * @param {string} verifier */
async function challengeOf(oauth, verifier) {
  if (hasSubtle()) return oauth.calculatePKCECodeChallenge(verifier);
  // Pages that came over plain HTTP from another machine.
  const { sha256 } = await import("../vendor/noble/sha2.js");
  return base64UrlOf(sha256(bytesOfText(verifier)));
}
