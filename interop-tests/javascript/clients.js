// Clients and administrators of the secured broker, with every kind of credential.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ServiceBusAdministrationClient } from "@azure/service-bus";
import { DEADLINE, fails, newClient, peekAll, receiveOne, topic, withClient } from "./harness.js";
import { HOST, ROOT, skip } from "./secured.js";

/** How the SDKs name a refusal for want of rights: over AMQP, over HTTP. */
export const UNAUTHORIZED = "UnauthorizedAccess";
export const UNAUTHORIZED_REQUEST = "UnauthorizedRequestError";
export const NOT_FOUND = "MessageEntityNotFoundError";
export const EXISTS = "MessageEntityAlreadyExistsError";
export const REFUSED = "ServiceError";

/** A connection string as the portal hands it out. */
export function keyed({ name, key } = ROOT, endpoint = HOST) {
  return `Endpoint=sb://${endpoint}/;SharedAccessKeyName=${name};SharedAccessKey=${key}`;
}

export function administrator(key = ROOT, endpoint = HOST, options = {}) {
  return new ServiceBusAdministrationClient(keyed(key, endpoint), options);
}

/** The key of a rule that an administrator made. */
export function keyOf(rule, which = "primaryKey") {
  return { name: rule.keyName, key: rule[which] };
}

/**
 * Options of a client that tries nothing twice. The SDK tries again what is unauthorized, for keys may just have been changed, and
 * tells what has failed twice as an error of errors, without a code.
 */
export const ONCE = { retryOptions: { maxRetries: 0, timeoutInMs: DEADLINE } };

/** Uses a client of the secured broker, with this key, and closes it. */
export function withKey(key, use) {
  return withClient(use, ONCE, keyed(key));
}

/** Scenarios with the secured broker: each gets a client and an administrator with the root key. */
export function securedTopic(name, declare) {
  const open = () => newClient({}, keyed());
  topic(name, (scenario) => {
    declare((title, body) => scenario(title, (client) => body(client, administrator()), { skip }));
  }, open);
}

/** A rule with keys of its own. */
export function rule(keyName, ...accessRights) {
  const key = (which) => createHmac("sha256", which).update(keyName + accessRights).digest("base64");
  return {
    claimType: "SharedAccessKey", accessRights, keyName, primaryKey: key("primary"), secondaryKey: key("secondary"),
  };
}

/** Bytes that are easily told from others: their period divides no power of two. */
export function pattern(size) {
  return Buffer.alloc(size, Uint8Array.from({ length: 251 }, (_, index) => (index * 7) % 251));
}

/** Sends, receives, completes, schedules, cancels and peeks. */
export async function roundTrip(client, queue, sizes = [1, 200 * 1024]) {
  const sender = client.createSender(queue);
  const receiver = client.createReceiver(queue);
  for (const size of sizes) {
    await sender.sendMessages({ body: pattern(size) });
    const message = await receiveOne(receiver);
    assert.ok(pattern(size).equals(message.body), `${size} bytes came back otherwise`);
    await receiver.completeMessage(message);
  }
  const number = await sender.scheduleMessages({ body: "later" }, new Date(Date.now() + 3_600_000));
  await sender.cancelScheduledMessages(number);
  assert.deepEqual(await peekAll(receiver), []);
  await sender.close();
  await receiver.close();
}

/** A client of the SDK in a process of its own (client-process.js), and what it said. */
export async function visit(queue, { options = [], seconds = 0, environment = process.env } = {}) {
  const program = fileURLToPath(new URL("client-process.js", import.meta.url));
  const words = [...options, program, keyed(), queue, String(seconds)];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: environment, cwd: path.dirname(program) });
  return stdout.trim();
}

export async function deniedSending(client, queue) {
  await fails(client.createSender(queue).sendMessages({ body: "denied" }), UNAUTHORIZED);
}

export async function deniedScheduling(client, queue) {
  const sender = client.createSender(queue);
  await fails(sender.scheduleMessages({ body: "denied" }, new Date(Date.now() + 3_600_000)), UNAUTHORIZED);
}

/** Checks that nothing can be received or peeked; `source` is a queue, or a topic and a subscription. */
export async function deniedReceiving(client, ...source) {
  const receiver = client.createReceiver(...source);
  await fails(receiver.receiveMessages(1, { maxWaitTimeInMs: 1_000 }), UNAUTHORIZED);
  await fails(receiver.peekMessages(1), UNAUTHORIZED);
}

export async function denied(client, queue) {
  await deniedSending(client, queue);
  await deniedReceiving(client, queue);
}

/**
 * Checks that an open sender, which has worked, is refused from now on.
 *
 * A message that is on its way when the link ends is answered by nobody, and the SDK waits for that until the time is over.
 */
export async function ends(client, queue, change, code) {
  const sender = client.createSender(queue);
  await sender.sendMessages({ body: "before" });
  await change();
  for (;;) {
    const error = await sender.sendMessages({ body: "after" }).then(() => assert.fail("it was sent"), (refused) => refused);
    if (error.code === code) return;
    assert.equal(error.code, "ServiceTimeout", error.message);
  }
}

/** Options of a client that does not wait long for an answer. */
export const SOON = { retryOptions: { maxRetries: 0, timeoutInMs: 2_000 } };

/** What was given, without what was not. */
export function given(properties) {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== undefined && value !== null));
}

export async function collect(iterator) {
  const all = [];
  for await (const each of iterator) all.push(each);
  return all;
}
