// Message sessions at the level of links: filters, waits, locks; and what the management node says of them.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import frames from "rhea/lib/frames.js";
import {
  SESSION_FILTER, accept, bodies, close, closeLink, connect, elementType, ended, event, lockToken, openManagement, openReceiver,
  openSender, openSession, range, receive, receiveAvailable, sections, send, sendBatch, sessionLockedUntil, sessionOf, settle,
  topic, typeName, typedMap, types,
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
  scenario("S101 the filter comes back as it was asked for, with the session", async (connection) => {
    await sendTo(connection, "s101", "a", "b", "c", "d");
    const named = await openSession(connection, "s101", "b");
    assert.equal(sessionOf(named), "b");
    const described = await openSession(connection, "s101", types.wrap_described("c", DESCRIPTOR));
    const filter = described.source.filter[SESSION_FILTER];
    assert.deepEqual([Number(filter.descriptor.value), filter.value], [DESCRIPTOR, "c"]);
    const next = await openSession(connection, "s101", null);
    assert.equal(sessionOf(next), "a");
    const describedNext = await openSession(connection, "s101", types.wrap_described(null, DESCRIPTOR));
    const { descriptor, value } = describedNext.source.filter[SESSION_FILTER];
    assert.deepEqual([Number(descriptor.value), value], [DESCRIPTOR, "d"]);
    for (const [receiver, body] of [[named, 2], [described, 3], [next, 1], [describedNext, 4]]) {
      assert.deepEqual(bodies(await receiveAvailable(receiver)), [body]);
      assert.ok(Math.abs(sessionLockedUntil(receiver) - Date.now() - 60_000) < 5_000);
    }
  });

  scenario("S101 a filter that is no name, or too long, is refused", async (connection) => {
    const filters = [types.wrap_int(5), types.wrap_list([]), types.wrap_binary(Buffer.from("x"))];
    for (const filter of filters) await assert.rejects(openSession(connection, "s102", filter), { condition: "amqp:invalid-field" });
    await assert.rejects(openSession(connection, "s102", "x".repeat(129)), (error) => Boolean(error.condition));
  });

  scenario("S105 who waits longest is served first, with the credit given meanwhile", async (connection) => {
    const granted = [];
    const waits = range(1, 5).map(async (index) => {
      const receiver = await openSession(connection, "s105", null);
      granted.push([index, sessionOf(receiver)]);
    });
    // Its credit is there before its session is.
    const last = connection.open_receiver({ source: { address: "s105", filter: { [SESSION_FILTER]: null } }, credit_window: 0 });
    last.add_credit(2);
    const arrived = event(last, "message");
    await openSender(connection, "s105");
    await sendTo(connection, "s105", "a", "b", "c", "d", "e", "f");
    await Promise.all(waits);
    assert.deepEqual(granted, [[1, "a"], [2, "b"], [3, "c"], [4, "d"], [5, "e"]]);
    assert.equal((await arrived).message.group_id, "f");
  });

  scenario("S116 twenty connections share a hundred sessions, while more is sent", async (connection) => {
    const [total, sessions] = [4_000, 100];
    const seen = {};
    const held = new Set();
    let count = 0;
    const work = async () => {
      const worker = await connect();
      while (count < total) {
        const receiver = await openSession(worker, "s116", null, { timeout: 500 }).catch((error) => {
          assert.equal(error.condition, "com.microsoft:timeout");
        });
        if (!receiver) continue;
        const id = sessionOf(receiver);
        assert.ok(!held.has(id), `${id} is held twice`);
        held.add(id);
        const messages = await receiveAvailable(receiver, 10);
        await accept(...messages);
        (seen[id] ??= []).push(...bodies(messages));
        count += messages.length;
        held.delete(id);
        await closeLink(receiver);
      }
      await close(worker);
    };
    const workers = range(1, 20).map(work);
    const sender = await openSender(connection, "s116");
    for (let first = 0; first < total; first += 100) {
      await sendBatch(sender, range(first, first + 99).map((body) => ({ body, group_id: `session-${body % sessions}` })));
    }
    await Promise.all(workers);
    for (let session = 0; session < sessions; session += 1) {
      const wanted = range(0, total / sessions - 1).map((index) => session + index * sessions);
      assert.deepEqual(seen[`session-${session}`], wanted);
    }
  });

  scenario("S104 the wait is the link's timeout, and its end is said in an attach and a detach", async (connection) => {
    const since = Date.now();
    await assert.rejects(openSession(connection, "s104", null, { timeout: 1_500 }), { condition: "com.microsoft:timeout" });
    const waited = Date.now() - since;
    assert.ok(waited >= 1_500 && waited < 3_000, `${waited} ms`);
  });

  scenario("S107 a wait whose link, session or connection goes away locks nothing", async (connection) => {
    const wait = (parent) => parent.open_receiver({ source: { address: "s107", filter: { [SESSION_FILTER]: null } }, credit_window: 0 });
    const link = wait(connection);
    const session = connection.create_session();
    session.begin();
    wait(session);
    const other = await connect();
    wait(other);
    // Other links are answered after that.
    for (const parent of [connection, session, other]) await openSender(parent, "s107");
    // rhea attaches again when it detaches what is not attached yet: it is not asked.
    link.close = () => {};
    link.session.output(frames.detach({ handle: link.local.handle, closed: true }));
    connection._register();
    await event(link, "receiver_close");
    const closed = event(session, "session_close");
    session.close();
    await closed;
    other.socket.destroy();
    await sendTo(connection, "s107", "a");
    const receiver = await openSession(connection, "s107", null, { timeout: 5_000 });
    assert.equal(sessionOf(receiver), "a");
    assert.deepEqual(bodies(await receive(receiver, 1)), [1]);
  });

  scenario("S109 a session that is locked is refused at once", async (connection) => {
    await openSession(connection, "s109", "a");
    const since = Date.now();
    await assert.rejects(openSession(connection, "s109", "a"), { condition: "com.microsoft:session-cannot-be-locked" });
    assert.ok(Date.now() - since < 1_000);
    // Under any other name it is another session, and the empty name is one.
    for (const name of ["A", ""]) assert.equal(sessionOf(await openSession(connection, "s109", name)), name);
  });

  scenario("S111 a session that expires ends its link, and counts", async (connection) => {
    await sendTo(connection, "s111", "a", "a");
    const receiver = await openSession(connection, "s111", "a");
    const [first] = await receive(receiver, 1);
    const { condition } = await ended(receiver);
    assert.equal(condition, "com.microsoft:session-lock-lost");
    const again = await receive(await openSession(connection, "s111", "a"), 2);
    assert.deepEqual([bodies(again), counts(again)], [[1, 2], [1, 0]]);
    assert.equal(first.message.body, 1);
  });

  scenario("S114 a link that is closed, and a connection that is lost, free the session and count nothing", async (connection) => {
    await sendTo(connection, "s114", "a", "a");
    const first = await openSession(connection, "s114", "a");
    await receive(first, 2);
    await closeLink(first);
    const other = await connect();
    const second = await receive(await openSession(other, "s114", "a"), 2);
    assert.deepEqual([bodies(second), counts(second)], [[1, 2], [0, 0]]);
    other.socket.destroy();
    const third = await receive(await openSession(connection, "s114", null), 2);
    assert.deepEqual([bodies(third), counts(third)], [[1, 2], [0, 0]]);
  });

  scenario("S115 released and abandoned messages come first again", async (connection) => {
    await sendTo(connection, "s115", "a", "a", "a");
    const receiver = await openSession(connection, "s115", "a");
    const [first, second] = await receive(receiver, 2);
    await settle(first, "released");
    await settle(second, "modified", { delivery_failed: true });
    const again = await receive(receiver, 3);
    assert.deepEqual([bodies(again), counts(again)], [[1, 2, 3], [0, 1, 0]]);
    await accept(...again);
  });

  scenario("S118 the management node renews, keeps a state, and only for who holds the lock", async (connection) => {
    await sendTo(connection, "s118", "a", "b");
    const receiver = await openSession(connection, "s118", "a");
    const request = await manage(connection, "s118", receiver);

    const renewed = await request("renew-session-lock", { "session-id": "a" });
    assert.equal(renewed.status, 200);
    assert.equal(typedMap(sections(renewed.raw).value[0]).expiration[0], "timestamp");
    assert.ok(Math.abs(renewed.body.expiration - Date.now() - 60_000) < 5_000);

    const get = async () => (await request("get-session-state", { "session-id": "a" })).body["session-state"];
    assert.equal(await get(), null);
    for (const state of [Buffer.from([0, 1, 2]), Buffer.alloc(0), Buffer.alloc(100_000, 7), null]) {
      assert.equal((await request("set-session-state", { "session-id": "a", "session-state": state })).status, 200);
      // No bytes are no state.
      assert.deepEqual(await get(), state?.length ? state : null);
    }

    for (const [operation, more] of [["renew-session-lock"], ["get-session-state"], ["set-session-state", { "session-state": null }]]) {
      const { status, condition } = await request(operation, { "session-id": "b", ...more });
      assert.deepEqual([operation, status, condition], [operation, 410, "com.microsoft:session-lock-lost"]);
    }
    const { status } = await request("renew-session-lock", {});
    assert.equal(status, 400);
  });

  scenario("S120 S121 sessions are listed by their messages and states", async (connection) => {
    const request = await openManagement(connection, "s120");
    const list = (skip, top, since) => request("com.microsoft:get-message-sessions", {
      "last-updated-time": types.wrap_timestamp(since), skip: types.wrap_int(skip), top: types.wrap_int(top),
    });
    const NOW = 253_402_300_799_999;
    const none = await list(0, 100, NOW);
    assert.equal(none.status, 204);
    await sendTo(connection, "s120", "a", "b", "c");
    const stated = await openSession(connection, "s120", "state");
    const set = await manage(connection, "s120", stated);
    await set("set-session-state", { "session-id": "state", "session-state": Buffer.from("x") });
    const consumed = await openSession(connection, "s120", "c");
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
    // A session without message and state is none.
    await set("set-session-state", { "session-id": "state", "session-state": null });
    assert.deepEqual((await list(0, 100, NOW)).body["sessions-ids"].sort(), ["a", "b"]);
  });

  scenario("S122 S123 S136 many sessions are listed, of whatever name, and none where there are none", async (connection) => {
    const names = [...range(1, 249).map((index) => `session-${index}`), "ü ÿ ≠ / ".padEnd(128, "x")];
    const sender = await openSender(connection, "s122");
    await sendBatch(sender, names.map((group_id) => ({ group_id, body: 1 })));
    const { error } = await send(sender, { group_id: "x".repeat(129), body: 1 });
    assert.ok(error);
    const request = await openManagement(connection, "s122");
    const found = [];
    for (;;) {
      const page = await request("com.microsoft:get-message-sessions", {
        "last-updated-time": types.wrap_timestamp(253_402_300_799_999), skip: types.wrap_int(found.length), top: types.wrap_int(100),
      });
      if (page.status === 204) break;
      assert.ok(page.body["sessions-ids"].length <= 100);
      found.push(...page.body["sessions-ids"]);
    }
    assert.deepEqual(found.sort(), names.sort());
    const plain = await openManagement(connection, "s123b");
    const none = await plain("com.microsoft:get-message-sessions", {
      "last-updated-time": types.wrap_timestamp(0), skip: types.wrap_int(0), top: types.wrap_int(100),
    });
    assert.ok(none.status === 204 || none.status === 400, String(none.status));
  });

  scenario("S212 the next session is found in whichever partition", async (connection) => {
    const sender = await openSender(connection, "s212");
    for (const body of range(0, 11)) await send(sender, { body, group_id: `session-${body % 4}` });
    const seen = {};
    for (let count = 0; count < 4; count += 1) {
      const receiver = await openSession(connection, "s212", null, { timeout: 5_000 });
      seen[sessionOf(receiver)] = bodies(await receiveAvailable(receiver));
    }
    assert.deepEqual(seen, {
      "session-0": [0, 4, 8], "session-1": [1, 5, 9], "session-2": [2, 6, 10], "session-3": [3, 7, 11],
    });
    const annotations = { "x-opt-partition-key": "other" };
    const { error } = await send(sender, { body: 1, group_id: "session-0", message_annotations: annotations });
    assert.equal(error.condition, "amqp:not-allowed");
  });

  scenario("S124 S126 messages of a session are settled, peeked and received by number for who holds it", async (connection) => {
    await sendTo(connection, "s124", "a", "b", "a");
    const receiver = await openSession(connection, "s124", "a");
    const request = await manage(connection, "s124", receiver);
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

  scenario("S127 S128 S129 S130 what has no session, and what needs none, is refused", async (connection) => {
    const { error } = await send(await openSender(connection, "s127"), { body: 1 });
    assert.equal(error.condition, "amqp:not-allowed");
    await assert.rejects(openReceiver(connection, "s127"), { condition: "amqp:not-allowed", description: /requires sessions/ });
    for (const id of ["a", null]) {
      await assert.rejects(openSession(connection, "s129", id), { condition: "amqp:not-allowed", description: /not require sessions/ });
    }
    await assert.rejects(openSession(connection, "s127/$DeadLetterQueue", "a"), { condition: "amqp:not-allowed" });
  });

  scenario("S137 the node settles and renews for the holder, and for nobody else", async (connection) => {
    await sendTo(connection, "s137", "x", "x");
    const holder = await openSession(connection, "s137", "x");
    const received = await receive(holder, 2);
    const other = await openSession(connection, "s137", "y");
    for (const { message } of received) {
      assert.equal(new Date(message.message_annotations["x-opt-locked-until"]).getUTCFullYear(), 9999);
      assert.equal(message.group_id, "x");
    }
    const [mine, theirs] = [await manage(connection, "s137", holder), await manage(connection, "s137", other)];
    const tokens = received.map((each) => types.wrap_list([lockToken(each)]));
    const complete = (request, token) => request("update-disposition", {
      "disposition-status": "completed", "lock-tokens": token, "session-id": "x",
    });
    const refused = await complete(theirs, tokens[0]);
    assert.deepEqual([refused.status, refused.condition], [410, "com.microsoft:session-lock-lost"]);
    assert.equal((await complete(mine, tokens[0])).status, 200);
    // The session is held still: it is the message's lock that is gone.
    const unknown = types.wrap_list([types.wrap_uuid(randomBytes(16))]);
    for (const token of [tokens[0], unknown]) {
      for (const named of [{ "session-id": "x" }, {}]) {
        const lost = await mine("update-disposition", { "disposition-status": "completed", "lock-tokens": token, ...named });
        assert.deepEqual([lost.status, lost.condition], [410, "com.microsoft:message-lock-lost"]);
      }
    }
    // A message's own lock is the session's: there is nothing to renew.
    assert.notEqual((await mine("renew-lock", { "lock-tokens": tokens[1], "session-id": "x" })).status, 200);
    assert.equal((await mine("renew-session-lock", { "session-id": "x" })).status, 200);
    const state = await theirs("get-session-state", { "session-id": "x" });
    assert.deepEqual([state.status, state.condition], [410, "com.microsoft:session-lock-lost"]);
    await accept(received[1]);
  });
});

/** The body of an answer as typed pairs. */
function entries({ raw }) {
  const { value } = sections(raw).value[0];
  return value.flatMap((key, index) => (index % 2 ? [] : [[key.value, value[index + 1]]]));
}
