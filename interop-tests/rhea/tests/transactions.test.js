// Transactions by hand: rhea knows neither the coordinator nor the state of a transaction (harness.js).

import assert from "node:assert/strict";
import rhea from "rhea";
import {
  accept, arrived, bodies, close, closeLink, commit, connect, declare, event, lockToken, numbers, openCoordinator, openManagement,
  openReceiver, openSender, openSession, range, receive, receiveAvailable, receiveOne, rollback, send, sendAccepted, sendBatch,
  sendIn, sendPresettledIn, settle, settleIn, topic, types,
} from "../harness.js";

const ACCEPTED = { name: "accepted" };
const UNKNOWN = "amqp:transaction:unknown-id";
const LATER = 3_600_000;

/** What there is, in whatever state, without touching it. */
async function peek(connection, entity) {
  const request = await openManagement(connection, entity);
  const { status, body } = await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 250 });
  return status === 204 ? [] : body.messages.map(({ message }) => ({ message: rhea.message.decode(message) }));
}

/** The state that the service leaves out. */
const ACTIVE = 0;

function states(received) {
  return received.map(({ message }) => [message.body, message.message_annotations["x-opt-message-state"] ?? ACTIVE]);
}

function counts(received) {
  return received.map(({ message }) => message.delivery_count ?? 0);
}

/** Sends `count` messages, and locks them. */
async function locked(connection, queue, count) {
  await sendBatch(await openSender(connection, queue), range(1, count).map((body) => ({ body })));
  return receive(await openReceiver(connection, queue), count);
}

/** What can be received now. It is locked afterwards. A session with a coordinator receives from one entity only. */
async function available(connection, queue) {
  const session = connection.create_session();
  session.begin();
  const receiver = await openReceiver(session, queue);
  const received = await receiveAvailable(receiver, 200);
  await closeLink(receiver);
  session.close();
  return received;
}

function condition({ name, error }) {
  return [name, error?.condition];
}

topic("transactions", (scenario) => {
  scenario("S231 what was sent in a transaction is there when it is committed", async (connection) => {
    const [sender, receiver] = [await openSender(connection, "s231"), await openReceiver(connection, "s231")];
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    for (const body of [1, 2]) assert.deepEqual(await sendIn(transaction, sender, { body }), { ...ACCEPTED, transaction });
    await sendAccepted(sender, { body: "outside" });
    const before = await receiveAvailable(receiver);
    assert.deepEqual([bodies(before), numbers(before)], [["outside"], [1]]);
    assert.deepEqual(bodies(await peek(connection, "s231")), ["outside"]);
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    const after = await receive(receiver, 2);
    assert.deepEqual([bodies(after), numbers(after)], [[1, 2], [2, 3]]);
  });

  scenario("S231 a batch in a transaction, and messages of many frames, are as others", async (connection) => {
    const sender = await openSender(connection, "s236");
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    const batch = rhea.message.data_sections(range(1, 3).map((body) => rhea.message.encode({ body })));
    const answer = await sendIn(transaction, sender, rhea.message.encode({ body: batch }), { format: 0x80013700 });
    assert.deepEqual(answer, { ...ACCEPTED, transaction });
    const large = Buffer.alloc(200 * 1024, "jitney");
    await sendIn(transaction, sender, { body: rhea.message.data_section(large) });
    assert.deepEqual(await available(connection, "s236"), []);
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    const received = await available(connection, "s236");
    assert.deepEqual(bodies(received.slice(0, 3)), [1, 2, 3]);
    assert.ok(large.equals(received[3].message.body.content));
  });

  scenario("S232 what was sent in a transaction that is rolled back never was", async (connection) => {
    const sender = await openSender(connection, "s232");
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    for (const body of [1, 2]) await sendIn(transaction, sender, { body });
    assert.deepEqual(await rollback(coordinator, transaction), ACCEPTED);
    assert.deepEqual(await available(connection, "s232"), []);
    await sendAccepted(sender, { body: "outside" });
    const after = await available(connection, "s232");
    assert.deepEqual([bodies(after), numbers(after)], [["outside"], [1]]);
  });

  scenario("S233 a completion takes effect when it is committed", async (connection) => {
    const [message] = await locked(connection, "s233", 1);
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    assert.deepEqual(await settleIn(transaction, message, "accepted"), { ...ACCEPTED, transaction });
    assert.deepEqual(states(await peek(connection, "s233")), [[1, 0]]);
    assert.deepEqual(await available(connection, "s233"), []);
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    assert.deepEqual(await peek(connection, "s233"), []);
    // The commit has settled the delivery, and rhea has forgotten it: a further outcome finds none.
    const answered = event(message.receiver.session, "disposition", ({ settled }) => settled);
    message.delivery.remote_settled = false;
    message.delivery.update(false, rhea.message.accepted().described());
    assert.equal(rhea.message.unwrap_outcome((await answered).state).error.condition, "amqp:not-found");
  });

  scenario("S234 after a rollback the lock is held as before, and the message can be settled", async (connection) => {
    const received = await locked(connection, "s234", 2);
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    for (const each of received) await settleIn(transaction, each, "accepted");
    assert.deepEqual(await rollback(coordinator, transaction), ACCEPTED);
    assert.deepEqual(await available(connection, "s234"), []);
    // Both deliveries live on: one is settled at once, one in another transaction.
    const [first, second] = received;
    assert.deepEqual(received.map(({ delivery }) => delivery.remote_settled), [false, false]);
    await accept(first);
    const another = await declare(coordinator);
    await settleIn(another, second, "modified", { delivery_failed: true });
    assert.equal(second.delivery.remote_settled, false);
    const settled = event(second.receiver, "settled", ({ delivery }) => delivery === second.delivery);
    assert.deepEqual(await commit(coordinator, another), ACCEPTED);
    await settled;
    const again = await available(connection, "s234");
    assert.deepEqual([bodies(again), counts(again)], [[2], [1]]);
  });

  scenario("S235 every outcome takes effect when it is committed, and none when it is rolled back", async (connection) => {
    const coordinator = await openCoordinator(connection);
    const settleAll = async (received) => {
      const transaction = await declare(coordinator);
      const answers = [
        await settleIn(transaction, received[0], "modified", { delivery_failed: true, message_annotations: { attempt: 1 } }),
        await settleIn(transaction, received[1], "modified", { undeliverable_here: true }),
        await settleIn(transaction, received[2], "rejected", {
          error: { condition: "com.microsoft:dead-letter", info: { DeadLetterReason: "why" } },
        }),
      ];
      assert.deepEqual(answers, ["modified", "modified", "rejected"].map((name) => ({ name, transaction })));
      return transaction;
    };
    const dead = () => available(connection, "s235/$DeadLetterQueue");

    const transaction = await settleAll(await locked(connection, "s235", 3));
    assert.deepEqual(states(await peek(connection, "s235")), [[1, 0], [2, 0], [3, 0]]);
    assert.deepEqual([await available(connection, "s235"), await dead()], [[], []]);
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    const [again, ...none] = await receiveAvailable(await openReceiver(connection, "s235"));
    assert.deepEqual([none, again.message.body, again.message.delivery_count], [[], 1, 1]);
    assert.equal(again.message.application_properties.attempt, 1);
    assert.deepEqual(states(await peek(connection, "s235")), [[1, 0], [2, 1]]);
    const [letter] = await dead();
    assert.deepEqual([letter.message.body, letter.message.application_properties.DeadLetterReason], [3, "why"]);
    await accept(again);

    const received = await locked(connection, "s235", 3);
    await rollback(coordinator, await settleAll(received));
    assert.deepEqual([await available(connection, "s235"), await dead()], [[], []]);
    assert.deepEqual(states(await peek(connection, "s235")), [[2, 1], [1, 0], [2, 0], [3, 0]]);
  });

  scenario("S236 a completion here and a send there are one", async (connection) => {
    const coordinator = await openCoordinator(connection);
    for (const finish of [rollback, commit]) {
      const [message] = await locked(connection, "s248", 1);
      const transaction = await declare(coordinator);
      await settleIn(transaction, message, "accepted");
      await sendIn(transaction, await openSender(connection, "s236b"), { body: "there" });
      assert.deepEqual(await finish(coordinator, transaction), ACCEPTED);
      assert.equal((await peek(connection, "s248")).length, 1);
      assert.deepEqual(bodies(await available(connection, "s236b")), finish === commit ? ["there"] : []);
    }
  });

  scenario("S236 what is of two entities is refused, and nothing of it happens", async (connection) => {
    const [one, other] = [await openSender(connection, "s236"), await openSender(connection, "s236b")];
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    await sendIn(transaction, other, { body: "neither" });
    const refused = await sendIn(transaction, one, { body: "neither" });
    assert.deepEqual(condition(refused), ["rejected", "amqp:not-allowed"]);
    assert.match(refused.error.description, /Local transactions cannot span multiple entities or partitions/);
    assert.deepEqual(condition(await commit(coordinator, transaction)), ["rejected", "amqp:transaction:rollback"]);
  });

  scenario("S236 a session with a coordinator receives from the entity of its first link only", async (connection) => {
    const coordinator = await openCoordinator(connection);
    await openSender(connection, "s248b");
    await assert.rejects(openReceiver(connection, "s248"), { condition: "amqp:not-allowed", description: /top-level entities/ });
    await closeLink(await openReceiver(connection, "s248b"));
    // Without the coordinator the session is as any other.
    await closeLink(coordinator);
    await closeLink(await openReceiver(connection, "s248"));
  });

  scenario("S237 a connection that is lost, and a coordinator that is closed, roll back", async (connection) => {
    await sendBatch(await openSender(connection, "s237"), [{ body: "first" }, { body: "second" }]);
    const ends = [
      async (other, coordinator) => {
        await closeLink(coordinator);
        await close(other);
      },
      close,
      async (other) => other.socket.destroy(),
    ];
    for (const end of ends) {
      const other = await connect();
      const coordinator = await openCoordinator(other);
      const transaction = await declare(coordinator);
      await sendIn(transaction, await openSender(other, "s237"), { body: "lost" });
      const [message] = await receive(await openReceiver(other, "s237"), 1);
      assert.equal(message.message.body, "first");
      await settleIn(transaction, message, "accepted");
      await end(other, coordinator);
      // Locked still, and of a link that may be gone: by its token it is free again.
      const request = await openManagement(connection, "s237");
      const freed = await request("com.microsoft:update-disposition", {
        "disposition-status": "abandoned", "lock-tokens": types.wrap_list([lockToken(message)]),
      });
      assert.equal(freed.status, 200);
    }
    const received = await available(connection, "s237");
    assert.deepEqual([bodies(received), counts(received)], [["first", "second"], [3, 0]]);
  });

  scenario("S238 a transaction that never was, of another connection, or of the past, is unknown", async (connection) => {
    const [message] = await locked(connection, "s238", 1);
    const sender = await openSender(connection, "s238");
    const other = await connect();
    const theirs = await declare(await openCoordinator(other));
    const coordinator = await openCoordinator(connection);
    const past = await declare(coordinator);
    await commit(coordinator, past);
    const request = await openManagement(connection, "s238");
    for (const id of [Buffer.from("no such"), Buffer.alloc(0), theirs, past]) {
      assert.deepEqual(condition(await sendIn(id, sender, { body: 2 })), ["rejected", UNKNOWN]);
      assert.deepEqual(condition(await commit(coordinator, id)), ["rejected", UNKNOWN]);
      assert.deepEqual(condition(await rollback(coordinator, id)), ["rejected", UNKNOWN]);
    }
    const settled = await settleIn(theirs, message, "accepted");
    assert.deepEqual(condition(settled), ["rejected", UNKNOWN]);
    // The lock is as it was, and the links live on.
    const done = await request("com.microsoft:update-disposition", {
      "disposition-status": "completed", "lock-tokens": types.wrap_list([lockToken(message)]),
    });
    assert.equal(done.status, 200);
    await sendAccepted(sender, { body: "after" });
    assert.deepEqual(bodies(await peek(connection, "s238")), ["after"]);
    const transaction = await declare(coordinator);
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    await close(other);
  });

  scenario("S239 a hundred messages are the most", async (connection) => {
    const sender = await openSender(connection, "s239");
    const coordinator = await openCoordinator(connection);
    const hundred = async () => {
      const transaction = await declare(coordinator);
      for (const answer of await Promise.all(range(1, 100).map((body) => sendIn(transaction, sender, { body })))) {
        assert.deepEqual(answer, { ...ACCEPTED, transaction });
      }
      return transaction;
    };
    const one = await hundred();
    const { name, error } = await sendIn(one, sender, { body: 101 });
    assert.equal(name, "rejected");
    assert.match(error.description, /Can't send more than 100 messages in a single transaction/);
    await rollback(coordinator, one);
    assert.deepEqual(await peek(connection, "s239"), []);
    assert.deepEqual(await commit(coordinator, await hundred()), ACCEPTED);
    assert.deepEqual(bodies(await available(connection, "s239")), range(1, 100));
  });

  scenario("S240 the node's operations in a transaction", async (connection) => {
    const sender = await openSender(connection, "s240");
    const coordinator = await openCoordinator(connection);
    const outside = await openManagement(connection, "s240");
    const stamped = (body) => ({
      "message-id": String(body),
      message: types.wrap_binary(rhea.message.encode({
        body, message_annotations: { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(Date.now() + LATER) },
      })),
    });
    const schedule = (request, body, id) => request("com.microsoft:schedule-message", { messages: [stamped(body)] }, id);
    const numbersOf = ({ body }) => types.wrap_list(body["sequence-numbers"].map((number) => types.wrap_long(number)));

    for (const finish of [rollback, commit]) {
      await sendAccepted(sender, { body: "deferred" });
      const [message] = await receive(await openReceiver(connection, "s240"), 1);
      await settle(message, "modified", { undeliverable_here: true });
      const wanted = numbers([message]).map((number) => types.wrap_long(number));
      const deferred = await outside("com.microsoft:receive-by-sequence-number", {
        "sequence-numbers": types.wrap_list(wanted), "receiver-settle-mode": types.wrap_uint(1),
      });
      const token = types.wrap_uuid(deferred.body.messages[0]["lock-token"]);
      const before = await schedule(outside, "before");

      const transaction = await declare(coordinator);
      const inside = { transaction };
      assert.equal((await schedule(outside, "new", inside)).status, 200);
      const cancelled = await outside("com.microsoft:cancel-scheduled-message", { "sequence-numbers": numbersOf(before) }, inside);
      assert.equal(cancelled.status, 200);
      const done = await outside("com.microsoft:update-disposition", {
        "disposition-status": "completed", "lock-tokens": types.wrap_list([token]),
      }, inside);
      assert.equal(done.status, 200);
      const names = async () => bodies(await peek(connection, "s240")).sort();
      assert.deepEqual(await names(), ["before", "deferred"]);
      assert.deepEqual(await finish(coordinator, transaction), ACCEPTED);
      assert.deepEqual(await names(), finish === commit ? ["new"] : ["before", "deferred"]);
      if (finish === rollback) {
        await outside("com.microsoft:cancel-scheduled-message", { "sequence-numbers": numbersOf(before) });
        const settled = await outside("com.microsoft:update-disposition", {
          "disposition-status": "completed", "lock-tokens": types.wrap_list([token]),
        });
        assert.equal(settled.status, 200);
      }
    }
  });

  scenario("S241 messages of sessions in a transaction", async (connection) => {
    const sender = await openSender(connection, "s241");
    await sendAccepted(sender, { body: 1, group_id: "x" });
    const x = await openSession(connection, "s241", "x");
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    await settleIn(transaction, await receiveOne(x), "accepted");
    for (const [body, group_id] of [[2, "x"], [3, "y"], [4, "x"]]) await sendIn(transaction, sender, { body, group_id });
    assert.deepEqual(await receiveAvailable(x), []);
    await assert.rejects(openSession(connection, "s241", null, { timeout: 500 }), { condition: "com.microsoft:timeout" });
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    assert.deepEqual(bodies(await receive(x, 2)), [2, 4]);
    assert.deepEqual(bodies(await receive(await openSession(connection, "s241", null), 1)), [3]);
  });

  scenario("S242 a topic and a queue in one transaction", async (connection) => {
    const coordinator = await openCoordinator(connection);
    const [name, queue] = [await openSender(connection, "s242"), await openSender(connection, "s242b")];
    for (const finish of [rollback, commit]) {
      const transaction = await declare(coordinator);
      for (const n of [1, 2]) await sendIn(transaction, name, { body: n, application_properties: { n } });
      await sendIn(transaction, queue, { body: "queue" });
      assert.deepEqual(await finish(coordinator, transaction), ACCEPTED);
    }
    const [a, b] = [await peek(connection, "s242/Subscriptions/a"), await peek(connection, "s242/Subscriptions/b")];
    assert.deepEqual([bodies(a), numbers(a)], [[1, 2], [1, 2]]);
    assert.deepEqual([bodies(b), numbers(b)], [[1], [1]]);
    assert.deepEqual(bodies(await peek(connection, "s242b")), ["queue"]);
  });

  scenario("S245 a lock that expires in a transaction: a message is completed or comes again", async (connection) => {
    const coordinator = await openCoordinator(connection);
    const [message] = await locked(connection, "s245", 1);
    const transaction = await declare(coordinator);
    await settleIn(transaction, message, "accepted");
    await sendIn(transaction, await openSender(connection, "s244"), { body: "beside" });
    // The lock lasts 5 s: whoever waits longer has seen its end.
    const receiver = await openReceiver(connection, "s245");
    receiver.add_credit(1);
    const deadline = Date.now() + 7_000;
    while (receiver.inbox.length === 0 && Date.now() < deadline) await peek(connection, "s245");
    const { name, error } = await commit(coordinator, transaction);
    const beside = bodies(await peek(connection, "s244"));
    if (name === "accepted") {
      assert.deepEqual([receiver.inbox, await peek(connection, "s245"), beside], [[], [], ["beside"]]);
    } else {
      assert.equal(error.condition, "amqp:transaction:rollback");
      const [again] = await arrived(receiver, 1);
      assert.deepEqual([again.message.body, again.message.delivery_count, beside], [1, 1, []]);
    }
  });

  scenario("S246 two transactions on one connection", async (connection) => {
    const sender = await openSender(connection, "s246");
    const coordinator = await openCoordinator(connection);
    const [kept, dropped] = [await declare(coordinator), await declare(coordinator)];
    assert.ok(!kept.equals(dropped));
    for (const body of [1, 2]) {
      await sendIn(kept, sender, { body: `kept ${body}` });
      await sendIn(dropped, sender, { body: `dropped ${body}` });
    }
    assert.deepEqual(await rollback(coordinator, dropped), ACCEPTED);
    assert.deepEqual(await commit(coordinator, kept), ACCEPTED);
    assert.deepEqual(bodies(await available(connection, "s246")), ["kept 1", "kept 2"]);
  });

  scenario("S247 a transaction that does not fit leaves nothing", async (connection) => {
    const coordinator = await openCoordinator(connection);
    const [small, other] = [await openSender(connection, "s247"), await openSender(connection, "s247b")];
    const transaction = await declare(coordinator);
    await sendIn(transaction, other, { body: 1 });
    const content = rhea.message.data_section(Buffer.alloc(100 * 1024));
    let refused;
    for (let index = 0; index < 15 && !refused; index += 1) {
      const { error } = await sendIn(transaction, small, { body: content });
      refused = error;
    }
    if (refused) assert.equal(refused.condition, "amqp:resource-limit-exceeded");
    const { name } = await commit(coordinator, transaction);
    const there = [(await peek(connection, "s247")).length, (await peek(connection, "s247b")).length];
    if (name === "accepted") {
      assert.ok(refused && there[0] > 0 && there[0] < 15 && there[1] === 1, `${there}`);
    } else {
      assert.deepEqual([name, there], ["rejected", [0, 0]]);
    }
  });

  scenario("S247 a send that is refused spoils its transaction, whoever asks for an answer", async (connection) => {
    const coordinator = await openCoordinator(connection);
    const beside = await openSender(connection, "s72");
    const large = { body: rhea.message.data_section(Buffer.alloc(100 * 1024)) };
    const refused = [
      async (transaction) => sendIn(transaction, await openSender(connection, "s127"), { body: "no session" }),
      async (transaction) => sendIn(transaction, await openSender(connection, "s12"), large),
      async (transaction) => {
        const sender = await openSender(connection, "s127", { snd_settle_mode: 1 });
        if (!sender.sendable()) await event(sender, "sendable");
        sendPresettledIn(transaction, sender, { body: "no session" });
        return { name: "rejected" };
      },
    ];
    for (const attempt of refused) {
      const transaction = await declare(coordinator);
      assert.equal((await attempt(transaction)).name, "rejected");
      await sendIn(transaction, beside, { body: 1 });
      assert.deepEqual(condition(await commit(coordinator, transaction)), ["rejected", "amqp:transaction:rollback"]);
      assert.deepEqual(await peek(connection, "s72"), []);
    }
  });

  scenario("S233 a message is settled once, in one transaction", async (connection) => {
    const [message] = await locked(connection, "s73", 1);
    const coordinator = await openCoordinator(connection);
    const request = await openManagement(connection, "s73");
    const update = (transaction) => request("com.microsoft:update-disposition", {
      "disposition-status": "completed", "lock-tokens": types.wrap_list([lockToken(message)]),
    }, { transaction });
    const [one, other] = [await declare(coordinator), await declare(coordinator)];
    assert.deepEqual(await settleIn(one, message, "accepted"), { ...ACCEPTED, transaction: one });
    for (const transaction of [other, undefined]) assert.equal((await update(transaction)).status, 400);
    assert.deepEqual(condition(await commit(coordinator, other)), ["rejected", "amqp:transaction:rollback"]);
    assert.deepEqual(await commit(coordinator, one), ACCEPTED);
    assert.deepEqual(await peek(connection, "s73"), []);
  });

  scenario("S246 the end of a coordinator is that of its own transactions", async (connection) => {
    const sender = await openSender(connection, "s75");
    const [one, other] = [await openCoordinator(connection), await openCoordinator(connection)];
    const [lost, kept] = [await declare(one), await declare(other)];
    await sendIn(lost, sender, { body: "lost" });
    await sendIn(kept, sender, { body: "kept" });
    await closeLink(one);
    assert.deepEqual(condition(await commit(other, lost)), ["rejected", UNKNOWN]);
    assert.deepEqual(await commit(other, kept), ACCEPTED);
    assert.deepEqual(bodies(await peek(connection, "s75")), ["kept"]);
  });

  scenario("S231 what is sent settled, scheduled or forwarded in a transaction waits for the commit", async (connection) => {
    const coordinator = await openCoordinator(connection);
    const settled = await openSender(connection, "s74", { snd_settle_mode: 1 });
    if (!settled.sendable()) await event(settled, "sendable");
    const [forwarding, plain] = [await openSender(connection, "s191"), await openSender(connection, "s46")];
    const stamp = { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(Date.now() + LATER) };
    for (const finish of [rollback, commit]) {
      const transaction = await declare(coordinator);
      sendPresettledIn(transaction, settled, { body: "settled" });
      await sendIn(transaction, forwarding, { body: "forwarded" });
      await sendIn(transaction, plain, { body: "scheduled", message_annotations: stamp });
      const there = async () => [
        ...states(await peek(connection, "s74")), ...states(await peek(connection, "s191b")), ...states(await peek(connection, "s46")),
      ];
      assert.deepEqual(await there(), []);
      assert.deepEqual(await finish(coordinator, transaction), ACCEPTED);
      const wanted = finish === commit ? [["settled", 0], ["forwarded", 0], ["scheduled", 2]] : [];
      assert.deepEqual(await there(), wanted);
    }
  });

  scenario("S249 a coordinator needs no token, and has credit at once", async (connection) => {
    const session = connection.create_session();
    session.begin();
    const coordinator = await openCoordinator(session);
    const ids = [];
    for (let count = 0; count < 5; count += 1) ids.push(await declare(coordinator));
    assert.equal(new Set(ids.map((id) => id.toString("hex"))).size, 5);
    // The id is the connection's, not the AMQP session's.
    await sendIn(ids[0], await openSender(connection, "s248b"), { body: 1 });
    assert.deepEqual(await commit(coordinator, ids[0]), ACCEPTED);
    assert.deepEqual(bodies(await available(connection, "s248b")), [1]);
    for (const id of ids.slice(1)) assert.deepEqual(await rollback(coordinator, id), ACCEPTED);
    const { name } = await send(coordinator, { body: "no declaration" });
    assert.equal(name, "rejected");
  });
});
