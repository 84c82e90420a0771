import assert from "node:assert/strict";
import {
  accept, bodies, deadLetters, inMilliseconds, noRenewal, numbers, peekAll, receive, receiveNothing, receiveOne, topic,
} from "../harness.js";

/** Messages with these ids, and bodies 0, 1, 2… */
function withIds(...ids) {
  return ids.map((messageId, body) => ({ messageId, body }));
}

topic("duplicates", (scenario) => {
  scenario("S181 a duplicate is accepted, and takes no number", async (client) => {
    const sender = client.createSender("s181");
    for (const message of withIds("one", "one", "one", "one", "one", "other")) await sender.sendMessages(message);
    const receiver = client.createReceiver("s181");
    const messages = await receive(receiver, 2);
    assert.deepEqual([bodies(messages), numbers(messages)], [[0, 5], [1, 2]]);
    await receiveNothing(receiver);
  });

  scenario("S182 what is forgotten is no duplicate", async (client) => {
    const sender = client.createSender("s182");
    const receiver = client.createReceiver("s182");
    await sender.sendMessages({ messageId: "one", body: 1 });
    await receiver.completeMessage(await receiveOne(receiver));
    await sender.sendMessages({ messageId: "one", body: 2 });
    await receiveNothing(receiver, 22_000);
    await sender.sendMessages({ messageId: "one", body: 3 });
    assert.deepEqual(bodies(await receive(receiver, 1)), [3]);
  });

  scenario("S183 duplicates within a batch", async (client) => {
    const sender = client.createSender("s183");
    const batch = await sender.createMessageBatch();
    for (const message of withIds("1", "2", "1", "3", "3")) assert.ok(batch.tryAddMessage(message));
    await sender.sendMessages(batch);
    const messages = await receive(client.createReceiver("s183"), 3);
    assert.deepEqual([bodies(messages), numbers(messages)], [[0, 1, 3], [1, 2, 3]]);
  });

  scenario("S184 what is completed, deferred or dead is remembered", async (client) => {
    const sender = client.createSender("s184");
    const receiver = client.createReceiver("s184", noRenewal);
    await sender.sendMessages(withIds("completed", "deferred", "dead"));
    const [completed, deferred, dead] = await receive(receiver, 3);
    await receiver.completeMessage(completed);
    await receiver.deferMessage(deferred);
    await receiver.deadLetterMessage(dead);
    for (const message of withIds("completed", "deferred", "dead")) await sender.sendMessages(message);
    await receiveNothing(receiver);
    assert.deepEqual((await receiver.peekMessages(10)).map((each) => each.state), ["deferred"]);
    assert.equal((await deadLetters(client, "s184").peekMessages(10)).length, 1);
  });

  scenario("S185 messages without an id are no duplicates", async (client) => {
    const sender = client.createSender("s185");
    for (const body of [1, 2, 3]) await sender.sendMessages({ body });
    assert.deepEqual(bodies(await receive(client.createReceiver("s185"), 3)), [1, 2, 3]);
  });

  scenario("S186 a scheduled message has its id already", async (client) => {
    const sender = client.createSender("s186");
    await sender.scheduleMessages({ messageId: "one", body: "scheduled" }, inMilliseconds(2_000));
    await sender.sendMessages({ messageId: "one", body: "sent" });
    const receiver = client.createReceiver("s186");
    assert.deepEqual(bodies(await receive(receiver, 1)), ["scheduled"]);
    await receiveNothing(receiver);
  });

  scenario("S187 a topic has one memory for all its subscriptions", async (client) => {
    const sender = client.createSender("s187");
    for (const message of withIds("one", "one")) await sender.sendMessages(message);
    for (const subscription of ["a", "b"]) {
      assert.deepEqual(bodies(await client.createReceiver("s187", subscription).peekMessages(10)), [0]);
    }
  });

  scenario("S189 an id is the queue's, not the session's", async (client) => {
    const sender = client.createSender("s189");
    await sender.sendMessages({ messageId: "one", sessionId: "x", body: 1 });
    await sender.sendMessages({ messageId: "one", sessionId: "y", body: 2 });
    assert.deepEqual(bodies(await (await accept(client, "s189", "x")).peekMessages(10)), [1]);
    assert.deepEqual(bodies(await peekAll(client.createReceiver("s189"))), [1]);
  });
});
