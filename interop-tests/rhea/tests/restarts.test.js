// What survives the broker: under load of copies and forwards, killed three times; and transactions, committed and not.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { before } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import rhea from "rhea";
import {
  bodies, commit, connect, declare, event, numbers, openCoordinator, openManagement, openReceiver, openSender, openSession, range,
  receive, receiveAvailable, send, sendAccepted, sendBatch, sendIn, settleIn, topic, types,
} from "../harness.js";

const control = process.env.JITNEY_BROKER_CONTROL?.split(" ");

/** How often the broker is killed, and after how many more acknowledgements. */
const KILLS = 3;
const BETWEEN = 60;

async function broker(verb) {
  const [program, ...words] = control;
  await promisify(execFile)(program, [...words, verb]);
}

/** Sends numbered messages, a few at a time, through every loss of the connection, until it is told to end. */
class Load {
  constructor(address) {
    this.address = address;
    this.sent = 0;
    this.acknowledged = new Set();
    this.ended = false;
  }

  async run() {
    while (!this.ended) {
      try {
        const connection = await connect();
        const lost = event(connection, "disconnected").then(() => { throw new Error("lost"); });
        lost.catch(() => {});
        const sender = await Promise.race([openSender(connection, this.address), lost]);
        while (!this.ended) await Promise.race([this.some(sender), lost]);
        connection.close();
      } catch {
        // There is no broker at times.
        await turn();
      }
    }
  }

  async some(sender) {
    await Promise.all(range(1, 5).map(async () => {
      const body = this.sent += 1;
      const { name } = await send(sender, { body });
      if (name === "accepted") this.acknowledged.add(body);
    }));
  }

  async reached(count) {
    while (this.acknowledged.size < count) await turn();
  }
}

/** All that a peek sees, page by page. */
async function peekAll(connection, entity) {
  const request = await openManagement(connection, entity);
  const found = [];
  for (;;) {
    const from = found.length ? numbers(found.slice(-1))[0] + 1 : 0;
    const { status, body } = await request("com.microsoft:peek-message", {
      "from-sequence-number": types.wrap_long(from), "message-count": types.wrap_int(250),
    });
    if (status === 204) return found;
    found.push(...body.messages.map(({ message }) => ({ message: rhea.message.decode(message) })));
  }
}

/** Checks that everything acknowledged is there once, under numbers without a gap. */
function complete(messages, { acknowledged }) {
  const there = bodies(messages);
  assert.equal(new Set(there).size, there.length, "something is there twice");
  const missing = [...acknowledged].filter((body) => !there.includes(body));
  assert.deepEqual(missing, []);
  assert.deepEqual(numbers(messages), range(1, messages.length));
}

topic("restarts", (scenario) => {
  const loads = { topic: new Load("s159"), queue: new Load("s204") };

  before(async () => {
    assert.ok(control, "JITNEY_BROKER_CONTROL is not set");
    const connection = await connect();
    const sender = await openSender(connection, "s243");
    await sendBatch(sender, range(1, 4).map((body) => ({ body })));
    const [, second, third] = await receive(await openReceiver(connection, "s243"), 3);
    const coordinator = await openCoordinator(connection);
    const [committed, open] = [await declare(coordinator), await declare(coordinator)];
    await settleIn(committed, second, "accepted");
    await sendIn(committed, sender, { body: "committed" });
    await settleIn(open, third, "accepted");
    await sendIn(open, sender, { body: "open" });
    assert.deepEqual(await commit(coordinator, committed), { name: "accepted" });
    // Somebody waits for a session when the broker goes.
    openSession(connection, "s104", null).catch(() => {});

    const running = Object.values(loads).map((load) => load.run());
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await Promise.all(Object.values(loads).map((load) => load.reached(kill * BETWEEN)));
      await broker("kill");
      await broker("start");
    }
    for (const load of Object.values(loads)) {
      await load.reached(load.acknowledged.size + BETWEEN);
      load.ended = true;
    }
    await Promise.all(running);
  });

  scenario("S159 what a topic acknowledged is in both subscriptions, once", async (connection) => {
    const [a, b] = [await peekAll(connection, "s159/Subscriptions/a"), await peekAll(connection, "s159/Subscriptions/b")];
    complete(a, loads.topic);
    complete(b, loads.topic);
    assert.deepEqual(bodies(a), bodies(b));
  });

  scenario("S204 what a queue acknowledged is where it forwards to, once", async (connection) => {
    const messages = await peekAll(connection, "s204b");
    complete(messages, loads.queue);
    const original = messages.map(({ message }) => message.message_annotations["x-opt-enqueue-sequence-number"]);
    assert.equal(new Set(original).size, original.length);
  });

  scenario("S243 of a transaction that was committed everything, of an open one nothing", async (connection) => {
    const received = await receiveAvailable(await openReceiver(connection, "s243"));
    assert.deepEqual([bodies(received), numbers(received)], [[1, 3, 4, "committed"], [1, 3, 4, 5]]);
    await sendAccepted(await openSender(connection, "s243"), { body: "after" });
    assert.deepEqual(numbers(await receiveAvailable(await openReceiver(connection, "s243"))), [6]);
  });
});
