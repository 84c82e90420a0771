// What survives the broker. There is one broker to kill, so it is killed once for all: every scenario prepares, then the broker
// is killed and started, and stopped in good order and started, while all their clients are connected; then every scenario
// looks at what is there.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { before } from "node:test";
import { promisify } from "node:util";
import {
  accept, acceptNext, at, bodies, deadLetters, inMilliseconds, newClient, noRenewal, numbers, peekAll, range, receive,
  receiveNothing, receiveOne, sendNumbered, sendTo, topic, until, withClient,
} from "../harness.js";

const control = process.env.JITNEY_BROKER_CONTROL?.split(" ");
const skip = control === undefined ? "JITNEY_BROKER_CONTROL is not set" : false;

/** Asks the runner's broker to `start`, `kill` or `stop`; a failure of it is ours. */
async function broker(verb) {
  const [program, ...words] = control;
  await promisify(execFile)(program, [...words, verb]);
}

function states(messages) {
  return messages.map((message) => [Number(message.sequenceNumber), message.body, message.state]);
}

/** What to do before and after, by scenario. What the first returns, and its client, the second gets. */
const SCENARIOS = {
  "S72 all that was not completed is there": {
    async prepare(client) {
      await sendNumbered(client, "s72", 5);
      const receiver = client.createReceiver("s72", noRenewal);
      const [completed, deferred, dead] = await receive(receiver, 3);
      await receiver.completeMessage(completed);
      await receiver.deferMessage(deferred, { attempt: 1 });
      await receiver.deadLetterMessage(dead, { deadLetterReason: "why", deadLetterErrorDescription: "because" });
      await client.createSender("s72").scheduleMessages({ body: "later" }, inMilliseconds(3_600_000));
      return deferred.sequenceNumber;
    },
    async check(client, { kept: number }) {
      const receiver = client.createReceiver("s72", noRenewal);
      const wanted = [[2, 1, "deferred"], [4, 3, "active"], [5, 4, "active"], [6, "later", "scheduled"]];
      assert.deepEqual(states(await peekAll(receiver)), wanted);
      const [deferred] = await receiver.receiveDeferredMessages(number);
      assert.deepEqual([deferred.body, deferred.applicationProperties.attempt], [1, 1]);
      const letter = await receiveOne(deadLetters(client, "s72"));
      assert.deepEqual([letter.body, letter.deadLetterReason], [2, "why"]);
      await client.createSender("s72").sendMessages({ body: "next" });
      assert.deepEqual(numbers(await receive(receiver, 3)), [4, 5, 7]);
    },
  },

  "S73 what came due meanwhile is there at once": {
    async prepare(client) {
      await client.createSender("s73").scheduleMessages({ body: "due" }, inMilliseconds(2_000));
      // The others wait for this, and the broker is killed when its time has come.
      await receiveNothing(client.createReceiver("s01"), 2_000);
    },
    async check(client) {
      assert.deepEqual(bodies(await receive(client.createReceiver("s73"), 1, 2_000)), ["due"]);
    },
  },

  "S74 an open sender and receiver go on": {
    async prepare(client) {
      const [sender, receiver] = [client.createSender("s74"), client.createReceiver("s74", noRenewal)];
      await sender.sendMessages({ body: "before" });
      await receiver.completeMessage(await receiveOne(receiver));
      return { sender, receiver };
    },
    async check(_, { kept: { sender, receiver } }) {
      await sender.sendMessages({ body: "after" });
      assert.equal((await receiveOne(receiver)).body, "after");
    },
  },

  "S75 the count of deliveries is there": {
    async prepare(client) {
      await sendNumbered(client, "s75", 1);
      const receiver = client.createReceiver("s75", noRenewal);
      await receiver.abandonMessage(await receiveOne(receiver));
    },
    async check(client) {
      const message = await receiveOne(client.createReceiver("s75", noRenewal));
      assert.deepEqual([message.body, message.deliveryCount], [0, 1]);
    },
  },

  "S138 sessions have their messages and states, and no locks": {
    async prepare(client) {
      await sendTo(client, "s138", "x", "x", "z", "x");
      const receiver = await accept(client, "s138", "x");
      const [deferred] = await receive(receiver, 2);
      await receiver.deferMessage(deferred);
      await receiver.setSessionState({ step: 1 });
      await (await accept(client, "s138", "y")).setSessionState("only a state");
    },
    async check(client) {
      const receiver = await accept(client, "s138", "x");
      assert.deepEqual(states(await receiver.peekMessages(10)), [[1, 0, "deferred"], [2, 1, "active"], [4, 3, "active"]]);
      assert.deepEqual(numbers(await receive(receiver, 2)), [2, 4]);
      assert.deepEqual(await receiver.getSessionState(), { step: 1 });
      assert.equal(await (await accept(client, "s138", "y")).getSessionState(), "only a state");
      await sendTo(client, "s138", "z");
      const next = await acceptNext(client, "s138");
      assert.equal(next.sessionId, "z");
      assert.deepEqual(numbers(await receive(next, 2)), [3, 5]);
    },
  },

  "S139 the receiver of a session knows that it is lost": {
    async prepare(client) {
      await sendTo(client, "s139", "x");
      const receiver = await accept(client, "s139", "x");
      return { receiver, message: await receiveOne(receiver) };
    },
    async check(client, { kept: { receiver, message } }) {
      const lost = { code: "SessionLockLost" };
      await assert.rejects(receiver.receiveMessages(1, { maxWaitTimeInMs: 2_000 }), lost);
      await assert.rejects(receiver.completeMessage(message), lost);
      assert.deepEqual(bodies(await receive(await accept(client, "s139", "x"), 1)), [0]);
    },
  },

  "S158 a subscription has what it had": {
    async prepare(client) {
      await sendNumbered(client, "s158", 10);
      const receiver = client.createReceiver("s158", "a", noRenewal);
      const messages = await receive(receiver, 5);
      for (const message of messages.slice(0, 3)) await receiver.completeMessage(message);
      await receiver.deferMessage(messages[3]);
      await receiver.deadLetterMessage(messages[4], { deadLetterReason: "why", deadLetterErrorDescription: "because" });
      await client.createSender("s158").scheduleMessages({ body: "scheduled" }, inMilliseconds(3_000));
    },
    async check(client) {
      const receiver = client.createReceiver("s158", "a", noRenewal);
      await until(async () => bodies(await peekAll(receiver)).includes("scheduled"));
      await client.createSender("s158").sendMessages({ body: "new" });
      const messages = await peekAll(receiver);
      assert.deepEqual(states(messages), [
        [4, 3, "deferred"],
        ...range(6, 10).map((number) => [number, number - 1, "active"]),
        [11, "scheduled", "active"],
        [12, "new", "active"],
      ]);
      assert.deepEqual(messages.slice(0, 6).map((message) => message.enqueuedSequenceNumber), [4, ...range(6, 10)]);
      assert.deepEqual(numbers(await receive(deadLetters(client, at("s158", "a")), 1)), [5]);
    },
  },

  "S170 rules are those that were set, and not those of the file": {
    async prepare(client) {
      const manager = client.createRuleManager("s170", "a");
      await manager.deleteRule("$Default");
      await manager.createRule("one", { sqlExpression: "n = 1" }, { sqlExpression: "SET seen = TRUE" });
      return manager.getRules();
    },
    async check(client, { kept: rules }) {
      assert.deepEqual(await client.createRuleManager("s170", "a").getRules(), rules);
      await client.createSender("s170").sendMessages([1, 2].map((n) => ({ body: n, applicationProperties: { n } })));
      const messages = await peekAll(client.createReceiver("s170", "a"));
      assert.deepEqual(messages.map((message) => [message.body, message.applicationProperties.seen]), [[1, true]]);
    },
  },

  "S188 what is a duplicate is one still": {
    prepare: (client) => client.createSender("s188").sendMessages({ messageId: "one", body: 1 }),
    async check(client) {
      const sender = client.createSender("s188");
      for (const message of [{ messageId: "one", body: 2 }, { messageId: "other", body: 3 }]) await sender.sendMessages(message);
      assert.deepEqual(bodies(await peekAll(client.createReceiver("s188"))), [1, 3]);
    },
  },

  "S217 the numbers of every partition go on": {
    async prepare(client) {
      const messages = range(0, 49).map((body) => ({ body, partitionKey: `key-${body % 10}` }));
      for (const message of messages) await client.createSender("s217").sendMessages(message);
      const receiver = client.createReceiver("s217", noRenewal);
      const before = await peekAll(receiver);
      for (const message of await receive(receiver, 10)) await receiver.completeMessage(message);
      return { before, after: await peekAll(receiver) };
    },
    async check(client, { kept: { before, after } }) {
      const receiver = client.createReceiver("s217", noRenewal);
      const names = (messages) => messages.map((message) => [message.sequenceNumber.toString(), message.body]).sort();
      assert.equal(after.length, 40);
      assert.deepEqual(names(await peekAll(receiver)), names(after));
      const sender = client.createSender("s217");
      for (const body of range(50, 59)) await sender.sendMessages({ body, partitionKey: `key-${body % 10}` });
      const newest = (await peekAll(receiver)).filter((message) => message.body >= 50);
      const numbersOf = (messages, partition) => messages
        .filter((message) => message.sequenceNumber.shiftRightUnsigned(48).toNumber() === partition)
        .map((message) => message.sequenceNumber.and(0xffff_ffff).toNumber())
        .sort((one, another) => one - another);
      for (const partition of range(0, 15)) {
        const all = [...numbersOf(before, partition), ...numbersOf(newest, partition)];
        assert.deepEqual(all, range(1, all.length), `partition ${partition}`);
      }
    },
  },
};

topic("restarts", (scenario) => {
  const outcomes = {};

  before(async () => {
    if (skip) return;
    await Promise.all(Object.entries(SCENARIOS).map(async ([title, { prepare }]) => {
      const client = newClient();
      outcomes[title] = { client };
      // A failure belongs to the scenario, not to all of them.
      Object.assign(outcomes[title], await prepare(client).then((kept) => ({ kept }), (error) => ({ error })));
    }));
    await broker("kill");
    await broker("start");
    // `stop` fails when the exit code is not 0 (S75).
    await broker("stop");
    await broker("start");
  });

  for (const [title, { check }] of Object.entries(SCENARIOS)) {
    scenario(title, async () => {
      const outcome = outcomes[title];
      try {
        if (outcome.error) throw outcome.error;
        await withClient((client) => check(client, outcome));
      } finally {
        await outcome.client.close();
      }
    }, { skip });
  }
});
