import assert from "node:assert/strict";
import {
  bodies, newClient, noRenewal, numbers, range, receive, receiveNothing, receiveOne, sendNumbered, topic,
} from "../harness.js";

topic("receiving", (scenario) => {
  scenario("S18 a locked message is nobody else's", async (client) => {
    await sendNumbered(client, "s18", 1);
    const [receiver, other] = [client.createReceiver("s18"), client.createReceiver("s18")];
    const message = await receiveOne(receiver);
    await receiveNothing(other);
    await receiver.completeMessage(message);
    await receiveNothing(other);
  });

  scenario("S19 receive-and-delete leaves nothing behind", async (client) => {
    await sendNumbered(client, "s19", 3);
    const receiver = client.createReceiver("s19", { receiveMode: "receiveAndDelete" });
    assert.deepEqual(bodies(await receive(receiver, 3)), [0, 1, 2]);
    assert.deepEqual(await receiver.peekMessages(10), []);
  });

  scenario("S31 what a closed receiver held comes back when its lock ends", async (client) => {
    await sendNumbered(client, "s31", 3);
    const other = newClient();
    await receiveOne(other.createReceiver("s31", noRenewal));
    await other.close();
    const receiver = client.createReceiver("s31", noRenewal);
    const rest = await receive(receiver, 2, 3_000);
    assert.deepEqual(bodies(rest), [1, 2]);
    for (const message of rest) await receiver.completeMessage(message);
    const held = await receiveOne(receiver, 15_000);
    assert.deepEqual([held.body, held.deliveryCount], [0, 1]);
  });

  scenario("S33 a receive on an empty queue waits, drains, and the next one works", async (client) => {
    const receiver = client.createReceiver("s33");
    const began = Date.now();
    await receiveNothing(receiver, 2_000);
    const waited = Date.now() - began;
    assert.ok(waited >= 1_900 && waited <= 5_000, `${waited} ms`);
    for (let round = 0; round < 20; round += 1) await receiveNothing(receiver, 20);
    await client.createSender("s33").sendMessages({ body: "late" });
    const late = await receiveOne(receiver);
    assert.equal(late.body, "late");
    await receiver.completeMessage(late);
  });

  scenario("S34 a waiting receive gets what is sent", async (client) => {
    const receiver = client.createReceiver("s34");
    await receiveNothing(receiver, 100);
    const receiving = receiver.receiveMessages(1, { maxWaitTimeInMs: 15_000 });
    const other = newClient();
    await other.createSender("s34").sendMessages({ body: "now" });
    const sent = Date.now();
    assert.deepEqual(bodies(await receiving), ["now"]);
    assert.ok(Date.now() - sent < 2_000);
    await other.close();
  });

  scenario("S35 two subscribers share 200 messages", async (client) => {
    await sendNumbered(client, "s35", 200);
    const others = [newClient(), newClient()];
    const seen = [];
    await new Promise((resolve, reject) => {
      for (const other of others) {
        other.createReceiver("s35").subscribe({
          async processMessage(message) {
            seen.push(message.body);
            if (seen.length === 200) resolve();
          },
          async processError({ error }) {
            reject(error);
          },
        }, { maxConcurrentCalls: 5 });
      }
    });
    assert.deepEqual(seen.sort((one, another) => one - another), range(0, 199));
    // Closing a receiver lets the handlers settle what they hold.
    await Promise.all(others.map((other) => other.close()));
  });

  scenario("S36 a receive brings no more than it asked for", async (client) => {
    await sendNumbered(client, "s36", 10);
    const receiver = client.createReceiver("s36");
    const first = await receiver.receiveMessages(4, { maxWaitTimeInMs: 5_000 });
    assert.ok(first.length >= 1 && first.length <= 4);
    const rest = await receive(receiver, 10 - first.length);
    assert.deepEqual(numbers([...first, ...rest]), range(1, 10));
  });
});
