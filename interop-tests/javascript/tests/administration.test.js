// An administrator at work: what is changed, counted, deleted and forwarded while messages are there and links are open.

import assert from "node:assert/strict";
import {
  assertNear, bodies, deadLetters, fails, inMilliseconds, noRenewal, numbers, receive, receiveNothing, receiveOne,
  sendNumbered, until, withClient,
} from "../harness.js";
import { collect, ends, securedTopic, keyed, NOT_FOUND, pattern, REFUSED, SOON } from "../clients.js";
import { HOST } from "../secured.js";

/** Sends one message with a property `n`, and closes what it took. */
async function sendN(client, name, body, n) {
  const sender = client.createSender(name);
  await sender.sendMessages({ body, applicationProperties: { n } });
  await sender.close();
}

const COUNTS = ["activeMessageCount", "deadLetterMessageCount", "scheduledMessageCount", "transferMessageCount",
  "transferDeadLetterMessageCount", "totalMessageCount"];

function counts(found) {
  return COUNTS.map((name) => found[name]);
}

securedTopic("administration", (scenario) => {
  scenario("S277 rules are at work at once", async (client, admin) => {
    await admin.createTopic("s277");
    await admin.createSubscription("s277", "a");
    await sendN(client, "s277", "before", 1);
    const small = await admin.createRule("s277", "a", "small",
      { sqlExpression: "n < @limit", sqlParameters: { "@limit": 10 } }, { sqlExpression: "SET size = 'small'" });
    await admin.deleteRule("s277", "a", "$Default");
    await sendN(client, "s277", "small", 1);
    await sendN(client, "s277", "large", 20);
    await admin.updateRule("s277", "a", { ...small, filter: { applicationProperties: { n: 20 } }, action: {} });
    await sendN(client, "s277", "again", 1);
    await sendN(client, "s277", "twenty", 20);
    await admin.deleteRule("s277", "a", "small");
    await sendN(client, "s277", "after", 20);
    const receiver = client.createReceiver("s277", "a");
    const messages = await receive(receiver, 3);
    assert.deepEqual(bodies(messages), ["before", "small", "twenty"]);
    assert.equal(messages[1].applicationProperties.size, "small");
    assert.deepEqual(messages[2].applicationProperties, { n: 20 });
    await receiveNothing(receiver, 100);
  });

  scenario("S278 counts, sizes and times tell what is there", async (client, admin) => {
    await admin.createQueue("s278");
    const fresh = await admin.getQueueRuntimeProperties("s278");
    assertNear(fresh.createdAt, Date.now(), 10_000);
    assertNear(fresh.modifiedAt, Date.now(), 10_000);
    assert.deepEqual([fresh.name, fresh.sizeInBytes, ...counts(fresh)], ["s278", 0, 0, 0, 0, 0, 0, 0]);

    await sendNumbered(client, "s278", 6);
    const sender = client.createSender("s278");
    await sender.sendMessages({ body: pattern(100 * 1024) });
    await sender.scheduleMessages([{ body: 7 }, { body: 8 }], inMilliseconds(3_600_000));
    const receiver = client.createReceiver("s278", noRenewal);
    const [completed, dead, deferred] = await receive(receiver, 4);
    await receiver.completeMessage(completed);
    await receiver.deadLetterMessage(dead);
    await receiver.deferMessage(deferred);
    // One is locked, one deferred, three are free: all count as active.
    const found = await admin.getQueueRuntimeProperties("s278");
    assert.deepEqual(counts(found), [5, 1, 2, 0, 0, 8]);
    assert.ok(found.sizeInBytes > 100 * 1024 && found.sizeInBytes < 110 * 1024, String(found.sizeInBytes));
    assertNear(found.accessedAt, Date.now(), 20_000);

    await admin.updateQueue({ ...await admin.getQueue("s278"), userMetadata: "changed" });
    const after = await admin.getQueueRuntimeProperties("s278");
    assert.ok(after.modifiedAt >= fresh.modifiedAt);
    assert.deepEqual(after.createdAt, fresh.createdAt);
    const listed = (await collect(admin.listQueuesRuntimeProperties())).filter(({ name }) => name === "s278");
    assert.deepEqual(listed.map(counts), [[5, 1, 2, 0, 0, 8]]);
    const pages = [];
    for await (const page of admin.listQueuesRuntimeProperties().byPage({ maxPageSize: 2 })) pages.push(...page);
    assert.ok(pages.some(({ name }) => name === "s278"));
  });

  scenario("S279 counts of topics and of subscriptions", async (client, admin) => {
    await admin.createTopic("s279");
    for (const name of ["a", "b"]) await admin.createSubscription("s279", name);
    await admin.createRule("s279", "b", "sql", { sqlExpression: "n = 1" });
    await admin.createRule("s279", "b", "correlation", { subject: "s" });
    await sendNumbered(client, "s279", 3);
    await client.createSender("s279").scheduleMessages({ body: 4 }, inMilliseconds(3_600_000));
    const receiver = client.createReceiver("s279", "a", noRenewal);
    const [completed, dead] = await receive(receiver, 2);
    await receiver.completeMessage(completed);
    await receiver.deadLetterMessage(dead);

    const topic = await admin.getTopicRuntimeProperties("s279");
    assert.deepEqual([topic.subscriptionCount, topic.scheduledMessageCount], [2, 1]);
    assert.ok(topic.sizeInBytes > 0);
    assertNear(topic.createdAt, Date.now(), 20_000);
    assertNear(topic.accessedAt, Date.now(), 20_000);
    const wanted = [["a", 1, 1, 0, 0, 2], ["b", 3, 0, 0, 0, 3]];
    const told = (each) => [each.subscriptionName, each.activeMessageCount, each.deadLetterMessageCount, each.transferMessageCount,
      each.transferDeadLetterMessageCount, each.totalMessageCount];
    assert.deepEqual((await collect(admin.listSubscriptionsRuntimeProperties("s279"))).map(told), wanted);
    assert.deepEqual(told(await admin.getSubscriptionRuntimeProperties("s279", "a")), wanted[0]);
    const listed = (await collect(admin.listTopicsRuntimeProperties())).filter(({ name }) => name === "s279");
    assert.deepEqual(listed.map((each) => [each.subscriptionCount, each.scheduledMessageCount]), [[2, 1]]);
  });

  scenario("S280 what is deleted is gone, with its messages and its links", async (client, admin) => {
    await admin.createQueue("s280");
    await sendNumbered(client, "s280", 2);
    const seen = { bodies: [], errors: [] };
    const subscription = client.createReceiver("s280").subscribe({
      processMessage: async (message) => { seen.bodies.push(message.body); },
      processError: async ({ error }) => { seen.errors.push(error.code); },
    });
    await until(() => seen.bodies.length === 2);
    await withClient((other) => ends(other, "s280", () => admin.deleteQueue("s280"), "MessagingEntityNotFound"), SOON, keyed());
    await until(() => seen.errors.length > 0);
    await subscription.close();
    assert.equal(seen.errors[0], "MessagingEntityNotFound");
    await fails(admin.getQueue("s280"), NOT_FOUND);

    // One of that name that is made again is another.
    await admin.createQueue("s280");
    await client.createSender("s280").sendMessages({ body: "new" });
    const messages = await receive(client.createReceiver("s280"), 1);
    assert.deepEqual([bodies(messages), numbers(messages)], [["new"], [1]]);

    await admin.createTopic("s280t");
    for (const name of ["a", "b"]) await admin.createSubscription("s280t", name);
    await admin.deleteSubscription("s280t", "a");
    await fails(client.createReceiver("s280t", "a").receiveMessages(1), "MessagingEntityNotFound");
    await receiveNothing(client.createReceiver("s280t", "b"), 100);
    await admin.deleteTopic("s280t");
    await fails(client.createReceiver("s280t", "b").receiveMessages(1), "MessagingEntityNotFound");
    await fails(client.createSender("s280t").sendMessages({ body: 1 }), "MessagingEntityNotFound");
  });

  scenario("S285 changes are at work at once", async (client, admin) => {
    let queue = await admin.createQueue("s285");
    const change = async (properties) => { queue = await admin.updateQueue({ ...queue, ...properties }); };
    await sendNumbered(client, "s285", 2);
    const receiver = client.createReceiver("s285", noRenewal);
    await receiver.abandonMessage(await receiveOne(receiver));
    await change({ maxDeliveryCount: 2 });
    await receiver.abandonMessage(await receiveOne(receiver));
    const letter = await receiveOne(deadLetters(client, "s285"));
    assert.deepEqual([letter.body, letter.deadLetterReason], [0, "MaxDeliveryCountExceeded"]);

    await change({ lockDuration: "PT5S" });
    const message = await receiveOne(receiver);
    assertNear(message.lockedUntilUtc, Date.now() + 5_000, 2_000);
    await receiver.completeMessage(message);

    const sender = client.createSender("s285");
    await change({ status: "ReceiveDisabled" });
    await fails(client.createReceiver("s285").receiveMessages(1), "MessagingEntityDisabled");
    await sender.sendMessages({ body: "kept" });
    const disable = () => change({ status: "Disabled" });
    await withClient((other) => ends(other, "s285", disable, "MessagingEntityDisabled"), SOON, keyed());
    await change({ status: "Active" });
    await client.createSender("s285").sendMessages({ body: "enabled" });
    assert.deepEqual(bodies(await receive(client.createReceiver("s285"), 3)), ["kept", "before", "enabled"]);
  });

  scenario("S286 a queue is made to forward, and not to", async (client, admin) => {
    await fails(admin.createQueue("s286", { forwardTo: "s286-no-such" }), REFUSED);
    for (const name of ["s286b", "s286d"]) await admin.createQueue(name);
    await admin.createQueue("s286", { forwardTo: "s286b", forwardDeadLetteredMessagesTo: "s286d" });
    await admin.createTopic("s286t");
    await admin.createSubscription("s286t", "a", { forwardTo: `sb://${HOST}/s286b`, forwardDeadLetteredMessagesTo: "s286d" });
    for (const found of [await admin.getQueue("s286"), await admin.getSubscription("s286t", "a")]) {
      assert.deepEqual([found.forwardTo, found.forwardDeadLetteredMessagesTo], [`sb://${HOST}/s286b`, `sb://${HOST}/s286d`]);
    }
    await client.createSender("s286").sendMessages({ body: "queue" });
    await client.createSender("s286t").sendMessages({ body: "topic" });
    assert.deepEqual(bodies(await receive(client.createReceiver("s286b"), 2)), ["queue", "topic"]);
    await sendN(client, "s286", "dies", 1);
    await assert.rejects(client.createReceiver("s286").receiveMessages(1, { maxWaitTimeInMs: 100 }), { name: "ServiceBusError" });

    // What it reads it can write: the addresses.
    const queue = await admin.getQueue("s286");
    assert.deepEqual(await admin.updateQueue({ ...queue }), queue);
    // Without a target it keeps what it gets, and its dead letters.
    const { forwardTo, forwardDeadLetteredMessagesTo, ...others } = queue;
    const updated = await admin.updateQueue({ ...others, forwardDeadLetteredMessagesTo });
    assert.deepEqual([updated.forwardTo, updated.forwardDeadLetteredMessagesTo], [undefined, `sb://${HOST}/s286d`]);
    await client.createSender("s286").sendMessages({ body: "dead" });
    const receiver = client.createReceiver("s286", noRenewal);
    await receiver.deadLetterMessage(await receiveOne(receiver), { deadLetterReason: "why" });
    const forwarded = await receiveOne(client.createReceiver("s286d"));
    assert.deepEqual([forwarded.body, forwarded.deadLetterReason], ["dead", "why"]);
    await admin.updateQueue({ ...others });
    await client.createSender("s286").sendMessages({ body: "kept" });
    await receiver.deadLetterMessage(await receiveOne(receiver));
    assert.deepEqual(bodies(await receive(deadLetters(client, "s286"), 1)), ["kept"]);
    assert.equal(forwardTo, `sb://${HOST}/s286b`);
  });
});
