// What is sent is what comes, and what is settled is settled.

import assert from "node:assert/strict";
import {
  at, bodies, deadLetters, fails, inMilliseconds, noRenewal, peekAll, receive, receiveNothing, receiveOne,
  sendNumbered, topic,
} from "../harness.js";

/**
 * Numbers, as far as the SDK tells them apart: what is whole goes as an integer, so it writes -0 as 0, and cannot write what is whole and
 * too large for one; NaN it writes as null.
 */
const NUMBERS = [
  0, 1, -1, 127, -128, 255, 32_767, -32_768, 65_535, 2 ** 31 - 1, -(2 ** 31), 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER, 0.5, -1.25, Number.MIN_VALUE, Number.EPSILON, Infinity, -Infinity,
];
const TEXTS = ["", "text", "ü€😀", "x".repeat(300), "\u0000\u001f"];
const TIMES = [0, -1, 1_700_000_000_123, Date.UTC(1815, 11, 10), Date.UTC(3001, 0, 1)].map((time) => new Date(time));
const VALUES = [null, true, false, ...NUMBERS, ...TEXTS];
const COMPOSITES = [[], [1, "two", null, [3.5, [true]]], {}, { key: "value", list: [1, { deep: { deeper: null } }], "ü": -1 }];

/** W3C's examples. */
const TRACE = {
  "Diagnostic-Id": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
  tracestate: "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
};

topic("values", (scenario) => {
  scenario("S321 a value as a body comes back", async (client) => {
    const receiver = client.createReceiver("s321", { receiveMode: "receiveAndDelete" });
    const sender = client.createSender("s321");
    const sent = [...VALUES, ...COMPOSITES];
    await sender.sendMessages(sent.map((body) => ({ bodyType: "value", body })));
    for (const message of await receive(receiver, sent.length)) {
      assert.equal(message._rawAmqpMessage.bodyType, "value");
      assert.deepEqual(message.body, sent.shift());
    }
    // Bytes as a value come back, but the SDK takes them for data.
    const bytes = [Buffer.alloc(0), Buffer.alloc(300, 7)];
    await sender.sendMessages(bytes.map((body) => ({ bodyType: "value", body })));
    assert.deepEqual(bodies(await receive(receiver, bytes.length)), bytes);
    // A time goes as AMQP's timestamp, and comes back as its milliseconds where nobody knows that it was one.
    await sender.sendMessages(TIMES.map((body) => ({ bodyType: "value", body })));
    assert.deepEqual(bodies(await receive(receiver, TIMES.length)).map(Number), TIMES.map(Number));
  });

  scenario("S322 application properties of every kind come back", async (client) => {
    const sent = Object.fromEntries([...VALUES, ...TIMES].map((value, index) => [`p${index}`, value]));
    await client.createSender("s322").sendMessages({ body: 1, applicationProperties: { ...sent, "ü€😀": "name" } });
    const options = { receiveMode: "receiveAndDelete", skipConvertingDate: true };
    const { applicationProperties: found } = await receiveOne(client.createReceiver("s322", options));
    assert.deepEqual(found, { ...sent, "ü€😀": "name" });
  });

  scenario("S326 tracing headers set by hand come back on every way", async (client) => {
    const message = (body) => ({ body, applicationProperties: TRACE });
    const sender = client.createSender("s326");
    await sender.sendMessages(["deferred", "dead", "plain"].map(message));
    await sender.scheduleMessages(message("scheduled"), inMilliseconds(1_000));
    await client.createSender("s326t").sendMessages(message("topic"));
    const receiver = client.createReceiver("s326", noRenewal);
    const [deferred, dead, plain, scheduled] = await receive(receiver, 4);
    assert.deepEqual(bodies([deferred, dead, plain, scheduled]), ["deferred", "dead", "plain", "scheduled"]);
    await receiver.deferMessage(deferred);
    await receiver.deadLetterMessage(dead);
    const all = [
      plain, scheduled, ...await receiver.receiveDeferredMessages(deferred.sequenceNumber),
      await receiveOne(deadLetters(client, "s326")), await receiveOne(client.createReceiver("s326t", "a")),
    ];
    for (const { body, applicationProperties } of all) {
      const found = Object.fromEntries(Object.keys(TRACE).map((name) => [name, applicationProperties[name]]));
      assert.deepEqual(found, TRACE, body);
    }
    for (const each of [plain, scheduled]) await receiver.completeMessage(each);
  });

  scenario("S327 what is settled cannot be settled again", async (client) => {
    await sendNumbered(client, "s327", 2);
    const receiver = client.createReceiver("s327", noRenewal);
    const [completed, abandoned] = await receive(receiver, 2);
    await receiver.completeMessage(completed);
    await receiver.abandonMessage(abandoned);
    const lost = "MessageLockLost";
    for (const message of [completed, abandoned]) {
      for (const way of ["completeMessage", "abandonMessage", "deferMessage", "deadLetterMessage"]) {
        await fails(receiver[way](message), message.delivery ? undefined : lost, /settled|lock/);
      }
    }
    // And from elsewhere, where no delivery is known: by the lock token.
    const again = await receiveOne(receiver);
    assert.deepEqual([again.body, again.deliveryCount], [1, 1]);
    await receiver.completeMessage(again);
    await receiveNothing(receiver);
    assert.deepEqual(await peekAll(receiver), []);
    assert.deepEqual(await peekAll(deadLetters(client, "s327")), []);
  });
});
