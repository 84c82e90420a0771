import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  bodies, deadLetters, inMilliseconds, noRenewal, numbers, peekAll, receive, receiveNothing, receiveOne, sendNumbered, topic,
  withClient,
} from "../harness.js";

const control = process.env.JITNEY_BROKER_CONTROL?.split(" ");
const skip = control === undefined ? "JITNEY_BROKER_CONTROL is not set" : false;

/** Asks the runner's broker to `start`, `kill` or `stop`; a failure of it is ours. */
async function broker(verb) {
  const [program, ...words] = control;
  await promisify(execFile)(program, [...words, verb]);
}

// One scenario: there is one broker to kill, so these take turns.
topic("surviving", (scenario) => {
  scenario("S72 S73 S74 S75 what was acknowledged survives the broker", async (client) => {
    // Links and connection that outlive the broker (S74).
    const survivor = {
      sender: client.createSender("s74"),
      receiver: client.createReceiver("s74", noRenewal),
    };
    await survivor.sender.sendMessages({ body: "before" });
    await survivor.receiver.completeMessage(await receiveOne(survivor.receiver));

    const number = await withClient(async (other) => {
      await sendNumbered(other, "s72", 5);
      const receiver = other.createReceiver("s72", noRenewal);
      const [completed, deferred, dead] = await receive(receiver, 3);
      await receiver.completeMessage(completed);
      await receiver.deferMessage(deferred, { attempt: 1 });
      await receiver.deadLetterMessage(dead, { deadLetterReason: "why", deadLetterErrorDescription: "because" });
      await other.createSender("s72").scheduleMessages({ body: "later" }, inMilliseconds(3_600_000));
      await other.createSender("s73").scheduleMessages({ body: "due" }, inMilliseconds(2_000));
      await sendNumbered(other, "s75", 1);
      const abandoning = other.createReceiver("s75", noRenewal);
      await abandoning.abandonMessage(await receiveOne(abandoning));
      await receiveNothing(other.createReceiver("s74"), 2_000);
      return deferred.sequenceNumber;
    });

    await broker("kill");
    await broker("start");

    await withClient(async (other) => {
      const receiver = other.createReceiver("s72", noRenewal);
      const states = (await peekAll(receiver)).map((message) => [Number(message.sequenceNumber), message.body, message.state]);
      assert.deepEqual(states, [[2, 1, "deferred"], [4, 3, "active"], [5, 4, "active"], [6, "later", "scheduled"]]);
      const [deferred] = await receiver.receiveDeferredMessages(number);
      assert.deepEqual([deferred.body, deferred.applicationProperties.attempt], [1, 1]);
      const letter = await receiveOne(deadLetters(other, "s72"));
      assert.deepEqual([letter.body, letter.deadLetterReason], [2, "why"]);
      await other.createSender("s72").sendMessages({ body: "next" });
      assert.deepEqual(numbers(await receive(receiver, 3)), [4, 5, 7]);
      assert.deepEqual(bodies(await receive(other.createReceiver("s73"), 1, 2_000)), ["due"]);
    });

    await survivor.sender.sendMessages({ body: "after" });
    assert.equal((await receiveOne(survivor.receiver)).body, "after");

    // In good order, with a client connected (S75): `stop` fails when the exit code is not 0.
    await broker("stop");
    await broker("start");
    await withClient(async (other) => {
      const message = await receiveOne(other.createReceiver("s75", noRenewal));
      assert.deepEqual([message.body, message.deliveryCount], [0, 1]);
    });
  }, { skip });
});
