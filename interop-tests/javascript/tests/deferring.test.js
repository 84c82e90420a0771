import assert from "node:assert/strict";
import Long from "long";
import {
  bodies, deadLetters, fails, newClient, noRenewal, numbers, peekAll, receive, receiveNothing, receiveOne,
  sendNumbered, topic,
} from "../harness.js";

/** Sends messages, receives and defers them, and returns their numbers. */
async function defer(client, receiver, queue, count) {
  await sendNumbered(client, queue, count);
  const messages = await receive(receiver, count);
  for (const message of messages) await receiver.deferMessage(message);
  return messages.map((message) => message.sequenceNumber);
}

topic("deferring", (scenario) => {
  scenario("S53 deferred messages are received by their numbers", async (client) => {
    const receiver = client.createReceiver("s53", noRenewal);
    const [first, second, third] = await defer(client, receiver, "s53", 3);
    await receiveNothing(receiver);
    const one = await receiver.receiveDeferredMessages(first);
    const two = await receiver.receiveDeferredMessages([second, third]);
    assert.deepEqual(numbers([...one, ...two]), [1, 2, 3]);
    assert.deepEqual(bodies([...one, ...two]), [0, 1, 2]);
    for (const message of [...one, ...two]) {
      assert.equal(message.state, "deferred");
      assert.ok(message.lockToken);
      assert.ok(message.lockedUntilUtc > Date.now());
      await receiver.completeMessage(message);
    }
    assert.deepEqual(await peekAll(receiver), []);
  });

  scenario("S54 deferred messages are received and deleted", async (client) => {
    const wanted = await defer(client, client.createReceiver("s54", noRenewal), "s54", 2);
    const receiver = client.createReceiver("s54", { receiveMode: "receiveAndDelete" });
    assert.deepEqual(bodies(await receiver.receiveDeferredMessages(wanted)), [0, 1]);
    assert.deepEqual(await peekAll(receiver), []);
    await fails(receiver.receiveDeferredMessages(wanted), "MessageNotFound");
  });

  scenario("S55 deferred messages are received all or not at all", async (client) => {
    const receiver = client.createReceiver("s55", noRenewal);
    const [first, , third] = await defer(client, receiver, "s55", 3);
    const ask = (...wanted) => receiver.receiveDeferredMessages(wanted.map((number) => Long.fromValue(number)));
    await fails(ask(3, 4), "MessageNotFound");
    await fails(ask(5, 6, 7), "MessageNotFound");
    const other = newClient();
    await other.createReceiver("s55", noRenewal).receiveDeferredMessages(first);
    await fails(ask(first), "MessageNotFound");
    assert.deepEqual(numbers(await ask(third)), [3]);
    await other.close();
  });

  scenario("S56 deferred messages are settled by their lock tokens", async (client) => {
    const receiver = client.createReceiver("s56", noRenewal);
    const wanted = await defer(client, receiver, "s56", 3);
    const [abandoned, dead, deferred] = await receiver.receiveDeferredMessages(wanted);
    await receiver.abandonMessage(abandoned);
    await receiver.deadLetterMessage(dead, { deadLetterReason: "why", deadLetterErrorDescription: "because" });
    assert.ok((await receiver.renewMessageLock(deferred)) > Date.now());
    await receiver.deferMessage(deferred);
    await receiveNothing(receiver);
    const again = await receiver.receiveDeferredMessages([wanted[0], wanted[2]]);
    assert.deepEqual(bodies(again), [0, 2]);
    const letter = await receiveOne(deadLetters(client, "s56"));
    assert.deepEqual([letter.body, letter.deadLetterReason], [1, "why"]);
  });

  scenario("S57 a deferred message can be peeked", async (client) => {
    const receiver = client.createReceiver("s57", noRenewal);
    const [number] = await defer(client, receiver, "s57", 1);
    const [message] = await peekAll(receiver);
    assert.ok(message.sequenceNumber.equals(number));
    assert.equal(message.state, "deferred");
  });

  scenario("S58 a deferred message does not expire", async (client) => {
    const receiver = client.createReceiver("s58", noRenewal);
    await client.createSender("s58").sendMessages({ body: "kept", timeToLive: 2_000 });
    const message = await receiveOne(receiver);
    await receiver.deferMessage(message);
    await receiveNothing(deadLetters(client, "s58"), 4_000);
    assert.deepEqual(bodies(await receiver.receiveDeferredMessages(message.sequenceNumber)), ["kept"]);
  });

  scenario("S59 a deferral changes the properties named", async (client) => {
    const receiver = client.createReceiver("s59", noRenewal);
    await client.createSender("s59").sendMessages({ body: 1, applicationProperties: { attempt: 0, kept: true } });
    const message = await receiveOne(receiver);
    await receiver.deferMessage(message, { attempt: 1 });
    const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
    assert.deepEqual(deferred.applicationProperties, { attempt: 1, kept: true });
    await receiver.abandonMessage(deferred, { attempt: 2 });
    const [again] = await receiver.receiveDeferredMessages(message.sequenceNumber);
    assert.equal(again.applicationProperties.attempt, 2);
  });
});
