// Properties of entities as a form has them: texts and switches, and what the API makes of them.

import { ApiError } from "../../lib/api.js";
import { duration } from "../../lib/format.js";

/** @typedef {Schemas["Kind"]} Kind */
/** @typedef {"duration" | "number" | "boolean" | "path" | "text" | "status"} Type */
/** `isFixed`: it cannot be changed later. `example` is the service's default.
 * @typedef {{ name: string, type: Type, group: "delivery" | "ways" | "kind" | "limits" | "rest", kinds: Kind[],
 *   example?: string, isFixed?: boolean }} FieldOf */
/** What the reader has typed, by the names of the API; what is left out is by default.
 * @typedef {Record<string, string | boolean>} Values */

/** The largest duration that the service has: never. */
const NEVER = "P10675199DT2H48M5.4775807S";

/** @type {Kind[]} */
const [all, receiving, roots] = [
  ["queue", "topic", "subscription"],
  ["queue", "subscription"],
  ["queue", "topic"],
].map((kinds) => /** @type {any} */ (kinds));

/** @type {FieldOf[]} */
export const FIELDS = /** @type {any} */ ([
  { name: "forward_dead_letters_to", type: "path", group: "ways", kinds: receiving },
  { name: "forward_to", type: "path", group: "ways", kinds: receiving },
  { name: "lock_duration", type: "duration", group: "delivery", kinds: receiving, example: "1m" },
  { name: "max_delivery_count", type: "number", group: "delivery", kinds: receiving, example: "10" },
  { name: "default_time_to_live", type: "duration", group: "delivery", kinds: all, example: "never" },
  { name: "dead_letter_on_expiration", type: "boolean", group: "delivery", kinds: receiving },
  { name: "dead_letter_on_filter_error", type: "boolean", group: "delivery", kinds: ["subscription"] },
  { name: "requires_session", type: "boolean", group: "kind", kinds: receiving, isFixed: true },
  { name: "requires_duplicate_detection", type: "boolean", group: "kind", kinds: roots, isFixed: true },
  { name: "duplicate_detection_window", type: "duration", group: "kind", kinds: roots, example: "10m" },
  { name: "max_size_megabytes", type: "number", group: "limits", kinds: roots, example: "1024" },
  { name: "max_message_kilobytes", type: "number", group: "limits", kinds: roots, example: "1024" },
  { name: "auto_delete_on_idle", type: "duration", group: "limits", kinds: all, example: "never" },
  { name: "partitioned", type: "boolean", group: "limits", kinds: roots, isFixed: true },
  { name: "status", type: "status", group: "rest", kinds: all },
  { name: "user_metadata", type: "text", group: "rest", kinds: all },
]);

/** @param {Kind} kind */
export const fieldsOf = (kind) => FIELDS.filter(({ kinds }) => kinds.includes(kind));

/** What a new entity has. @type {Values} */
export const DEFAULTS = { dead_letter_on_filter_error: true };

const UNITS = /** @type {Record<string, string>} */ ({
  d: "D",
  day: "D",
  days: "D",
  h: "H",
  hour: "H",
  hours: "H",
  m: "M",
  min: "M",
  minute: "M",
  minutes: "M",
  s: "S",
  sec: "S",
  second: "S",
  seconds: "S",
});

/** Reads a duration as people write it, `1h 30m`; what it cannot read is left to the broker, which says what is
 * allowed.
 * @param {string} text */
export function isoOfDuration(text) {
  const trimmed = text.trim();
  if (/^never$/i.test(trimmed)) return NEVER;
  const parts = [...trimmed.matchAll(/([\d.,]+)\s*([a-z]+)\s*/gi)];
  if (
    parts.length === 0 ||
    parts.map(([part]) => part).join("") !== trimmed ||
    parts.some(([, , unit]) => UNITS[unit.toLowerCase()] === undefined)
  )
    return trimmed;
  const order = ["D", "H", "M", "S"];
  const found = parts.map(([, count, unit]) => ({ count: count.replace(",", "."), unit: UNITS[unit.toLowerCase()] }));
  if (found.some(({ unit }, at) => at !== 0 && order.indexOf(unit) <= order.indexOf(found[at - 1].unit)))
    return trimmed;
  const days = found
    .filter(({ unit }) => unit === "D")
    .map(({ count }) => `${count}D`)
    .join("");
  const times = found
    .filter(({ unit }) => unit !== "D")
    .map(({ count, unit }) => count + unit)
    .join("");
  return `P${days}${times === "" ? "" : `T${times}`}`;
}

/** Shows a duration so that it is read back as it is.
 * @param {string} iso */
export function textOfDuration(iso) {
  if (iso === NEVER) return "never";
  const text = duration(iso);
  return isoOfDuration(text) === iso ? text : iso;
}

/** What a form shows of an entity's properties.
 * @param {Kind} kind
 * @param {Record<string, unknown>} properties
 * @returns {Values} */
export function valuesOf(kind, properties) {
  return Object.fromEntries(
    fieldsOf(kind).map(({ name, type }) => {
      const value = properties[name];
      if (type === "boolean") return [name, value === true];
      if (value === undefined || value === null) return [name, ""];
      return [name, type === "duration" ? textOfDuration(String(value)) : String(value)];
    }),
  );
}

/** What the API gets of a form.
 * @param {Kind} kind
 * @param {Values} values */
export function propertiesOf(kind, values) {
  /** @type {Record<string, unknown>} */
  const properties = {};
  for (const { name, type } of fieldsOf(kind)) {
    const value = values[name];
    if (typeof value === "boolean") properties[name] = value;
    else if (value !== undefined && value.trim() !== "") {
      // What is no number is sent as it is: the broker says what is wrong.
      properties[name] =
        type === "duration"
          ? isoOfDuration(value)
          : type === "number" && /^\s*-?\d{1,15}\s*$/.test(value)
            ? Number(value)
            : value.trim();
    }
  }
  return properties;
}

/** Finds the field that a refusal is about. `""` if it is about none.
 * @param {Error} error
 * @returns {string} */
export function fieldOfError(error) {
  if (!(error instanceof ApiError)) return "";
  const name = error.field.replace(/^properties\./, "");
  if (name === "entity") return "name";
  return name === "topic" || FIELDS.some((field) => field.name === name) ? name : "";
}
