import assert from "node:assert/strict";
import rhea from "rhea";
import frames from "rhea/lib/frames.js";
import {
  accept, bodies, connect, event, lockToken, numbers, openReceiveAndDelete, openReceiver, openSender, range,
  receive, receiveAvailable, receiveOne, record, sections, sendAccepted, sendBatch, settle, topic, typedMap, types,
} from "../harness.js";

function batchOf(count) {
  return range(1, count).map((body) => ({ body }));
}

function counts(received) {
  return received.map(({ message }) => message.delivery_count ?? 0);
}

topic("receiving", (scenario) => {
  scenario("S15 numbers are 1 to 7 in the order sent", async (connection) => {
    const sender = await openSender(connection, "s15");
    await sendAccepted(sender, { body: 1 }, { body: 2 }, { body: 3 });
    await sendBatch(sender, [{ body: 4 }, { body: 5 }, { body: 6 }]);
    await sendAccepted(sender, { body: 7 });
    const received = await receive(await openReceiver(connection, "s15"), 7);
    assert.deepEqual([numbers(received), bodies(received)], [range(1, 7), range(1, 7)]);
  });

  scenario("S16 a message without an id gets one, and keeps it", async (connection) => {
    await sendAccepted(await openSender(connection, "s16"), { body: 1 }, { body: 2, subject: "subject" });
    const receiver = await openReceiver(connection, "s16");
    const first = await receive(receiver, 2);
    const ids = first.map(({ message }) => message.message_id);
    for (const id of ids) assert.match(id, /^[0-9a-f]{32}$/);
    assert.notEqual(ids[0], ids[1]);
    for (const each of first) await settle(each, "released");
    const again = await receive(receiver, 2);
    assert.deepEqual(again.map(({ message }) => message.message_id), ids);
    assert.equal(again[1].message.subject, "subject");
  });

  scenario("S17 stamps have their exact types", async (connection) => {
    await sendAccepted(await openSender(connection, "s17"), { body: 1, ttl: 600_000 });
    const receiver = await openReceiver(connection, "s17");
    const transfers = record(receiver.session, "transfer");
    const received = await receiveOne(receiver);
    const { message, delivery } = received;
    const stamps = typedMap(sections(message.raw)["message-annotations"][0]);
    const kinds = Object.fromEntries(Object.entries(stamps).map(([name, [type]]) => [name, type]));
    assert.equal(kinds["x-opt-sequence-number"], "long");
    // Nothing forwarded it: the service sends 0.
    assert.equal(kinds["x-opt-enqueue-sequence-number"], "long");
    assert.equal(message.message_annotations["x-opt-enqueue-sequence-number"], 0);
    assert.equal(kinds["x-opt-enqueued-time"], "timestamp");
    assert.equal(kinds["x-opt-locked-until"], "timestamp");
    assert.ok([undefined, "int"].includes(kinds["x-opt-message-state"]));
    const enqueued = Number(stamps["x-opt-enqueued-time"][1]);
    assert.ok(Math.abs(Number(stamps["x-opt-locked-until"][1]) - Date.now() - 30_000) < 3_000);
    assert.equal(message.ttl, 600_000);
    assert.equal(Number(message.creation_time), enqueued);
    assert.equal(Number(message.absolute_expiry_time), enqueued + 600_000);
    // The tag in .NET's byte order, the annotation as an AMQP uuid.
    assert.deepEqual(message.delivery_annotations["x-opt-lock-token"], lockToken(received).value);
    const [transfer] = transfers;
    assert.deepEqual([transfer.message_format, transfer.settled ?? false, transfer.more ?? false], [0, false, false]);
    assert.equal(typeof transfer.delivery_id, "number");
  });

  scenario("S18 a locked message is nobody else's", async (connection) => {
    await sendAccepted(await openSender(connection, "s18"), { body: 1 });
    const [receiver, other] = [await openReceiver(connection, "s18"), await openReceiver(connection, "s18")];
    const received = await receiveOne(receiver);
    assert.deepEqual(await receiveAvailable(other), []);
    await accept(received);
    assert.deepEqual(await receiveAvailable(other), []);
  });

  scenario("S19 settled deliveries are gone", async (connection) => {
    await sendBatch(await openSender(connection, "s19"), batchOf(3));
    const receiver = await openReceiveAndDelete(connection, "s19");
    assert.deepEqual([receiver.snd_settle_mode, receiver.rcv_settle_mode], [1, 0]);
    const received = await receive(receiver, 3);
    assert.deepEqual(bodies(received), [1, 2, 3]);
    assert.ok(received.every(({ delivery }) => delivery.remote_settled));
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s19")), []);
  });

  scenario("S20 modified brings the message again, before the next and with a new lock", async (connection) => {
    await sendBatch(await openSender(connection, "s20"), batchOf(2));
    const receiver = await openReceiver(connection, "s20");
    const first = await receiveOne(receiver);
    assert.deepEqual(await settle(first, "modified", { delivery_failed: true }), { name: "modified" });
    const [again, next] = await receive(receiver, 2);
    assert.deepEqual(bodies([again, next]), [1, 2]);
    assert.deepEqual(counts([first, again, next]), [0, 1, 0]);
    assert.deepEqual(numbers([first, again, next]), [1, 1, 2]);
    assert.notDeepEqual(lockToken(again).value, lockToken(first).value);
  });

  scenario("S21 modified with annotations changes application properties", async (connection) => {
    const properties = { attempt: types.wrap_int(0), kept: "kept" };
    await sendAccepted(await openSender(connection, "s21"), { body: 1, application_properties: properties });
    const receiver = await openReceiver(connection, "s21");
    await settle(await receiveOne(receiver), "modified", { message_annotations: { attempt: types.wrap_long(1) } });
    const { message } = await receiveOne(receiver);
    const found = typedMap(sections(message.raw)["application-properties"][0]);
    assert.deepEqual(found, { attempt: ["long", 1], kept: ["string", "kept"] });
  });

  scenario("S22 rejected is dead-lettered with its reason", async (connection) => {
    const sent = { body: "dead", subject: "subject", application_properties: { key: "value" } };
    await sendAccepted(await openSender(connection, "s22"), sent);
    const receiver = await openReceiver(connection, "s22");
    const info = { DeadLetterReason: "why", DeadLetterErrorDescription: "because" };
    const error = { condition: "com.microsoft:dead-letter", info };
    // Confirmed without an error: that would be a failure (receiving.md#settlement).
    assert.deepEqual(await settle(await receiveOne(receiver), "rejected", { error }), { name: "rejected" });
    assert.deepEqual(await receiveAvailable(receiver), []);
    const { message } = await receiveOne(await openReceiver(connection, "s22/$DeadLetterQueue"));
    assert.deepEqual([message.body, message.subject], ["dead", "subject"]);
    assert.deepEqual(message.application_properties, { key: "value", ...info });
  });

  scenario("S23 rejected without an error, or with another, is dead-lettered too", async (connection) => {
    await sendBatch(await openSender(connection, "s23"), batchOf(2));
    const [first, second] = await receive(await openReceiver(connection, "s23"), 2);
    assert.deepEqual(await settle(first, "rejected"), { name: "rejected" });
    const error = { condition: "my:reason", description: "mine" };
    assert.deepEqual(await settle(second, "rejected", { error }), { name: "rejected" });
    const dead = await receive(await openReceiver(connection, "s23/$deadletterqueue"), 2);
    assert.deepEqual(bodies(dead), [1, 2]);
    const { DeadLetterReason: reason, DeadLetterErrorDescription: description } = dead[1].message.application_properties;
    assert.deepEqual([reason, description], ["my:reason", "mine"]);
  });

  scenario("S24 the third failed delivery is the last", async (connection) => {
    await sendAccepted(await openSender(connection, "s24"), { body: 1 });
    const receiver = await openReceiver(connection, "s24");
    for (const count of [0, 1, 2]) {
      const received = await receiveOne(receiver);
      assert.deepEqual(counts([received]), [count]);
      await settle(received, "modified", { delivery_failed: true });
    }
    assert.deepEqual(await receiveAvailable(receiver), []);
    const { message } = await receiveOne(await openReceiver(connection, "s24/$DeadLetterQueue"));
    assert.equal(message.application_properties.DeadLetterReason, "MaxDeliveryCountExceeded");
  });

  scenario("S26 the settlement of a lost lock is rejected", async (connection) => {
    await sendAccepted(await openSender(connection, "s26"), { body: 1 });
    const receiver = await openReceiver(connection, "s26");
    const first = await receiveOne(receiver);
    const second = await receiveOne(receiver);
    assert.deepEqual(counts([second]), [1]);
    const { name, error } = await settle(first, "accepted");
    assert.deepEqual([name, error.condition], ["rejected", "com.microsoft:message-lock-lost"]);
    await accept(second);
  });

  scenario("S31 what a lost connection held comes back when its lock ends", async (connection) => {
    await sendBatch(await openSender(connection, "s31"), batchOf(3));
    const other = await connect();
    await receiveOne(await openReceiver(other, "s31"));
    other.socket.destroy();
    const receiver = await openReceiver(connection, "s31");
    const rest = await receiveAvailable(receiver);
    assert.deepEqual(bodies(rest), [2, 3]);
    await accept(...rest);
    const held = await receiveOne(receiver);
    assert.deepEqual([bodies([held]), counts([held])], [[1], [1]]);
  });

  scenario("S32 released messages are there at once, and count nothing", async (connection) => {
    await sendBatch(await openSender(connection, "s32"), batchOf(2));
    const receiver = await openReceiver(connection, "s32");
    for (const received of await receive(receiver, 2)) {
      assert.deepEqual(await settle(received, "released"), { name: "released" });
    }
    const again = await receiveAvailable(await openReceiver(connection, "s32"));
    assert.deepEqual([bodies(again), counts(again)], [[1, 2], [0, 0]]);
  });

  scenario("S35 two receivers share 200 messages", async (connection) => {
    const receivers = [
      await openReceiver(connection, "s35", { credit_window: 10 }),
      await openReceiver(connection, "s35", { credit_window: 10 }),
    ];
    const seen = [];
    for (const receiver of receivers) {
      receiver.on("message", ({ message, delivery }) => {
        seen.push(message.body);
        delivery.accept();
      });
    }
    const all = Promise.race(receivers.map((receiver) => event(receiver, "message", () => seen.length === 200)));
    await sendBatch(await openSender(connection, "s35"), batchOf(200));
    await all;
    assert.deepEqual(seen.sort((one, another) => one - another), range(1, 200));
  });

  scenario("S37 one disposition settles a range, and settles first", async (connection) => {
    await sendBatch(await openSender(connection, "s37"), batchOf(20));
    const receiver = await openReceiver(connection, "s37", { rcv_settle_mode: 0 });
    assert.equal(receiver.rcv_settle_mode, 0);
    const ids = (await receive(receiver, 20)).map(({ delivery }) => delivery.id);
    for (const [first, last] of [[ids[10], ids[19]], [ids[0], ids[9]]]) {
      const state = rhea.message.accepted().described();
      receiver.session.output(frames.disposition({ role: true, first, last, settled: true, state }));
    }
    connection._register();
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s37")), []);
  });
});
