// The steps (../README.md) with one version of @azure/service-bus from 7.0: `client.js amqp|websockets PREFIX`.
"use strict";

const { createRequire } = require("node:module");
const { check, collect, run } = require("./steps.js");

// The packages of the version are in the working directory.
const installed = createRequire(`${process.cwd()}/`);
const { ServiceBusAdministrationClient, ServiceBusClient } = installed("@azure/service-bus");

const [transport, prefix] = process.argv.slice(2);
const connectionString = process.env.CONNECTION_STRING;
const options = transport === "websockets" ? { webSocketOptions: { webSocket: installed("ws") } } : {};
// No retries: what fails first must be seen.
const client = new ServiceBusClient(connectionString, { ...options, retryOptions: { maxRetries: 0, timeoutInMs: 30_000 } });
const administrator = new ServiceBusAdministrationClient(connectionString);

async function send(queue, messages) {
  const sender = client.createSender(`${prefix}-${queue}`);
  await sender.sendMessages(messages);
  await sender.close();
}

async function received(queue, use, options = {}) {
  const receiver = client.createReceiver(`${prefix}-${queue}`, options);
  await use(receiver, (count = 1) => collect((left) => receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 }), count));
  await receiver.close();
}

async function empty(queue) {
  await received(queue, async (receiver) => {
    const left = await receiver.peekMessages(10);
    check(left.length === 0, `${left.length} messages are left`);
  });
}

/** A rule added, listed and removed, and what it lets through. */
async function rules(add, list, remove) {
  const topic = `${prefix}-topic`;
  await add(topic, "red", "color = 'red'");
  const listed = await list(topic);
  check(listed.includes("red"), `the rules are ${listed}`);
  await remove(topic, "$Default");
  await send("topic", ["blue", "red"].map((color) => ({ body: color, applicationProperties: { color } })));
  const receiver = client.createReceiver(topic, "subscription");
  const [message] = await collect((left) => receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 }), 1);
  check(message.body === "red", `the message is ${message.body}`);
  await receiver.completeMessage(message);
  await receiver.close();
}

const steps = {
  async send() {
    await send("send", { body: "one", applicationProperties: { number: 7 } });
    await received("send", async (receiver, next) => {
      const [message] = await next();
      check(message.body === "one", `the body is ${message.body}`);
      check(message.applicationProperties.number === 7, `the property is ${message.applicationProperties.number}`);
      await receiver.completeMessage(message);
    });
  },
  async batch() {
    const sender = client.createSender(`${prefix}-batch`);
    const batch = await sender.createMessageBatch();
    for (let number = 0; number < 20; number++) check(batch.tryAddMessage({ body: `${number}` }), "no room in the batch");
    await sender.sendMessages(batch);
    await sender.close();
    await received("batch", async (receiver, next) => {
      const messages = await next(20);
      check(messages.every((each, number) => each.body === `${number}`), "another order");
      for (const message of messages) await receiver.completeMessage(message);
    });
    await empty("batch");
  },
  async "receive-and-delete"() {
    await send("receive-and-delete", [{ body: "one" }, { body: "two" }]);
    await received("receive-and-delete", (_, next) => next(2), { receiveMode: "receiveAndDelete" });
    await empty("receive-and-delete");
  },
  async complete() {
    await send("complete", { body: "one" });
    await received("complete", async (receiver, next) => {
      const [message] = await next();
      await receiver.completeMessage(message);
    });
    await empty("complete");
  },
  async abandon() {
    await send("abandon", { body: "one" });
    await received("abandon", async (receiver, next) => {
      const [first] = await next();
      await receiver.abandonMessage(first);
      const [message] = await next();
      check(message.deliveryCount === 1, `the delivery count is ${message.deliveryCount}`);
      await receiver.completeMessage(message);
    });
  },
  async defer() {
    await send("defer", { body: "one" });
    await received("defer", async (receiver, next) => {
      const [message] = await next();
      await receiver.deferMessage(message);
      const [deferred] = await receiver.receiveDeferredMessages([message.sequenceNumber]);
      check(deferred.body === "one", `the body is ${deferred.body}`);
      await receiver.completeMessage(deferred);
    });
    await empty("defer");
  },
  async "dead-letter"() {
    await send("dead-letter", { body: "one" });
    await received("dead-letter", async (receiver, next) => {
      const [message] = await next();
      await receiver.deadLetterMessage(message, { deadLetterReason: "a reason", deadLetterErrorDescription: "a description" });
    });
    await received("dead-letter", async (receiver, next) => {
      const [message] = await next();
      check(message.deadLetterReason === "a reason", `the reason is ${message.deadLetterReason}`);
      check(message.deadLetterErrorDescription === "a description", `the text is ${message.deadLetterErrorDescription}`);
      await receiver.completeMessage(message);
    }, { subQueueType: "deadLetter" });
  },
  async schedule() {
    const sender = client.createSender(`${prefix}-schedule`);
    const numbers = await sender.scheduleMessages({ body: "one" }, new Date(Date.now() + 1000));
    check(numbers.length === 1, `the numbers are ${numbers}`);
    await sender.close();
    await received("schedule", async (receiver, next) => {
      const [message] = await next();
      await receiver.completeMessage(message);
    });
  },
  async cancel() {
    const sender = client.createSender(`${prefix}-cancel`);
    const numbers = await sender.scheduleMessages([{ body: "one" }, { body: "two" }], new Date(Date.now() + 3_600_000));
    await sender.cancelScheduledMessages(numbers);
    await sender.close();
    await empty("cancel");
  },
  async peek() {
    await send("peek", [{ body: "one" }, { body: "two" }]);
    await received("peek", async (receiver) => {
      const messages = await receiver.peekMessages(2);
      check(messages.map((each) => each.body).join() === "one,two", `${messages.length} messages`);
    });
  },
  async renew() {
    await send("renew", { body: "one" });
    await received("renew", async (receiver, next) => {
      const [message] = await next();
      const before = message.lockedUntilUtc;
      await new Promise((resolve) => setTimeout(resolve, 100));
      check((await receiver.renewMessageLock(message)) > before, "the lock ends no later");
      await receiver.completeMessage(message);
    });
  },
  async session() {
    await send("session", { body: "one", sessionId: "a" });
    const receiver = await client.acceptSession(`${prefix}-session`, "a");
    const [message] = await collect((left) => receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 }), 1);
    check(message.sessionId === "a", `the session is ${message.sessionId}`);
    await receiver.setSessionState("a state");
    const state = await receiver.getSessionState();
    check(state === "a state", `the state is ${state}`);
    await receiver.renewSessionLock();
    await receiver.completeMessage(message);
    await receiver.close();
  },
  async "next-session"() {
    await send("next-session", { body: "one", sessionId: "b" });
    const receiver = await client.acceptNextSession(`${prefix}-next-session`);
    check(receiver.sessionId === "b", `the session is ${receiver.sessionId}`);
    const [message] = await collect((left) => receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 }), 1);
    await receiver.completeMessage(message);
    await receiver.close();
  },
  async rules() {
    if (!client.createRuleManager) {
      // Before 7.8, by administration only.
      await rules(
        (topic, name, sqlExpression) => administrator.createRule(topic, "subscription", name, { sqlExpression }),
        async (topic) => names(administrator.listRules(topic, "subscription")),
        (topic, name) => administrator.deleteRule(topic, "subscription", name),
      );
      return;
    }
    const manager = client.createRuleManager(`${prefix}-topic`, "subscription");
    await rules(
      (_, name, sqlExpression) => manager.createRule(name, { sqlExpression }),
      () => names(manager.listRules()),
      (_, name) => manager.deleteRule(name),
    );
  },
  async unknown() {
    const error = await send("unknown", { body: "one" }).then(() => undefined, (error) => error);
    check(error, "no error");
    check(error.code === "MessagingEntityNotFound", `${error.name}, ${error.code}: ${error.message}`);
  },
};

async function names(entities) {
  const found = [];
  for await (const each of entities) found.push(each.name);
  return found;
}

run(steps);
