import assert from "node:assert/strict";
import {
  accept, at, bodies, deadLetters, fails, noRenewal, numbers, peekAll, range, receive, receiveOne, topic,
} from "../harness.js";

/** What a subscription without rules in the file is born with. */
const DEFAULT = { name: "$Default", filter: { sqlExpression: "1=1" }, action: {} };

/** The messages of S162, and which subscriptions get each (scenarios.md). */
const TABLE = [
  [{ subject: "subject", messageId: "m-1" }, { color: "red", size: 1 }, "eq in like exists or math sys user keyword"],
  [{ subject: "other", messageId: "m-2" }, { color: "red", size: 5 }, "eq between in like exists paren user"],
  [{ subject: "subject", messageId: "x-3" }, { color: "green", size: 10 }, "ne between in exists paren"],
  [{ messageId: "m-4" }, { color: "blue", size: 11, urgent: true }, "ne gt notin exists or paren bool"],
  [{ messageId: "m-5" }, { size: 1, urgent: false }, "isnull exists or math"],
  [{ messageId: "m-6" }, { color: "Red", note: "50% off" }, "ne notin escape paren"],
  [{ messageId: "m-7" }, { note: "500", "strange name": 1 }, "isnull quoted"],
  [{ messageId: "m-8" }, { color: "rust", size: "20" }, "ne notin like exists paren"],
];

const SUBSCRIPTIONS =
  "eq ne gt between in notin like escape isnull exists or paren math bool quoted sys user keyword".split(" ");

/** What a subscription has, without touching it. A publish is whole when it is acknowledged: there is nothing to wait for. */
async function held(client, name, subscription) {
  return peekAll(client.createReceiver(name, subscription, noRenewal));
}

/** A filter as the SDK shows it, without the fields that are not set. */
function given(filter) {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined && value !== null));
}

function byName(rules) {
  return Object.fromEntries(rules.map(({ name, filter, action }) => [name, [given(filter), action]]));
}

topic("rules", (scenario) => {
  scenario("S161 a rule takes all, or none, and no rule in the file takes all", async (client) => {
    await client.createSender("s161").sendMessages([{ body: 1 }, { body: 2 }]);
    for (const [subscription, wanted] of [["all", [1, 2]], ["every", [1, 2]], ["none", []]]) {
      assert.deepEqual(bodies(await held(client, "s161", subscription)), wanted, subscription);
    }
  });

  scenario("S162 SQL filters take what they say", async (client) => {
    const messages = TABLE.map(([fields, applicationProperties], index) => ({ ...fields, applicationProperties, body: index + 1 }));
    await client.createSender("s162").sendMessages(messages);
    for (const subscription of SUBSCRIPTIONS) {
      const wanted = range(1, 8).filter((number) => TABLE[number - 1][2].split(" ").includes(subscription));
      assert.deepEqual(bodies(await held(client, "s162", subscription)), wanted, subscription);
    }
  });

  scenario("S163 correlation filters compare with case and type", async (client) => {
    const matching = {
      correlationId: "c1", subject: "s1", messageId: "m1", to: "t1", replyTo: "r1", replyToSessionId: "rs1", sessionId: "x1",
      contentType: "text/plain", applicationProperties: { color: "red", size: 1 },
    };
    const other = Object.fromEntries(Object.keys(matching).map((key) => [key, "other"]));
    await client.createSender("s163").sendMessages([
      { ...matching, body: 1 },
      { ...other, applicationProperties: { color: "blue", size: 2 }, body: 2 },
      { body: 3 },
      { subject: "S1", applicationProperties: { color: "red", size: "1" }, body: 4 },
    ]);
    for (const subscription of ["id", "label", "mid", "to", "reply", "rsid", "sid", "type", "prop", "both"]) {
      const wanted = subscription === "prop" ? [1, 4] : [1];
      assert.deepEqual(bodies(await held(client, "s163", subscription)), wanted, subscription);
    }
  });

  scenario("S164 an action changes the copy, and no other", async (client) => {
    const applicationProperties = { n: 1, secret: "x" };
    await client.createSender("s164").sendMessages({ body: 1, subject: "s", applicationProperties });
    const [changed] = await held(client, "s164", "act");
    assert.equal(changed.subject, "changed");
    assert.deepEqual(changed.applicationProperties, { n: 2, urgent: "yes", RuleName: "change" });
    const [plain] = await held(client, "s164", "plain");
    assert.deepEqual([plain.subject, plain.applicationProperties], ["s", applicationProperties]);
  });

  scenario("S165 rules without actions make one copy, and each with an action one more", async (client) => {
    const messages = [1, 2].map((n) => ({ body: n, applicationProperties: { n } }));
    for (const message of messages) await client.createSender("s165").sendMessages(message);
    const copies = await held(client, "s165", "five");
    const properties = copies.filter(({ body }) => body === 1).map((each) => each.applicationProperties);
    properties.sort((one, another) => (one.source ?? "").localeCompare(another.source ?? ""));
    assert.deepEqual(properties, [{ n: 1 }, { n: 1, source: "r4", RuleName: "r4" }, { n: 1, source: "r5", RuleName: "r5" }]);
    assert.deepEqual([bodies(copies), numbers(copies)], [[1, 1, 1, 2], [1, 2, 3, 4]]);
    assert.deepEqual(copies.map((each) => each.enqueuedSequenceNumber), [1, 1, 1, 2]);
    assert.deepEqual(copies[3].applicationProperties, { n: 2 });
  });

  scenario("S166 of a batch, those that match", async (client) => {
    const values = [{ n: 1 }, { n: 2 }, { n: 1 }, undefined];
    const sender = client.createSender("s166");
    const batch = await sender.createMessageBatch();
    values.forEach((applicationProperties, body) => assert.ok(batch.tryAddMessage({ body, applicationProperties })));
    await sender.sendMessages(batch);
    const messages = await receive(client.createReceiver("s166", "some"), 2);
    assert.deepEqual([bodies(messages), numbers(messages)], [[0, 2], [1, 2]]);
  });

  scenario("S167 an error of a filter makes a dead letter where that is wanted", async (client) => {
    const values = [{ n: 2 }, { n: 0 }, undefined];
    await client.createSender("s167").sendMessages(values.map((applicationProperties, body) => ({ body, applicationProperties })));
    for (const subscription of ["strict", "lax"]) assert.deepEqual(bodies(await held(client, "s167", subscription)), [0], subscription);
    const letter = await receiveOne(deadLetters(client, at("s167", "strict")));
    assert.equal(letter.body, 1);
    assert.ok(letter.deadLetterReason && letter.deadLetterErrorDescription);
    for (const subscription of ["strict", "lax"]) {
      const rest = await peekAll(deadLetters(client, at("s167", subscription)));
      assert.deepEqual(bodies(rest), subscription === "strict" ? [1] : []);
    }
  });

  scenario("S168 rules are listed, added and removed", async (client) => {
    const manager = client.createRuleManager("s168", "a");
    assert.deepEqual(await manager.getRules(), [DEFAULT]);
    await manager.createRule("small", { sqlExpression: "n < 10" }, { sqlExpression: "SET size = 'small'" });
    await manager.createRule("red", { applicationProperties: { color: "red" } });
    await manager.deleteRule("$Default");
    assert.deepEqual(byName(await manager.getRules()), {
      small: [{ sqlExpression: "n < 10" }, { sqlExpression: "SET size = 'small'" }],
      red: [{ applicationProperties: { color: "red" } }, {}],
    });
    const values = [{ n: 1 }, { n: 20 }, { n: 20, color: "red" }];
    await client.createSender("s168").sendMessages(values.map((applicationProperties, body) => ({ body, applicationProperties })));
    const messages = await held(client, "s168", "a");
    assert.deepEqual(messages.map((each) => [each.body, each.applicationProperties.size]), [[0, "small"], [2, undefined]]);
  });

  scenario("S171 every field of a correlation filter, and every type of property, comes back and is compared", async (client) => {
    const manager = client.createRuleManager("s171", "a");
    const filter = {
      correlationId: "c", messageId: "m", to: "t", replyTo: "r", subject: "s", sessionId: "i", replyToSessionId: "rs", contentType: "ct",
      applicationProperties: {
        string: "ü", zero: 0, positive: 5, negative: -5, fraction: 1.5, large: 2 ** 40, yes: true, no: false,
        time: new Date(1_700_000_000_123),
      },
    };
    await manager.createRule("full", filter);
    await manager.deleteRule("$Default");
    const [rule] = await manager.getRules();
    assert.deepEqual([rule.name, rule.filter, rule.action], ["full", filter, {}]);

    const { applicationProperties, ...fields } = filter;
    const message = { ...fields, applicationProperties, body: "other" };
    const others = [
      ...Object.keys(fields).map((key) => ({ ...message, [key]: "other" })),
      ...Object.keys(applicationProperties).map((key) => (
        { ...message, applicationProperties: { ...applicationProperties, [key]: "x" } }
      )),
    ];
    await client.createSender("s171").sendMessages([...others, { ...message, body: "match" }]);
    assert.deepEqual(bodies(await held(client, "s171", "a")), ["match"]);
  });

  scenario("S169 what is there, what is not, and what is no rule, is refused; many are listed in pages", async (client) => {
    const manager = client.createRuleManager("s169", "a");
    await manager.createRule("twice", { sqlExpression: "1=1" });
    await fails(manager.createRule("twice", { sqlExpression: "1=0" }), "MessagingEntityAlreadyExists");
    await fails(manager.deleteRule("no-such"), "MessagingEntityNotFound");
    await assert.rejects(manager.createRule("bad", { sqlExpression: "SELECT * FROM" }), { name: "ServiceBusError" });
    await assert.rejects(manager.createRule("bad2", { sqlExpression: "1=1" }, { sqlExpression: "JUMP" }), { name: "ServiceBusError" });
    assert.deepEqual((await manager.getRules()).map((rule) => rule.name).sort(), ["$Default", "twice"]);
    for (let n = 0; n < 120; n += 1) await manager.createRule(`rule-${n}`, { sqlExpression: `n = ${n}` });
    const pages = [];
    for await (const page of manager.listRules().byPage({ maxPageSize: 50 })) pages.push(page.map((rule) => rule.name));
    assert.deepEqual(pages.map((page) => page.length), [50, 50, 22]);
    assert.equal(new Set(pages.flat()).size, 122);
  });

  scenario("S172 an action moves a message to another session", async (client) => {
    await client.createSender("s172").sendMessages({ body: 1, sessionId: "x" });
    const receiver = await accept(client, at("s172", "s"), "moved");
    const message = await receiveOne(receiver);
    assert.deepEqual([message.body, message.sessionId], [1, "moved"]);
  });
});
