// Who holds a session and for how long, what is scheduled on topics and forwards, and what else links alone can show.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import rhea from "rhea";
import {
  ANONYMOUS, accept, bodies, close, closeLink, connect, numbers, openManagement, openReceiveAndDelete, openReceiver,
  openSender, openSession, range, receive, receiveAvailable, receiveOne, sendAccepted, sendBatch, sessionOf, settle,
  topic, types,
} from "../harness.js";

const { message: build } = rhea;
const CANNOT_BE_LOCKED = { condition: "com.microsoft:session-cannot-be-locked" };
const TIMEOUT = { condition: "com.microsoft:timeout" };

const at = (name, subscription) => `${name}/Subscriptions/${subscription}`;
const dead = (entity) => `${entity}/$DeadLetterQueue`;
const counts = (received) => received.map(({ message }) => message.delivery_count ?? 0);
const data = (size) => build.data_section(Buffer.alloc(size, 7));

/** Sends one message to each session named, with bodies 1, 2, 3… */
async function sendTo(connection, address, ...sessions) {
  await sendBatch(await openSender(connection, address), sessions.map((group_id, index) => ({ group_id, body: index + 1 })));
}

/** A message for this many milliseconds from now. */
function later(milliseconds, message) {
  const time = types.wrap_timestamp(Date.now() + milliseconds);
  return { ...message, message_annotations: { "x-opt-scheduled-enqueue-time": time } };
}

async function schedule(request, ...messages) {
  const { status, body } = await request("com.microsoft:schedule-message", {
    messages: messages.map((message) => ({ "message-id": message.message_id, message: types.wrap_binary(build.encode(message)) })),
  });
  assert.equal(status, 200);
  return body["sequence-numbers"];
}

function longs(wanted) {
  return { "sequence-numbers": types.wrap_list(wanted.map((each) => types.wrap_long(each))) };
}

async function renewSession(connection, address, receiver) {
  const request = await openManagement(connection, address);
  const properties = { "associated-link-name": receiver.name };
  return async () => {
    const { status, body } = await request("com.microsoft:renew-session-lock", { "session-id": sessionOf(receiver) }, { properties });
    assert.equal(status, 200);
    return Number(body.expiration);
  };
}

topic("session holders", (scenario) => {
  scenario("S102 S103 next sessions are those that have messages and no holder", async (connection) => {
    await sendTo(connection, "s102", "x");
    assert.equal(sessionOf(await openSession(connection, "s102", null)), "x");
    await sendTo(connection, "s103", "x", "y");
    const two = [await openSession(connection, "s103", null), await openSession(connection, "s103", null)];
    assert.deepEqual(two.map(sessionOf).sort(), ["x", "y"]);
    for (const each of two) assert.equal((await receiveOne(each)).message.group_id, sessionOf(each));
    await assert.rejects(openSession(connection, "s103", null, { timeout: 3_000 }), TIMEOUT);
  });

  scenario("S106 a session that is given up goes to who waits", async (connection) => {
    await sendTo(connection, "s106", "x", "x");
    const holder = await openSession(connection, "s106", "x");
    await accept(await receiveOne(holder));
    const waiting = openSession(connection, "s106", null, { timeout: 20_000 });
    await closeLink(holder);
    const next = await waiting;
    assert.deepEqual([sessionOf(next), bodies(await receiveAvailable(next))], ["x", [2]]);
  });

  scenario("S108 S117 a session that has no message is held, and what comes goes to its holder", async (connection) => {
    const holder = await openSession(connection, "s108", "new");
    await assert.rejects(openSession(connection, "s108", "new"), CANNOT_BE_LOCKED);
    await sendTo(connection, "s108", "new");
    assert.deepEqual(bodies(await receive(holder, 1)), [1]);

    await sendTo(connection, "s117", "x");
    const other = await openSession(connection, "s117", "x");
    await accept(await receiveOne(other));
    const waiting = assert.rejects(openSession(connection, "s117", null, { timeout: 3_000 }), TIMEOUT);
    await sendTo(connection, "s117", "x", "x", "x");
    assert.deepEqual(bodies(await receive(other, 3)), [1, 2, 3]);
    await waiting;
  });

  scenario("S110 a session's lock that is renewed lasts", async (connection) => {
    await sendTo(connection, "s110", "x");
    const holder = await openSession(connection, "s110", "x");
    const received = await receiveOne(holder);
    const renew = await renewSession(connection, "s110", holder);
    let last = 0;
    for (const _ of range(1, 4)) {
      await pause(2_000);
      const until = await renew();
      assert.ok(until > last && Math.abs(until - Date.now() - 5_000) < 2_000);
      last = until;
      await assert.rejects(openSession(connection, "s110", "x"), CANNOT_BE_LOCKED);
    }
    await accept(received);
  });

  scenario("S113 S134 a session that is given up brings its messages again, uncounted and in order", async (connection) => {
    for (const [queue, sent, taken] of [["s113", 3, 2], ["s134", 10, 10]]) {
      await sendTo(connection, queue, ...Array(sent).fill("x"));
      const holder = await openSession(connection, queue, "x");
      const [first] = await receive(holder, taken);
      if (queue === "s134") await accept(first);
      await closeLink(holder);
      const again = await receiveAvailable(await openSession(connection, queue, "x"));
      const wanted = range(queue === "s134" ? 2 : 1, sent);
      assert.deepEqual([bodies(again), counts(again)], [wanted, wanted.map(() => 0)]);
    }
  });

  scenario("S119 a session without messages keeps its state", async (connection) => {
    const state = Buffer.alloc(200 * 1024, 9);
    for (const ask of ["set", "get"]) {
      const holder = await openSession(connection, "s119", "idle");
      const request = await openManagement(connection, "s119");
      const { status, body } = await request(`com.microsoft:${ask}-session-state`, {
        "session-id": "idle", ...(ask === "set" && { "session-state": types.wrap_binary(state) }),
      }, { properties: { "associated-link-name": holder.name } });
      assert.equal(status, 200);
      if (ask === "get") assert.ok(state.equals(body["session-state"]));
      await closeLink(holder);
    }
  });

  scenario("S125 a scheduled message comes to its session when it is due", async (connection) => {
    const request = await openManagement(connection, "s125");
    const message = (id) => later(3_000, { message_id: id, group_id: "x", body: id });
    const began = Date.now();
    const scheduled = await schedule(request, message("stays"), message("goes"));
    assert.equal((await request("com.microsoft:cancel-scheduled-message", longs([scheduled[1]]))).status, 200);
    const holder = await openSession(connection, "s125", null, { timeout: 10_000 });
    assert.ok(Date.now() - began > 2_000);
    const [received] = await receiveAvailable(holder);
    assert.deepEqual([sessionOf(holder), received.message.body], ["x", "stays"]);
    assert.ok(numbers([received])[0] > Math.max(...scheduled));
  });

  scenario("S131 S132 in a session a message is given up, and others are taken for good", async (connection) => {
    await sendTo(connection, "s131", "x", "x");
    const holder = await openSession(connection, "s131", "x");
    for (const _ of range(1, 2)) await settle(await receiveOne(holder), "modified", { delivery_failed: true });
    assert.deepEqual(bodies(await receiveAvailable(holder)), [2]);
    const { message } = await receiveOne(await openReceiver(connection, dead("s131")));
    const { body, group_id: session, application_properties: properties } = message;
    assert.deepEqual([body, session, properties.DeadLetterReason], [1, "x", "MaxDeliveryCountExceeded"]);
    await sendTo(connection, "s132", "x", "x", "x");
    const taker = await openSession(connection, "s132", "x", { snd_settle_mode: 1, rcv_settle_mode: 0 });
    assert.deepEqual(bodies(await receive(taker, 3)), [1, 2, 3]);
    const request = await openManagement(connection, "s132");
    assert.equal((await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 1 })).status, 204);
  });

  scenario("S133 a message that has expired is no reason to grant its session", async (connection) => {
    await sendAccepted(await openSender(connection, "s133"), { body: 1, group_id: "x", ttl: 1_000 });
    const letter = await receiveOne(await openReceiver(connection, dead("s133")));
    const { body, group_id: session, application_properties: properties } = letter.message;
    assert.deepEqual([body, session, properties.DeadLetterReason], [1, "x", "TTLExpiredException"]);
    await assert.rejects(openSession(connection, "s133", null, { timeout: 3_000 }), TIMEOUT);
  });

  scenario("S135 a batch has messages of several sessions", async (connection) => {
    await sendTo(connection, "s135", "a", "b", "a");
    for (const [session, wanted] of [["a", [1, 3]], ["b", [2]]]) {
      assert.deepEqual(bodies(await receiveAvailable(await openSession(connection, "s135", session))), wanted);
    }
  });

  scenario("S147 S148 what is scheduled on a topic comes to its subscriptions, or is cancelled", async (connection) => {
    const request = await openManagement(connection, "s147");
    await schedule(request, later(3_000, { message_id: "node", body: "node" }));
    await sendAccepted(await openSender(connection, "s147"), later(3_000, { body: "link" }));
    for (const subscription of ["a", "b"]) {
      const receiver = await openReceiver(connection, at("s147", subscription));
      assert.deepEqual(bodies(await receive(receiver, 2)).sort(), ["link", "node"]);
    }
    const cancelling = await openManagement(connection, "s148");
    const three = await schedule(cancelling, ...["1", "2", "3"].map((id) => later(60_000, { message_id: id, body: id })));
    for (const [wanted, status] of [[three.slice(0, 1), 200], [three.slice(1), 200], [three.slice(0, 1), 404]]) {
      assert.equal((await cancelling("com.microsoft:cancel-scheduled-message", longs(wanted))).status, status);
    }
    const left = await cancelling("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 1 });
    assert.equal(left.status, 204);
  });

  scenario("S153 a message lives as long as topic and subscription allow", async (connection) => {
    await sendAccepted(await openSender(connection, "s153"), { body: 1 });
    for (const subscription of ["short", "keep"]) {
      const { message } = await receiveOne(await openReceiver(connection, dead(at("s153", subscription))));
      assert.deepEqual([message.body, message.application_properties.DeadLetterReason], [1, "TTLExpiredException"]);
    }
    for (const address of [at("s153", "drop"), dead(at("s153", "drop"))]) {
      assert.deepEqual(await receiveAvailable(await openReceiver(connection, address)), []);
    }
  });

  scenario("S201 what is scheduled goes on when it is due", async (connection) => {
    const request = await openManagement(connection, "s201");
    const message = (id) => later(4_000, { message_id: id, body: id });
    const [, cancelled] = await schedule(request, message("stays"), message("goes"));
    assert.equal((await request("com.microsoft:cancel-scheduled-message", longs([cancelled]))).status, 200);
    const receiver = await openReceiver(connection, "s201b");
    assert.deepEqual(await receiveAvailable(receiver), []);
    assert.deepEqual(bodies(await receive(receiver, 1)), ["stays"]);
  });

  scenario("S213 messages without a key are shared among partitions, and come once", async (connection) => {
    const sender = await openSender(connection, "s213");
    for (const first of range(0, 9)) await sendAccepted(sender, ...range(1, 10).map((index) => ({ body: 10 * first + index })));
    const received = await receive(await openReceiver(connection, "s213"), 100);
    assert.deepEqual(bodies(received).sort((one, other) => one - other), range(1, 100));
    const high = (number) => (Buffer.isBuffer(number) ? number.readUInt16BE() : Math.floor(number / 2 ** 48));
    assert.ok(new Set(numbers(received).map(high)).size >= 2);
    await accept(...received);
  });

  scenario("S251 a namespace is a host's name", async (connection) => {
    const other = await connect({ ...ANONYMOUS, hostname: "other.example" });
    for (const [each, body] of [[connection, "first"], [other, "other"]]) await sendAccepted(await openSender(each, "s251"), { body });
    for (const [each, body] of [[connection, "first"], [other, "other"]]) {
      const received = await receiveAvailable(await openReceiveAndDelete(each, "s251"));
      assert.deepEqual([bodies(received), numbers(received)], [[body], [1]]);
    }
    await openSender(other, "s251only");
    await assert.rejects(openSender(connection, "s251only"), { condition: "amqp:not-found" });
    await close(other);
  });

  scenario("S330 a full queue refuses batches whole, and schedules", async (connection) => {
    const sender = await openSender(connection, "s330");
    const message = () => ({ message_id: "id", body: data(100 * 1024) });
    let taken = 0;
    for (; taken < 30; taken += 3) {
      const { name, error } = await sendBatch(sender, [message(), message(), message()]);
      if (name === "accepted") continue;
      assert.equal(error.condition, "amqp:resource-limit-exceeded");
      break;
    }
    assert.ok(taken > 0 && taken < 30);
    const request = await openManagement(connection, "s330");
    let scheduled = 0;
    for (; scheduled < 30; scheduled += 1) {
      const encoded = types.wrap_binary(build.encode(later(3_600_000, message())));
      const messages = [{ "message-id": "id", message: encoded }];
      const { status, condition } = await request("com.microsoft:schedule-message", { messages });
      if (status === 200) continue;
      assert.deepEqual([status, condition], [403, "amqp:resource-limit-exceeded"]);
      break;
    }
    assert.ok(scheduled < 30);
    const there = await receiveAvailable(await openReceiver(connection, "s330"));
    assert.equal(there.length, taken);
  });
});
