// Testcontainers' module, as its users have it: `module.js CONFIG` starts a container, sends and receives, stops it.
"use strict";

const { readFileSync } = require("node:fs");
const { ServiceBusClient } = require("@azure/service-bus");
const { AzureServiceBusContainer } = require("@testcontainers/azureservicebus");

async function main() {
  const builder = new AzureServiceBusContainer("mcr.microsoft.com/azure-messaging/servicebus-emulator:2.0.1").acceptLicense();
  if (process.argv[2]) builder.withConfig(readFileSync(process.argv[2], "utf8"));
  const container = await builder.start();
  const client = new ServiceBusClient(container.getConnectionString());
  const queue = process.argv[3];
  await client.createSender(queue).sendMessages({ body: "Hello, Testcontainers!" });
  const receiver = client.createReceiver(queue);
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 20_000 });
  await receiver.completeMessage(message);
  console.log(`received ${message.body}`);
  await client.close();
  await container.stop();
  console.log("stopped");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
