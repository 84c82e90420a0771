// What the form has, and the messages that it means.

import { ApiError } from "../../lib/api.js";
import { base64OfBytes, bytesOfBase64, bytesOfText } from "../../lib/bytes.js";
import { number } from "../../lib/format.js";
import { Spelled, laidOut } from "../../lib/json.js";
import { isoOf, timeOf } from "../../lib/local-time.js";
import { S } from "../../strings/send.js";

/** Messages that one form sends. */
export const COUNT_MAX = 10_000;
/** Bytes up to which a body is offered as hex; longer ones are as a file. */
const HEX_MAX = 8 * 1024;
/** Properties in which the broker says why a message is a dead letter: a new message has no such reason. */
const OF_DEAD_LETTERS = ["DeadLetterReason", "DeadLetterErrorDescription"];

/** @typedef {"text" | "json" | "hex" | "file"} BodyKind */
/** @typedef {"text" | "integer" | "decimal" | "boolean"} PropertyType */
/** @typedef {{ name: string, type: PropertyType, value: string }} Property */
/** @typedef {keyof typeof S.fields} FieldName */
/** @typedef {{ kind: BodyKind, text: string, hex: string, file: { name: string, base64: string } | null, fields: Partial<Record<FieldName, string>>,
 *   scheduled: string, life: string, properties: Property[], count: string, start: string }} Draft */
/** @typedef {Loose<Schemas["NewMessage"]>} NewMessage */

/** @type {Draft} */
export const EMPTY = {
  kind: "text", text: "", hex: "", file: null, fields: {}, scheduled: "", life: "", properties: [], count: "1", start: "1",
};
export const FIELDS = /** @type {FieldName[]} */ (Object.keys(S.fields));

/** Fills the counter into a text: `{{n}}`, `{{n:4}}` with four digits at least, `{{n%3}}` its remainder.
 * @param {string} text
 * @param {number} n */
export const filled = (text, n) => text.replace(/\{\{\s*n\s*(?:([:%])\s*(\d{1,6})\s*)?\}\}/g, (whole, sign, size) => {
  if (sign === undefined) return String(n);
  if (sign === ":") return String(n).padStart(Math.min(Number(size), 128), "0");
  return Number(size) === 0 ? whole : String(n % Number(size));
});

/** @param {Draft} draft */
export const hasCounter = ({ kind, text, fields, properties }) =>
  [kind === "text" || kind === "json" ? text : "", ...Object.values(fields), ...properties.flatMap(({ name, value }) => [name, value])].some((each) => filled(each, 1) !== each);

/** @param {Draft} draft */
export const countOf = ({ count }) => (/^\d+$/.test(count.trim()) ? Number(count) : 0);

/** Reads hex.
 * @param {string} text
 * @returns {{ bytes: Uint8Array } | { error: string }} */
export function bytesOfHex(text) {
  const digits = text.replace(/0x|[\s,:]/gi, "");
  const wrong = /[^0-9a-f]/i.exec(digits);
  if (wrong !== null) return { error: S.notHex(wrong[0]) };
  if (digits.length % 2 !== 0) return { error: S.oddHex };
  return { bytes: Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16)) };
}

/** A duration as ISO 8601; what is not understood stays, and the broker says what is wrong with it.
 * @param {string} text */
export function lifeOf(text) {
  const found = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d)$/i.exec(text.trim());
  if (found === null) return text.trim();
  const unit = found[2].toLowerCase();
  return unit === "d" ? `P${found[1]}D` : `PT${found[1]}${unit[0].toUpperCase()}`;
}

/** How many bytes the body has.
 * @param {Draft} draft */
export function sizeOf({ kind, text, hex, file }) {
  if (kind === "file") return file === null ? 0 : bytesOfBase64(file.base64).length;
  if (kind !== "hex") return bytesOfText(text).length;
  const read = bytesOfHex(hex);
  return "bytes" in read ? read.bytes.length : 0;
}

/** Finds mistakes before anything is sent: texts by the name of their field.
 * @param {Draft} draft
 * @returns {Record<string, string>} */
export function mistakesOf(draft) {
  /** @type {Record<string, string>} */
  const found = {};
  const count = countOf(draft);
  if (count < 1 || COUNT_MAX < count) found.count = S.manyWrong(number(COUNT_MAX));
  if (1 < count && !/^\d{1,15}$/.test(draft.start.trim())) found.start = S.startWrong;
  const fill = filler(draft, Number(draft.start));
  if (draft.kind === "json") {
    try {
      JSON.parse(fill(draft.text));
    } catch (error) {
      found.body = S.notJson(error instanceof Error ? error.message : String(error));
    }
  } else if (draft.kind === "hex") {
    const read = bytesOfHex(draft.hex);
    if ("error" in read) found.body = read.error;
  } else if (draft.kind === "file" && draft.file === null) found.body = S.noFile;
  const names = new Set();
  draft.properties.forEach(({ name, type, value }, at) => {
    const [whole, text] = [fill(name), fill(value).trim()];
    if (whole === "") found[`properties.${at}`] = S.nameNeeded;
    else if (names.has(whole)) found[`properties.${at}`] = S.nameTwice;
    else if (type === "integer" && !/^-?\d+$/.test(text)) found[`properties.${at}`] = S.notInteger;
    else if (type === "decimal" && !isDecimal(text)) found[`properties.${at}`] = S.notDecimal;
    names.add(whole);
  });
  return found;
}

/** @param {Draft} draft
 * @param {number} n */
const filler = (draft, n) => (1 < countOf(draft) ? (/** @type {string} */ text) => filled(text, n) : (/** @type {string} */ text) => text);

/** Makes the message with a number of the counter.
 * @param {Draft} draft without mistakes
 * @param {number} n
 * @returns {NewMessage} */
export function messageOf(draft, n) {
  const fill = filler(draft, n);
  const given = FIELDS.flatMap((name) => (draft.fields[name] ? [[name, fill(draft.fields[name] ?? "")]] : []));
  const at = timeOf(draft.scheduled);
  return {
    ...bodyOf(draft, fill),
    ...(draft.kind === "json" ? { content_type: S.jsonType } : {}),
    ...Object.fromEntries(given),
    ...(at === null ? {} : { scheduled_for: isoOf(at) }),
    ...(draft.life.trim() === "" ? {} : { time_to_live: lifeOf(draft.life) }),
    ...(draft.properties.length === 0 ? {} : { properties: Object.fromEntries(draft.properties.map(({ name, type, value }) => [fill(name), valueOf(type, fill(value))])) }),
  };
}

/** @param {Draft} draft
 * @param {(text: string) => string} fill */
function bodyOf({ kind, text, hex, file }, fill) {
  if (kind === "file") return { body_base64: file?.base64 ?? "" };
  if (kind !== "hex") return { body: fill(text) };
  const read = bytesOfHex(hex);
  return { body_base64: base64OfBytes("bytes" in read ? read.bytes : new Uint8Array()) };
}

/** @param {string} text */
const isDecimal = (text) => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text);

/** @param {PropertyType} type
 * @param {string} text */
function valueOf(type, text) {
  switch (type) {
    case "integer": return BigInt(text.trim());
    // An integer and a decimal are two types, and rules tell them apart.
    case "decimal": return new Spelled(/[.eE]/.test(text) ? text.trim() : `${text.trim()}.0`);
    case "boolean": return text === "true";
    case "text": return text;
  }
}

/** Reads an answer with one message so that decimals stay decimals, where the browser tells how a number is spelled.
 * @param {string} text
 * @returns {Schemas["MessageShown"]} */
export const parseSpelled = (text) => JSON.parse(text, /** @type {any} */ ((/** @type {string} */ _, /** @type {unknown} */ value, /** @type {{ source?: string } | undefined} */ context) =>
  (typeof value === "number" && context?.source !== undefined && (/[.eE]/.test(context.source) || !Number.isSafeInteger(value)) ? new Spelled(context.source) : value)));

/** The draft that repeats a message.
 * @param {Schemas["MessageShown"]} message as `parseSpelled` reads it
 * @param {string} name of a file that its body would be
 * @returns {Draft} */
export function draftOf(message, name) {
  const { body, properties } = message;
  const fields = Object.fromEntries(FIELDS.flatMap((field) => {
    const value = field === "partition_key" ? undefined : message[field];
    return value == null ? [] : [[field, String(value)]];
  }));
  const own = Object.entries(properties ?? {}).filter(([key, value]) => value !== null && !OF_DEAD_LETTERS.includes(key));
  return {
    ...EMPTY, fields, ...draftOfBody(body, message.content_type, name),
    properties: own.map(([key, value]) => ({ name: key, ...typed(value) })),
  };
}

/** @param {Schemas["BodyContent"] | null | undefined} body
 * @param {string | null | undefined} contentType
 * @param {string} name
 * @returns {Partial<Draft>} */
function draftOfBody(body, contentType, name) {
  if (body == null) return {};
  if (body.text != null) {
    const isJson = /json/i.test(contentType ?? "") && laidOut(body.text) !== null;
    return { kind: isJson ? "json" : "text", text: body.text };
  }
  const base64 = body.base64 ?? "";
  if (HEX_MAX < body.size_bytes) return { kind: "file", file: { name, base64 } };
  const pairs = Array.from(bytesOfBase64(base64), (byte) => byte.toString(16).padStart(2, "0"));
  return { kind: "hex", hex: pairs.join(" ") };
}

/** @param {unknown} value
 * @returns {{ type: PropertyType, value: string }} */
function typed(value) {
  if (value instanceof Spelled) return { type: /[.eE]/.test(value.text) ? "decimal" : "integer", value: value.text };
  if (typeof value === "boolean") return { type: "boolean", value: String(value) };
  if (typeof value === "number") return { type: Number.isInteger(value) ? "integer" : "decimal", value: String(value) };
  return { type: "text", value: typeof value === "string" ? value : JSON.stringify(value) };
}

/** The field of the form that a refusal names; `""` if it names none of them.
 * @param {Error} error
 * @param {Draft} draft */
export function fieldOf(error, draft) {
  if (!(error instanceof ApiError)) return "";
  // Nothing but the entity is looked for.
  if (error.status === 404) return "entity";
  const field = error.field.replace(/^messages\[\d+\]\./, "");
  if (field.startsWith("properties.")) {
    const at = draft.properties.findIndex(({ name }) => field === `properties.${name}`);
    return at === -1 ? "" : `properties.${at}`;
  }
  if (field === "body_base64") return "body";
  return field === "time_to_live" || field === "scheduled_for" || field === "body" || FIELDS.some((name) => name === field) ? field : "";
}
