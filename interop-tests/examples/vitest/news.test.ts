import { ServiceBusClient } from "@azure/service-bus";
import { expect } from "vitest";
import { test } from "./jitney.ts";

test("news reach the subscription", async ({ namespace }) => {
  const client = new ServiceBusClient(namespace.connectionString, { customEndpointAddress: namespace.endpoint });
  await client.createSender("news").sendMessages({ body: "published" });
  const [message] = await client.createReceiver("news", "eu").receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  expect(message.body).toBe("published");
  await client.close();
});
