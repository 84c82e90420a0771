// The steps (../README.md) with one version of rhea, as links over TLS with SASL PLAIN: `rhea-client.js PREFIX`.
"use strict";

const { randomUUID } = require("node:crypto");
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { check, run } = require("./steps.js");

// The package of the version is in the working directory.
const rhea = createRequire(`${process.cwd()}/`)("rhea");
const { types } = rhea;

const [prefix] = process.argv.slice(2);
const DEADLINE = 15_000;
const BATCH_FORMAT = 0x80013700;
const SESSION_FILTER = "com.microsoft:session-filter";

const [, host] = process.env.CONNECTION_STRING.match(/sb:\/\/([^/;]+)/);
const [, username] = process.env.CONNECTION_STRING.match(/SharedAccessKeyName=([^;]+)/);
const [, password] = process.env.CONNECTION_STRING.match(/SharedAccessKey=([^;]+)/);
const connection = rhea.create_container().connect({
  host, port: 5671, transport: "tls", username, password, reconnect: false, ca: readFileSync(process.env.SSL_CERT_FILE),
});
// Without a listener, rhea throws what the peer says where nobody can catch it.
for (const name of ["connection_error", "disconnected", "sender_error", "receiver_error"]) connection.on(name, () => {});

/** Resolves with the context of the next event of this name that `matches`. */
function event(emitter, name, matches = () => true) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      emitter.removeListener(name, listener);
      reject(new Error(`no ${name} within ${DEADLINE} ms`));
    }, DEADLINE);
    const listener = (context) => {
      if (!matches(context)) return;
      clearTimeout(timer);
      emitter.removeListener(name, listener);
      resolve(context);
    };
    emitter.on(name, listener);
  });
}

async function opened(link, role) {
  const failed = event(link, `${role}_error`).then(() => {
    throw link.error;
  });
  failed.catch(() => {});
  await Promise.race([event(link, `${role}_open`), failed]);
  // A refused link is answered by an attach without a terminus, and then the reason.
  if (!(role === "sender" ? link.target : link.source)?.address) await failed;
  return link;
}

function openSender(address) {
  return opened(connection.open_sender({ target: { address } }), "sender");
}

function openReceiver(address, options = {}) {
  const receiver = connection.open_receiver({ source: { address }, rcv_settle_mode: 1, credit_window: 0, autoaccept: false, ...options });
  receiver.inbox = [];
  receiver.on("message", ({ message, delivery }) => receiver.inbox.push({ message, delivery, receiver }));
  return opened(receiver, "receiver");
}

async function send(sender, message, format) {
  let delivery;
  const settled = event(sender, "settled", (context) => context.delivery === delivery);
  delivery = sender.send(message, undefined, format);
  await settled;
  check(delivery.remote_state.constructor.composite_type === "accepted", `the outcome is ${JSON.stringify(delivery.remote_state)}`);
}

async function sent(queue, ...messages) {
  const sender = await openSender(`${prefix}-${queue}`);
  for (const message of messages) await send(sender, message);
  await close(sender);
}

async function receive(receiver, count = 1) {
  receiver.add_credit(count);
  if (receiver.inbox.length < count) await event(receiver, "message", () => receiver.inbox.length >= count);
  return receiver.inbox.splice(0, count);
}

async function settle({ delivery, receiver }, name, fields) {
  const settled = event(receiver, "settled", (context) => context.delivery === delivery);
  delivery.update(false, rhea.message[name](fields).described());
  await settled;
  const state = delivery.remote_state;
  check(state.constructor.composite_type === name && !state.error, `the answer is ${JSON.stringify(state)}`);
}

async function close(link) {
  const closed = event(link, link.is_sender() ? "sender_close" : "receiver_close");
  link.close();
  await closed;
}

/** Sends a message to a queue, receives it, and calls `use` with it. */
async function one(queue, use) {
  await sent(queue, { body: "one" });
  const receiver = await openReceiver(`${prefix}-${queue}`);
  const [received] = await receive(receiver);
  await use(received, receiver);
  await close(receiver);
}

/** Calls `use` with requests to an entity's management node. */
async function managing(entity, use) {
  const replyTo = randomUUID();
  const receiver = await openReceiver(`${entity}/$management`, { target: { address: replyTo }, snd_settle_mode: 1, rcv_settle_mode: 0 });
  const sender = await openSender(`${entity}/$management`);
  const found = await use(async (operation, body, properties = {}) => {
    const id = randomUUID();
    await send(sender, {
      message_id: id, reply_to: replyTo, application_properties: { operation: `com.microsoft:${operation}`, ...properties }, body,
    });
    const [{ message }] = await receive(receiver);
    check(message.correlation_id === id, "the answer to another request");
    const { statusCode, statusDescription } = message.application_properties;
    check(statusCode === 200 || statusCode === 204, `${statusCode}: ${statusDescription}`);
    return { status: statusCode, body: message.body };
  });
  await close(sender);
  await close(receiver);
  return found;
}

function peeked(queue) {
  return managing(`${prefix}-${queue}`, async (request) => {
    const { status, body } = await request("peek-message", { "from-sequence-number": types.wrap_long(0), "message-count": types.wrap_int(10) });
    return status === 204 ? [] : body.messages.map(({ message }) => rhea.message.decode(message));
  });
}

async function empty(queue) {
  const left = await peeked(queue);
  check(left.length === 0, `${left.length} messages are left`);
}

function lockToken({ delivery: { tag } }) {
  const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
  return types.wrap_uuid(Buffer.from(order.map((index) => tag[index])));
}

function schedule(request, at, ...bodies) {
  const messages = bodies.map((body) => {
    const message = { message_id: randomUUID(), body, message_annotations: { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(at) } };
    return { "message-id": message.message_id, message: types.wrap_binary(rhea.message.encode(message)) };
  });
  return request("schedule-message", { messages });
}

async function session(queue, id, wanted, use) {
  await sent(queue, { body: "one", group_id: id });
  const address = `${prefix}-${queue}`;
  const receiver = await openReceiver(address, { source: { address, filter: { [SESSION_FILTER]: wanted } } });
  check(receiver.source.filter[SESSION_FILTER] === id, `the session is ${receiver.source.filter[SESSION_FILTER]}`);
  const [received] = await receive(receiver);
  await use(received, receiver);
  await settle(received, "accepted");
  await close(receiver);
}

run({
  async send() {
    await sent("send", { body: "one", application_properties: { number: 7 } });
    const receiver = await openReceiver(`${prefix}-send`);
    const [received] = await receive(receiver);
    const { body, application_properties: properties } = received.message;
    check(body === "one" && properties.number === 7, `the message is ${body}, ${JSON.stringify(properties)}`);
    await settle(received, "accepted");
    await close(receiver);
  },
  async batch() {
    const sender = await openSender(`${prefix}-batch`);
    const messages = Array.from({ length: 20 }, (_, number) => rhea.message.encode({ body: `${number}` }));
    await send(sender, rhea.message.encode({ body: rhea.message.data_sections(messages) }), BATCH_FORMAT);
    await close(sender);
    const receiver = await openReceiver(`${prefix}-batch`);
    const received = await receive(receiver, 20);
    check(received.every(({ message }, number) => message.body === `${number}`), "another order");
    for (const each of received) await settle(each, "accepted");
    await close(receiver);
    await empty("batch");
  },
  async "receive-and-delete"() {
    await sent("receive-and-delete", { body: "one" }, { body: "two" });
    const receiver = await openReceiver(`${prefix}-receive-and-delete`, { snd_settle_mode: 1, rcv_settle_mode: 0 });
    await receive(receiver, 2);
    await close(receiver);
    await empty("receive-and-delete");
  },
  async complete() {
    await one("complete", (received) => settle(received, "accepted"));
    await empty("complete");
  },
  async abandon() {
    await one("abandon", async (received, receiver) => {
      await settle(received, "modified", { undeliverable_here: false });
      const [again] = await receive(receiver);
      check(again.message.delivery_count === 1, `the delivery count is ${again.message.delivery_count}`);
      await settle(again, "accepted");
    });
  },
  async defer() {
    let number;
    await one("defer", (received) => {
      number = received.message.message_annotations["x-opt-sequence-number"];
      return settle(received, "modified", { undeliverable_here: true });
    });
    await managing(`${prefix}-defer`, async (request) => {
      const numbers = types.wrap_array([number], 0x81);
      const { body } = await request("receive-by-sequence-number", { "sequence-numbers": numbers, "receiver-settle-mode": types.wrap_uint(1) });
      const [{ message, "lock-token": token }] = body.messages;
      check(rhea.message.decode(message).body === "one", "another message");
      const tokens = types.wrap_array([token], 0x98);
      await request("update-disposition", { "disposition-status": "completed", "lock-tokens": tokens });
    });
    await empty("defer");
  },
  async "dead-letter"() {
    const info = { DeadLetterReason: "a reason", DeadLetterErrorDescription: "a description" };
    await one("dead-letter", (received) => settle(received, "rejected", { error: { condition: "com.microsoft:dead-letter", info } }));
    const receiver = await openReceiver(`${prefix}-dead-letter/$DeadLetterQueue`);
    const [letter] = await receive(receiver);
    const { DeadLetterReason: reason } = letter.message.application_properties;
    check(reason === "a reason", `the reason is ${reason}`);
    await settle(letter, "accepted");
    await close(receiver);
  },
  async schedule() {
    await managing(`${prefix}-schedule`, (request) => schedule(request, Date.now() + 1000, "one"));
    const receiver = await openReceiver(`${prefix}-schedule`);
    const [received] = await receive(receiver);
    await settle(received, "accepted");
    await close(receiver);
  },
  async cancel() {
    await managing(`${prefix}-cancel`, async (request) => {
      const { body } = await schedule(request, Date.now() + 3_600_000, "one", "two");
      check(body["sequence-numbers"].length === 2, `the numbers are ${body["sequence-numbers"]}`);
      await request("cancel-scheduled-message", { "sequence-numbers": types.wrap_array(body["sequence-numbers"], 0x81) });
    });
    await empty("cancel");
  },
  async peek() {
    await sent("peek", { body: "one" }, { body: "two" });
    const messages = await peeked("peek");
    check(messages.map(({ body }) => body).join() === "one,two", `${messages.length} messages`);
  },
  async renew() {
    await one("renew", async (received) => {
      const { expirations } = await managing(`${prefix}-renew`, async (request) => {
        const answer = await request("renew-lock", { "lock-tokens": types.wrap_array([lockToken(received).value], 0x98) });
        return answer.body;
      });
      check(expirations.length === 1, `${expirations.length} answers`);
      await settle(received, "accepted");
    });
  },
  async session() {
    await session("session", "a", "a", (_, receiver) => managing(`${prefix}-session`, async (request) => {
      const link = { "associated-link-name": receiver.name };
      await request("set-session-state", { "session-id": "a", "session-state": types.wrap_binary(Buffer.from("a state")) }, link);
      const { body } = await request("get-session-state", { "session-id": "a" }, link);
      check(body["session-state"].toString() === "a state", `the state is ${body["session-state"]}`);
      await request("renew-session-lock", { "session-id": "a" }, link);
    }));
  },
  async "next-session"() {
    await session("next-session", "b", null, () => {});
  },
  async rules() {
    const topic = `${prefix}-topic`;
    await managing(`${topic}/Subscriptions/subscription`, async (request) => {
      await request("add-rule", { "rule-name": "red", "rule-description": { "sql-filter": { expression: "color = 'red'" } } });
      const { body } = await request("enumerate-rules", { top: types.wrap_int(100), skip: types.wrap_int(0) });
      check(body.rules.length === 2, `there are ${body.rules.length} rules`);
      await request("remove-rule", { "rule-name": "$Default" });
    });
    await sent("topic", ...["blue", "red"].map((color) => ({ body: color, application_properties: { color } })));
    const receiver = await openReceiver(`${topic}/Subscriptions/subscription`);
    const [received] = await receive(receiver);
    check(received.message.body === "red", `the message is ${received.message.body}`);
    await settle(received, "accepted");
    await close(receiver);
  },
  async unknown() {
    const error = await openSender(`${prefix}-unknown`).then(() => undefined, (error) => error);
    check(error?.condition === "amqp:not-found", `the error is ${error}`);
  },
});
