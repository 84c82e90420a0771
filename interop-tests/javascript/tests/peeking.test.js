import assert from "node:assert/strict";
import Long from "long";
import {
  bodies, inMilliseconds, noRenewal, numbers, peekAll, range, receive, receiveOne, sendNumbered, topic,
} from "../harness.js";

topic("peeking", (scenario) => {
  scenario("S60 a peek sees every state and changes none", async (client) => {
    await sendNumbered(client, "s60", 3);
    await client.createSender("s60").scheduleMessages({ body: 3 }, inMilliseconds(3_600_000));
    const receiver = client.createReceiver("s60", noRenewal);
    const [, deferred] = await receive(receiver, 2);
    await receiver.deferMessage(deferred);
    const look = async () => {
      const messages = await peekAll(receiver);
      assert.deepEqual(messages.filter((message) => message.lockToken || message.lockedUntilUtc), []);
      return messages.map((message) => [Number(message.sequenceNumber), message.body, message.state]);
    };
    const seen = await look();
    assert.deepEqual(seen, [[1, 0, "active"], [2, 1, "deferred"], [3, 2, "active"], [4, 3, "scheduled"]]);
    assert.deepEqual(await look(), seen);
    const active = await receiveOne(receiver);
    assert.deepEqual([active.body, active.deliveryCount], [2, 0]);
  });

  scenario("S61 a peek goes on where the last one ended", async (client) => {
    await sendNumbered(client, "s61", 10);
    const receiver = client.createReceiver("s61");
    const from4 = await receiver.peekMessages(3, { fromSequenceNumber: Long.fromNumber(4) });
    assert.deepEqual(numbers(from4), [4, 5, 6]);
    const rest = [];
    for (;;) {
      const page = await receiver.peekMessages(2);
      if (page.length === 0) break;
      rest.push(...page);
    }
    assert.deepEqual(numbers(rest), [7, 8, 9, 10]);
    const [{ body, sequenceNumber }] = await receiver.peekMessages(1, { fromSequenceNumber: Long.fromNumber(4), omitMessageBody: true });
    assert.deepEqual([body, Number(sequenceNumber)], [undefined, 4]);
  });

  scenario("S62 a peek into an empty queue finds nothing", async (client) => {
    assert.deepEqual(await client.createReceiver("s62").peekMessages(10), []);
  });

  scenario("S63 600 messages are peeked page by page", async (client) => {
    const sender = client.createSender("s63");
    const filler = "x".repeat(1_000);
    for (const first of [1, 101, 201, 301, 401, 501]) {
      await sender.sendMessages(range(first, first + 99).map((index) => ({ body: `${index}${filler}` })));
    }
    const messages = await peekAll(client.createReceiver("s63"));
    assert.deepEqual(numbers(messages), range(1, 600));
    assert.deepEqual(bodies(messages), range(1, 600).map((index) => `${index}${filler}`));
  });
});
