// Links, connections and networks that end while they are in use: what a generic client is told, and that it can go on.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { withFaultProxy } from "../../javascript/fault-proxy.js";
import {
  ANONYMOUS, accept, bodies, close, connect, ended, event, lockToken, openManagement, openReceiver, openSender,
  openSession, receive, receiveAvailable, receiveOne, send, sendAccepted, sessionOf, topic, types,
} from "../harness.js";

const DETACHED = "amqp:link:detach-forced";
/** How soon after what was sent a client that had lost its way must have it. */
const SOON = 15_000;

/** Gives a connection that leads through a child of its own, and another way to open one. */
function by(use, options = {}) {
  return withFaultProxy(async ({ port, tell }) => {
    const open = () => connect({ ...ANONYMOUS, port, ...options });
    const connection = await open();
    try {
      await use({ connection, tell, open });
    } finally {
      connection.options.reconnect = false;
      await close(connection);
    }
  });
}

/** Opens a sender and a receiver, and uses them. */
async function inUse(connection, queue, word = "before") {
  const [sender, receiver] = [await openSender(connection, queue), await openReceiver(connection, queue)];
  await goesOn({ sender, receiver }, word);
  return { sender, receiver };
}

async function goesOn({ sender, receiver }, word = "after") {
  await sendAccepted(sender, { body: word });
  const received = await receiveOne(receiver);
  assert.equal(received.message.body, word);
  await accept(received);
  assert.deepEqual(await receiveAvailable(receiver), []);
}

async function forced(link) {
  assert.equal((await ended(link)).condition, DETACHED);
}

topic("reconnecting", (scenario) => {
  scenario("S301 links that are force-detached say so, and are attached anew on the same session", () => by(async ({
    connection, tell,
  }) => {
    const { sender, receiver } = await inUse(connection, "s301");
    const reasons = Promise.all([forced(sender), forced(receiver)]);
    assert.equal(await tell("detach s301"), 2);
    await reasons;
    await inUse(sender.session, "s301", "after");
  }));

  scenario("S302 credit that waits on a link which is detached is given anew", (far) => by(async ({ connection, tell }) => {
    const receiver = await openReceiver(connection, "s302");
    receiver.add_credit(1);
    const reason = forced(receiver);
    assert.equal(await tell("detach s302"), 1);
    await reason;
    const again = await openReceiver(receiver.session, "s302");
    again.add_credit(1);
    const arrives = event(again, "message", () => true, SOON);
    await sendAccepted(await openSender(far, "s302"), { body: "later" });
    await arrives;
    await accept(...again.inbox);
    assert.deepEqual(bodies(again.inbox), ["later"]);
    assert.deepEqual(receiver.inbox, []);
  }));

  scenario("S303 a message whose link was detached is settled by its lock token", () => by(async ({ connection, tell }) => {
    await sendAccepted(await openSender(connection, "s303"), { body: "held" });
    const receiver = await openReceiver(connection, "s303");
    const received = await receiveOne(receiver);
    const reason = forced(receiver);
    await tell("detach s303");
    await reason;
    const request = await openManagement(connection, "s303");
    const { status } = await request("com.microsoft:update-disposition", {
      "disposition-status": "completed", "lock-tokens": types.wrap_list([lockToken(received)]),
    });
    assert.equal(status, 200);
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s303")), []);
    const peeked = await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 1 });
    assert.equal(peeked.status, 204);
  }));

  scenario("S304 a session whose link is detached is lost, and can be accepted anew", () => by(async ({ connection, tell }) => {
    await sendAccepted(await openSender(connection, "s304"), { body: 1, group_id: "x" }, { body: 2, group_id: "x" });
    const holder = await openSession(connection, "s304", "x");
    const received = await receiveOne(holder);
    const reason = forced(holder);
    assert.equal(await tell("detach s304"), 2);
    await reason;
    const request = await openManagement(connection, "s304");
    const held = { properties: { "associated-link-name": holder.name } };
    const state = await request("com.microsoft:get-session-state", { "session-id": "x" }, held);
    assert.deepEqual([state.status, state.condition], [410, "com.microsoft:session-lock-lost"]);
    const settled = await request("com.microsoft:update-disposition", {
      "disposition-status": "completed", "lock-tokens": types.wrap_list([lockToken(received)]), "session-id": "x",
    }, held);
    assert.deepEqual([settled.status, settled.condition], [410, "com.microsoft:session-lock-lost"]);
    const again = await openSession(connection, "s304", "x");
    assert.equal(sessionOf(again), "x");
    const messages = await receive(again, 2);
    assert.deepEqual(bodies(messages), [1, 2]);
    await accept(...messages);
  }));

  scenario("S305 a connection that is closed with force says so, and another goes on", () => by(async ({ connection, tell, open }) => {
    await inUse(connection, "s305");
    const closed = event(connection, "connection_close");
    assert.equal(await tell("close"), 1);
    await closed;
    assert.equal(connection.error.condition, "amqp:connection:forced");
    const another = await open();
    await inUse(another, "s305", "after");
    await close(another);
  }));

  scenario("S306 a connection that is reset is made anew by rhea, with its links", () => by(async ({ connection, tell }) => {
    const used = await inUse(connection, "s306");
    const again = Promise.all([event(used.sender, "sender_open"), event(used.receiver, "receiver_open")]);
    assert.equal(await tell("cut"), 1);
    await again;
    await goesOn(used);
  }, { reconnect: true, initial_reconnect_delay: 50 }));

  scenario("S307 what nobody answers is answered when the way is free", (far) => by(async ({ connection, tell }) => {
    const sender = await openSender(connection, "s307");
    await tell("hold");
    const sent = send(sender, { body: "held" });
    assert.equal(await Promise.race([sent, pause(3_000, "no answer")]), "no answer");
    await tell("release");
    assert.deepEqual(await sent, { name: "accepted" });
    await sendAccepted(sender, { body: "after" });
    assert.deepEqual(bodies(await receiveAvailable(await openReceiver(far, "s307"))), ["held", "after"]);
  }));
});
