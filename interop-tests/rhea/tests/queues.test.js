import assert from "node:assert/strict";
import rhea from "rhea";
import {
  accept, bodies, inMilliseconds, openReceiver, openSender, receive, receiveAvailable, receiveOne, send,
  sendAccepted, sendBatch, settle, topic, types,
} from "../harness.js";

const DISABLED = { condition: "com.microsoft:entity-disabled" };

topic("queues", (scenario) => {
  scenario("S38 a dead-letter queue is a queue", async (connection) => {
    await sendBatch(await openSender(connection, "s38"), [{ body: 1 }, { body: 2 }]);
    for (const received of await receive(await openReceiver(connection, "s38"), 2)) await settle(received, "rejected");
    const receiver = await openReceiver(connection, "s38/$DeadLetterQueue");
    const [first, second] = await receive(receiver, 2);
    await accept(first);
    await settle(second, "released");
    assert.deepEqual(bodies(await receiveAvailable(receiver)), [2]);
  });

  scenario("S39 nobody sends to a dead-letter queue", async (connection) => {
    await assert.rejects(openSender(connection, "s39/$DeadLetterQueue"), (error) => Boolean(error.condition));
  });

  scenario("S41 an expired message is gone", async (connection) => {
    await sendAccepted(await openSender(connection, "s41"), { body: "short", ttl: 1 }, { body: "long" });
    assert.deepEqual(bodies(await receive(await openReceiver(connection, "s41"), 1)), ["long"]);
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s41/$DeadLetterQueue")), []);
  });

  scenario("S42 an expired message is dead-lettered where the queue says so", async (connection) => {
    await sendAccepted(await openSender(connection, "s42"), { body: 1, ttl: 1_000 });
    const { message } = await receiveOne(await openReceiver(connection, "s42/$DeadLetterQueue"));
    const { DeadLetterReason: reason, DeadLetterErrorDescription: description } = message.application_properties;
    assert.deepEqual([reason, description], ["TTLExpiredException", "The message expired and was dead lettered."]);
  });

  scenario("S47 a scheduled time on a message is honoured", async (connection) => {
    const due = inMilliseconds(1_500);
    const annotations = { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(due.getTime()) };
    await sendAccepted(await openSender(connection, "s47"), { body: 1, message_annotations: annotations }, { body: 2 });
    const receiver = await openReceiver(connection, "s47");
    assert.equal((await receiveOne(receiver)).message.body, 2);
    const { message } = await receiveOne(receiver);
    assert.ok(Date.now() >= due);
    assert.equal(Number(message.message_annotations["x-opt-scheduled-enqueue-time"]), Number(due));
  });

  scenario("S64 S65 S66 a disabled direction refuses the link", async (connection) => {
    await assert.rejects(openSender(connection, "s64"), DISABLED);
    await openReceiver(connection, "s64");
    await sendAccepted(await openSender(connection, "s65"), { body: 1 });
    await assert.rejects(openReceiver(connection, "s65"), DISABLED);
    await assert.rejects(openSender(connection, "s66"), DISABLED);
    await assert.rejects(openReceiver(connection, "s66"), DISABLED);
  });

  scenario("S67 a full queue refuses, and takes again when there is room", async (connection) => {
    const sender = await openSender(connection, "s67");
    const message = { body: rhea.message.data_section(Buffer.alloc(100 * 1024)) };
    let accepted = 0;
    let answer;
    for (answer = await send(sender, message); answer.name === "accepted" && accepted < 30; accepted += 1) {
      answer = await send(sender, message);
    }
    assert.deepEqual([answer.name, answer.error?.condition], ["rejected", "amqp:resource-limit-exceeded"]);
    const receiver = await openReceiver(connection, "s67");
    await accept(...(await receive(receiver, 5)));
    await sendAccepted(sender, message);
    assert.equal((await receiveAvailable(receiver)).length, accepted - 5 + 1);
  });
});
