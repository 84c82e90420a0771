// A program with the SDK, for what belongs to a process: which authorities it trusts, which versions of TLS it speaks, what its clock says.
//
//     client-process.js CONNECTION-STRING QUEUE [SECONDS]
//
// sends a message and receives it; does so again after this time, on the same links; says "welcome", or why not.

import { setTimeout as pause } from "node:timers/promises";
import { ServiceBusClient } from "@azure/service-bus";

const [text, queue, stay = "0"] = process.argv.slice(2);
const client = new ServiceBusClient(text, { retryOptions: { maxRetries: 0, timeoutInMs: 10_000 } });
let arrived;
let fail;
const failed = new Promise((_, reject) => { fail = reject; });

/** Sends a message, and waits until it has come. */
async function roundTrip(sender) {
  const done = new Promise((resolve) => { arrived = resolve; });
  await sender.sendMessages({ body: "hello" });
  await Promise.race([done, failed]);
}

try {
  const sender = client.createSender(queue);
  client.createReceiver(queue).subscribe({
    processMessage: async () => { arrived(); },
    processError: async ({ error }) => { fail(error); },
  });
  await roundTrip(sender);
  await Promise.race([pause(Number(stay) * 1_000), failed]);
  await roundTrip(sender);
  process.stdout.write("welcome\n");
} catch (error) {
  process.stdout.write(`${error.code}: ${error.message}\n`);
} finally {
  await client.close();
}
process.exit();
