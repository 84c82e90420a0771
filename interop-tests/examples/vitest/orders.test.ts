import { ServiceBusClient } from "@azure/service-bus";
import { expect } from "vitest";
import { test } from "./jitney.ts";

const it = test.extend<{ client: ServiceBusClient }>({
  client: async ({ namespace }, use) => {
    const client = new ServiceBusClient(namespace.connectionString, { customEndpointAddress: namespace.endpoint });
    await use(client);
    await client.close();
  },
});

it.concurrent("an order is received", async ({ client }) => {
  await client.createSender("orders").sendMessages({ body: "hello" });
  const receiver = client.createReceiver("orders");
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  expect(message.body).toBe("hello");
  await receiver.completeMessage(message);
});

it.concurrent("an order stays in the queue", async ({ client }) => {
  await client.createSender("orders").sendMessages({ body: "stays" });
  const messages = await client.createReceiver("orders").peekMessages(10);
  expect(messages.map((message) => message.body)).toEqual(["stays"]);
});
