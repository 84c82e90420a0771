// Messages by their numbers and lock tokens, on the management node: deferred, scheduled, peeked, renewed.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import rhea from "rhea";
import {
  accept, bodies, connect, close, lockToken, numbers, openManagement, openReceiveAndDelete, openReceiver, openSender,
  range, receive, receiveAvailable, receiveOne, sendAccepted, sendBatch, settle, topic, types,
} from "../harness.js";

const { wrap_int: int, wrap_list: list, wrap_long: long, wrap_uint: uint } = types;
const [ACTIVE, DEFERRED, SCHEDULED] = [0, 1, 2];
const NOT_FOUND = [404, "com.microsoft:message-not-found"];
const LOCK_LOST = [410, "com.microsoft:message-lock-lost"];

function decode(each) {
  const message = rhea.message.decode(each.message);
  return { message, token: each["lock-token"] && types.wrap_uuid(each["lock-token"]) };
}

function longs(wanted) {
  return { "sequence-numbers": list(wanted.map((each) => long(each))) };
}

/** What the node does with an entity's messages; each answers the status and condition, or what it found. */
async function node(connection, queue) {
  const request = await openManagement(connection, queue);
  const asked = async (operation, body) => {
    const answer = await request(`com.microsoft:${operation}`, body);
    return { ...answer, told: [answer.status, answer.condition] };
  };
  const messagesOf = ({ status, body }) => (status === 204 ? [] : body.messages.map(decode));
  return {
    async schedule(milliseconds, ...contents) {
      const annotations = { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(Date.now() + milliseconds) };
      const messages = contents.map((body) => ({
        "message-id": `id-${body}`,
        message: types.wrap_binary(rhea.message.encode({ message_id: `id-${body}`, body, message_annotations: annotations })),
      }));
      const { status, body } = await asked("schedule-message", { messages });
      assert.equal(status, 200);
      return body["sequence-numbers"];
    },
    cancel: async (...wanted) => (await asked("cancel-scheduled-message", longs(wanted))).told,
    async peek(from = 0, count = 100) {
      return messagesOf(await asked("peek-message", { "from-sequence-number": long(from), "message-count": int(count) }));
    },
    async byNumber(mode, ...wanted) {
      const answer = await asked("receive-by-sequence-number", { ...longs(wanted), "receiver-settle-mode": uint(mode) });
      return answer.status === 200 ? messagesOf(answer) : answer.told;
    },
    async renew(...tokens) {
      const { told, status, body } = await asked("renew-lock", { "lock-tokens": list(tokens) });
      return status === 200 ? body.expirations : told;
    },
    async update(token, status, more = {}) {
      return (await asked("update-disposition", { "disposition-status": status, "lock-tokens": list([token]), ...more })).told;
    },
  };
}

/** Sends messages with bodies 1, 2, 3… and defers them. */
async function deferred(connection, queue, count, more = {}) {
  await sendBatch(await openSender(connection, queue), range(1, count).map((body) => ({ body, ...more })));
  const receiver = await openReceiver(connection, queue);
  for (const each of await receive(receiver, count)) await settle(each, "modified", { undeliverable_here: true });
  return receiver;
}

function states(found) {
  return found.map(({ message }) => [
    message.message_annotations["x-opt-sequence-number"], message.body, message.message_annotations["x-opt-message-state"] ?? ACTIVE,
  ]);
}

topic("lock tokens", (scenario) => {
  scenario("S25 a message of one delivery is dead-lettered when it is abandoned", async (connection) => {
    await sendAccepted(await openSender(connection, "s25"), { body: 1 });
    const receiver = await openReceiver(connection, "s25");
    await settle(await receiveOne(receiver), "modified", { delivery_failed: true });
    assert.deepEqual(await receiveAvailable(receiver), []);
    assert.deepEqual(bodies(await receiveAvailable(await openReceiver(connection, "s25/$DeadLetterQueue"))), [1]);
  });

  scenario("S27 a lock that is renewed lasts", async (connection) => {
    await sendAccepted(await openSender(connection, "s27"), { body: 1 });
    const receiver = await openReceiver(connection, "s27");
    const received = await receiveOne(receiver);
    const { renew } = await node(connection, "s27");
    let last = 0;
    for (const _ of range(1, 4)) {
      await pause(2_000);
      const [until] = await renew(lockToken(received));
      assert.ok(Number(until) > last && Math.abs(Number(until) - Date.now() - 5_000) < 2_000);
      last = Number(until);
    }
    await accept(received);
    assert.deepEqual(await receiveAvailable(receiver), []);
  });

  scenario("S28 a lock that is over, or of a message that is gone, cannot be renewed", async (connection) => {
    await sendBatch(await openSender(connection, "s28"), [{ body: 1 }, { body: 2 }]);
    const receiver = await openReceiver(connection, "s28");
    const [completed, left] = await receive(receiver, 2);
    await accept(completed);
    const { renew } = await node(connection, "s28");
    assert.deepEqual(await renew(lockToken(completed)), LOCK_LOST);
    await receiveOne(receiver);
    assert.deepEqual(await renew(lockToken(left)), LOCK_LOST);
  });

  scenario("S30 a message is completed on another connection, by its lock token", async (connection) => {
    const other = await connect();
    await sendAccepted(await openSender(other, "s30"), { body: 1 });
    const received = await receiveOne(await openReceiver(other, "s30"));
    await close(other);
    const { update } = await node(connection, "s30");
    assert.deepEqual(await update(lockToken(received), "completed"), [200, undefined]);
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s30")), []);
  });

  scenario("S44 a message is completed after its time to live", async (connection) => {
    await sendAccepted(await openSender(connection, "s44"), { body: 1, ttl: 1_000 });
    const received = await receiveOne(await openReceiver(connection, "s44"));
    await pause(2_000);
    await accept(received);
    assert.deepEqual(await (await node(connection, "s44")).peek(), []);
  });

  scenario("S46 ten messages are scheduled in one request", async (connection) => {
    const { schedule } = await node(connection, "s46");
    assert.deepEqual(await schedule(2_000, ...range(1, 10)), range(1, 10));
    const received = await receive(await openReceiver(connection, "s46"), 10);
    assert.deepEqual([bodies(received), numbers(received)], [range(1, 10), range(11, 20)]);
    await accept(...received);
  });

  scenario("S48 S51 a scheduled message is peeked; one for the past comes at once", async (connection) => {
    const { schedule, peek } = await node(connection, "s48");
    await schedule(3_600_000, "later");
    assert.deepEqual(states(await peek()), [[1, "later", SCHEDULED]]);
    const past = await node(connection, "s51");
    assert.deepEqual(await past.schedule(-60_000, "past"), [1]);
    const received = await receiveOne(await openReceiver(connection, "s51"));
    assert.equal(received.message.body, "past");
  });

  scenario("S50 what is due cannot be cancelled", async (connection) => {
    const { schedule, cancel } = await node(connection, "s50");
    const [scheduled] = await schedule(1_000, "due");
    const receiver = await openReceiver(connection, "s50");
    await settle(await receiveOne(receiver), "modified", { delivery_failed: true });
    assert.deepEqual(await cancel(scheduled), NOT_FOUND);
    assert.equal((await receiveOne(receiver)).message.body, "due");
  });

  scenario("S53 S57 deferred messages are peeked, received by number only, and completed", async (connection) => {
    const receiver = await deferred(connection, "s53", 3);
    const { byNumber, peek, update } = await node(connection, "s53");
    assert.deepEqual(await receiveAvailable(receiver), []);
    assert.deepEqual(states(await peek()), [[1, 1, DEFERRED], [2, 2, DEFERRED], [3, 3, DEFERRED]]);
    const found = [...await byNumber(1, 2), ...await byNumber(1, 1, 3)];
    assert.deepEqual(states(found), [[2, 2, DEFERRED], [1, 1, DEFERRED], [3, 3, DEFERRED]]);
    for (const { token } of found) assert.deepEqual(await update(token, "completed"), [200, undefined]);
    assert.deepEqual(await peek(), []);
  });

  scenario("S54 deferred messages are taken for good", async (connection) => {
    await deferred(connection, "s54", 2);
    const { byNumber, peek } = await node(connection, "s54");
    assert.deepEqual((await byNumber(0, 1, 2)).map(({ message }) => message.body), [1, 2]);
    assert.deepEqual(await peek(), []);
  });

  scenario("S55 deferred messages come all or none", async (connection) => {
    await deferred(connection, "s55", 3);
    const { byNumber } = await node(connection, "s55");
    await byNumber(1, 1);
    for (const wanted of [[3, 4], [5, 6, 7], [1]]) assert.deepEqual(await byNumber(1, ...wanted), NOT_FOUND);
    assert.deepEqual(states(await byNumber(1, 3)), [[3, 3, DEFERRED]]);
  });

  scenario("S56 deferred messages are abandoned, dead-lettered, renewed and deferred again", async (connection) => {
    const receiver = await deferred(connection, "s56", 3);
    const { byNumber, update, renew } = await node(connection, "s56");
    const [first, second, third] = await byNumber(1, 1, 2, 3);
    assert.deepEqual(await update(first.token, "abandoned"), [200, undefined]);
    assert.deepEqual(await update(second.token, "suspended", { "deadletter-reason": "why" }), [200, undefined]);
    assert.equal((await renew(third.token)).length, 1);
    assert.deepEqual(await update(third.token, "defered"), [200, undefined]);
    assert.deepEqual(await receiveAvailable(receiver), []);
    assert.deepEqual(states(await byNumber(1, 1, 3)), [[1, 1, DEFERRED], [3, 3, DEFERRED]]);
    const { message } = await receiveOne(await openReceiver(connection, "s56/$DeadLetterQueue"));
    assert.deepEqual([message.body, message.application_properties.DeadLetterReason], [2, "why"]);
  });

  scenario("S58 a deferred message does not expire", async (connection) => {
    await deferred(connection, "s58", 1, { ttl: 2_000 });
    await pause(4_000);
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s58/$DeadLetterQueue")), []);
    assert.deepEqual(states(await (await node(connection, "s58")).byNumber(1, 1)), [[1, 1, DEFERRED]]);
  });

  scenario("S59 a message is deferred with properties to modify", async (connection) => {
    await sendAccepted(await openSender(connection, "s59"), { body: 1, application_properties: { kept: true } });
    const received = await receiveOne(await openReceiver(connection, "s59"));
    await settle(received, "modified", { undeliverable_here: true, message_annotations: { attempt: int(1) } });
    const [{ message }] = await (await node(connection, "s59")).byNumber(1, 1);
    assert.deepEqual(message.application_properties, { kept: true, attempt: 1 });
  });

  scenario("S60 peek sees every state, and changes nothing", async (connection) => {
    const receiver = await deferred(connection, "s60", 1);
    await sendBatch(await openSender(connection, "s60"), [{ body: 2 }, { body: 3 }]);
    const locked = await receiveOne(receiver);
    const { peek, schedule } = await node(connection, "s60");
    await schedule(3_600_000, 4);
    for (const _ of range(1, 2)) {
      const found = await peek();
      assert.deepEqual(states(found), [[1, 1, DEFERRED], [2, 2, ACTIVE], [3, 3, ACTIVE], [4, 4, SCHEDULED]]);
      for (const { message, token } of found) {
        assert.equal(token, undefined);
        assert.equal(message.message_annotations["x-opt-locked-until"], undefined);
      }
    }
    const { message } = await receiveOne(receiver);
    assert.deepEqual([message.body, message.delivery_count ?? 0], [3, 0]);
    await accept(locked);
  });

  scenario("S61 S62 peek begins at a number, and finds nothing where nothing is", async (connection) => {
    await sendBatch(await openSender(connection, "s61"), range(1, 10).map((body) => ({ body })));
    const { peek } = await node(connection, "s61");
    const pages = [await peek(4, 3), await peek(7, 100), await peek(11, 100)];
    assert.deepEqual(pages.map((page) => page.map(({ message }) => message.body)), [[4, 5, 6], [7, 8, 9, 10], []]);
    assert.deepEqual(await (await node(connection, "s62")).peek(), []);
  });

  scenario("S63 six hundred messages are peeked in pages", async (connection) => {
    const sender = await openSender(connection, "s63");
    for (const first of [1, 201, 401]) {
      await sendBatch(sender, range(first, first + 199).map((body) => ({ body, application_properties: { fill: "x".repeat(1_000) } })));
    }
    const { peek } = await node(connection, "s63");
    const found = [];
    for (;;) {
      const page = await peek(found.length + 1, 250);
      if (page.length === 0) break;
      found.push(...page.map(({ message }) => message.body));
    }
    assert.deepEqual(found, range(1, 600));
    await receive(await openReceiveAndDelete(connection, "s63"), 600);
    assert.deepEqual(await peek(), []);
  });

  scenario("S40 dead letters do not expire, and are not given up", async (connection) => {
    await sendAccepted(await openSender(connection, "s40"), { body: 1 });
    await settle(await receiveOne(await openReceiver(connection, "s40")), "rejected");
    const dead = await openReceiver(connection, "s40/$DeadLetterQueue");
    for (const _ of range(1, 12)) await settle(await receiveOne(dead), "modified", { delivery_failed: true });
    await pause(4_000);
    assert.deepEqual(bodies(await receiveAvailable(dead)), [1]);
  });

  scenario("S43 the shorter time to live counts", async (connection) => {
    const sender = await openSender(connection, "s43");
    await sendAccepted(sender, { body: 1 }, { body: 2, ttl: 3_600_000 });
    const receiver = await openReceiver(connection, "s43");
    const received = await receive(receiver, 2);
    assert.deepEqual(received.map(({ message }) => message.ttl), [2_000, 2_000]);
    for (const each of received) await settle(each, "released");
    const dead = await receive(await openReceiver(connection, "s43/$DeadLetterQueue"), 2);
    assert.deepEqual(dead.map(({ message }) => message.application_properties.DeadLetterReason), Array(2).fill("TTLExpiredException"));
  });

  scenario("S327 what is settled cannot be settled again", async (connection) => {
    await sendBatch(await openSender(connection, "s327"), [{ body: 1 }, { body: 2 }]);
    const receiver = await openReceiver(connection, "s327");
    const [completed, abandoned] = await receive(receiver, 2);
    await accept(completed);
    await settle(abandoned, "modified", { delivery_failed: true });
    const { update, renew, peek } = await node(connection, "s327");
    for (const token of [completed, abandoned].map(lockToken)) {
      for (const status of ["completed", "abandoned", "defered", "suspended"]) assert.deepEqual(await update(token, status), LOCK_LOST);
      assert.deepEqual(await renew(token), LOCK_LOST);
    }
    assert.deepEqual(states(await peek()), [[2, 2, ACTIVE]]);
    const [again] = await receiveAvailable(receiver);
    assert.equal(again.message.delivery_count, 1);
    await accept(again);
  });
});
