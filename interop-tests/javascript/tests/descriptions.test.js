// What an administrator makes, reads, changes and lists: every property of every kind of entity, and what is refused.

import assert from "node:assert/strict";
import { fails, range, sendTo } from "../harness.js";
import { collect, EXISTS, given, securedTopic, NOT_FOUND, REFUSED, roundTrip, rule } from "../clients.js";
import { LINES } from "../secured.js";

/** The longest duration that the service knows. */
const FOREVER = "P10675199DT2H48M5.4775807S";

const EVERYTHING = { filter: { sqlExpression: "1=1" }, action: {} };

/** A rule without the fields that are not set. Names come as a part of an address, which the SDK does not decode. */
function plain({ name, filter, action }) {
  return { name: decodeURI(name), filter: given(filter), action: given(action) };
}

async function plainRules(admin, topic, subscription) {
  return (await collect(admin.listRules(topic, subscription))).map(plain);
}

/** The pages of a list, as the SDK brings them, each by its names. */
async function pages(list, name, maxPageSize) {
  const found = [];
  for await (const page of list.byPage({ maxPageSize })) found.push(page.map((each) => each[name]));
  return found;
}

securedTopic("descriptions", (scenario) => {
  scenario("S271 a queue has the properties that it was made with", async (client, admin) => {
    const wanted = {
      lockDuration: "PT45S", maxSizeInMegabytes: 2048, requiresDuplicateDetection: true, requiresSession: true,
      defaultMessageTimeToLive: "P1DT2H3M4.5S", deadLetteringOnMessageExpiration: true,
      duplicateDetectionHistoryTimeWindow: "PT7M", maxDeliveryCount: 7, enableBatchedOperations: false, status: "Active",
      autoDeleteOnIdle: "P1D", enablePartitioning: false, userMetadata: "<mine> & \"ü\"", enableExpress: false,
      availabilityStatus: "Available", maxMessageSizeInKilobytes: 512,
      authorizationRules: [rule("speaker", "Send"), rule("all", "Manage", "Send", "Listen")],
    };
    assert.deepEqual(given(await admin.createQueue("s271", wanted)), { name: "s271", ...wanted });
    assert.deepEqual(given(await admin.getQueue("s271")), { name: "s271", ...wanted });

    // What can be changed.
    const changed = {
      ...await admin.getQueue("s271"),
      lockDuration: "PT10S", maxSizeInMegabytes: 1024, defaultMessageTimeToLive: FOREVER, deadLetteringOnMessageExpiration: false,
      duplicateDetectionHistoryTimeWindow: "PT1M", maxDeliveryCount: 3, enableBatchedOperations: true, autoDeleteOnIdle: FOREVER,
      userMetadata: "other", maxMessageSizeInKilobytes: 256, status: "SendDisabled",
      authorizationRules: [rule("listener", "Listen")],
    };
    assert.deepEqual(await admin.updateQueue(changed), changed);
    assert.deepEqual(await admin.getQueue("s271"), changed);
    await fails(sendTo(client, "s271", "x"), "MessagingEntityDisabled");
  });

  scenario("S271 a queue in partitions, and an express one", async (client, admin) => {
    const made = await admin.createQueue("s271b", { enablePartitioning: true, enableExpress: true });
    assert.deepEqual([made.enablePartitioning, made.enableExpress], [true, true]);
    assert.deepEqual(await admin.getQueue("s271b"), made);
    await roundTrip(client, "s271b");
  });

  scenario("S272 a queue without properties has the service's defaults", async (client, admin) => {
    await admin.createQueue("S272");
    const { maxMessageSizeInKilobytes, ...found } = given(await admin.getQueue("s272"));
    // How large a message may be is the broker's to say.
    assert.ok(maxMessageSizeInKilobytes > 0);
    assert.equal(found.name.toLowerCase(), "s272");
    assert.deepEqual({ ...found, name: "" }, {
      name: "", lockDuration: "PT1M", maxSizeInMegabytes: 1024, requiresDuplicateDetection: false, requiresSession: false,
      defaultMessageTimeToLive: FOREVER, deadLetteringOnMessageExpiration: false, duplicateDetectionHistoryTimeWindow: "PT10M",
      maxDeliveryCount: 10, enableBatchedOperations: true, status: "Active", autoDeleteOnIdle: FOREVER, enablePartitioning: false,
      enableExpress: false, availabilityStatus: "Available",
    });
    await roundTrip(client, "s272");
  });

  scenario("S273 a topic has the properties that it was made with", async (client, admin) => {
    const wanted = {
      maxSizeInMegabytes: 2048, requiresDuplicateDetection: true, defaultMessageTimeToLive: "PT1H",
      duplicateDetectionHistoryTimeWindow: "PT30S", enableBatchedOperations: false, status: "Active", autoDeleteOnIdle: "PT5M",
      enablePartitioning: false, supportOrdering: true, userMetadata: "mine", enableExpress: false, availabilityStatus: "Available",
      maxMessageSizeInKilobytes: 512, authorizationRules: [rule("listener", "Listen")],
    };
    assert.deepEqual(given(await admin.createTopic("s273", wanted)), { name: "s273", ...wanted });
    assert.deepEqual(given(await admin.getTopic("s273")), { name: "s273", ...wanted });
    const changed = {
      ...await admin.getTopic("s273"),
      maxSizeInMegabytes: 1024, defaultMessageTimeToLive: "PT2H", duplicateDetectionHistoryTimeWindow: "PT1M",
      enableBatchedOperations: true, autoDeleteOnIdle: FOREVER, userMetadata: "other", status: "Disabled", supportOrdering: false,
      maxMessageSizeInKilobytes: 256, authorizationRules: [rule("speaker", "Send")],
    };
    assert.deepEqual(await admin.updateTopic(changed), changed);
    assert.deepEqual(await admin.getTopic("s273"), changed);
    await fails(client.createSender("s273").sendMessages({ body: 1 }), "MessagingEntityDisabled");

    const bare = given(await admin.createTopic("s273b"));
    delete bare.maxMessageSizeInKilobytes;
    assert.deepEqual(bare, {
      name: "s273b", maxSizeInMegabytes: 1024, requiresDuplicateDetection: false, defaultMessageTimeToLive: FOREVER,
      duplicateDetectionHistoryTimeWindow: "PT10M", enableBatchedOperations: true, status: "Active", autoDeleteOnIdle: FOREVER,
      enablePartitioning: false, supportOrdering: true, enableExpress: false, availabilityStatus: "Available",
    });
  });

  scenario("S274 a subscription has the properties and the rule that it was made with", async (client, admin) => {
    await admin.createTopic("s274");
    const first = { name: "first", filter: { sqlExpression: "n = 1" }, action: { sqlExpression: "SET seen = 'yes'" } };
    const wanted = {
      lockDuration: "PT45S", requiresSession: true, defaultMessageTimeToLive: "PT1H", deadLetteringOnMessageExpiration: true,
      deadLetteringOnFilterEvaluationExceptions: false, maxDeliveryCount: 7, enableBatchedOperations: false, status: "Active",
      autoDeleteOnIdle: "PT5M", userMetadata: "mine", availabilityStatus: "Available",
    };
    const names = { topicName: "s274", subscriptionName: "a" };
    const made = await admin.createSubscription("s274", "a", { ...wanted, defaultRuleOptions: first });
    assert.deepEqual(given(made), { ...names, ...wanted });
    assert.deepEqual(given(await admin.getSubscription("s274", "a")), { ...names, ...wanted });
    assert.deepEqual(await plainRules(admin, "s274", "a"), [first]);

    const changed = {
      ...await admin.getSubscription("s274", "a"),
      lockDuration: "PT10S", maxDeliveryCount: 1, defaultMessageTimeToLive: FOREVER, autoDeleteOnIdle: FOREVER,
      deadLetteringOnMessageExpiration: false, deadLetteringOnFilterEvaluationExceptions: true, enableBatchedOperations: true,
      userMetadata: "other", status: "ReceiveDisabled",
    };
    assert.deepEqual(await admin.updateSubscription(changed), changed);
    assert.deepEqual(await admin.getSubscription("s274", "a"), changed);
    await assert.rejects(client.acceptSession("s274", "a", "x"), { name: "ServiceBusError" });
    assert.deepEqual(await plainRules(admin, "s274", "a"), [first]);

    assert.deepEqual(given(await admin.createSubscription("s274", "plain")), {
      topicName: "s274", subscriptionName: "plain", lockDuration: "PT1M", requiresSession: false, defaultMessageTimeToLive: FOREVER,
      deadLetteringOnMessageExpiration: false, deadLetteringOnFilterEvaluationExceptions: true, maxDeliveryCount: 10,
      enableBatchedOperations: true, status: "Active", autoDeleteOnIdle: FOREVER, availabilityStatus: "Available",
    });
    assert.deepEqual(await plainRules(admin, "s274", "plain"), [{ name: "$Default", ...EVERYTHING }]);
  });

  scenario("S275 entities are listed in pages, each once and in order", async (client, admin) => {
    const names = range(0, 6).map((index) => `s275-${index}`);
    for (const [index, name] of names.entries()) {
      await admin.createQueue(name, { maxDeliveryCount: index + 1 });
      await admin.createTopic(name.replace("s275", "s275t"));
      if (index > 0) await admin.createSubscription("s275t-0", `sub-${index}`);
    }
    // Other scenarios make and delete entities meanwhile: these come, once each and in order, unless a page shifts below them.
    const ours = (found, prefix) => [...new Set(found.flat().filter((name) => name.startsWith(prefix)))];
    for (const size of [undefined, 100, 33, 5]) {
      const found = await pages(admin.listQueues(), "name", size);
      assert.deepEqual(ours(found, "s275-"), names);
      for (const page of found.slice(0, -1)) assert.equal(page.length, size ?? 100);
    }
    const counts = (await collect(admin.listQueues())).filter(({ name }) => name.startsWith("s275-"));
    assert.deepEqual(counts.map((each) => each.maxDeliveryCount), range(1, 7));
    const topics = await pages(admin.listTopics(), "name", 5);
    assert.deepEqual(ours(topics, "s275t-"), names.map((name) => name.replace("s275", "s275t")));
    assert.ok(topics.length > 1);

    // Nothing else touches this topic: its pages are exact.
    const subscriptions = admin.listSubscriptions("s275t-0");
    assert.deepEqual(await pages(subscriptions, "subscriptionName", 4), [
      ["sub-1", "sub-2", "sub-3", "sub-4"], ["sub-5", "sub-6"],
    ]);
    // Full pages to the last.
    assert.deepEqual((await pages(admin.listSubscriptions("s275t-0"), "subscriptionName", 3)).map((page) => page.length), [3, 3]);
    const all = await collect(admin.listSubscriptions("s275t-0"));
    assert.deepEqual(all.map((each) => each.topicName), Array(6).fill("s275t-0"));
    assert.deepEqual(await collect(admin.listSubscriptions("s275t-1")), []);
    // From where another list was left.
    const rest = admin.listSubscriptions("s275t-0").byPage({ maxPageSize: 2, continuationToken: "2" });
    const { value: next } = await rest.next();
    assert.deepEqual(next.map((each) => each.subscriptionName), ["sub-3", "sub-4"]);
  });

  scenario("S276 every filter and action comes back as it was made", async (client, admin) => {
    await admin.createTopic("s276");
    await admin.createSubscription("s276", "a");
    const moment = new Date(Date.UTC(2026, 1, 3, 4, 5, 6, 789));
    const values = { string: "ü", whole: 7, negative: -5, fraction: 0.25, large: 2 ** 40, yes: true, no: false, time: moment };
    const wanted = [
      { name: "true", ...EVERYTHING },
      { name: "false", filter: { sqlExpression: "1=0" }, action: {} },
      { name: "sql", filter: { sqlExpression: "color = 'r<e>d & \"ü\"' AND n <> 1" }, action: {} },
      {
        name: "parameters",
        filter: {
          sqlExpression: "n = @n AND f > @f AND s = @s AND b = @b AND t > @t",
          sqlParameters: { "@n": -5, "@f": 1.5, "@s": "ü", "@b": true, "@t": moment },
        },
        action: {},
      },
      {
        name: "fields",
        filter: {
          contentType: "ct", correlationId: "c", messageId: "m", replyTo: "r", replyToSessionId: "rs", sessionId: "x", subject: "s",
          to: "t",
        },
        action: {},
      },
      { name: "one-property", filter: { applicationProperties: { color: "red" } }, action: {} },
      { name: "properties", filter: { subject: "s", applicationProperties: values }, action: {} },
      { name: "action", ...EVERYTHING, action: { sqlExpression: "SET seen = 'yes'; REMOVE secret" } },
      {
        name: "action-parameters", filter: { sqlExpression: "n = 7" },
        action: { sqlExpression: "SET seen = @seen", sqlParameters: { "@seen": "by parameter" } },
      },
    ];
    for (const { name, filter, action } of wanted) {
      const made = await admin.createRule("s276", "a", name, filter, ...(action.sqlExpression ? [action] : []));
      assert.deepEqual(plain(made), { name, filter, action });
      assert.deepEqual(plain(await admin.getRule("s276", "a", name)), { name, filter, action });
    }
    await admin.deleteRule("s276", "a", "$Default");
    const byName = (one, another) => (one.name < another.name ? -1 : 1);
    assert.deepEqual((await plainRules(admin, "s276", "a")).sort(byName), [...wanted].sort(byName));
    const found = await pages(admin.listRules("s276", "a"), "name", 4);
    assert.deepEqual(found.map((page) => page.length), [4, 4, 1]);
    assert.deepEqual(found.flat().map((name) => decodeURI(name)).sort(), wanted.map(({ name }) => name).sort());

    const other = { name: "sql", filter: { sqlExpression: "1=0" }, action: { sqlExpression: "REMOVE n" } };
    assert.deepEqual(plain(await admin.updateRule("s276", "a", other)), other);
    assert.deepEqual(plain(await admin.getRule("s276", "a", "sql")), other);
    // The name of the default rule is free again.
    await admin.createRule("s276", "a", "$Default", { sqlExpression: "n = 8" });
    assert.deepEqual(plain(await admin.getRule("s276", "a", "$Default")).filter, { sqlExpression: "n = 8" });
    // What the administrator made, the rule manager shows.
    const rules = await client.createRuleManager("s276", "a").getRules();
    assert.deepEqual(rules.map(({ name }) => name).sort(), ["$Default", ...wanted.map(({ name }) => name)].sort());
    assert.deepEqual(given(rules.find(({ name }) => name === "fields").filter), { ...wanted[4].filter, applicationProperties: {} });
  });

  scenario("S276 expressions of several lines are read as they are", async (client, admin) => {
    // The SDK takes ends of lines out of what it sends; these are the file's.
    assert.deepEqual(await plainRules(admin, "s276-lines", "a"), [{
      name: "lines", filter: { sqlExpression: LINES.filter }, action: { sqlExpression: LINES.action },
    }]);
  });

  scenario("S276 a subscription's first rule without a name is the default one", async (client, admin) => {
    await admin.createTopic("s276b");
    await admin.createSubscription("s276b", "a", { defaultRuleOptions: { filter: { sqlExpression: "n = 9" } } });
    assert.deepEqual(await plainRules(admin, "s276b", "a"), [
      { name: "$Default", filter: { sqlExpression: "n = 9" }, action: {} },
    ]);
  });

  scenario("S281 what is not there is not found", async (client, admin) => {
    await admin.createTopic("s281");
    await admin.createSubscription("s281", "a");
    const queue = await admin.createQueue("s281q");
    const topic = await admin.getTopic("s281");
    const subscription = await admin.getSubscription("s281", "a");
    const defaultRule = await admin.getRule("s281", "a", "$Default");
    for (const [what, ask] of Object.entries({
      "get queue": () => admin.getQueue("s281-no-such"),
      "counts of queue": () => admin.getQueueRuntimeProperties("s281-no-such"),
      "get topic": () => admin.getTopic("s281-no-such"),
      "counts of topic": () => admin.getTopicRuntimeProperties("s281-no-such"),
      "get subscription": () => admin.getSubscription("s281", "no-such"),
      "counts of subscription": () => admin.getSubscriptionRuntimeProperties("s281", "no-such"),
      "get subscription of no topic": () => admin.getSubscription("s281-no-such", "a"),
      "get rule": () => admin.getRule("s281", "a", "no-such"),
      "get rule of no subscription": () => admin.getRule("s281", "no-such", "$Default"),
      "update queue": () => admin.updateQueue({ ...queue, name: "s281-no-such" }),
      "update topic": () => admin.updateTopic({ ...topic, name: "s281-no-such" }),
      "update subscription": () => admin.updateSubscription({ ...subscription, subscriptionName: "no-such" }),
      "update rule": () => admin.updateRule("s281", "a", { ...defaultRule, name: "no-such" }),
      "delete queue": () => admin.deleteQueue("s281-no-such"),
      "delete topic": () => admin.deleteTopic("s281-no-such"),
      "delete subscription": () => admin.deleteSubscription("s281", "no-such"),
      "delete rule": () => admin.deleteRule("s281", "a", "no-such"),
      "create subscription": () => admin.createSubscription("s281-no-such", "a"),
      "create rule": () => admin.createRule("s281", "no-such", "r", { sqlExpression: "1=1" }),
      "list subscriptions": () => admin.listSubscriptions("s281-no-such").next(),
      "list rules": () => admin.listRules("s281", "no-such").next(),
    })) {
      await fails(ask(), NOT_FOUND).catch((error) => { throw new Error(what, { cause: error }); });
    }
    assert.deepEqual([
      await admin.queueExists("s281-no-such"), await admin.topicExists("s281-no-such"),
      await admin.subscriptionExists("s281", "no-such"), await admin.ruleExists("s281", "a", "no-such"),
    ], [false, false, false, false]);
    assert.deepEqual([
      await admin.queueExists("s281q"), await admin.topicExists("s281"), await admin.subscriptionExists("s281", "a"),
      await admin.ruleExists("s281", "a", "$Default"),
    ], [true, true, true, true]);
  });

  scenario("S282 what is there cannot be made again", async (client, admin) => {
    await admin.createQueue("s282", { maxDeliveryCount: 7 });
    await admin.createTopic("s282t");
    await admin.createSubscription("s282t", "a");
    await admin.createRule("s282t", "a", "r", { sqlExpression: "1=0" });
    for (const ask of [
      () => admin.createQueue("s282"), () => admin.createQueue("S282T"), () => admin.createTopic("s282"),
      () => admin.createSubscription("s282t", "A"), () => admin.createRule("s282t", "a", "r", { sqlExpression: "1=1" }),
    ]) {
      await fails(ask(), EXISTS);
    }
    assert.equal((await admin.getQueue("s282")).maxDeliveryCount, 7);
    assert.equal((await admin.getRule("s282t", "a", "r")).filter.sqlExpression, "1=0");
  });

  scenario("S283 values beyond their bounds are refused, by the name of the element", async (client, admin) => {
    for (const [element, wrong] of Object.entries({
      LockDuration: { lockDuration: "PT10M" },
      DefaultMessageTimeToLive: { defaultMessageTimeToLive: "never" },
      MaxDeliveryCount: { maxDeliveryCount: 0 },
      MaxSizeInMegabytes: { maxSizeInMegabytes: -1 },
      DuplicateDetectionHistoryTimeWindow: { duplicateDetectionHistoryTimeWindow: "P8D" },
      AutoDeleteOnIdle: { autoDeleteOnIdle: "PT1M" },
      Status: { status: "Asleep" },
      UserMetadata: { userMetadata: "x".repeat(1025) },
    })) {
      await fails(admin.createQueue("s283-wrong", wrong), REFUSED, /SubCode=40000/);
      await fails(admin.createQueue("s283-wrong", wrong), REFUSED, new RegExp(element));
    }
    await fails(admin.createQueue("s283-wrong", { forwardTo: "s283-wrong" }), REFUSED);
    await fails(admin.createQueue("s283-wrong", { authorizationRules: range(1, 13).map((n) => rule(`r${n}`, "Send")) }), REFUSED);
    await fails(admin.createQueue(`s283/${"x".repeat(260)}`), REFUSED);
    assert.equal(await admin.queueExists("s283-wrong"), false);
  });

  scenario("S283 what cannot be changed, and expressions that are none, change nothing", async (client, admin) => {
    const before = await admin.createQueue("s283");
    for (const change of [
      { requiresSession: true }, { requiresDuplicateDetection: true }, { enablePartitioning: true }, { lockDuration: "PT0.5S" },
    ]) {
      await fails(admin.updateQueue({ ...before, maxDeliveryCount: 3, ...change }), REFUSED);
    }
    assert.deepEqual(await admin.getQueue("s283"), before);

    await admin.createTopic("s283t");
    await admin.createSubscription("s283t", "a");
    for (const [filter, action] of [
      [{ sqlExpression: "SELECT * FROM" }], [{ sqlExpression: "" }], [{ correlationId: undefined }],
      [{ sqlExpression: "1=1" }, { sqlExpression: "JUMP" }],
    ]) {
      await fails(admin.createRule("s283t", "a", "bad", filter, ...(action ? [action] : [])), REFUSED);
    }
    assert.deepEqual(await plainRules(admin, "s283t", "a"), [{ name: "$Default", ...EVERYTHING }]);
  });

  scenario("S284 the namespace tells of itself", async (client, admin) => {
    const found = await admin.getNamespaceProperties();
    assert.equal(found.name, "secured");
    assert.ok(["Standard", "Premium"].includes(found.messagingSku), found.messagingSku);
    assert.ok(found.createdAt <= new Date() && found.modifiedAt >= found.createdAt);
    assert.equal(found.messagingUnits === undefined, found.messagingSku === "Standard");
  });

  scenario("S289 names may have slashes and other signs", async (client, admin) => {
    for (const name of ["s289/orders/new", "s289.a-b_c", "s289~ü"]) {
      await admin.createQueue(name);
      assert.equal(decodeURI((await admin.getQueue(name)).name), name);
      await roundTrip(client, name, [1]);
      await admin.deleteQueue(name);
      assert.equal(await admin.queueExists(name), false);
    }
  });
});
