// Makes what a form describes, one entity after the other. What was made stays when the next is refused.

import { ApiError, call, request } from "../../lib/api.js";
import { download } from "../../lib/bytes.js";
import { writeJson } from "../../lib/json.js";
import { fieldOfError, propertiesOf } from "./model.js";
import { errorsOf, isDefault, requestOf } from "./rule-model.js";

/** A subscription of a new topic.
 * @typedef {{ id: number, name: string, rule: import("./rule-model.js").RuleDraft,
 *   isOpen: boolean }} SubscriptionDraft */
/** `values` are kept for each kind together: what a kind does not have is left out.
 * @typedef {{ name: string, topic: string, values: import("./model.js").Values,
 *   rule: import("./rule-model.js").RuleDraft, subscriptions: SubscriptionDraft[], made: string[] }} Draft */
/** Errors by field; `""` is what no field is to blame for. `subscriptions` are by their id.
 * @typedef {{ fields: Record<string, string>, rule: import("./rule-model.js").RuleErrors,
 *   subscriptions: Record<number, import("./rule-model.js").RuleErrors> }} Errors */

/** @type {Errors} */
export const NO_ERRORS = { fields: {}, rule: {}, subscriptions: {} };

/** @param {string} topic
 * @param {string} name */
export const subscriptionPath = (topic, name) => `${topic.trim()}/Subscriptions/${name.trim()}`;

/** The path that a draft is about.
 * @param {Schemas["Kind"]} kind
 * @param {Draft} draft */
export const pathOf = (kind, draft) =>
  kind === "subscription" ? subscriptionPath(draft.topic, draft.name) : draft.name.trim();

/** The subscriptions of a draft that have a name, or anything else.
 * @param {Draft} draft */
export const named = ({ subscriptions }) =>
  subscriptions.filter(
    ({ name, rule }) => name.trim() !== "" || rule.expression.trim() !== "" || rule.action.trim() !== "",
  );

/** @param {unknown} error
 * @returns {Error} */
const asError = (error) => (error instanceof Error ? error : new Error(String(error)));

/** Makes what a draft describes. Tells each path that was made; returns what was refused, or null.
 * @param {Schemas["Kind"]} kind
 * @param {Draft} draft
 * @param {(path: string) => void} onMade
 * @returns {Promise<Errors | null>} */
export async function make(kind, draft, onMade) {
  const path = pathOf(kind, draft);
  if (!draft.made.includes(path)) {
    try {
      const body = /** @type {any} */ ({ kind, properties: propertiesOf(kind, draft.values) });
      if (kind === "subscription") await makeSubscription(path, body, draft.rule);
      else await call("put_entity", { path: { entity: path }, body });
    } catch (error) {
      const refused = asError(error);
      if (refused instanceof RuleRefused) return { ...NO_ERRORS, rule: errorsOf(refused.why, draft.rule) };
      return { ...NO_ERRORS, fields: { [fieldOfError(refused)]: refused.message } };
    }
    onMade(path);
  }
  if (kind !== "topic") return null;
  /** @type {Errors["subscriptions"]} */
  const subscriptions = {};
  for (const { id, name, rule } of named(draft)) {
    const own = subscriptionPath(path, name);
    if (draft.made.includes(own)) continue;
    try {
      await makeSubscription(own, { kind: "subscription", properties: {} }, rule);
      onMade(own);
    } catch (error) {
      const refused = asError(error);
      // The other subscriptions may be right.
      subscriptions[id] = refused instanceof RuleRefused ? errorsOf(refused.why, rule) : { name: refused.message };
      if (!(refused instanceof RuleRefused) && !(refused instanceof ApiError)) break;
    }
  }
  return Object.keys(subscriptions).length === 0 ? null : { ...NO_ERRORS, subscriptions };
}

/** The rule of a new subscription was refused. */
class RuleRefused extends Error {
  /** @param {Error} why */
  constructor(why) {
    super(why.message);
    this.why = why;
  }
}

/** Makes a subscription that has one rule. If the rule is refused there is no subscription: it would take every
 * message.
 * @param {string} path
 * @param {Loose<Schemas["EntityRequest"]>} body
 * @param {import("./rule-model.js").RuleDraft} rule */
async function makeSubscription(path, body, rule) {
  let wanted;
  try {
    wanted = requestOf(rule);
  } catch (error) {
    throw new RuleRefused(asError(error));
  }
  const made = await request("put_entity", { path: { entity: path }, body });
  if (isDefault(rule)) return;
  try {
    // The rule that it was made with is replaced, so that there is no time without one.
    await call("put_rule", { path: { entity: path, rule: "$Default" }, headers: { "If-Match": "*" }, body: wanted });
  } catch (error) {
    await call("delete_entity", { path: { entity: path }, headers: { "If-Match": made.headers.get("etag") ?? "*" } });
    throw new RuleRefused(asError(error));
  }
}

/** Hands the namespace to the reader as a Config.json.
 * @param {boolean} [keys] with the authorization rules of its entities */
export async function exportConfiguration(keys = false) {
  const configuration = await call("get_configuration", { query: keys ? { keys } : {} });
  download("Config.json", `${writeJson(configuration, 2)}\n`);
}
