import assert from "node:assert/strict";
import {
  bodies, deadLetters, fails, newClient, noRenewal, numbers, receive, receiveNothing, receiveOne, sendNumbered,
  topic,
} from "../harness.js";

topic("settling", (scenario) => {
  scenario("S20 an abandoned message comes again before the next", async (client) => {
    await sendNumbered(client, "s20", 2);
    const receiver = client.createReceiver("s20");
    const first = await receiveOne(receiver);
    await receiver.abandonMessage(first);
    const [again, next] = await receive(receiver, 2);
    assert.deepEqual(numbers([first, again, next]), [1, 1, 2]);
    assert.deepEqual([first, again, next].map((message) => message.deliveryCount), [0, 1, 0]);
    assert.notEqual(again.lockToken, first.lockToken);
  });

  scenario("S21 an abandon changes the properties named", async (client) => {
    const applicationProperties = { attempt: 0, kept: "kept" };
    await client.createSender("s21").sendMessages({ body: 1, applicationProperties });
    const receiver = client.createReceiver("s21");
    await receiver.abandonMessage(await receiveOne(receiver), { attempt: 1, added: "new" });
    const again = await receiveOne(receiver);
    assert.deepEqual(again.applicationProperties, { attempt: 1, kept: "kept", added: "new" });
    await receiver.abandonMessage(again, { attempt: 2 });
    const properties = (await receiveOne(receiver)).applicationProperties;
    assert.deepEqual(properties, { attempt: 2, kept: "kept", added: "new" });
  });

  scenario("S22 a dead letter carries its reason and description", async (client) => {
    await client.createSender("s22").sendMessages({
      body: "dead", subject: "subject", applicationProperties: { key: "value" },
    });
    const receiver = client.createReceiver("s22");
    await receiver.deadLetterMessage(await receiveOne(receiver), {
      deadLetterReason: "why", deadLetterErrorDescription: "because",
    });
    await receiveNothing(receiver);
    const dead = await receiveOne(deadLetters(client, "s22"));
    assert.deepEqual([dead.deadLetterReason, dead.deadLetterErrorDescription], ["why", "because"]);
    assert.deepEqual([dead.body, dead.subject, dead.applicationProperties.key], ["dead", "subject", "value"]);
  });

  scenario("S23 a message is dead-lettered without a reason, or with properties", async (client) => {
    await sendNumbered(client, "s23", 2);
    const receiver = client.createReceiver("s23");
    const [first, second] = await receive(receiver, 2);
    await receiver.deadLetterMessage(first);
    await receiver.deadLetterMessage(second, {
      deadLetterReason: "why", deadLetterErrorDescription: "because", attempt: 1,
    });
    const dead = await receive(deadLetters(client, "s23"), 2);
    assert.deepEqual(bodies(dead), [0, 1]);
    assert.equal(dead[0].deadLetterReason, undefined);
    assert.equal(dead[1].applicationProperties.attempt, 1);
  });

  scenario("S24 the third failed delivery is the last", async (client) => {
    await sendNumbered(client, "s24", 1);
    const receiver = client.createReceiver("s24");
    for (const count of [0, 1, 2]) {
      const message = await receiveOne(receiver);
      assert.equal(message.deliveryCount, count);
      await receiver.abandonMessage(message);
    }
    await receiveNothing(receiver);
    const dead = await receiveOne(deadLetters(client, "s24"));
    assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
    assert.equal(dead.deadLetterErrorDescription, "Message could not be consumed after 3 delivery attempts.");
  });

  scenario("S25 one delivery is all there is", async (client) => {
    await sendNumbered(client, "s25", 1);
    const receiver = client.createReceiver("s25");
    await receiver.abandonMessage(await receiveOne(receiver));
    assert.equal((await receiveOne(deadLetters(client, "s25"))).deadLetterReason, "MaxDeliveryCountExceeded");
  });

  scenario("S26 a lock that has expired frees the message, and is lost", async (client) => {
    await sendNumbered(client, "s26", 1);
    const receiver = client.createReceiver("s26", noRenewal);
    const first = await receiveOne(receiver);
    const since = Date.now();
    const second = await receiveOne(receiver, 15_000);
    assert.ok(Date.now() - since >= 4_000);
    assert.equal(second.deliveryCount, 1);
    assert.notEqual(second.lockToken, first.lockToken);
    await fails(receiver.completeMessage(first), "MessageLockLost");
    await receiver.completeMessage(second);
    await receiveNothing(receiver);
  });

  scenario("S27 a renewed lock lasts", async (client) => {
    await sendNumbered(client, "s27", 1);
    const receiver = client.createReceiver("s27", noRenewal);
    const message = await receiveOne(receiver);
    let until = message.lockedUntilUtc;
    for (let round = 0; round < 4; round += 1) {
      await receiveNothing(receiver, 2_000);
      const renewed = await receiver.renewMessageLock(message);
      assert.ok(renewed > until);
      assert.ok(Math.abs(renewed - Date.now() - 5_000) < 2_000);
      until = renewed;
    }
    await receiver.completeMessage(message);
    await receiveNothing(receiver);
  });

  scenario("S28 a lock that is gone cannot be renewed", async (client) => {
    await sendNumbered(client, "s28", 2);
    const receiver = client.createReceiver("s28", noRenewal);
    const [completed, expired] = await receive(receiver, 2);
    await receiver.completeMessage(completed);
    await fails(receiver.renewMessageLock(completed), "MessageLockLost");
    await receiveOne(receiver, 15_000);
    await fails(receiver.renewMessageLock(expired), "MessageLockLost");
  });

  scenario("S29 the SDK's own renewal holds a lock", async (client) => {
    await sendNumbered(client, "s29", 1);
    const receiver = client.createReceiver("s29", { maxAutoLockRenewalDurationInMs: 30_000 });
    const message = await receiveOne(receiver);
    await receiveNothing(client.createReceiver("s29"), 8_000);
    await receiver.completeMessage(message);
  });

  scenario("S30 a message is completed on another connection by its lock token", async (client) => {
    await sendNumbered(client, "s30", 1);
    const other = newClient();
    const message = await receiveOne(other.createReceiver("s30", noRenewal));
    await other.close();
    const receiver = client.createReceiver("s30");
    await receiver.completeMessage(message);
    await receiveNothing(receiver);
    assert.deepEqual(await receiver.peekMessages(10), []);
  });

  scenario("S37 messages are completed in reverse order", async (client) => {
    await sendNumbered(client, "s37", 20);
    const receiver = client.createReceiver("s37");
    const messages = await receive(receiver, 20);
    await Promise.all(messages.reverse().map((message) => receiver.completeMessage(message)));
    assert.deepEqual(await receiver.peekMessages(10), []);
  });
});
