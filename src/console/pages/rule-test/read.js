// What a reader pastes, read as a message.

import { parseSpelled } from "../send/draft.js";
import { S } from "../../strings/rule-test.js";

/** @typedef {Loose<Schemas["NewMessage"]>} NewMessage */
/** @typedef {{ message: NewMessage | null, note: string, error: string }} Read */

/** How properties of a message are called, by the API and by SDKs: without case and underscores. @type {Record<string,
 * string>} */
const NAMES = {
  body: "body",
  bodybase64: "body_base64",
  encoded: "encoded",
  messageid: "message_id",
  correlationid: "correlation_id",
  sessionid: "session_id",
  partitionkey: "partition_key",
  subject: "subject",
  label: "subject",
  to: "to",
  replyto: "reply_to",
  replytosessionid: "reply_to_session_id",
  contenttype: "content_type",
  timetolive: "time_to_live",
  scheduledfor: "scheduled_for",
  properties: "properties",
  applicationproperties: "properties",
  userproperties: "properties",
};
/** What the API shows of a message that is no part of it. */
const SHOWN = new Set([
  "sequence_number",
  "enqueued_sequence_number",
  "property_types",
  "state",
  "enqueued_at",
  "expires_at",
  "lock",
  "lock_token",
  "delivery_count",
  "size_bytes",
  "dead_letter",
  "damaged",
  // It is tested as if it were sent now.
  "scheduled_for",
]);

/** Reads what was pasted.
 * @param {string} text
 * @returns {Read} */
export function readPasted(text) {
  const refused = (/** @type {string} */ error) => ({ message: null, note: "", error });
  if (text.trim() === "") return refused("");
  /** @type {any} */
  let parsed;
  try {
    parsed = parseSpelled(text);
  } catch (error) {
    return refused(S.notJson(error instanceof Error ? error.message : String(error)));
  }
  const list = Array.isArray(parsed) ? parsed : Array.isArray(parsed?.messages) ? parsed.messages : null;
  if (list !== null && list.length !== 0) return { ...readObject(list[0]), note: S.firstOf };
  return readObject(parsed);
}

/** @param {any} given
 * @returns {Read} */
function readObject(given) {
  if (given === null || typeof given !== "object" || Array.isArray(given))
    return { message: null, note: "", error: S.notObject };
  const entries = Object.entries(given).filter(([name, value]) => value !== null && !SHOWN.has(name));
  const named = entries.map(
    ([name, value]) => /** @type {const} */ ([NAMES[name.replace(/_/g, "").toLowerCase()] ?? name, value]),
  );
  if (typeof given.encoded === "string") return { message: { encoded: given.encoded }, note: S.asEncoded, error: "" };
  const known = new Set(Object.values(NAMES));
  if (entries.length !== 0 && !named.some(([name]) => known.has(name)))
    return { message: { properties: Object.fromEntries(entries) }, note: S.asProperties, error: "" };
  /** @type {any} */
  const message = Object.fromEntries(named);
  // SDKs print a duration in milliseconds, which rules do not look at.
  if (typeof message.time_to_live === "number") delete message.time_to_live;
  for (const [name, value] of Object.entries(message))
    if (name !== "body" && typeof value === "number") message[name] = String(value);
  const { body, ...rest } = message;
  if (body === undefined || typeof body === "string") return { message, note: "", error: "" };
  // A body as the API shows it, or as an SDK prints it.
  if (typeof body === "object" && (typeof body.text === "string" || typeof body.base64 === "string")) {
    return {
      message: { ...rest, ...(typeof body.text === "string" ? { body: body.text } : { body_base64: body.base64 }) },
      note: "",
      error: "",
    };
  }
  return { message: { ...rest, body: JSON.stringify(body) }, note: "", error: "" };
}
