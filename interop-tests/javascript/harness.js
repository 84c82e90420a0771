// What every test needs: a client of its own, receives with a deadline, errors by their code.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ServiceBusClient } from "@azure/service-bus";
import Long from "long";

export const connectionString = required("JITNEY_CONNECTION_STRING");

/** How long an expected message may take, milliseconds. */
export const DEADLINE = 20_000;

/** A receiver that never renews locks of its own accord: tests of locks want to see them end. */
export const noRenewal = { maxAutoLockRenewalDurationInMs: 0 };

/** A client that gives up soon: what fails here fails for good. `where` is a connection string, or a host and a credential. */
export function newClient(options = {}, ...where) {
  const retryOptions = { maxRetries: 1, retryDelayInMs: 200, timeoutInMs: DEADLINE };
  const [first, ...rest] = where.length > 0 ? where : [connectionString];
  return new ServiceBusClient(first, ...rest, { retryOptions, ...options });
}

/** Declares a group of scenarios that run at the same time, each with a client that is closed at its end. */
export function topic(name, declare, open = newClient) {
  describe(name, { concurrency: true, timeout: 120_000 }, () => {
    // What a failed test left open must not keep the process.
    after(() => { setTimeout(() => process.exit(), 1_000).unref(); });
    declare((title, body, options = {}) => {
      it(title, options, async () => {
        const client = open();
        try {
          await body(client);
        } finally {
          await client.close();
        }
      });
    });
  });
}

/** Uses a client, and closes it. */
export async function withClient(use, options, ...where) {
  const client = newClient(options, ...where);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** Sends one message to each session named, in order, with bodies 0, 1, 2… */
export async function sendTo(client, queue, ...sessions) {
  const sender = client.createSender(queue);
  await sender.sendMessages(sessions.map((sessionId, body) => ({ sessionId, body })));
  await sender.close();
}

/** Locks a session until it is closed or expires: nothing renews it. */
export function accept(client, queue, sessionId, options) {
  return client.acceptSession(queue, sessionId, { ...noRenewal, ...options });
}

export function acceptNext(client, queue, options) {
  return client.acceptNextSession(queue, { ...noRenewal, ...options });
}

/** Asks again and again, until the answer is one. */
export async function until(ask, deadline = DEADLINE) {
  const end = Date.now() + deadline;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert.ok(Date.now() < end, `no answer within ${deadline} ms`);
    await pause(50);
  }
}

/** The path of a subscription. */
export function at(name, subscription) {
  return `${name}/Subscriptions/${subscription}`;
}

/** Receives exactly `count` messages, in as many calls as it takes. */
export async function receive(receiver, count = 1, deadline = DEADLINE) {
  const end = Date.now() + deadline;
  const messages = [];
  while (messages.length < count) {
    const remaining = end - Date.now();
    assert.ok(remaining > 0, `${messages.length} of ${count} messages within ${deadline} ms`);
    const wanted = count - messages.length;
    messages.push(...(await receiver.receiveMessages(wanted, { maxWaitTimeInMs: remaining })));
  }
  assert.equal(messages.length, count);
  return messages;
}

export async function receiveOne(receiver, deadline = DEADLINE) {
  const [message] = await receive(receiver, 1, deadline);
  return message;
}

/** Checks that no message arrives, for a while. This is also how a test lets time pass. */
export async function receiveNothing(receiver, milliseconds = 1_000) {
  const messages = await receiver.receiveMessages(1, { maxWaitTimeInMs: milliseconds });
  assert.deepEqual(bodies(messages), []);
}

export async function completeAll(receiver, messages) {
  for (const message of messages) await receiver.completeMessage(message);
}

/** Everything that a peek from the first message sees, page by page. */
export async function peekAll(receiver) {
  const messages = [];
  for (;;) {
    const last = messages.at(-1)?.sequenceNumber ?? Long.ZERO;
    const page = await receiver.peekMessages(100, { fromSequenceNumber: last.add(1) });
    if (page.length === 0) return messages;
    messages.push(...page);
  }
}

export function deadLetters(client, queue, options = noRenewal) {
  return client.createReceiver(queue, { subQueueType: "deadLetter", ...options });
}

/** Sends `count` messages in one batch, with bodies 0, 1, 2… */
export async function sendNumbered(client, queue, count) {
  const sender = client.createSender(queue);
  await sender.sendMessages(Array.from({ length: count }, (_, index) => ({ body: index })));
  await sender.close();
}

/** An open sender and an open receiver, both used already. */
export async function inUse(client, queue) {
  const [sender, receiver] = [client.createSender(queue), client.createReceiver(queue, noRenewal)];
  await sender.sendMessages({ body: "before" });
  await receiver.completeMessage(await receiveOne(receiver));
  return { sender, receiver };
}

/** Uses them again, whatever has happened to them. */
export async function goesOn({ sender, receiver }) {
  await sender.sendMessages({ body: "after" });
  await comes(receiver);
}

/** Checks that what was sent after it comes, once, and nothing else. */
export async function comes(receiver) {
  const message = await receiveOne(receiver);
  assert.equal(message.body, "after");
  await receiver.completeMessage(message);
  await receiveNothing(receiver);
  assert.deepEqual(await peekAll(receiver), []);
}

export async function fails(promise, code, pattern = /./) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.code, code, `wanted ${code}, got ${error.code}: ${error.message}`);
    assert.match(error.message, pattern);
    return true;
  });
}

export function bodies(messages) {
  return messages.map((message) => message.body);
}

export function numbers(messages) {
  return messages.map((message) => message.sequenceNumber.toNumber());
}

/** first, first + 1, … last. */
export function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

export function inMilliseconds(milliseconds) {
  return new Date(Date.now() + milliseconds);
}

/** Checks that two times are at most `tolerance` milliseconds apart. */
export function assertNear(time, wanted, tolerance) {
  const difference = Math.abs(time - wanted);
  assert.ok(difference <= tolerance, `${new Date(time).toISOString()} is ${difference} ms off`);
}

function required(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}
