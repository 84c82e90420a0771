// Connection strings, and the tokens that are signed with their keys. A key never leaves the page.

import { bytesOfText, base64OfBytes } from "./bytes.js";

/** Seconds for which a token is good. */
const TOKEN_SECONDS = 3600;
/** A token is replaced when it has less left. */
const RENEW_SECONDS = 600;

/** What a connection string has for the console.
 * @typedef {{ kind: "key", name: string, key: string, path: string } | { kind: "signature", token: string }} Parsed */

/** Reads a connection string. Returns null if it has no key and no signature.
 * @param {string} text
 * @returns {Parsed | null} */
export function parseConnectionString(text) {
  const trimmed = text.trim();
  if (/^SharedAccessSignature\s+\S/i.test(trimmed)) return { kind: "signature", token: trimmed };
  const part = (/** @type {string} */ name) => {
    for (const each of trimmed.split(";")) {
      const at = each.indexOf("=");
      if (at !== -1 && each.slice(0, at).trim().toLowerCase() === name) return each.slice(at + 1).trim();
    }
    return "";
  };
  const signature = part("sharedaccesssignature");
  if (signature !== "") return { kind: "signature", token: signature };
  const [name, key, path] = [part("sharedaccesskeyname"), part("sharedaccesskey"), part("entitypath")];
  return name === "" || key === "" ? null : { kind: "key", name, key, path };
}

/** Returns whether the browser signs: it does not for pages that came over plain HTTP from another machine. */
export const hasSubtle = () => globalThis.crypto?.subtle !== undefined;

/** @param {string} key
 * @param {string} text */
async function hmacSha256(key, text) {
  if (hasSubtle()) {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const imported = await crypto.subtle.importKey("raw", bytesOfText(key), algorithm, false, ["sign"]);
    return new Uint8Array(await crypto.subtle.sign("HMAC", imported, bytesOfText(text)));
  }
  const [{ hmac }, { sha256 }] = await Promise.all([
    import("../vendor/noble/hmac.js"),
    import("../vendor/noble/sha2.js"),
  ]);
  return hmac(sha256, bytesOfText(key), bytesOfText(text));
}

/** Returns a short text that tells credentials apart and does not tell what they are.
 * @param {string} text */
export async function digestOf(text) {
  const bytes = await hmacSha256("jitney console", text);
  return base64OfBytes(bytes.subarray(0, 12));
}

/** Makes tokens of a key, and keeps the last until it is nearly over.
 * @param {{ name: string, key: string, path: string }} credential
 * @param {() => number} now milliseconds by the broker's clock */
export function signer({ name, key, path }, now) {
  let token = "";
  let until = 0;
  return async () => {
    const seconds = Math.floor(now() / 1000);
    if (seconds + RENEW_SECONDS < until) return token;
    until = seconds + TOKEN_SECONDS;
    const resource = encodeURIComponent(`http://${location.hostname}/${path}`);
    const signature = base64OfBytes(await hmacSha256(key, `${resource}\n${until}`));
    token = `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${until}&skn=${encodeURIComponent(name)}`;
    return token;
  };
}
