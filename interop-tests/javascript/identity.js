// Identities: credentials of the SDK, with tokens of the issuer that the secured broker trusts (../identity.py).

import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const LIFE_MILLISECONDS = 3_600_000;

export function inSeconds(seconds) {
  return Math.floor(Date.now() / 1_000) + seconds;
}

/** A token that is good for an hour, but for what the claims say. */
export async function token(claims, ...options) {
  const [program, ...words] = process.env.JITNEY_TOKEN.split(" ");
  const { stdout } = await run(program, [...words, JSON.stringify(claims), ...options]);
  return stdout.trim();
}

/** A credential with a role. */
export function identity(role, claims = {}, ...options) {
  const roles = role && [`Azure Service Bus Data ${role}`];
  return {
    getToken: async () => ({
      token: await token({ roles, ...claims }, ...options), expiresOnTimestamp: Date.now() + LIFE_MILLISECONDS,
    }),
  };
}

/** The same, signed with a key that the broker does not know. */
export function forgedIdentity(role) {
  return identity(role, {}, "--forged");
}
