import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  bodies, fails, newClient, numbers, range, receive, receiveNothing, receiveOne, topic,
} from "../harness.js";

const BODIES = [
  { bodyType: "data", body: Buffer.from([0, 1, 255]) },
  { bodyType: "data", body: Buffer.alloc(0) },
  { bodyType: "value", body: "text" },
  { bodyType: "value", body: 4_000_000_000 },
  { bodyType: "value", body: { key: "value", nested: { list: [1, 2] } } },
  { bodyType: "value", body: null },
  { bodyType: "sequence", body: [1, "two", null] },
];

topic("sending", (scenario) => {
  scenario("S07 a body keeps its kind and its content", async (client) => {
    const receiver = client.createReceiver("s07", { skipParsingBodyAsJson: true, receiveMode: "receiveAndDelete" });
    const sender = client.createSender("s07");
    for (const { bodyType, body } of BODIES) {
      await sender.sendMessages({ bodyType, body });
      const message = await receiveOne(receiver);
      assert.equal(message._rawAmqpMessage.bodyType, bodyType);
      assert.deepEqual(message.body, body);
    }
    await sender.sendMessages({ body: { json: [1, "ü"] } });
    const parsing = client.createReceiver("s07", { receiveMode: "receiveAndDelete" });
    assert.deepEqual((await receiveOne(parsing)).body, { json: [1, "ü"] });
  });

  scenario("S08 every property comes back with its value and type", async (client) => {
    const sent = {
      body: "all",
      messageId: "id-1",
      correlationId: "correlation",
      contentType: "text/plain",
      subject: "subject",
      to: "to",
      replyTo: "reply-to",
      replyToSessionId: "reply-to-session",
      timeToLive: 600_000,
      partitionKey: "key",
      applicationProperties: {
        string: "ü",
        empty: "",
        true: true,
        false: false,
        int: -1,
        large: 2 ** 40,
        double: 1.5,
        date: new Date("2026-02-03T04:05:06.789Z"),
        null: null,
        bytes: Buffer.from([0, 255]),
      },
    };
    await client.createSender("s08").sendMessages(sent);
    const receiver = client.createReceiver("s08", { skipConvertingDate: true, receiveMode: "receiveAndDelete" });
    const received = await receiveOne(receiver);
    for (const [name, value] of Object.entries(sent)) assert.deepEqual(received[name], value, name);
    for (const messageId of [12345, Buffer.from(range(1, 16))]) {
      await client.createSender("s08").sendMessages({ body: 1, messageId, correlationId: messageId });
      const message = await receiveOne(receiver);
      assert.deepEqual([message.messageId, message.correlationId], [messageId, messageId]);
    }
  });

  scenario("S09 annotations, header and footer of the sender come back", async (client) => {
    await client.createSender("s09").sendMessages({
      bodyType: "data",
      body: Buffer.from("annotated"),
      header: { durable: true, priority: 10, firstAcquirer: true },
      footer: { "footer-key": "footer-value" },
      messageAnnotations: { "my-annotation": "message" },
      deliveryAnnotations: { "my-delivery-annotation": "delivery" },
      properties: { subject: "subject" },
      applicationProperties: { key: "value" },
    });
    const raw = (await receiveOne(client.createReceiver("s09")))._rawAmqpMessage;
    assert.equal(raw.header.durable, true);
    assert.equal(raw.header.priority, 10);
    assert.deepEqual(raw.footer, { "footer-key": "footer-value" });
    assert.equal(raw.messageAnnotations["my-annotation"], "message");
    assert.equal(raw.deliveryAnnotations["my-delivery-annotation"], "delivery");
    assert.equal(raw.properties.subject, "subject");
    assert.deepEqual(raw.applicationProperties, { key: "value" });
  });

  scenario("S10 a batch of 100 arrives in order", async (client) => {
    const sender = client.createSender("s10");
    const batch = await sender.createMessageBatch();
    for (const body of range(1, 100)) assert.ok(batch.tryAddMessage({ body }));
    await sender.sendMessages(batch);
    const messages = await receive(client.createReceiver("s10"), 100);
    assert.deepEqual(bodies(messages), range(1, 100));
    assert.deepEqual(numbers(messages), range(1, 100));
  });

  scenario("S11 small and large messages come back byte for byte", async (client) => {
    const receiver = client.createReceiver("s11", { skipParsingBodyAsJson: true, receiveMode: "receiveAndDelete" });
    for (const size of [1, 64 * 1024, 200 * 1024]) {
      const body = randomBytes(size);
      await client.createSender("s11").sendMessages({ body });
      assert.ok(body.equals((await receiveOne(receiver)).body), `${size} bytes`);
    }
  });

  scenario("S12 a message that is too large is refused, and the sender goes on", async (client) => {
    const sender = client.createSender("s12");
    const receiver = client.createReceiver("s12");
    await fails(sender.sendMessages({ body: Buffer.alloc(100 * 1024) }), "MessageSizeExceeded");
    await receiveNothing(receiver);
    await sender.sendMessages({ body: "small" });
    assert.equal((await receiveOne(receiver)).body, "small");
  });

  scenario("S13 2000 messages of two senders arrive once and in order", async (client) => {
    const others = [newClient(), newClient()];
    const sends = others.map(async (other, name) => {
      const sender = other.createSender("s13");
      for (let first = 0; first < 1_000; first += 50) {
        await sender.sendMessages(range(first, first + 49).map((index) => ({ body: { name, index } })));
      }
    });
    const receiver = client.createReceiver("s13");
    const seen = [[], []];
    for (let count = 0; count < 2_000; ) {
      const messages = await receive(receiver, 100);
      for (const { body } of messages) seen[body.name].push(body.index);
      await Promise.all(messages.map((message) => receiver.completeMessage(message)));
      count += messages.length;
    }
    await Promise.all(sends);
    assert.deepEqual(seen, [range(0, 999), range(0, 999)]);
    await receiveNothing(receiver);
    await Promise.all(others.map((other) => other.close()));
  });
});
