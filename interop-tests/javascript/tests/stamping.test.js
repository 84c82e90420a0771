import assert from "node:assert/strict";
import { assertNear, numbers, noRenewal, range, receive, receiveOne, topic } from "../harness.js";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

topic("stamping", (scenario) => {
  scenario("S15 numbers are 1 to 7 in the order sent", async (client) => {
    const sender = client.createSender("s15");
    for (const body of [1, 2, 3]) await sender.sendMessages({ body });
    await sender.sendMessages([{ body: 4 }, { body: 5 }, { body: 6 }]);
    await sender.sendMessages({ body: 7 });
    const messages = await receive(client.createReceiver("s15"), 7);
    assert.deepEqual(numbers(messages), range(1, 7));
    assert.deepEqual(messages.map((message) => message.body), range(1, 7));
  });

  scenario("S16 number and enqueued time outlive an abandon", async (client) => {
    const before = Date.now();
    await client.createSender("s16").sendMessages({ body: 1 });
    const after = Date.now();
    const receiver = client.createReceiver("s16");
    const first = await receiveOne(receiver);
    assert.ok(first.enqueuedTimeUtc >= before - 1_000 && first.enqueuedTimeUtc <= after + 1_000);
    await receiver.abandonMessage(first);
    const second = await receiveOne(receiver);
    assert.deepEqual(second.enqueuedTimeUtc, first.enqueuedTimeUtc);
    assert.deepEqual(numbers([second]), numbers([first]));
  });

  scenario("S17 a locked message carries its stamps", async (client) => {
    await client.createSender("s17").sendMessages({ body: 1, timeToLive: 600_000 });
    const message = await receiveOne(client.createReceiver("s17", noRenewal));
    assert.deepEqual(numbers([message]), [1]);
    assert.equal(message.enqueuedSequenceNumber, 0);
    assertNear(message.enqueuedTimeUtc, Date.now(), 3_000);
    assertNear(message.lockedUntilUtc, Date.now() + 30_000, 3_000);
    assert.equal(message.deliveryCount, 0);
    assert.match(message.lockToken, UUID);
    assert.equal(message.state, "active");
    assert.equal(message.timeToLive, 600_000);
    assertNear(message.expiresAtUtc, message.enqueuedTimeUtc.getTime() + 600_000, 0);
  });
});
