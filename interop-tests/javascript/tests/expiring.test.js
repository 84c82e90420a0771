import assert from "node:assert/strict";
import {
  bodies, deadLetters, noRenewal, receive, receiveNothing, receiveOne, topic,
} from "../harness.js";

topic("expiring", (scenario) => {
  scenario("S41 an expired message is gone", async (client) => {
    const receiver = client.createReceiver("s41", noRenewal);
    await client.createSender("s41").sendMessages([{ body: "short", timeToLive: 1_000 }, { body: "long" }]);
    const dead = deadLetters(client, "s41");
    await receiveNothing(dead, 2_000);
    assert.deepEqual(bodies(await receive(receiver, 1)), ["long"]);
    await receiveNothing(receiver);
    await receiveNothing(dead);
  });

  scenario("S42 an expired message is dead-lettered where the queue says so", async (client) => {
    await client.createSender("s42").sendMessages({ body: 1, timeToLive: 1_000 });
    const dead = await receiveOne(deadLetters(client, "s42"));
    assert.equal(dead.deadLetterReason, "TTLExpiredException");
    assert.equal(dead.deadLetterErrorDescription, "The message expired and was dead lettered.");
  });

  scenario("S43 a queue's time to live bounds the message's", async (client) => {
    const sender = client.createSender("s43");
    const messages = [{ body: 1 }, { body: 2, timeToLive: 3_600_000 }];
    await sender.sendMessages(messages);
    const receiver = client.createReceiver("s43", noRenewal);
    const received = await receive(receiver, 2);
    assert.deepEqual(received.map((message) => message.timeToLive), [2_000, 2_000]);
    for (const message of received) await receiver.completeMessage(message);
    await sender.sendMessages(messages);
    assert.deepEqual(bodies(await receive(deadLetters(client, "s43"), 2)), [1, 2]);
    await receiveNothing(receiver);
  });

  scenario("S44 a locked message is completed after its time", async (client) => {
    await client.createSender("s44").sendMessages({ body: 1, timeToLive: 1_000 });
    const receiver = client.createReceiver("s44", noRenewal);
    const message = await receiveOne(receiver);
    await receiveNothing(receiver, 2_000);
    await receiver.completeMessage(message);
  });
});
