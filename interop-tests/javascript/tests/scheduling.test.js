import assert from "node:assert/strict";
import Long from "long";
import {
  bodies, fails, inMilliseconds, noRenewal, numbers, peekAll, range, receive, receiveNothing, receiveOne, topic,
} from "../harness.js";

const LATER = 60 * 60 * 1_000;

topic("scheduling", (scenario) => {
  scenario("S45 a scheduled message arrives at its time with a new number", async (client) => {
    const due = inMilliseconds(12_000);
    const scheduled = await client.createSender("s45").scheduleMessages({ body: "later" }, due);
    assert.deepEqual(scheduled.map(Number), [1]);
    const receiver = client.createReceiver("s45", noRenewal);
    await receiveNothing(receiver, 2_000);
    const message = await receiveOne(receiver);
    assert.ok(Date.now() >= due && Date.now() <= due.getTime() + 15_000);
    assert.deepEqual(numbers([message]), [2]);
    assert.ok(message.enqueuedTimeUtc >= due);
    assert.equal(Number(message.scheduledEnqueueTimeUtc), Number(due));
  });

  scenario("S46 ten scheduled together keep their order", async (client) => {
    const messages = range(1, 10).map((body) => ({ body }));
    const scheduled = await client.createSender("s46").scheduleMessages(messages, inMilliseconds(1_500));
    assert.deepEqual(scheduled.map(Number), range(1, 10));
    const received = await receive(client.createReceiver("s46"), 10);
    assert.deepEqual(bodies(received), range(1, 10));
    assert.deepEqual(numbers(received), range(11, 20));
  });

  scenario("S47 a scheduled time on an ordinary send is honoured", async (client) => {
    const sender = client.createSender("s47");
    const scheduledEnqueueTimeUtc = inMilliseconds(12_000);
    await sender.sendMessages({ body: 1, scheduledEnqueueTimeUtc });
    await sender.sendMessages([{ body: 2, scheduledEnqueueTimeUtc }, { body: 3 }]);
    const receiver = client.createReceiver("s47");
    assert.equal((await receiveOne(receiver)).body, 3);
    await receiveNothing(receiver);
    const late = await receive(receiver, 2);
    assert.ok(Date.now() >= scheduledEnqueueTimeUtc);
    assert.deepEqual(bodies(late), [1, 2]);
  });

  scenario("S48 a scheduled message can be peeked", async (client) => {
    const due = inMilliseconds(LATER);
    const [number] = await client.createSender("s48").scheduleMessages({ body: "later" }, due);
    const [message] = await peekAll(client.createReceiver("s48"));
    assert.ok(message.sequenceNumber.equals(number));
    assert.equal(message.state, "scheduled");
    assert.equal(Number(message.scheduledEnqueueTimeUtc), Number(due));
  });

  scenario("S49 cancelled messages never arrive", async (client) => {
    const sender = client.createSender("s49");
    const messages = [1, 2, 3].map((body) => ({ body }));
    const [first, second, third] = await sender.scheduleMessages(messages, inMilliseconds(10_000));
    await sender.cancelScheduledMessages(first);
    await sender.cancelScheduledMessages([second, third]);
    const receiver = client.createReceiver("s49");
    assert.deepEqual(await peekAll(receiver), []);
    await receiveNothing(receiver, 12_000);
  });

  scenario("S50 a message that has become due cannot be cancelled", async (client) => {
    const sender = client.createSender("s50");
    const [number] = await sender.scheduleMessages({ body: "due" }, inMilliseconds(1_000));
    const receiver = client.createReceiver("s50");
    await receiver.abandonMessage(await receiveOne(receiver));
    await fails(sender.cancelScheduledMessages(number), "MessageNotFound");
    assert.equal((await receiveOne(receiver)).body, "due");
  });

  scenario("S51 a message scheduled for the past arrives at once", async (client) => {
    const scheduled = await client.createSender("s51").scheduleMessages({ body: "past" }, inMilliseconds(-60_000));
    assert.equal(scheduled.length, 1);
    assert.equal((await receiveOne(client.createReceiver("s51"), 2_000)).body, "past");
  });

  scenario("S52 what is not scheduled cannot be cancelled", async (client) => {
    const sender = client.createSender("s52");
    await fails(sender.cancelScheduledMessages(Long.fromNumber(999)), "MessageNotFound");
    const [number] = await sender.scheduleMessages({ body: 1 }, inMilliseconds(LATER));
    await sender.cancelScheduledMessages(number);
    await fails(sender.cancelScheduledMessages(number), "MessageNotFound");
  });
});
