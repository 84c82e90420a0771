// The steps (../README.md) with one version of @azure/service-bus 1: `client1.js amqp|websockets PREFIX`.
"use strict";

const { createRequire } = require("node:module");
const { check, collect, run } = require("./steps.js");

const installed = createRequire(`${process.cwd()}/`);
const { QueueClient, ReceiveMode, ServiceBusClient } = installed("@azure/service-bus");

const [transport, prefix] = process.argv.slice(2);
const options = transport === "websockets" ? { webSocketOptions: { webSocket: installed("ws") } } : {};
const client = ServiceBusClient.createFromConnectionString(process.env.CONNECTION_STRING, options);

async function using(queue, use) {
  const opened = client.createQueueClient(queue);
  await use(opened);
  await opened.close();
}

async function send(queue, ...messages) {
  await using(`${prefix}-${queue}`, async (opened) => {
    const sender = opened.createSender();
    if (messages.length === 1) await sender.send(messages[0]);
    else await sender.sendBatch(messages);
    await sender.close();
  });
}

async function received(queue, use, mode = ReceiveMode.peekLock, options = undefined) {
  await using(queue, async (opened) => {
    const receiver = opened.createReceiver(mode, options);
    await use(receiver, (count = 1) => collect((left) => receiver.receiveMessages(left, 5), count));
    await receiver.close();
  });
}

async function empty(queue) {
  await using(`${prefix}-${queue}`, async (opened) => {
    const left = await opened.peek(10);
    check(left.length === 0, `${left.length} messages are left`);
  });
}

run({
  async send() {
    await send("send", { body: "one", userProperties: { number: 7 } });
    await received(`${prefix}-send`, async (_, next) => {
      const [message] = await next();
      check(message.body === "one", `the body is ${message.body}`);
      check(message.userProperties.number === 7, `the property is ${message.userProperties.number}`);
      await message.complete();
    });
  },
  async batch() {
    await send("batch", ...Array.from({ length: 20 }, (_, number) => ({ body: `${number}` })));
    await received(`${prefix}-batch`, async (_, next) => {
      const messages = await next(20);
      check(messages.every((each, number) => each.body === `${number}`), "another order");
      for (const message of messages) await message.complete();
    });
    await empty("batch");
  },
  async "receive-and-delete"() {
    await send("receive-and-delete", { body: "one" }, { body: "two" });
    await received(`${prefix}-receive-and-delete`, (_, next) => next(2), ReceiveMode.receiveAndDelete);
    await empty("receive-and-delete");
  },
  async complete() {
    await send("complete", { body: "one" });
    await received(`${prefix}-complete`, async (_, next) => {
      const [message] = await next();
      await message.complete();
    });
    await empty("complete");
  },
  async abandon() {
    await send("abandon", { body: "one" });
    await received(`${prefix}-abandon`, async (_, next) => {
      const [first] = await next();
      await first.abandon();
      const [message] = await next();
      check(message.deliveryCount === 1, `the delivery count is ${message.deliveryCount}`);
      await message.complete();
    });
  },
  async defer() {
    await send("defer", { body: "one" });
    await received(`${prefix}-defer`, async (receiver, next) => {
      const [message] = await next();
      await message.defer();
      const deferred = await receiver.receiveDeferredMessage(message.sequenceNumber);
      check(deferred.body === "one", `the body is ${deferred.body}`);
      await deferred.complete();
    });
    await empty("defer");
  },
  async "dead-letter"() {
    await send("dead-letter", { body: "one" });
    await received(`${prefix}-dead-letter`, async (_, next) => {
      const [message] = await next();
      await message.deadLetter({ deadletterReason: "a reason", deadLetterErrorDescription: "a description" });
    });
    await received(QueueClient.getDeadLetterQueuePath?.(`${prefix}-dead-letter`) ?? `${prefix}-dead-letter/$DeadLetterQueue`, async (_, next) => {
      const [message] = await next();
      const properties = message.userProperties;
      check(properties.DeadLetterReason === "a reason", `the reason is ${properties.DeadLetterReason}`);
      check(properties.DeadLetterErrorDescription === "a description", `the text is ${properties.DeadLetterErrorDescription}`);
      await message.complete();
    });
  },
  async schedule() {
    await using(`${prefix}-schedule`, async (opened) => {
      const sender = opened.createSender();
      const number = await sender.scheduleMessage(new Date(Date.now() + 1000), { body: "one" });
      check(number.greaterThan(0), `the number is ${number}`);
      await sender.close();
    });
    await received(`${prefix}-schedule`, async (_, next) => {
      const [message] = await next();
      await message.complete();
    });
  },
  async cancel() {
    await using(`${prefix}-cancel`, async (opened) => {
      const sender = opened.createSender();
      const numbers = await sender.scheduleMessages(new Date(Date.now() + 3_600_000), [{ body: "one" }, { body: "two" }]);
      await sender.cancelScheduledMessages(numbers);
      await sender.close();
    });
    await empty("cancel");
  },
  async peek() {
    await send("peek", { body: "one" }, { body: "two" });
    await using(`${prefix}-peek`, async (opened) => {
      const messages = await opened.peek(2);
      check(messages.map((each) => each.body).join() === "one,two", `${messages.length} messages`);
    });
  },
  async renew() {
    await send("renew", { body: "one" });
    await received(`${prefix}-renew`, async (receiver, next) => {
      const [message] = await next();
      const before = message.lockedUntilUtc;
      await new Promise((resolve) => setTimeout(resolve, 100));
      check((await receiver.renewMessageLock(message)) > before, "the lock ends no later");
      await message.complete();
    });
  },
  async session() {
    await send("session", { body: "one", sessionId: "a" });
    await received(`${prefix}-session`, async (receiver, next) => {
      const [message] = await next();
      check(message.sessionId === "a", `the session is ${message.sessionId}`);
      await receiver.setState("a state");
      const state = await receiver.getState();
      check(state === "a state", `the state is ${state}`);
      await receiver.renewSessionLock();
      await message.complete();
    }, ReceiveMode.peekLock, { sessionId: "a" });
  },
  async "next-session"() {
    await send("next-session", { body: "one", sessionId: "b" });
    await received(`${prefix}-next-session`, async (receiver, next) => {
      const [message] = await next();
      check(receiver.sessionId === "b", `the session is ${receiver.sessionId}`);
      await message.complete();
    }, ReceiveMode.peekLock, { sessionId: undefined });
  },
  async rules() {
    const subscription = client.createSubscriptionClient(`${prefix}-topic`, "subscription");
    await subscription.addRule("red", "color = 'red'");
    const names = (await subscription.getRules()).map((each) => each.name);
    check(names.includes("red"), `the rules are ${names}`);
    await subscription.removeRule(subscription.defaultRuleName);
    const topic = client.createTopicClient(`${prefix}-topic`);
    const sender = topic.createSender();
    await sender.sendBatch(["blue", "red"].map((color) => ({ body: color, userProperties: { color } })));
    const receiver = subscription.createReceiver(ReceiveMode.peekLock);
    const [message] = await collect((left) => receiver.receiveMessages(left, 5), 1);
    check(message.body === "red", `the message is ${message.body}`);
    await message.complete();
    await topic.close();
    await subscription.close();
  },
  async unknown() {
    const error = await send("unknown", { body: "one" }).then(() => undefined, (error) => error);
    check(error, "no error");
    check(error.name === "MessagingEntityNotFoundError", `${error.name}: ${error.message}`);
  },
});
