import assert from "node:assert/strict";
import { bodies, deadLetters, fails, noRenewal, receive, receiveNothing, receiveOne, topic } from "../harness.js";

/** What a subscription is born with. */
const DEFAULT = { name: "$Default", filter: { sqlExpression: "1=1" }, action: {} };

function byName(rules) {
  return Object.fromEntries(rules.map(({ name, filter, action }) => [name, { filter: given(filter), action }]));
}

/** A filter without the fields that are not set. */
function given(filter) {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined && value !== null));
}

/** Replaces the rules of a subscription. */
async function setRules(client, name, subscription, rules) {
  const manager = client.createRuleManager(name, subscription);
  for (const rule of await manager.getRules()) await manager.deleteRule(rule.name);
  for (const [rule, filter, action] of rules) {
    await manager.createRule(rule, filter, ...(action ? [{ sqlExpression: action }] : []));
  }
  return manager;
}

/** The bodies that a subscription gets of these messages. */
async function taken(client, name, subscription, messages) {
  await client.createSender(name).sendMessages([...messages, { body: "last", subject: "last" }]);
  return messages.length;
}

topic("rules", (scenario) => {
  scenario("C1 a subscription without rules in the file has the default one", async (client) => {
    const manager = client.createRuleManager("c1", "all");
    assert.deepEqual(await manager.getRules(), [DEFAULT]);
  });
});
