import assert from "node:assert/strict";
import {
  accept, at, bodies, completeAll, deadLetters, fails, inMilliseconds, noRenewal, numbers, peekAll, range, receive,
  receiveNothing, receiveOne, sendNumbered, topic,
} from "../harness.js";

function original(messages) {
  return messages.map((message) => message.enqueuedSequenceNumber);
}

async function sendBodies(client, queue, ...wanted) {
  for (const body of wanted) await client.createSender(queue).sendMessages({ body });
}

topic("forwarding", (scenario) => {
  scenario("S191 what is forwarded has the number of its place, and that of its origin", async (client) => {
    const before = Date.now();
    await sendBodies(client, "s191b", 1, 2);
    await sendBodies(client, "s191", 3, 4);
    await client.createSender("s191").sendMessages([{ body: 5 }]);
    const messages = await receive(client.createReceiver("s191b"), 5);
    assert.deepEqual([bodies(messages), numbers(messages)], [range(1, 5), range(1, 5)]);
    assert.deepEqual(original(messages).slice(2), [1, 2, 3]);
    for (const { enqueuedTimeUtc: time } of messages) assert.ok(time >= before - 1_000 && time <= Date.now() + 1_000);
  });

  scenario("S192 the number of the origin is that of the first queue", async (client) => {
    await sendBodies(client, "s192c", "c");
    await sendBodies(client, "s192b", "b");
    await sendBodies(client, "s192", "a");
    const messages = await receive(client.createReceiver("s192c"), 3);
    assert.deepEqual([bodies(messages), numbers(messages)], [["c", "b", "a"], [1, 2, 3]]);
    assert.equal(original(messages)[2], 1);
  });

  scenario("S193 four times, and no more", async (client) => {
    await sendBodies(client, "s193", "five");
    await sendBodies(client, "s193b", "four");
    assert.deepEqual(bodies(await receive(client.createReceiver("s193f"), 1)), ["four"]);
    const letter = await receiveOne(deadLetters(client, "s193e"));
    assert.deepEqual([letter.body, letter.deadLetterReason], ["five", "MaxTransferHopCountExceeded"]);
  });

  scenario("S194 a queue that forwards is not received from", async (client) => {
    const receiver = client.createReceiver("s194");
    await fails(receiver.receiveMessages(1, { maxWaitTimeInMs: 1_000 }), "GeneralError", /InvalidOperation/);
    await fails(receiver.peekMessages(1), "GeneralError", /InvalidOperation/);
  });

  scenario("S195 what cannot be forwarded is a dead letter", async (client) => {
    await sendBodies(client, "s195", 1);
    const receiver = deadLetters(client, "s195");
    const letter = await receiveOne(receiver);
    assert.equal(letter.body, 1);
    assert.ok(letter.deadLetterReason);
    await receiver.completeMessage(letter);
    assert.deepEqual(await receiver.peekMessages(10), []);
  });

  scenario("S196 what does not fit is a dead letter", async (client) => {
    const sender = client.createSender("s196");
    const content = Buffer.alloc(100 * 1024);
    for (const n of range(1, 15)) await sender.sendMessages({ body: content, applicationProperties: { n } });
    const [there, dead] = [await peekAll(client.createReceiver("s196b")), await peekAll(deadLetters(client, "s196"))];
    assert.ok(there.length > 0 && dead.length > 0, `${there.length} and ${dead.length}`);
    const all = [...there, ...dead].map((message) => message.applicationProperties.n);
    assert.deepEqual(all.sort((one, another) => one - another), range(1, 15));
  });

  scenario("S197 a subscription forwards what its rules take", async (client) => {
    await client.createSender("s197").sendMessages(range(1, 3).map((n) => ({ body: n, applicationProperties: { n } })));
    const messages = await receive(client.createReceiver("s197b"), 2);
    assert.deepEqual([bodies(messages), numbers(messages), original(messages)], [[2, 3], [1, 2], [2, 3]]);
  });

  scenario("S198 a queue forwards to a topic", async (client) => {
    const sender = client.createSender("s198");
    for (const color of ["red", "blue"]) await sender.sendMessages({ body: color, applicationProperties: { color } });
    assert.deepEqual(bodies(await receive(client.createReceiver("s198b", "all"), 2)), ["red", "blue"]);
    assert.deepEqual(bodies(await peekAll(client.createReceiver("s198b", "red"))), ["red"]);
  });

  scenario("S199 dead letters are forwarded, and say where they come from", async (client) => {
    const sender = client.createSender("s199");
    await sender.sendMessages([{ body: "dead" }, { body: "abandoned" }]);
    const receiver = client.createReceiver("s199", noRenewal);
    const [dead, abandoned] = await receive(receiver, 2);
    await receiver.deadLetterMessage(dead, { deadLetterReason: "why", deadLetterErrorDescription: "because" });
    await receiver.abandonMessage(abandoned);
    await sender.sendMessages({ body: "expired", timeToLive: 1_000 });
    const letters = await receive(client.createReceiver("s199b"), 3);
    assert.deepEqual(letters.map((each) => [each.body, each.deadLetterReason]), [
      ["dead", "why"], ["abandoned", "MaxDeliveryCountExceeded"], ["expired", "TTLExpiredException"],
    ]);
    assert.deepEqual(numbers(letters), [1, 2, 3]);
    for (const letter of letters) assert.equal(letter.deadLetterSource, "s199");
    await fails(deadLetters(client, "s199").peekMessages(1), "GeneralError", /auto-forwarding/);
  });

  scenario("S200 dead letters of a subscription are forwarded", async (client) => {
    await sendNumbered(client, "s200", 1);
    const receiver = client.createReceiver("s200", "a", noRenewal);
    await receiver.deadLetterMessage(await receiveOne(receiver), { deadLetterReason: "why", deadLetterErrorDescription: "because" });
    const letter = await receiveOne(client.createReceiver("s200b"));
    assert.deepEqual([letter.body, letter.deadLetterReason], [0, "why"]);
    assert.match(letter.deadLetterSource, /s200/i);
    await fails(deadLetters(client, at("s200", "a")).peekMessages(1), "GeneralError", /auto-forwarding/);
  });

  scenario("S201 a scheduled message is forwarded when it is due", async (client) => {
    const sender = client.createSender("s201");
    const due = inMilliseconds(10_000);
    await sender.scheduleMessages({ body: "due" }, due);
    const [cancelled] = await sender.scheduleMessages({ body: "cancelled" }, due);
    await sender.cancelScheduledMessages(cancelled);
    const receiver = client.createReceiver("s201b");
    assert.deepEqual(await receiver.peekMessages(10), []);
    const message = await receiveOne(receiver);
    assert.equal(message.body, "due");
    assert.ok(Date.now() >= due);
    await receiveNothing(receiver);
  });

  scenario("S202 what is forwarded needs a session where sessions are required", async (client) => {
    const sender = client.createSender("s202");
    await sender.sendMessages({ body: "with", sessionId: "x" });
    await sender.sendMessages({ body: "without" });
    assert.deepEqual(bodies(await receive(await accept(client, "s202b", "x"), 1)), ["with"]);
    const dead = await peekAll(deadLetters(client, "s202"));
    assert.deepEqual(bodies(dead), ["without"]);
  });

  scenario("S203 what is forwarded may be a duplicate", async (client) => {
    for (const queue of ["s203", "s203", "s203b"]) await client.createSender(queue).sendMessages({ messageId: "one", body: queue });
    const receiver = client.createReceiver("s203b");
    const messages = await receive(receiver, 1);
    assert.deepEqual(bodies(messages), ["s203"]);
    await completeAll(receiver, messages);
    await receiveNothing(receiver);
  });
});
