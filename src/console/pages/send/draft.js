// What the form has, and the messages that it means.

import { ApiError } from "../../lib/api.js";
import { base64OfBytes, bytesOfBase64, bytesOfText } from "../../lib/bytes.js";
import { number } from "../../lib/format.js";
import { Spelled, laidOut } from "../../lib/json.js";
import { fieldOf as localOf, isoOf, timeOf } from "../../lib/local-time.js";
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
/** @typedef {{ kind: BodyKind, text: string, hex: string, file: { name: string, base64: string } | null,
 *   fields: Partial<Record<FieldName, string>>, scheduled: string, life: string, properties: Property[], count: string,
 *   start: string, fills: boolean }} Draft `fills` whether templates are filled */
/** @typedef {Loose<Schemas["NewMessage"]>} NewMessage */

/** @type {Draft} */
export const EMPTY = {
  kind: "text",
  text: "",
  hex: "",
  file: null,
  fields: {},
  scheduled: "",
  life: "",
  properties: [],
  count: "1",
  start: "1",
  fills: true,
};
export const FIELDS = /** @type {FieldName[]} */ (Object.keys(S.fields));

/** What the templates of one message become: `n` is the counter, null where it is not counted; `at` the time, in
 * milliseconds; `ids` those that have a name.
 * @typedef {{ n: number | null, at: number, ids: Map<string, string> }} Filling */

const TEMPLATE = /\{\{\s*(n|uuid|now)\s*(?:([:%+-])\s*(\w{1,12})\s*)?\}\}/g;
/** Milliseconds of the units of a shift. */
const UNITS = /** @type {Record<string, number>} */ ({ s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 });

/** Fills templates: the counter as `{{n}}`, `{{n:4}}` with four digits at least, `{{n%3}}` its remainder; `{{uuid}}`,
 * each another, and `{{uuid:a}}`, the same within a message; `{{now}}`, `{{now+10m}}` and `{{now:unix}}`. What is no
 * template stays.
 * @param {string} text
 * @param {Filling} filling */
export const filled = (text, { n, at, ids }) =>
  text.replace(TEMPLATE, (whole, name, sign = "", argument = "") => {
    if (name === "n") return (n === null ? null : counted(n, sign, argument)) ?? whole;
    if (name === "now") return timed(at, sign, argument) ?? whole;
    if (sign === "") return uuid();
    if (sign !== ":") return whole;
    if (!ids.has(argument)) ids.set(argument, uuid());
    return ids.get(argument) ?? whole;
  });

/** @param {number} n
 * @param {string} sign
 * @param {string} argument */
function counted(n, sign, argument) {
  if (sign === "") return String(n);
  if (!/^\d{1,6}$/.test(argument)) return null;
  if (sign === ":") return String(n).padStart(Math.min(Number(argument), 128), "0");
  return sign !== "%" || Number(argument) === 0 ? null : String(n % Number(argument));
}

/** @param {number} at
 * @param {string} sign
 * @param {string} argument */
function timed(at, sign, argument) {
  if (sign === "") return isoOf(at);
  if (sign === ":") return argument === "unix" ? String(Math.floor(at / 1000)) : null;
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(argument) ?? [];
  const shift = Number(count) * (UNITS[unit] ?? NaN) * (sign === "+" ? 1 : sign === "-" ? -1 : NaN);
  const shifted = at + shift;
  return Math.abs(shifted) < 8.64e15 ? isoOf(shifted) : null;
}

/** A random UUID [RFC 9562, 5.4]. Pages that came over plain HTTP from another machine have no `randomUUID`. */
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** @param {Draft} draft */
const textsOf = ({ kind, text, fields, properties }) => [
  kind === "text" || kind === "json" ? text : "",
  ...Object.values(fields),
  ...properties.flatMap(({ name, value }) => [name, value]),
];

/** Whether a draft has a template, besides the counter of a single message.
 * @param {Draft} draft */
export const hasTemplate = (draft) =>
  textsOf(draft).some((each) => filled(each, { n: 1 < countOf(draft) ? 1 : null, at: 0, ids: new Map() }) !== each);

/** Whether a draft has a counter.
 * @param {Draft} draft */
export const hasCounter = (draft) => textsOf(draft).some((each) => /\{\{\s*n\s*[:%}]/.test(each));

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
 * @param {number} n
 * @returns {(text: string) => string} */
function filler(draft, n) {
  if (!draft.fills) return (text) => text;
  const filling = { n: 1 < countOf(draft) ? n : null, at: Date.now(), ids: new Map() };
  return (text) => filled(text, filling);
}

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
    ...(draft.properties.length === 0
      ? {}
      : {
          properties: Object.fromEntries(
            draft.properties.map(({ name, type, value }) => [fill(name), valueOf(type, fill(value))]),
          ),
        }),
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
    case "integer":
      return BigInt(text.trim());
    // An integer and a decimal are two types, and rules tell them apart.
    case "decimal":
      return new Spelled(/[.eE]/.test(text) ? text.trim() : `${text.trim()}.0`);
    case "boolean":
      return text === "true";
    case "text":
      return text;
  }
}

/** Reads an answer with one message so that decimals stay decimals, where the browser tells how a number is spelled.
 * @param {string} text
 * @returns {Schemas["MessageShown"]} */
export const parseSpelled = (text) =>
  JSON.parse(
    text,
    /** @type {any} */ (
      (
        /** @type {string} */ _,
        /** @type {unknown} */ value,
        /** @type {{ source?: string } | undefined} */ context,
      ) =>
        typeof value === "number" &&
        context?.source !== undefined &&
        (/[.eE]/.test(context.source) || !Number.isSafeInteger(value))
          ? new Spelled(context.source)
          : value
    ),
  );

/** The draft that repeats a message.
 * @param {Schemas["MessageShown"]} message as `parseSpelled` reads it
 * @param {string} name of a file that its body would be
 * @returns {Draft} */
export function draftOf(message, name) {
  const { body, properties } = message;
  const fields = Object.fromEntries(
    FIELDS.flatMap((field) => {
      const value = field === "partition_key" ? undefined : message[field];
      return value == null ? [] : [[field, String(value)]];
    }),
  );
  const own = Object.entries(properties ?? {}).filter(
    ([key, value]) => value !== null && !OF_DEAD_LETTERS.includes(key),
  );
  return {
    // A text of the message may look like a template.
    ...EMPTY,
    fills: false,
    fields,
    ...draftOfBody(body, message.content_type, name),
    properties: own.map(([key, value]) => ({ name: key, ...typed(value) })),
  };
}

/** The draft of a message as the API takes it: what `messageOf` has made of a draft that fills no templates.
 * @param {any} message as `parseSpelled` reads it
 * @returns {Draft} */
export function draftOfNew(message) {
  const { body, body_base64: base64 = "", scheduled_for: scheduled, time_to_live: life, ...rest } = message;
  const content = typeof body === "string" ? { text: body } : { base64, size_bytes: bytesOfBase64(base64).length };
  return {
    ...draftOf({ ...rest, body: content }, S.savedFile),
    fills: true,
    scheduled: scheduled === undefined ? "" : localOf(Date.parse(scheduled)),
    life: life ?? "",
    ...(rest.partition_key === undefined
      ? {}
      : { fields: { ...draftOf({ ...rest, body: null }, "").fields, partition_key: String(rest.partition_key) } }),
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
  return field === "time_to_live" ||
    field === "scheduled_for" ||
    field === "body" ||
    FIELDS.some((name) => name === field)
    ? field
    : "";
}
