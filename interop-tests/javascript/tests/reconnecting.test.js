// Links, connections and networks that end while objects of the SDK are in use.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { withFaultProxy } from "../fault-proxy.js";
import {
  accept, bodies, comes, connectionString, fails, goesOn, inUse, noRenewal, peekAll, receive, receiveNothing,
  receiveOne, sendTo, topic, until, withClient,
} from "../harness.js";

/** How soon after what was sent a client that had lost its way must have it. */
const SOON = 15_000;

/** Gives a client whose way to the broker leads through a child of its own. */
function by(use, options) {
  return withFaultProxy(({ port, tell }) => {
    const there = connectionString.replace(/(?<=Endpoint=sb:\/\/[^:;]+:)\d+/, String(port));
    assert.notEqual(there, connectionString);
    return withClient((client) => use(client, tell), options, there);
  });
}

/** Opens a sender and a receiver, has both ended, and uses them. */
function recovers(queue, words, met) {
  return by(async (client, tell) => {
    const used = await inUse(client, queue);
    assert.ok(await tell(words) >= met);
    await goesOn(used);
  });
}

topic("reconnecting", (scenario) => {
  scenario("S301 links that are force-detached recover", () => recovers("s301", "detach s301", 2));

  scenario("S302 a receiver that waits survives a forced detach", (far) => by(async (client, tell) => {
    const receiver = client.createReceiver("s302", noRenewal);
    await receiveNothing(receiver);
    const waiting = receiver.receiveMessages(1, { maxWaitTimeInMs: SOON });
    await pause(500);
    assert.ok(await tell("detach s302") >= 1);
    const sent = Date.now();
    await far.createSender("s302").sendMessages({ body: "later" });
    // It says that its link has gone, or begins anew.
    const [first] = await waiting.catch(() => []);
    const message = first ?? await receiveOne(receiver, SOON);
    assert.equal(message.body, "later");
    assert.ok(Date.now() - sent < SOON);
    await receiver.completeMessage(message);
  }));

  scenario("S303 a message whose link was detached is settled, or comes again", (far) => by(async (client, tell) => {
    await far.createSender("s303").sendMessages({ body: "held" });
    const receiver = client.createReceiver("s303", noRenewal);
    const message = await receiveOne(receiver);
    assert.ok(await tell("detach s303") >= 1);
    const refused = await receiver.completeMessage(message).then(() => undefined, (error) => error);
    if (refused) {
      assert.ok(["MessageLockLost", "GeneralError"].includes(refused.code), refused.message);
      const again = await receiveOne(receiver);
      assert.deepEqual([again.body, again.deliveryCount], ["held", 1]);
      await receiver.completeMessage(again);
    }
    // What is locked would be seen too.
    assert.deepEqual(await peekAll(far.createReceiver("s303")), []);
  }));

  scenario("S304 a session whose link is detached is lost, and can be accepted anew", (far) => by(async (client, tell) => {
    await sendTo(far, "s304", "x", "x");
    const receiver = await accept(client, "s304", "x");
    const message = await receiveOne(receiver);
    assert.ok(await tell("detach s304") >= 1);
    await fails(receiver.completeMessage(message), "SessionLockLost");
    await fails(receiver.getSessionState(), "SessionLockLost");
    const lost = Date.now();
    const again = await until(() => accept(far, "s304", "x").catch(() => undefined), 5_000);
    assert.ok(Date.now() - lost < 5_000);
    const messages = await receive(again, 2);
    assert.deepEqual(bodies(messages), [0, 1]);
    for (const each of messages) await again.completeMessage(each);
  }));

  scenario("S305 a connection that is closed with force recovers", () => by(async (client, tell) => {
    const { sender, receiver } = await inUse(client, "s305");
    assert.ok(await tell("close") >= 1);
    // Between the close and the end of its socket the SDK opens the connection anew, and fails, without trying again.
    const goes = () => sender.sendMessages({ body: "after" }).then(() => true, ({ message }) => {
      assert.equal(message, "Failed to connect");
      return false;
    });
    await until(goes);
    await comes(receiver);
  }));

  scenario("S306 a connection that is reset recovers", () => recovers("s306", "cut", 1));

  scenario("S307 a send that nobody answers times out, and the next does not", (far) => by(async (client, tell) => {
    const sender = client.createSender("s307");
    await sender.sendMessages({ body: "before" });
    await tell("hold");
    const began = Date.now();
    await fails(sender.sendMessages({ body: "held" }), "ServiceTimeout");
    assert.ok(Date.now() - began < 15_000);
    await tell("release");
    await sender.sendMessages({ body: "after" });
    const left = bodies(await peekAll(far.createReceiver("s307")));
    assert.deepEqual(left.filter((body) => body !== "held"), ["before", "after"]);
    assert.ok(left.length <= 3);
  }, { retryOptions: { timeoutInMs: 3_000, maxRetries: 0 } }));

  scenario("S317 a processor goes on after its link was detached, and its connection cut", (far) => by(async (client, tell) => {
    const seen = [];
    const receiver = client.createReceiver("s317");
    receiver.subscribe({
      processMessage: async ({ body }) => { seen.push(body); },
      // It is told of the loss, and of tries in vain.
      processError: async () => {},
    });
    const sender = far.createSender("s317");
    for (const [body, words] of [["first", "detach s317"], ["second", "cut"], ["third", undefined]]) {
      await sender.sendMessages({ body });
      await until(() => seen.includes(body), SOON);
      if (words) assert.ok(await tell(words) >= 1);
    }
    await receiver.close();
    assert.deepEqual(await peekAll(far.createReceiver("s317")), []);
    assert.deepEqual(seen, ["first", "second", "third"]);
  }));
});
