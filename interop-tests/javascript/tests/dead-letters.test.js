import assert from "node:assert/strict";
import {
  bodies, deadLetters, noRenewal, numbers, peekAll, receive, receiveNothing, receiveOne, sendNumbered, topic,
} from "../harness.js";

async function deadLetter(client, queue, count) {
  await sendNumbered(client, queue, count);
  const receiver = client.createReceiver(queue, noRenewal);
  for (const message of await receive(receiver, count)) await receiver.deadLetterMessage(message);
}

topic("dead letters", (scenario) => {
  scenario("S38 dead letters are peeked, completed, abandoned and deferred", async (client) => {
    await deadLetter(client, "s38", 3);
    const receiver = deadLetters(client, "s38");
    assert.deepEqual(bodies(await peekAll(receiver)), [0, 1, 2]);
    const [completed, abandoned, deferred] = await receive(receiver, 3);
    await receiver.completeMessage(completed);
    await receiver.abandonMessage(abandoned);
    await receiver.deferMessage(deferred);
    const again = await receiveOne(receiver);
    // Of dead letters nothing more is counted.
    assert.deepEqual([again.body, again.deliveryCount], [1, abandoned.deliveryCount]);
    await receiver.completeMessage(again);
    const [back] = await receiver.receiveDeferredMessages(deferred.sequenceNumber);
    assert.equal(back.body, 2);
    await receiver.completeMessage(back);
    assert.deepEqual(await peekAll(receiver), []);
  });

  scenario("S39 nobody sends to a dead-letter queue", async (client) => {
    await assert.rejects(client.createSender("s39/$DeadLetterQueue").sendMessages({ body: 1 }));
    assert.deepEqual(await deadLetters(client, "s39").peekMessages(1), []);
  });

  scenario("S40 a dead letter neither expires nor wears out", async (client) => {
    await deadLetter(client, "s40", 1);
    const queue = client.createReceiver("s40", noRenewal);
    await receiveNothing(queue, 4_000);
    const receiver = deadLetters(client, "s40");
    for (let count = 0; count < 12; count += 1) await receiver.abandonMessage(await receiveOne(receiver));
    assert.deepEqual(numbers(await peekAll(receiver)).length, 1);
  });
});
