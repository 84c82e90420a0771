// Messages that are handed to a callback, or to an iterator.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { bodies, deadLetters, noRenewal, peekAll, range, receiveOne, sendNumbered, topic, until } from "../harness.js";

/** Begins to process messages, and gives what the handlers are told. */
function process(receiver, handle, options) {
  const [seen, errors] = [[], []];
  receiver.subscribe({
    processMessage: async (message) => {
      seen.push(message);
      await handle(message);
    },
    processError: async ({ error, errorSource }) => { errors.push([errorSource, error]); },
  }, options);
  return { seen, errors };
}

topic("processing", (scenario) => {
  scenario("S314 a processor has four calls at once, and no more", async (client) => {
    await sendNumbered(client, "s314", 40);
    let [working, most] = [0, 0];
    const receiver = client.createReceiver("s314");
    const { seen, errors } = process(receiver, async () => {
      working += 1;
      most = Math.max(most, working);
      const end = Date.now() + 5_000;
      while (most < 4 && Date.now() < end) await pause(10);
      working -= 1;
    }, { maxConcurrentCalls: 4 });
    await until(() => seen.length >= 40 && working === 0);
    await receiver.close();
    assert.deepEqual(bodies(seen).sort((one, other) => one - other), range(0, 39));
    assert.deepEqual([most, errors], [4, []]);
    assert.deepEqual(await peekAll(client.createReceiver("s314")), []);
  });

  scenario("S315 what a processor's callback fails for is tried again, and then a dead letter", async (client) => {
    await sendNumbered(client, "s315", 3);
    const receiver = client.createReceiver("s315");
    const { seen, errors } = process(receiver, async ({ body }) => {
      if (body === 1) throw new Error("always");
    });
    const dead = await receiveOne(deadLetters(client, "s315"));
    assert.deepEqual([dead.body, dead.deadLetterReason], [1, "MaxDeliveryCountExceeded"]);
    await client.createSender("s315").sendMessages({ body: "next" });
    await until(() => bodies(seen).includes("next"));
    await receiver.close();
    assert.deepEqual(bodies(seen).map(String).sort(), ["0", "1", "1", "1", "2", "next"]);
    assert.deepEqual(errors.map(([source, { message }]) => [source, message]), Array(3).fill(["processMessageCallback", "always"]));
    assert.deepEqual(await peekAll(client.createReceiver("s315")), []);
  });

  scenario("S318 a processor's message is held for longer than its lock lasts", async (client) => {
    await sendNumbered(client, "s318", 1);
    const receiver = client.createReceiver("s318");
    let done = false;
    const { seen, errors } = process(receiver, async () => {
      await pause(8_000);
      done = true;
    });
    await until(() => done);
    await receiver.close();
    assert.deepEqual([seen.length, errors], [1, []]);
    assert.deepEqual(await peekAll(client.createReceiver("s318")), []);
  });

  scenario("S319 the iterator gives fifty messages, and the one that comes later", async (client) => {
    await sendNumbered(client, "s319", 50);
    const receiver = client.createReceiver("s319", noRenewal);
    const iterator = receiver.getMessageIterator();
    const seen = [];
    const next = async () => {
      const { value: message } = await iterator.next();
      seen.push(message.body);
      await receiver.completeMessage(message);
    };
    while (seen.length < 50) await next();
    const waiting = next();
    await client.createSender("s319").sendMessages({ body: "later" });
    await waiting;
    assert.deepEqual(seen, [...range(0, 49), "later"]);
    await iterator.return();
    await receiver.close();
    assert.deepEqual(await peekAll(client.createReceiver("s319")), []);
  });
});
