import assert from "node:assert/strict";
import {
  accept, acceptNext, at, bodies, completeAll, fails, inMilliseconds, noRenewal, numbers, peekAll, range, receive,
  receiveNothing, receiveOne, sendNumbered, sendTo, topic, until,
} from "../harness.js";

function receiver(client, name, subscription, options) {
  return client.createReceiver(name, subscription, { ...noRenewal, ...options });
}

topic("topics", (scenario) => {
  scenario("S141 every subscription has its own copy, with its own number and the topic's", async (client) => {
    await client.createSender("s141").sendMessages(
      range(1, 5).map((n) => ({ body: `body ${n}`, applicationProperties: { n }, subject: "subject" })),
    );
    for (const [subscription, wanted] of [["a", range(1, 5)], ["b", range(1, 5)], ["odd", [1, 3, 5]]]) {
      const messages = await receive(receiver(client, "s141", subscription), wanted.length);
      assert.deepEqual(bodies(messages), wanted.map((n) => `body ${n}`));
      assert.deepEqual(numbers(messages), range(1, wanted.length));
      assert.deepEqual(messages.map((message) => message.enqueuedSequenceNumber), wanted);
      for (const [index, message] of messages.entries()) {
        assert.deepEqual([message.subject, message.applicationProperties], ["subject", { n: wanted[index] }]);
      }
    }
    await receiveNothing(receiver(client, "s141", "odd"));
  });

  scenario("S142 a topic without subscriptions takes what it gets", async (client) => {
    const sender = client.createSender("s142");
    await sender.sendMessages({ body: 1 });
    await sender.sendMessages([{ body: 2 }, { body: 3 }]);
  });

  scenario("S143 what happens at one subscription does not at another", async (client) => {
    await sendNumbered(client, "s143", 3);
    const [a, b] = [receiver(client, "s143", "a"), receiver(client, "s143", "b")];
    const [completed, deferred, abandoned] = await receive(a, 3);
    await a.completeMessage(completed);
    await a.deferMessage(deferred);
    await a.abandonMessage(abandoned);
    const others = await receive(b, 3);
    assert.deepEqual([bodies(others), others.map((each) => each.deliveryCount)], [[0, 1, 2], [0, 0, 0]]);
    const [again] = await receive(a, 1);
    assert.deepEqual([again.body, again.deliveryCount], [2, 1]);
    assert.deepEqual(bodies(await a.receiveDeferredMessages(deferred.sequenceNumber)), [1]);
    const tokens = [completed, deferred, abandoned, ...others].map((each) => each.lockToken);
    assert.equal(new Set(tokens).size, 6);
    await fails(b.receiveDeferredMessages(deferred.sequenceNumber), "MessageNotFound");
  });

  scenario("S144 a subscription has a dead-letter queue of its own", async (client) => {
    await sendNumbered(client, "s144", 1);
    const a = receiver(client, "s144", "a");
    await a.deadLetterMessage(await receiveOne(a), { deadLetterReason: "why", deadLetterErrorDescription: "because" });
    const letter = await receiveOne(receiver(client, "s144", "a", { subQueueType: "deadLetter" }));
    assert.deepEqual([letter.body, letter.deadLetterReason, letter.deadLetterErrorDescription], [0, "why", "because"]);
    assert.deepEqual(bodies(await receive(receiver(client, "s144", "b"), 1)), [0]);
    await receiveNothing(receiver(client, "s144", "b", { subQueueType: "deadLetter" }));
  });

  scenario("S145 a subscription may have sessions", async (client) => {
    await sendTo(client, "s145", "x", "y", "x");
    const all = await receive(receiver(client, "s145", "plain"), 3);
    assert.deepEqual(all.map((each) => each.sessionId), ["x", "y", "x"]);
    const x = await client.acceptSession("s145", "s", "x", noRenewal);
    assert.deepEqual(bodies(await receive(x, 2)), [0, 2]);
    await x.setSessionState({ step: 1 });
    assert.ok((await x.renewSessionLock()) > Date.now());
    const next = await client.acceptNextSession("s145", "s", noRenewal);
    assert.deepEqual([next.sessionId, bodies(await receive(next, 1))], ["y", [1]]);
    await x.close();
    const again = await client.acceptSession("s145", "s", "x", noRenewal);
    assert.deepEqual(await again.getSessionState(), { step: 1 });
    assert.deepEqual((await receive(again, 2)).map((each) => each.deliveryCount), [0, 0]);
  });

  scenario("S146 a message without a session is a dead letter where sessions are required", async (client) => {
    await sendNumbered(client, "s146", 1);
    assert.deepEqual(bodies(await receive(receiver(client, "s146", "plain"), 1)), [0]);
    const letter = await receiveOne(receiver(client, "s146", "s", { subQueueType: "deadLetter" }));
    assert.deepEqual([letter.body, letter.deadLetterReason], [0, "Session ID is null."]);
  });

  scenario("S147 messages scheduled on a topic come to its subscriptions when they are due", async (client) => {
    const sender = client.createSender("s147");
    const due = inMilliseconds(12_000);
    await sender.scheduleMessages({ body: "scheduled" }, due);
    await sender.sendMessages({ body: "sent", scheduledEnqueueTimeUtc: due });
    for (const subscription of ["a", "b"]) assert.deepEqual(await receiver(client, "s147", subscription).peekMessages(10), []);
    for (const subscription of ["a", "b"]) {
      const messages = await receive(receiver(client, "s147", subscription), 2);
      assert.deepEqual(bodies(messages).sort(), ["scheduled", "sent"]);
      for (const message of messages) {
        assert.ok(message.enqueuedTimeUtc >= due);
        assert.deepEqual(message.scheduledEnqueueTimeUtc, due);
      }
      await receiveNothing(receiver(client, "s147", subscription));
    }
  });

  scenario("S148 messages scheduled on a topic are cancelled", async (client) => {
    const sender = client.createSender("s148");
    const wanted = await sender.scheduleMessages([{ body: 1 }, { body: 2 }, { body: 3 }], inMilliseconds(10_000));
    await sender.cancelScheduledMessages(wanted[0]);
    await sender.cancelScheduledMessages(wanted.slice(1));
    await fails(sender.cancelScheduledMessages(wanted[0]), "MessageNotFound");
    await receiveNothing(receiver(client, "s148", "a"), 12_000);
  });

  scenario("S149 nothing is sent to a subscription, or received from a topic", async (client) => {
    await fails(client.createSender(at("s149", "a")).sendMessages({ body: 1 }), "GeneralError", /InvalidOperation/);
    await fails(client.createReceiver("s149").receiveMessages(1, { maxWaitTimeInMs: 1_000 }), "GeneralError", /InvalidOperation/);
    await receiveNothing(receiver(client, "s149", "a"));
  });

  scenario("S150 an unknown subscription is not found", async (client) => {
    const wanted = /The messaging entity .* could not be found/;
    for (const name of ["s150", "no-such"]) {
      const receiving = receiver(client, name, "no-such").receiveMessages(1, { maxWaitTimeInMs: 1_000 });
      await fails(receiving, "MessagingEntityNotFound", wanted);
    }
  });

  scenario("S151 names of topics and subscriptions do not depend on case", async (client) => {
    await client.createSender("S151").sendMessages({ body: 1 });
    assert.deepEqual(bodies(await receive(receiver(client, "s151", "mixed"), 1)), [1]);
  });

  scenario("S152 locks of a subscription expire and are renewed as its own properties say", async (client) => {
    await sendNumbered(client, "s152", 1);
    const a = receiver(client, "s152", "a");
    const message = await receiveOne(a);
    await receiveNothing(a, 3_000);
    assert.ok((await a.renewMessageLock(message)) > message.lockedUntilUtc - 1);
    const since = Date.now();
    const again = await receiveOne(a);
    assert.ok(Date.now() - since >= 4_000);
    assert.equal(again.deliveryCount, 1);
    const letter = await receiveOne(receiver(client, "s152", "a", { subQueueType: "deadLetter" }));
    assert.equal(letter.deadLetterReason, "MaxDeliveryCountExceeded");
    assert.deepEqual((await receive(receiver(client, "s152", "b"), 1)).map((each) => each.deliveryCount), [0]);
  });

  scenario("S153 a message lives as long as topic and subscription allow", async (client) => {
    await client.createSender("s153").sendMessages({ body: 1 });
    const since = Date.now();
    const dead = async (subscription) => {
      const letter = await receiveOne(receiver(client, "s153", subscription, { subQueueType: "deadLetter" }));
      assert.equal(letter.deadLetterReason, "TTLExpiredException");
      return Date.now() - since;
    };
    const after = { short: await dead("short") };
    assert.deepEqual(bodies(await receiver(client, "s153", "keep").peekMessages(10)), [1]);
    after.keep = await dead("keep");
    assert.ok(after.short < 3_000 && after.keep >= 2_500, JSON.stringify(after));
    for (const options of [{}, { subQueueType: "deadLetter" }]) await receiveNothing(receiver(client, "s153", "drop", options));
  });

  scenario("S154 a batch and a large message are copied byte for byte", async (client) => {
    const sender = client.createSender("s154");
    await sender.sendMessages(range(1, 100).map((body) => ({ body })));
    const large = Buffer.alloc(200 * 1024, "jitney");
    await sender.sendMessages({ body: large });
    for (const subscription of ["a", "b", "c"]) {
      const copies = receiver(client, "s154", subscription);
      const messages = await receive(copies, 101);
      assert.deepEqual(bodies(messages.slice(0, 100)), range(1, 100));
      assert.ok(large.equals(messages[100].body));
      await completeAll(copies, messages);
      assert.deepEqual(await copies.peekMessages(1), []);
    }
  });

  scenario("S155 what is disabled is refused", async (client) => {
    await fails(client.createSender("s155").sendMessages({ body: 1 }), "MessagingEntityDisabled");
    await receiveNothing(receiver(client, "s155", "a"));
    await client.createSender("s155b").sendMessages({ body: 1 });
    assert.deepEqual(bodies(await receive(receiver(client, "s155b", "on"), 1)), [1]);
    const off = receiver(client, "s155b", "off").receiveMessages(1, { maxWaitTimeInMs: 1_000 });
    await fails(off, "MessagingEntityDisabled");
  });

  scenario("S156 a topic that is full takes more when its subscriptions have been emptied", async (client) => {
    const sender = client.createSender("s156");
    const content = Buffer.alloc(100 * 1024);
    let sent = 0;
    await assert.rejects(async () => {
      for (; sent < 30; sent += 1) await sender.sendMessages({ body: content });
    }, { code: "QuotaExceeded" });
    assert.ok(sent > 0);
    for (const subscription of ["a", "b"]) {
      const copies = receiver(client, "s156", subscription);
      await completeAll(copies, await receive(copies, sent));
    }
    await until(async () => {
      try {
        await sender.sendMessages({ body: content });
        return true;
      } catch (error) {
        assert.equal(error.code, "QuotaExceeded");
        return false;
      }
    }, 5_000);
  });

  scenario("S157 subscriptions are peeked like queues", async (client) => {
    await sendTo(client, "s157", "x", "y", "x");
    const a = receiver(client, "s157", "a");
    const [deferred] = await receive(a, 2);
    await a.deferMessage(deferred);
    const peeked = await peekAll(a);
    assert.deepEqual(peeked.map((each) => [each.body, each.state]), [[0, "deferred"], [1, "active"], [2, "active"]]);
    const session = await accept(client, at("s157", "s"), "x");
    assert.deepEqual(bodies(await session.peekMessages(10)), [0, 2]);
    assert.equal((await acceptNext(client, at("s157", "s"))).sessionId, "y");
  });
});
