// Much at once: on one link, in one batch, in one message.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { pattern } from "../clients.js";
import {
  completeAll, fails, inMilliseconds, noRenewal, numbers, peekAll, range, receive, receiveNothing, receiveOne,
  sendNumbered, topic,
} from "../harness.js";

const MIB = 1024 * 1024;
const TOO_MUCH = 30;
/** The service takes no more messages in one batch in its Standard tier, and the SDK does not count them. */
const BATCH_MAX = 4_500;

topic("volume", (scenario) => {
  scenario("S309 a thousand messages are unsettled at once, and settled in no order", async (client) => {
    for (const _ of range(1, 4)) await sendNumbered(client, "s309", 250);
    const receiver = client.createReceiver("s309", noRenewal);
    const messages = await receive(receiver, 1_000);
    assert.deepEqual(numbers(messages), range(1, 1_000));
    const mixed = messages.map((message) => [Math.random(), message]).sort(([one], [other]) => one - other);
    await Promise.all(mixed.map(([, message]) => receiver.completeMessage(message)));
    assert.deepEqual(await peekAll(receiver), []);
  });

  scenario("S310 a batch is filled until it is full, and all of it arrives", async (client) => {
    const sender = client.createSender("s310");
    const receiver = client.createReceiver("s310", { receiveMode: "receiveAndDelete", skipParsingBodyAsJson: true });
    for (const [size, least] of [[1_000, 800], [10, BATCH_MAX]]) {
      const batch = await sender.createMessageBatch();
      const body = (index) => Buffer.from(String(index).padStart(size));
      while (batch.count < BATCH_MAX && batch.tryAddMessage({ body: body(batch.count) }));
      assert.ok(batch.count >= least && batch.sizeInBytes <= MIB, `${batch.count} messages of ${size} bytes`);
      await sender.sendMessages(batch);
      const messages = await receive(receiver, batch.count);
      assert.deepEqual(messages.map((each) => Number(each.body)), range(0, batch.count - 1));
      assert.ok(messages.every((each) => each.body.length === size));
    }
    await receiveNothing(receiver);
  });

  scenario("S311 a message just below the limit goes, alone and in a batch; one above goes neither way", async (client) => {
    const [fits, exceeds] = [randomBytes(1_000_000), randomBytes(1_100_000)];
    const sender = client.createSender("s311");
    const receiver = client.createReceiver("s311", { receiveMode: "receiveAndDelete" });
    const batch = await sender.createMessageBatch();
    assert.ok(!batch.tryAddMessage({ body: exceeds }));
    assert.ok(batch.tryAddMessage({ body: fits }));
    for (const sent of [{ body: fits }, batch]) {
      await sender.sendMessages(sent);
      const message = await receiveOne(receiver);
      assert.ok(fits.equals(message.body));
    }
    await fails(sender.sendMessages({ body: exceeds }), "MessageSizeExceeded");
    await receiveNothing(receiver);
  });

  scenario("S312 a message of 20 MiB comes back byte for byte", async (client) => {
    const body = pattern(20 * MIB);
    await client.createSender("s312").sendMessages({ body });
    const receiver = client.createReceiver("s312");
    const message = await receiveOne(receiver, 60_000);
    assert.ok(body.equals(message.body));
    await receiver.completeMessage(message);
  });

  scenario("S330 a full queue refuses batches whole, and schedules", async (client) => {
    const sender = client.createSender("s330");
    const three = range(1, 3).map(() => ({ body: Buffer.alloc(100 * 1024) }));
    const fill = async (send) => {
      for (let taken = 0; taken < TOO_MUCH; taken += 1) {
        const refused = await send().then(() => undefined, (error) => error);
        if (refused) {
          assert.equal(refused.code, "QuotaExceeded", refused.message);
          return taken;
        }
      }
      return assert.fail("it takes everything");
    };
    const batches = await fill(() => sender.sendMessages(three));
    const scheduled = await fill(() => sender.scheduleMessages(three[0], inMilliseconds(3_600_000)));
    assert.ok(batches > 0);
    const receiver = client.createReceiver("s330");
    const left = (await peekAll(receiver)).map(({ state }) => state);
    assert.deepEqual(left, [...Array(3 * batches).fill("active"), ...Array(scheduled).fill("scheduled")]);
    await completeAll(receiver, await receive(receiver, 3 * batches));
  });
});
