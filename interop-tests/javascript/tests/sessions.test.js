import assert from "node:assert/strict";
import {
  accept, acceptNext, assertNear, bodies, completeAll, deadLetters, fails, inMilliseconds, newClient, noRenewal, numbers,
  peekAll, receive, receiveNothing, receiveOne, sendTo, topic, until, withClient,
} from "../harness.js";

/** A client whose operations end after this time. */
function patience(milliseconds) {
  return { retryOptions: { maxRetries: 0, timeoutInMs: milliseconds } };
}

/** Checks that there is no next session, which takes this long. */
async function noNextSession(queue, milliseconds) {
  await withClient(async (client) => {
    await fails(acceptNext(client, queue), "ServiceTimeout");
  }, patience(milliseconds));
}

function counts(messages) {
  return messages.map((message) => message.deliveryCount);
}

topic("sessions", (scenario) => {
  scenario("S101 a named session brings its messages, and no others, in order", async (client) => {
    await sendTo(client, "s101", "a", "b", "a", "b", "a");
    for (const [name, wanted] of [["a", [0, 2, 4]], ["b", [1, 3]]]) {
      const receiver = await accept(client, "s101", name);
      assert.equal(receiver.sessionId, name);
      assertNear(receiver.sessionLockedUntilUtc, Date.now() + 60_000, 5_000);
      const messages = await receive(receiver, wanted.length);
      assert.deepEqual(bodies(messages), wanted);
      for (const message of messages) assert.equal(message.sessionId, name);
      await receiveNothing(receiver);
    }
  });

  scenario("S102 the next session is that of the message", async (client) => {
    await sendTo(client, "s102", "x");
    const receiver = await acceptNext(client, "s102");
    assert.equal(receiver.sessionId, "x");
    assert.deepEqual(bodies(await receive(receiver, 1)), [0]);
  });

  scenario("S103 two have the two sessions, and a third has none", async (client) => {
    await sendTo(client, "s103", "x", "y");
    const receivers = [await acceptNext(client, "s103"), await acceptNext(client, "s103")];
    assert.deepEqual(receivers.map((receiver) => receiver.sessionId).sort(), ["x", "y"]);
    for (const receiver of receivers) assert.equal((await receiveOne(receiver)).sessionId, receiver.sessionId);
    await noNextSession("s103", 3_000);
  });

  scenario("S104 the wait for a session ends when it was asked to", async () => {
    const since = Date.now();
    await noNextSession("s104", 4_000);
    assertNear(Date.now() - since, 4_500, 1_500);
  });

  scenario("S105 a session that comes while one waits is granted", async (client) => {
    const waiting = acceptNext(client, "s105");
    await receiveNothing(await accept(client, "s105", "other"), 1_000);
    await sendTo(client, "s105", "late");
    const since = Date.now();
    const receiver = await waiting;
    assert.ok(Date.now() - since < 2_000);
    assert.equal(receiver.sessionId, "late");
    assert.deepEqual(bodies(await receive(receiver, 1)), [0]);
  });

  scenario("S106 a session that becomes free while one waits is granted", async (client) => {
    await sendTo(client, "s106", "x", "x");
    const first = await accept(client, "s106", "x");
    await first.completeMessage(await receiveOne(first));
    const waiting = acceptNext(client, "s106");
    await receiveNothing(await accept(client, "s106", "other"), 1_000);
    const since = Date.now();
    await first.close();
    const receiver = await waiting;
    assert.ok(Date.now() - since < 2_000);
    assert.deepEqual([receiver.sessionId, bodies(await receive(receiver, 1))], ["x", [1]]);
  });

  scenario("S107 a wait whose connection is closed locks nothing", async (client) => {
    const other = newClient();
    // The SDK looks at an abort signal when the wait is over only, and after a close it still waits out its own minute.
    acceptNext(other, "s107").catch(() => {});
    await receiveNothing(await accept(client, "s107", "other"), 1_000);
    await other.close();
    await sendTo(client, "s107", "x");
    const receiver = await accept(client, "s107", "x");
    assert.deepEqual(bodies(await receive(receiver, 1)), [0]);
  });

  scenario("S108 a session that never was is granted, once", async (client) => {
    const since = Date.now();
    const receiver = await accept(client, "s108", "new");
    assert.ok(Date.now() - since < 2_000);
    await fails(accept(client, "s108", "new"), "SessionCannotBeLocked");
    await sendTo(client, "s108", "new");
    assert.deepEqual(bodies(await receive(receiver, 1)), [0]);
  });

  scenario("S109 a session that is locked elsewhere is refused, until it is free", async (client) => {
    const receiver = await accept(client, "s109", "x");
    await withClient(async (other) => {
      const since = Date.now();
      await fails(accept(other, "s109", "x"), "SessionCannotBeLocked");
      assert.ok(Date.now() - since < 5_000);
      await receiver.close();
      await accept(other, "s109", "x");
    });
  });

  scenario("S110 a renewed session lasts", async (client) => {
    await sendTo(client, "s110", "x");
    const receiver = await accept(client, "s110", "x");
    const message = await receiveOne(receiver);
    let last = receiver.sessionLockedUntilUtc;
    for (let round = 0; round < 4; round += 1) {
      await receiveNothing(receiver, 2_000);
      await fails(accept(client, "s110", "x"), "SessionCannotBeLocked");
      const renewed = await receiver.renewSessionLock();
      assert.ok(renewed > last);
      assertNear(renewed, Date.now() + 5_000, 2_000);
      assert.deepEqual(receiver.sessionLockedUntilUtc, renewed);
      last = renewed;
    }
    await receiver.completeMessage(message);
    await receiveNothing(receiver);
  });

  scenario("S111 a session that expires is lost, and what was received counts", async (client) => {
    await sendTo(client, "s111", "x");
    const receiver = await accept(client, "s111", "x");
    const since = Date.now();
    const message = await receiveOne(receiver);
    const next = await until(async () => {
      try {
        return await accept(client, "s111", "x");
      } catch (error) {
        assert.equal(error.code, "SessionCannotBeLocked");
        return null;
      }
    });
    assert.ok(Date.now() - since >= 4_000);
    await fails(receiver.completeMessage(message), "SessionLockLost");
    await fails(receiver.renewSessionLock(), "SessionLockLost");
    await fails(receiver.getSessionState(), "SessionLockLost");
    const again = await receiveOne(next);
    assert.deepEqual([again.body, again.deliveryCount], [0, 1]);
  });

  scenario("S112 the SDK's own renewal holds a session", async (client) => {
    await sendTo(client, "s112", "x");
    const receiver = await acceptNext(client, "s112", { maxAutoLockRenewalDurationInMs: 30_000 });
    const message = await receiveOne(receiver);
    await receiveNothing(receiver, 8_000);
    await fails(accept(client, "s112", "x"), "SessionCannotBeLocked");
    await receiver.completeMessage(message);
  });

  scenario("S113 a session that is closed is free at once, and nothing is counted", async (client) => {
    await sendTo(client, "s113", "x", "x", "x");
    const receiver = await accept(client, "s113", "x");
    await receive(receiver, 2);
    await receiver.close();
    const again = await receive(await accept(client, "s113", "x"), 3);
    assert.deepEqual([bodies(again), counts(again)], [[0, 1, 2], [0, 0, 0]]);
  });

  scenario("S115 an abandoned message comes again first", async (client) => {
    await sendTo(client, "s115", "x", "x", "x");
    const receiver = await accept(client, "s115", "x");
    await receiver.abandonMessage(await receiveOne(receiver));
    const again = await receive(receiver, 3);
    assert.deepEqual([numbers(again), counts(again)], [[1, 2, 3], [1, 0, 0]]);
  });

  scenario("S116 three workers share ten sessions, each message once and each session in order", async (client) => {
    const names = Array.from({ length: 10 }, (_, index) => `session-${index}`);
    await sendTo(client, "s116", ...Array.from({ length: 200 }, (_, index) => names[index % 10]));
    const seen = {};
    await Promise.all([1, 2, 3].map(() => withClient(async (worker) => {
      for (;;) {
        let receiver;
        try {
          receiver = await acceptNext(worker, "s116");
        } catch (error) {
          assert.equal(error.code, "ServiceTimeout");
          return;
        }
        // Whoever gets a session gets all of it.
        assert.equal(seen[receiver.sessionId], undefined);
        seen[receiver.sessionId] = [];
        const messages = await receive(receiver, 20);
        seen[receiver.sessionId].push(...bodies(messages));
        await completeAll(receiver, messages);
        await receiver.close();
      }
    }, patience(3_000))));
    assert.deepEqual(Object.keys(seen).sort(), names);
    names.forEach((name, first) => assert.deepEqual(seen[name], Array.from({ length: 20 }, (_, index) => first + 10 * index)));
  });

  scenario("S117 what comes to a session that is held goes to its holder", async (client) => {
    const receiver = await accept(client, "s117", "x");
    // It gets what it waits for, and so never drains: on a busy machine the SDK closes a link that has, and gives up its session.
    const waiting = receive(receiver, 3);
    await sendTo(client, "s117", "x", "x", "x");
    await noNextSession("s117", 3_000);
    assert.deepEqual(bodies(await waiting), [0, 1, 2]);
  });

  scenario("S118 a session has a state of its own", async (client) => {
    const [x, y] = [await accept(client, "s118", "x"), await accept(client, "s118", "y")];
    assert.equal(await x.getSessionState(), null);
    // Null is what the SDK writes as JSON.
    for (const state of [{ step: 1, list: ["ü"] }, "text", 42, null, Buffer.from([0, 255, 1])]) {
      await x.setSessionState(state);
      assert.deepEqual(await x.getSessionState(), state);
      assert.equal(await y.getSessionState(), null);
    }
    // No bytes clear it.
    await x.setSessionState(Buffer.from("kept"));
    await x.setSessionState(Buffer.alloc(0));
    assert.equal(await x.getSessionState(), null);
  });

  scenario("S119 a state stays, without messages too", async (client) => {
    for (const state of [{ kept: true }, Buffer.alloc(200 * 1024, 0xfe)]) {
      const receiver = await accept(client, "s119", "idle");
      await receiver.setSessionState(state);
      await receiver.close();
      const again = await accept(client, "s119", "idle");
      assert.deepEqual(await again.getSessionState(), state);
      await again.close();
    }
  });

  scenario("S124 deferred messages belong to their session", async (client) => {
    await sendTo(client, "s124", "x", "x", "x");
    const first = await accept(client, "s124", "x");
    const [one, two, three] = await receive(first, 3);
    await first.deferMessage(one);
    await first.deferMessage(two);
    await first.completeMessage(three);
    await first.close();
    const again = await accept(client, "s124", "x");
    await receiveNothing(again);
    const other = await accept(client, "s124", "y");
    await fails(other.receiveDeferredMessages(one.sequenceNumber), "MessageNotFound");
    const deferred = await again.receiveDeferredMessages([one.sequenceNumber, two.sequenceNumber]);
    assert.deepEqual(deferred.map((each) => [each.body, each.sessionId, each.state]), [[0, "x", "deferred"], [1, "x", "deferred"]]);
    await completeAll(again, deferred);
    assert.deepEqual(await again.peekMessages(10), []);
  });

  scenario("S125 a scheduled message comes to its session when it is due", async (client) => {
    const sender = client.createSender("s125");
    const since = Date.now();
    const [due] = await sender.scheduleMessages({ body: "due", sessionId: "x" }, inMilliseconds(12_000));
    const [cancelled] = await sender.scheduleMessages({ body: "cancelled", sessionId: "x" }, inMilliseconds(12_000));
    await sender.cancelScheduledMessages(cancelled);
    const receiver = await acceptNext(client, "s125");
    assert.ok(Date.now() - since >= 2_000);
    assert.equal(receiver.sessionId, "x");
    const message = await receiveOne(receiver);
    assert.equal(message.body, "due");
    assert.ok(message.sequenceNumber.greaterThan(due));
    await receiveNothing(receiver);
  });

  scenario("S126 a peek of a session shows its messages only", async (client) => {
    await sendTo(client, "s126", "a", "b", "a", "b", "b");
    const receiver = await accept(client, "s126", "a");
    assert.deepEqual(bodies(await receiver.peekMessages(10)), [0, 2]);
    assert.deepEqual(bodies(await peekAll(client.createReceiver("s126"))), [0, 1, 2, 3, 4]);
  });

  scenario("S127 a message without a session is refused", async (client) => {
    const sender = client.createSender("s127");
    await fails(sender.sendMessages({ body: 1 }), "GeneralError", /The SessionId was not set on a message/);
    await sender.sendMessages({ body: 2, sessionId: "x" });
    const messages = await receive(await accept(client, "s127", "x"), 1);
    assert.deepEqual([bodies(messages), numbers(messages)], [[2], [1]]);
  });

  scenario("S128 a receiver without a session is refused", async (client) => {
    const wanted = /It is not possible for an entity that requires sessions to create a non-sessionful message receiver/;
    await fails(client.createReceiver("s128").receiveMessages(1, { maxWaitTimeInMs: 1_000 }), "GeneralError", wanted);
  });

  scenario("S129 there are no sessions on a queue without them", async (client) => {
    // Of a named session the SDK says this whatever the reason.
    await fails(accept(client, "s129", "x"), "SessionCannotBeLocked");
    const wanted = /A sessionful message receiver cannot be created on an entity that does not require sessions/;
    await fails(acceptNext(client, "s129"), "GeneralError", wanted);
    await sendTo(client, "s129", "x");
    assert.equal((await receiveOne(client.createReceiver("s129"))).sessionId, "x");
  });

  scenario("S130 dead letters of sessions are received without them", async (client) => {
    await sendTo(client, "s130", "a", "b");
    for (const name of ["a", "b"]) {
      const receiver = await accept(client, "s130", name);
      await receiver.deadLetterMessage(await receiveOne(receiver), {
        deadLetterReason: `why ${name}`, deadLetterErrorDescription: "because",
      });
    }
    const receiver = deadLetters(client, "s130");
    const letters = await receive(receiver, 2);
    assert.deepEqual(letters.map((each) => [each.sessionId, each.deadLetterReason]), [["a", "why a"], ["b", "why b"]]);
    assert.deepEqual(numbers(letters), [1, 2]);
    await completeAll(receiver, letters);
    assert.deepEqual(await receiver.peekMessages(10), []);
  });

  scenario("S131 one delivery too many, and the session goes on", async (client) => {
    await sendTo(client, "s131", "x", "x");
    const receiver = await accept(client, "s131", "x");
    for (const count of [0, 1]) {
      const message = await receiveOne(receiver);
      assert.deepEqual([message.body, message.deliveryCount], [0, count]);
      await receiver.abandonMessage(message);
    }
    assert.deepEqual(bodies(await receive(receiver, 1)), [1]);
    const letter = await receiveOne(deadLetters(client, "s131"));
    assert.deepEqual([letter.body, letter.deadLetterReason], [0, "MaxDeliveryCountExceeded"]);
  });

  scenario("S132 messages of a session are received and deleted", async (client) => {
    await sendTo(client, "s132", "x", "x", "x");
    const receiver = await client.acceptSession("s132", "x", { receiveMode: "receiveAndDelete" });
    assert.deepEqual(bodies(await receive(receiver, 3)), [0, 1, 2]);
    assert.deepEqual(await receiver.peekMessages(10), []);
  });

  scenario("S133 an expired message is no reason to grant a session", async (client) => {
    await client.createSender("s133").sendMessages({ body: 1, sessionId: "x", timeToLive: 1_000 });
    const letter = await receiveOne(deadLetters(client, "s133"));
    assert.deepEqual([letter.sessionId, letter.deadLetterReason], ["x", "TTLExpiredException"]);
    await noNextSession("s133", 3_000);
  });

  scenario("S135 a batch may go to several sessions", async (client) => {
    const sender = client.createSender("s135");
    const batch = await sender.createMessageBatch();
    for (const [body, sessionId] of ["a", "b", "a"].entries()) assert.ok(batch.tryAddMessage({ body, sessionId }));
    await sender.sendMessages(batch);
    assert.deepEqual(bodies(await receive(await accept(client, "s135", "a"), 2)), [0, 2]);
    assert.deepEqual(bodies(await receive(await accept(client, "s135", "b"), 1)), [1]);
  });

  scenario("S136 names of sessions are taken as they are", async (client) => {
    for (const name of ["x", "y".repeat(128), "with spaces / slashes and ü", "X"]) {
      await sendTo(client, "s136", name);
      const receiver = await accept(client, "s136", name);
      assert.equal(receiver.sessionId, name);
      assert.equal((await receiveOne(receiver)).sessionId, name);
    }
  });

  scenario("S132 handlers take a session's messages one after the other", async (client) => {
    await sendTo(client, "s132", "handled", "handled", "handled");
    const receiver = await client.acceptSession("s132", "handled");
    const seen = [];
    const errors = [];
    receiver.subscribe({
      processMessage: async ({ body }) => { seen.push(body); },
      processError: async ({ error }) => { errors.push(error); },
    });
    // From the first number: a peek without one goes on behind the last, and finds nothing though messages are still there.
    await until(async () => (await peekAll(client.createReceiver("s132"))).length === 0);
    assert.deepEqual([seen, errors], [[0, 1, 2], []]);
    await receiver.close();
  });
});
