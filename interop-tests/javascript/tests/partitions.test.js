import assert from "node:assert/strict";
import {
  accept, bodies, completeAll, deadLetters, inMilliseconds, noRenewal, peekAll, range, receive, receiveNothing, topic,
} from "../harness.js";

/** The partition of a message is the topmost 16 bits of its number. */
function partition({ sequenceNumber }) {
  return sequenceNumber.shiftRightUnsigned(48).toNumber();
}

/** Its number there. */
function ordinal({ sequenceNumber }) {
  return sequenceNumber.shiftLeft(16).shiftRightUnsigned(16).toNumber();
}

/** Checks that messages are of one partition, and returns it. */
function onePartition(messages) {
  const here = partition(messages[0]);
  assert.ok(here >= 0 && here <= 15);
  for (const message of messages) assert.equal(partition(message), here);
  return here;
}

/** Checks that these are all messages of their partitions: numbered from 1, without a gap, in the order of each key. */
function withoutGaps(messages) {
  const partitions = {};
  for (const message of messages) (partitions[partition(message)] ??= []).push(ordinal(message));
  for (const ordinals of Object.values(partitions)) {
    assert.deepEqual(ordinals.sort((one, another) => one - another), range(1, ordinals.length));
  }
}

/** Groups what `name` gives for each message, in order. */
function grouped(messages, name) {
  const groups = {};
  for (const message of messages) (groups[message[name]] ??= []).push(message);
  return groups;
}

topic("partitions", (scenario) => {
  scenario("S211 a partition key is one partition, in order", async (client) => {
    const sender = client.createSender("s211");
    for (const body of range(1, 10)) await sender.sendMessages({ body, partitionKey: body % 2 ? "k" : "j" });
    const messages = await receive(client.createReceiver("s211"), 10);
    const { k, j } = grouped(messages, "partitionKey");
    assert.deepEqual([bodies(k), bodies(j)], [[1, 3, 5, 7, 9], [2, 4, 6, 8, 10]]);
    onePartition(k);
    onePartition(j);
    withoutGaps(messages);
  });

  scenario("S212 a session is one partition", async (client) => {
    const sender = client.createSender("s212");
    const names = range(1, 5).map((index) => `session-${index}`);
    for (const body of range(0, 14)) await sender.sendMessages({ body, sessionId: names[body % 5] });
    const seen = [];
    const partitions = new Set();
    for (const [first, name] of names.entries()) {
      const receiver = await accept(client, "s212", name);
      const messages = await receive(receiver, 3);
      assert.deepEqual(bodies(messages), [first, first + 5, first + 10]);
      partitions.add(onePartition(messages));
      seen.push(...messages);
    }
    withoutGaps(seen);
    assert.ok(partitions.size > 1);
    // The SDK sees that before the broker does.
    await assert.rejects(sender.sendMessages({ body: 1, sessionId: "x", partitionKey: "y" }));
  });

  scenario("S213 a message is found by its number in whichever partition", async (client) => {
    const sender = client.createSender("s213");
    await sender.sendMessages(range(1, 50).map((body) => ({ body })));
    for (const body of range(51, 100)) await sender.sendMessages({ body });
    const receiver = client.createReceiver("s213", noRenewal);
    const peeked = await peekAll(receiver);
    assert.deepEqual(bodies(peeked).sort((one, another) => one - another), range(1, 100));
    assert.ok(new Set(peeked.map(partition)).size >= 2);
    const one = peeked[60];
    assert.equal((await receiver.peekMessages(1, { fromSequenceNumber: one.sequenceNumber }))[0].body, one.body);

    const messages = await receive(receiver, 100);
    assert.deepEqual(bodies(messages).sort((a, b) => a - b), range(1, 100));
    const [deferred, dead, rest] = [messages.slice(0, 10), messages.slice(10, 20), messages.slice(20)];
    for (const message of deferred) await receiver.deferMessage(message);
    for (const message of dead) await receiver.deadLetterMessage(message);
    await completeAll(receiver, rest);
    const again = await receiver.receiveDeferredMessages(deferred.map((message) => message.sequenceNumber));
    assert.deepEqual(bodies(again).sort(), bodies(deferred).sort());
    await completeAll(receiver, again);
    assert.deepEqual(bodies(await receive(deadLetters(client, "s213"), 10)).sort(), bodies(dead).sort());

    const scheduled = await sender.scheduleMessages(range(1, 10).map((body) => ({ body })), inMilliseconds(3_600_000));
    assert.equal((await peekAll(receiver)).length, 10);
    await sender.cancelScheduledMessages(scheduled);
    assert.deepEqual(await peekAll(receiver), []);
  });

  scenario("S214 a duplicate is one of the same partition key", async (client) => {
    const sender = client.createSender("s214");
    const sent = [["1"], ["1"], ["2", "k"], ["2", "k"], ["2", "j"]];
    for (const [messageId, partitionKey] of sent) {
      await sender.sendMessages({ body: [messageId, partitionKey ?? null], messageId, partitionKey });
    }
    const receiver = client.createReceiver("s214");
    const messages = await receive(receiver, 3);
    assert.deepEqual(bodies(messages).map(String).sort(), ["1,", "2,j", "2,k"]);
    await receiveNothing(receiver);
  });

  scenario("S215 a batch with a partition key is in one partition", async (client) => {
    const sender = client.createSender("s215");
    const batch = await sender.createMessageBatch();
    for (const body of range(1, 10)) assert.ok(batch.tryAddMessage({ body, partitionKey: "k" }));
    await sender.sendMessages(batch);
    const messages = await receive(client.createReceiver("s215"), 10);
    assert.deepEqual(bodies(messages), range(1, 10));
    for (const message of messages) assert.equal(message.partitionKey, "k");
    onePartition(messages);
  });

  scenario("S216 subscriptions of a partitioned topic are partitioned", async (client) => {
    const sender = client.createSender("s216");
    for (const body of range(1, 6)) await sender.sendMessages({ body, partitionKey: body % 2 ? "k" : "j" });
    const messages = await receive(client.createReceiver("s216", "a"), 6);
    const { k, j } = grouped(messages, "partitionKey");
    assert.deepEqual([bodies(k), bodies(j)], [[1, 3, 5], [2, 4, 6]]);
    onePartition(k);
    onePartition(j);
    withoutGaps(messages);
  });
});
