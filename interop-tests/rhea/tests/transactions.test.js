// Transactions by hand: rhea knows neither the coordinator nor the state of a transaction (harness.js).

import assert from "node:assert/strict";
import rhea from "rhea";
import {
  accept, bodies, close, closeLink, commit, connect, declare, lockToken, numbers, openCoordinator, openManagement,
  openReceiver, openSender, range, receive, receiveAvailable, receiveOne, rollback, sendAccepted, sendBatch, sendIn, settle,
  settleIn, topic, types,
} from "../harness.js";

const ACCEPTED = { name: "accepted" };
const UNKNOWN = "amqp:transaction:unknown-id";

/** What there is, with bodies, without touching it. */
async function peek(request) {
  const { status, body } = await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 250 });
  return status === 204 ? [] : body.messages.map(({ message }) => rhea.message.decode(message));
}

/** A queue with `count` messages, and one receiver that has locked them all. */
async function locked(connection, queue, count) {
  await sendBatch(await openSender(connection, queue), range(1, count).map((body) => ({ body })));
  const receiver = await openReceiver(connection, queue);
  return { receiver, received: await receive(receiver, count) };
}

async function available(connection, queue) {
  const receiver = await openReceiver(connection, queue);
  const received = await receiveAvailable(receiver);
  await closeLink(receiver);
  return received;
}

topic("transactions", (scenario) => {
  scenario("T1 what was sent in a transaction is there when it is committed, in order", async (connection) => {
    const [sender, receiver] = [await openSender(connection, "t1"), await openReceiver(connection, "t1")];
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    for (const body of [1, 2]) assert.deepEqual(await sendIn(transaction, sender, { body }), { ...ACCEPTED, transaction });
    assert.deepEqual(await receiveAvailable(receiver), []);
    await sendAccepted(sender, { body: "outside" });
    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    const received = await receive(receiver, 3);
    assert.deepEqual([bodies(received), numbers(received)], [["outside", 1, 2], [1, 2, 3]]);
  });

  scenario("T2 what was sent in a transaction that is rolled back never was", async (connection) => {
    const sender = await openSender(connection, "t2");
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    await sendIn(transaction, sender, { body: 1 });
    assert.deepEqual(await rollback(coordinator, transaction), ACCEPTED);
    assert.deepEqual(await available(connection, "t2"), []);
    await sendAccepted(sender, { body: "after" });
    // No number was spent on it.
    assert.deepEqual(numbers(await available(connection, "t2")), [1]);
  });

  scenario("T3 every outcome in a transaction takes effect when it is committed", async (connection) => {
    const { received: [completed, abandoned, deferred, dead] } = await locked(connection, "t3", 4);
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    const answers = [
      await settleIn(transaction, completed, "accepted"),
      await settleIn(transaction, abandoned, "modified", { delivery_failed: true, message_annotations: { attempt: 1 } }),
      await settleIn(transaction, deferred, "modified", { undeliverable_here: true }),
      await settleIn(transaction, dead, "rejected", {
        error: { condition: "com.microsoft:dead-letter", info: { DeadLetterReason: "why" } },
      }),
    ];
    const names = ["accepted", "modified", "modified", "rejected"];
    assert.deepEqual(answers, names.map((name) => ({ name, transaction })));
    const request = await openManagement(connection, "t3");
    const before = await peek(request);
    assert.deepEqual(before.map((message) => message.message_annotations["x-opt-message-state"]), [0, 0, 0, 0]);
    assert.deepEqual(await available(connection, "t3"), []);

    assert.deepEqual(await commit(coordinator, transaction), ACCEPTED);
    const [again] = await available(connection, "t3");
    assert.deepEqual([again.message.body, again.message.delivery_count], [2, 1]);
    assert.equal(again.message.application_properties.attempt, 1);
    const states = (await peek(request)).map(({ body, message_annotations: stamps }) => [body, stamps["x-opt-message-state"]]);
    assert.deepEqual(states, [[2, 0], [3, 1]]);
    const [letter] = await available(connection, "t3/$DeadLetterQueue");
    assert.deepEqual([letter.message.body, letter.message.application_properties.DeadLetterReason], [4, "why"]);
  });

  scenario("T4 after a rollback the locks are held as before, and the messages can be settled", async (connection) => {
    const { received: [first, second] } = await locked(connection, "t4", 2);
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    await settleIn(transaction, first, "accepted");
    await settleIn(transaction, second, "accepted");
    assert.deepEqual(await rollback(coordinator, transaction), ACCEPTED);
    // Still locked: to nobody else, and the count has not grown.
    assert.deepEqual(await available(connection, "t4"), []);
    const tokens = [first, second].map(lockToken);
    const request = await openManagement(connection, "t4");
    const update = (token, status) => request("com.microsoft:update-disposition", {
      "disposition-status": status, "lock-tokens": types.wrap_list([token]),
    });
    assert.equal((await update(tokens[0], "completed")).status, 200);
    assert.equal((await update(tokens[1], "abandoned")).status, 200);
    const [again] = await available(connection, "t4");
    assert.deepEqual([again.message.body, again.message.delivery_count], [2, 1]);
  });

  scenario("T5 sends and settlements over several queues are one", async (connection) => {
    for (const [round, finish] of [rollback, commit].entries()) {
      const { received: [source] } = await locked(connection, "t5", 1);
      const coordinator = await openCoordinator(connection);
      const transaction = await declare(coordinator);
      await settleIn(transaction, source, "accepted");
      for (const queue of ["t5b", "t5c"]) await sendIn(transaction, await openSender(connection, queue), { body: round });
      assert.deepEqual(await finish(coordinator, transaction), ACCEPTED);
      for (const queue of ["t5b", "t5c"]) assert.deepEqual(bodies(await available(connection, queue)), round ? [1] : []);
      // The lock of a message that came back is still held.
      assert.equal((await peek(await openManagement(connection, "t5"))).length, 1);
      if (!round) await accept(source);
      await closeLink(coordinator);
    }
    assert.deepEqual(await peek(await openManagement(connection, "t5")), []);
  });

  scenario("T6 a batch in a transaction is as its messages", async (connection) => {
    const sender = await openSender(connection, "t6");
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    const batch = rhea.message.data_sections(range(1, 3).map((body) => rhea.message.encode({ body })));
    const answer = await sendIn(transaction, sender, rhea.message.encode({ body: batch }), { format: 0x80013700 });
    assert.deepEqual(answer, { ...ACCEPTED, transaction });
    assert.deepEqual(await available(connection, "t6"), []);
    await commit(coordinator, transaction);
    assert.deepEqual(bodies(await available(connection, "t6")), [1, 2, 3]);
  });

  scenario("T7 an unknown transaction: of nobody, of another connection, of the past", async (connection) => {
    const { received: [message] } = await locked(connection, "t7", 1);
    const sender = await openSender(connection, "t7");
    const other = await connect();
    const theirs = await declare(await openCoordinator(other));
    const coordinator = await openCoordinator(connection);
    const past = await declare(coordinator);
    await commit(coordinator, past);
    for (const id of [Buffer.from("no such"), theirs, past]) {
      const sent = await sendIn(id, sender, { body: 2 });
      assert.deepEqual([sent.name, sent.error.condition], ["rejected", UNKNOWN]);
      const discharged = await commit(coordinator, id);
      assert.deepEqual([discharged.name, discharged.error.condition], ["rejected", UNKNOWN]);
    }
    const settled = await settleIn(theirs, message, "accepted");
    assert.deepEqual([settled.name, settled.error.condition], ["rejected", UNKNOWN]);
    assert.deepEqual(bodies(await peek(await openManagement(connection, "t7")).then((all) => all.map((each) => ({ message: each })))), [1]);
    await close(other);
  });

  scenario("T8 a connection that is lost, and a coordinator that is closed, roll back", async (connection) => {
    await locked(connection, "t8", 2);
    const lose = [
      async (other) => other.socket.destroy(),
      async (other, coordinator) => closeLink(coordinator),
    ];
    for (const end of lose) {
      const other = await connect();
      const coordinator = await openCoordinator(other);
      await sendIn(await declare(coordinator), await openSender(other, "t8b"), { body: "lost" });
      await end(other, coordinator);
      if (other.is_open() && !other.socket.destroyed) await close(other);
    }
    await sendAccepted(await openSender(connection, "t8b"), { body: "after" });
    assert.deepEqual(bodies(await available(connection, "t8b")), ["after"]);
    assert.deepEqual(await peek(await openManagement(connection, "t8b")).then((all) => all.length), 1);
  });
});
