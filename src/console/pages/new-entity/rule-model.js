// Rules as a form has them, and what the API makes of them.

import { ApiError } from "../../lib/api.js";
import { Spelled } from "../../lib/json.js";
import { S } from "../../strings/new-entity.js";

/** A property that a correlation filter compares: `field` is one of the API's names, or empty for an application
 * property.
 * @typedef {{ field: string, name: string, type: "text" | "number" | "boolean", value: string }} Pair */
/** @typedef {{ kind: "true" | "sql" | "correlation" | "false", expression: string, pairs: Pair[],
 *   action: string }} RuleDraft */

/** @type {Pair} */
export const NEW_PAIR = { field: "", name: "", type: "text", value: "" };
/** @type {RuleDraft} */
export const NEW_RULE = { kind: "sql", expression: "", pairs: [NEW_PAIR], action: "" };

/** @typedef {"name" | "expression" | "action" | "pairs" | ""} RuleField */
/** The error of each field of a rule; `pair` is the index of the pair that the error of `pairs` is about.
 * @typedef {Partial<Record<RuleField, string>> & { pair?: number }} RuleErrors */

/** Returns whether a rule takes everything and changes nothing, as the one that every new subscription has.
 * @param {RuleDraft} rule */
export const isDefault = ({ kind, expression, action }) =>
  (kind === "true" || (kind === "sql" && expression.trim() === "")) && action.trim() === "";

/** @param {Pair} pair
 * @param {number} at its index */
function valueOf({ type, value }, at) {
  if (type === "boolean") return value === "true";
  if (type === "text") return value;
  try {
    return new Spelled(value.trim());
  } catch {
    throw new RuleError({ pairs: `${value}: ${S.notNumber}`, pair: at });
  }
}

/** What is wrong with a rule, and where. */
export class RuleError extends Error {
  /** @param {RuleErrors} errors */
  constructor(errors) {
    super(Object.values(errors).join("; "));
    this.errors = errors;
  }
}

/** @param {RuleDraft} rule
 * @returns {Loose<Schemas["RuleRequest"]>} */
export function requestOf({ kind, expression, pairs, action }) {
  return /** @type {any} */ ({
    filter: filterOf(kind, expression, pairs),
    action: action.trim() === "" ? undefined : action,
  });
}

/** @param {RuleDraft["kind"]} kind
 * @param {string} expression
 * @param {Pair[]} pairs */
function filterOf(kind, expression, pairs) {
  if (kind === "sql") return expression.trim() === "" ? { kind: "true" } : { kind, expression };
  if (kind !== "correlation") return { kind };
  const system = pairs
    .filter(({ field, value }) => field !== "" && value !== "")
    .map(({ field, value }) => [field, value]);
  const own = pairs.flatMap((pair, at) =>
    pair.field === "" && pair.name !== "" ? [[pair.name, valueOf(pair, at)]] : [],
  );
  return { kind, ...Object.fromEntries(system), properties: Object.fromEntries(own) };
}

/** @param {Schemas["Rule"]} rule
 * @returns {RuleDraft} */
export function draftOf({ filter, action }) {
  const base = { ...NEW_RULE, kind: filter.kind, action: action ?? "" };
  if (filter.kind === "sql") return { ...base, expression: filter.expression };
  if (filter.kind !== "correlation") return base;
  const { kind: _, properties, ...system } = filter;
  const pairs = [
    ...Object.entries(system)
      .filter(([, value]) => value != null)
      .map(([field, value]) => ({ ...NEW_PAIR, field, value: String(value) })),
    ...Object.entries(properties ?? {}).map(([name, value]) => ({
      field: "",
      name,
      value: String(value),
      type: typeOf(value),
    })),
  ];
  return { ...base, pairs: pairs.length === 0 ? [NEW_PAIR] : pairs };
}

/** @param {unknown} value
 * @returns {Pair["type"]} */
const typeOf = (value) =>
  typeof value === "number" || typeof value === "bigint" ? "number" : typeof value === "boolean" ? "boolean" : "text";

/** The index of the pair that a refusal names, the first if it names none.
 * @param {string} named
 * @param {Pair[]} pairs */
function pairOf(named, pairs) {
  return Math.max(
    0,
    pairs.findIndex(({ field, name }) => named === (field === "" ? `filter.properties.${name}` : `filter.${field}`)),
  );
}

/** The field of a rule that a refusal is about, and its text.
 * @param {Error} error
 * @param {RuleDraft} rule
 * @returns {RuleErrors} */
export function errorsOf(error, rule) {
  const { message } = error;
  if (error instanceof RuleError) return error.errors;
  const field = error instanceof ApiError ? error.field.replace(/^rule\./, "") : "";
  if (field.startsWith("filter"))
    return rule.kind === "correlation" ? { pairs: message, pair: pairOf(field, rule.pairs) } : { expression: message };
  return { [field === "action" || field === "name" ? field : ""]: message };
}
