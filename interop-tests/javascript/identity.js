// Identities, as a provider of tokens gives them: credentials of the SDK whose tokens the guarded broker can verify.

import { generateKeyPairSync, sign } from "node:crypto";
import { guarded, ISSUER } from "./guarded.js";

/** A key that the broker does not know. */
const forged = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;

export function inSeconds(seconds) {
  return Math.floor(Date.now() / 1_000) + seconds;
}

/** A token that is good for an hour, but for what the claims say. */
export function token(claims, key = guarded.issuerKey) {
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = inSeconds(0);
  const all = {
    iss: ISSUER, aud: "https://servicebus.azure.net", sub: "somebody", iat: now, nbf: now, exp: now + 3_600, ...claims,
  };
  const text = `${encoded({ alg: "RS256", typ: "JWT", kid: "one" })}.${encoded(all)}`;
  return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
}

/** A credential with a role. */
export function identity(role, claims = {}, key = guarded.issuerKey) {
  const roles = role && [`Azure Service Bus Data ${role}`];
  return {
    getToken: async () => ({ token: token({ roles, ...claims }, key), expiresOnTimestamp: Date.now() + 3_600_000 }),
  };
}

export function forgedIdentity(role) {
  return identity(role, {}, forged);
}
