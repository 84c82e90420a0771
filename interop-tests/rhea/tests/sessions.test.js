// Message sessions at the level of links: filters, waits, locks; and what the management node says of them.

import assert from "node:assert/strict";
import {
  SESSION_FILTER, accept, bodies, closeLink, close, connect, elementType, ended, event, numbers, openManagement, openReceiver,
  openSender, openSession, receive, receiveAvailable, receiveOne, sections, send, sendAccepted, sendBatch, sessionLockedUntil,
  sessionOf, settle, topic, typeName, typedMap, types,
} from "../harness.js";

/** The filter's descriptor, where a client describes its value: Go and Rust. */
const DESCRIPTOR = 0x137000000c;

/** Sends one message to each session named, with bodies 1, 2, 3… */
async function sendTo(connection, queue, ...sessions) {
  await sendBatch(await openSender(connection, queue), sessions.map((group_id, index) => ({ group_id, body: index + 1 })));
}

function counts(received) {
  return received.map(({ message }) => message.delivery_count ?? 0);
}

/** Management of an entity, on behalf of a session's receiver. */
async function manage(connection, queue, receiver) {
  const request = await openManagement(connection, queue);
  const properties = { "associated-link-name": receiver.name };
  return (operation, body) => request(`com.microsoft:${operation}`, body, { properties });
}

topic("sessions", (scenario) => {
  scenario("A1 the filter comes back as it was asked for, with the session", async (connection) => {
    await sendTo(connection, "a1", "a", "b", "c", "d");
    const named = await openSession(connection, "a1", "b");
    assert.equal(sessionOf(named), "b");
    const described = await openSession(connection, "a1", types.wrap_described("c", DESCRIPTOR));
    const filter = described.source.filter[SESSION_FILTER];
    assert.deepEqual([Number(filter.descriptor.value), filter.value], [DESCRIPTOR, "c"]);
    const next = await openSession(connection, "a1", null);
    assert.equal(sessionOf(next), "a");
    const describedNext = await openSession(connection, "a1", types.wrap_described(null, DESCRIPTOR));
    const { descriptor, value } = describedNext.source.filter[SESSION_FILTER];
    assert.deepEqual([Number(descriptor.value), value], [DESCRIPTOR, "d"]);
    for (const [receiver, body] of [[named, 2], [described, 3], [next, 1], [describedNext, 4]]) {
      assert.deepEqual(bodies(await receiveAvailable(receiver)), [body]);
      assert.ok(Math.abs(sessionLockedUntil(receiver) - Date.now() - 60_000) < 5_000);
    }
  });

  scenario("A2 the wait is the link's timeout, and its end is said in an attach and a detach", async (connection) => {
    const since = Date.now();
    await assert.rejects(openSession(connection, "a2", null, { timeout: 1_500 }), { condition: "com.microsoft:timeout" });
    const waited = Date.now() - since;
    assert.ok(waited >= 1_500 && waited < 3_000, `${waited} ms`);
  });

  scenario("A3 a wait whose link or connection goes away locks nothing", async (connection) => {
    const address = "a3";
    const link = connection.open_receiver({ source: { address, filter: { [SESSION_FILTER]: null } }, credit_window: 0 });
    const other = await connect();
    other.open_receiver({ source: { address, filter: { [SESSION_FILTER]: null } }, credit_window: 0 });
    // Another link on each connection is answered after that.
    await openSender(connection, address);
    await openSender(other, address);
    link.detach();
    await event(link, "receiver_close");
    other.socket.destroy();
    await sendTo(connection, address, "a");
    const receiver = await openSession(connection, address, null, { timeout: 5_000 });
    assert.equal(sessionOf(receiver), "a");
  });

  scenario("A4 a session that is locked is refused at once", async (connection) => {
    await openSession(connection, "a4", "a");
    const since = Date.now();
    await assert.rejects(openSession(connection, "a4", "a"), { condition: "com.microsoft:session-cannot-be-locked" });
    assert.ok(Date.now() - since < 1_000);
    // Under any other name it is another session, and the empty name is one.
    for (const name of ["A", ""]) assert.equal(sessionOf(await openSession(connection, "a4", name)), name);
  });

  scenario("A5 a session that expires ends its link, and counts", async (connection) => {
    await sendTo(connection, "a5", "a", "a");
    const receiver = await openSession(connection, "a5", "a");
    const [first] = await receive(receiver, 1);
    const { condition } = await ended(receiver);
    assert.equal(condition, "com.microsoft:session-lock-lost");
    const again = await receive(await openSession(connection, "a5", "a"), 2);
    assert.deepEqual([bodies(again), counts(again)], [[1, 2], [1, 0]]);
    assert.equal(first.message.body, 1);
  });

  scenario("A6 a link that is closed, and a connection that is lost, free the session and count nothing", async (connection) => {
    await sendTo(connection, "a6", "a", "a");
    const first = await openSession(connection, "a6", "a");
    await receive(first, 2);
    await closeLink(first);
    const other = await connect();
    const second = await receive(await openSession(other, "a6", "a"), 2);
    assert.deepEqual([bodies(second), counts(second)], [[1, 2], [0, 0]]);
    other.socket.destroy();
    const third = await receive(await openSession(connection, "a6", null), 2);
    assert.deepEqual([bodies(third), counts(third)], [[1, 2], [0, 0]]);
  });

  scenario("A7 released and abandoned messages come first again", async (connection) => {
    await sendTo(connection, "a7", "a", "a", "a");
    const receiver = await openSession(connection, "a7", "a");
    const [first, second] = await receive(receiver, 2);
    await settle(first, "released");
    await settle(second, "modified", { delivery_failed: true });
    const again = await receive(receiver, 3);
    assert.deepEqual([bodies(again), counts(again)], [[1, 2, 3], [0, 1, 0]]);
    await accept(...again);
  });

  scenario("A8 the management node renews, keeps a state, and only for who holds the lock", async (connection) => {
    await sendTo(connection, "a8", "a", "b");
    const receiver = await openSession(connection, "a8", "a");
    const request = await manage(connection, "a8", receiver);

    const renewed = await request("renew-session-lock", { "session-id": "a" });
    assert.equal(renewed.status, 200);
    assert.equal(typedMap(sections(renewed.raw).value[0]).expiration[0], "timestamp");
    assert.ok(Math.abs(renewed.body.expiration - Date.now() - 60_000) < 5_000);

    const get = async () => (await request("get-session-state", { "session-id": "a" })).body["session-state"];
    assert.equal(await get(), null);
    for (const state of [Buffer.from([0, 1, 2]), Buffer.alloc(0), Buffer.alloc(100_000, 7), null]) {
      assert.equal((await request("set-session-state", { "session-id": "a", "session-state": state })).status, 200);
      assert.deepEqual(await get(), state);
    }

    for (const [operation, more] of [["renew-session-lock"], ["get-session-state"], ["set-session-state", { "session-state": null }]]) {
      const { status, condition } = await request(operation, { "session-id": "b", ...more });
      assert.deepEqual([operation, status, condition], [operation, 410, "com.microsoft:session-lock-lost"]);
    }
    const { status } = await request("renew-session-lock", {});
    assert.equal(status, 400);
  });

  scenario("A9 sessions are listed by their messages and states", async (connection) => {
    const request = await openManagement(connection, "a9");
    const list = (skip, top, since) => request("com.microsoft:get-message-sessions", {
      "last-updated-time": types.wrap_timestamp(since), skip: types.wrap_int(skip), top: types.wrap_int(top),
    });
    const NOW = 253_402_300_799_999;
    const none = await list(0, 100, NOW);
    assert.equal(none.status, 204);
    await sendTo(connection, "a9", "a", "b", "c");
    const stated = await openSession(connection, "a9", "state");
    const set = await manage(connection, "a9", stated);
    await set("set-session-state", { "session-id": "state", "session-state": Buffer.from("x") });
    const consumed = await openSession(connection, "a9", "c");
    await accept(...(await receive(consumed, 1)));

    const all = await list(0, 100, NOW);
    assert.equal(all.status, 200);
    const { "sessions-ids": ids } = Object.fromEntries(entries(all));
    assert.deepEqual([typeName(ids), elementType(ids)], ["array", "string"]);
    assert.deepEqual(all.body["sessions-ids"].sort(), ["a", "b", "state"]);
    const pages = [];
    for (let skip = 0; ;) {
      const page = await list(skip, 2, NOW);
      if (page.status === 204) break;
      pages.push(...page.body["sessions-ids"]);
      skip += page.body["sessions-ids"].length;
    }
    assert.deepEqual(pages.sort(), ["a", "b", "state"]);
    // By the time of a state's change, a mere message counts nothing.
    const changed = await list(0, 100, Date.now() - 60_000);
    assert.deepEqual(changed.body["sessions-ids"], ["state"]);
    assert.equal((await list(0, 100, Date.now() + 60_000)).status, 204);
  });

  scenario("A10 messages of a session are settled, peeked and received by number for who holds it", async (connection) => {
    await sendTo(connection, "a10", "a", "b", "a");
    const receiver = await openSession(connection, "a10", "a");
    const request = await manage(connection, "a10", receiver);
    const [first, second] = await receive(receiver, 2);
    await settle(first, "modified", { undeliverable_here: true });
    const peek = (more) => request("peek-message", { "from-sequence-number": 0, "message-count": 10, ...more });
    assert.equal((await peek({ "session-id": "a" })).body.messages.length, 2);
    assert.equal((await peek({})).body.messages.length, 3);
    const byNumber = (session, number) => request("receive-by-sequence-number", {
      "sequence-numbers": types.wrap_list([number]), "receiver-settle-mode": types.wrap_uint(1), "session-id": session,
    });
    const deferred = await byNumber("a", 1);
    assert.equal(deferred.status, 200);
    const token = types.wrap_uuid(deferred.body.messages[0]["lock-token"]);
    const done = await request("update-disposition", {
      "disposition-status": "completed", "lock-tokens": types.wrap_list([token]), "session-id": "a",
    });
    assert.equal(done.status, 200);
    assert.equal((await byNumber("a", 1)).status, 404);
    await accept(second);
    assert.equal((await peek({ "session-id": "a" })).status, 204);
  });

  scenario("A11 what has no session, and what needs none, is refused", async (connection) => {
    const { error } = await send(await openSender(connection, "a11"), { body: 1 });
    assert.equal(error.condition, "amqp:not-allowed");
    await assert.rejects(openReceiver(connection, "a11"), { condition: "amqp:not-allowed", description: /requires sessions/ });
    for (const id of ["a", null]) {
      await assert.rejects(openSession(connection, "a11b", id), { condition: "amqp:not-allowed", description: /not require sessions/ });
    }
    await assert.rejects(openSession(connection, "a11/$DeadLetterQueue", "a"), { condition: "amqp:not-allowed" });
  });

  scenario("A12 one message cannot be renewed in a session, and tells the session's lock", async (connection) => {
    await sendTo(connection, "a12", "a");
    const receiver = await openSession(connection, "a12", "a");
    const { message } = await receiveOne(receiver);
    assert.ok(Math.abs(message.message_annotations["x-opt-locked-until"] - sessionLockedUntil(receiver)) < 1_000);
    assert.equal(message.group_id, "a");
    assert.deepEqual(numbers([{ message }]), [1]);
  });
});

/** The body of an answer as typed pairs. */
function entries({ raw }) {
  const { value } = sections(raw).value[0];
  return value.flatMap((key, index) => (index % 2 ? [] : [[key.value, value[index + 1]]]));
}
