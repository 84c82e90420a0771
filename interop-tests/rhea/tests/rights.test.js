// Who may only listen, or only send, at every operation of the management node and every kind of link.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import rhea from "rhea";
import {
  accept, bodies, close, commit, declare, ended, openCoordinator, openManagement, openReceiver, openSender, openSession, receive,
  receiveAvailable, receiveOne, sendAccepted, sendIn, settleIn, topic, types,
} from "../harness.js";
import {
  ROOT, UNAUTHORIZED, connectNameless, connectTo, secured, openTokens, signed,
} from "../endpoints.js";

const { wrap_int: int, wrap_list: list, wrap_long: long, wrap_timestamp: timestamp } = types;

const TOKENS = () => list([types.wrap_uuid(randomBytes(16))]);
const LATER = 3_600_000;
const encoded = (message) => types.wrap_binary(rhea.message.encode(message));

/** Each operation with what is asked, the right that it needs, and what it answers to who has it. */
const OPERATIONS = [
  ["s296m", "peek-message", () => ({ "from-sequence-number": long(0), "message-count": int(10) }), "listener", 204],
  ["s296m", "receive-by-sequence-number", () => ({
    "sequence-numbers": list([long(1)]), "receiver-settle-mode": types.wrap_uint(1),
  }), "listener", 404],
  ["s296m", "update-disposition", () => ({ "disposition-status": "completed", "lock-tokens": TOKENS() }), "listener", 410],
  ["s296m", "renew-lock", () => ({ "lock-tokens": TOKENS() }), "listener", 410],
  ["s296m", "batch-delete-messages", () => ({
    "message-count": int(10), "enqueued-time-utc": timestamp(Date.now()),
  }), "listener", 204],
  ["s296m", "schedule-message", () => ({
    messages: [{
      "message-id": "id",
      message: encoded({ body: 1, message_annotations: { "x-opt-scheduled-enqueue-time": timestamp(Date.now() + LATER) } }),
    }],
  }), "speaker", 200],
  ["s296m", "cancel-scheduled-message", () => ({ "sequence-numbers": list([long(1)]) }), "speaker", 200],
  ["s296ms", "get-message-sessions", () => ({
    "last-updated-time": timestamp(0), skip: int(0), top: int(10),
  }), "listener", 204],
  ["s296ms", "get-session-state", () => ({ "session-id": "x" }), "listener", 410],
  ["s296ms", "set-session-state", () => ({
    "session-id": "x", "session-state": types.wrap_binary(Buffer.from("state")),
  }), "listener", 410],
  ["s296ms", "renew-session-lock", () => ({ "session-id": "x" }), "listener", 410],
  ["s296p/Subscriptions/all", "enumerate-rules", () => ({ top: int(10), skip: int(0) }), "listener", 200],
  ["s296p/Subscriptions/all", "add-rule", () => ({
    "rule-name": "added", "rule-description": { "sql-filter": { expression: "1 = 1" } },
  }), "listener", 200],
  ["s296p/Subscriptions/all", "remove-rule", () => ({ "rule-name": "added" }), "listener", 200],
];

topic("rights", (scenario) => {
  scenario("S296 each operation of the management node needs its right", async () => {
    const connections = { listener: await connectTo(secured, "listener"), speaker: await connectTo(secured, "speaker") };
    const nodes = {};
    const found = [];
    const ask = async (who, node, operation, body) => {
      nodes[`${who} ${node}`] ??= await openManagement(connections[who], node);
      const { status, condition, description } = await nodes[`${who} ${node}`](`com.microsoft:${operation}`, body());
      if (status === 401) {
        assert.equal(condition, "amqp:unauthorized-access", operation);
        assert.match(description, new RegExp(`'${who === "listener" ? "Send" : "Listen"}' claim`), operation);
      }
      return status;
    };
    for (const [node, operation, body, needed] of OPERATIONS) {
      const lacking = needed === "listener" ? "speaker" : "listener";
      // Who lacks it asks first: what has been done already would be found.
      const refused = await ask(lacking, node, operation, body);
      found.push([node, operation, refused, await ask(needed, node, operation, body)]);
    }
    assert.deepEqual(found, OPERATIONS.map(([node, operation, , , status]) => [node, operation, 401, status]));
    for (const each of Object.values(connections)) await close(each);
  });

  scenario("S296 an operation that nobody knows is refused to who may do nothing with the entity", async (connection) => {
    const put = await openTokens(connection);
    const audience = "sb://localhost/s296m";
    assert.equal((await put(audience, signed(audience, "speaker"))).status, 202);
    const request = await openManagement(connection, "s296m");
    assert.equal((await request("com.microsoft:no-such-operation", {})).status, 401);
    await assert.rejects(openManagement(connection, "s296"), UNAUTHORIZED);
    await assert.rejects(openManagement(connection, "$management"), UNAUTHORIZED);
  });

  scenario("S296 each kind of link needs its right", async () => {
    const [listener, speaker] = [await connectTo(secured, "listener"), await connectTo(secured, "speaker")];
    const refused = (opening) => assert.rejects(opening, UNAUTHORIZED);
    await refused(openSender(listener, "s296"));
    await refused(openReceiver(speaker, "s296"));
    await refused(openReceiver(speaker, "s296/$DeadLetterQueue"));
    await refused(openReceiver(speaker, "s296/$Transfer/$DeadLetterQueue"));
    await refused(openReceiver(speaker, "s296p/Subscriptions/all"));
    await refused(openReceiver(speaker, "s296", { snd_settle_mode: 1, rcv_settle_mode: 0 }));
    for (const id of ["x", null]) await refused(openSession(speaker, "s296s", id, { timeout: 1_000 }));
    await refused(openSender(listener, "s296p"));
    await refused(openSender(listener, "s296/$DeadLetterQueue"));

    const [queues, sessions, topics] = [
      await openSender(speaker, "s296"), await openSender(speaker, "s296s"), await openSender(speaker, "s296p"),
    ];
    await sendAccepted(queues, { body: 1 });
    await sendAccepted(sessions, { body: 2, group_id: "x" });
    await sendAccepted(topics, { body: 3 });
    const receivers = [
      await openReceiver(listener, "s296"), await openSession(listener, "s296s", null),
      await openReceiver(listener, "s296p/Subscriptions/all"),
    ];
    for (const [index, receiver] of receivers.entries()) {
      const received = await receiveOne(receiver);
      assert.equal(received.message.body, index + 1);
      await accept(received);
    }
    await openReceiver(listener, "s296/$DeadLetterQueue");
    await close(listener);
    await close(speaker);
  });

  scenario("S296 a sender by way of another entity needs the right to both", async () => {
    const own = await connectTo(secured, "own", "a key of s296o");
    const by = (connection, address) => openSender(connection, "s296o", {
      properties: { "com.microsoft:transfer-destination-address": address },
    });
    await openSender(own, "s296o");
    await assert.rejects(by(own, "s296"), UNAUTHORIZED);
    await assert.rejects(by(own, "no-such-queue"), UNAUTHORIZED);
    const speaker = await connectTo(secured, "speaker");
    await by(speaker, "s296");
    for (const each of [own, speaker]) await close(each);
  });

  scenario("S296 a transaction gives no right that its links have not", async (connection) => {
    const put = await openTokens(connection);
    const [from, to] = ["sb://localhost/s296t", "sb://localhost/s296u"];
    assert.equal((await put(from, signed(from, "listener"))).status, 202);
    assert.equal((await put(to, signed(to, "speaker"))).status, 202);
    const root = await connectTo(secured, ROOT);
    await sendAccepted(await openSender(root, "s296t"), { body: "first" }, { body: "second" });
    const coordinator = await openCoordinator(connection);
    const [receiver, sender] = [await openReceiver(connection, "s296t"), await openSender(connection, "s296u")];
    await assert.rejects(openSender(connection, "s296t"), UNAUTHORIZED);
    const [first, second] = await receive(receiver, 2);
    const whole = await declare(coordinator);
    await settleIn(whole, first, "accepted");
    await sendIn(whole, sender, { body: "moved" });
    assert.equal((await commit(coordinator, whole)).name, "accepted");
    // What was sent while the token was there is done, though the link has ended since; no more is sent.
    const late = await declare(coordinator);
    await settleIn(late, second, "accepted");
    await sendIn(late, sender, { body: "moved too" });
    assert.equal((await put.away(to)).status, 202);
    assert.equal((await ended(sender)).condition, "amqp:unauthorized-access");
    await assert.rejects(openSender(connection, "s296u"), UNAUTHORIZED);
    assert.equal((await commit(coordinator, late)).name, "accepted");
    assert.deepEqual(bodies(await receiveAvailable(await openReceiver(root, "s296u"))), ["moved", "moved too"]);
    assert.deepEqual(await receiveAvailable(await openReceiver(root, "s296t")), []);
    await close(root);
  });

  scenario("S296 rules are for who may listen, and the entity's other operations are not", async (connection) => {
    const put = await openTokens(connection);
    const audience = "sb://localhost/s296p/Subscriptions/all";
    assert.equal((await put(audience, signed(audience, "listener"))).status, 202);
    const request = await openManagement(connection, "s296p/Subscriptions/all");
    assert.equal((await request("com.microsoft:enumerate-rules", { top: int(1), skip: int(0) })).status, 200);
    await assert.rejects(openManagement(connection, "s296p"), UNAUTHORIZED);
    await assert.rejects(openSender(connection, "s296p"), UNAUTHORIZED);
    const nameless = await connectNameless(secured);
    await assert.rejects(openManagement(nameless, "s296p/Subscriptions/all"), UNAUTHORIZED);
    await close(nameless);
  });
}, secured);
