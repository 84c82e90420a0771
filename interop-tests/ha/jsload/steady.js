// A client of the JavaScript SDK that has nothing but its defaults: ../steady.py says what it does.

import { setTimeout as sleep } from "node:timers/promises";
import { ServiceBusClient } from "@azure/service-bus";

const PAUSE_MS = 100;
/** After an error, an application tries again with the same sender. */
const RETRY_MS = 500;

const [, , connectionString, queue] = process.argv;
const say = (line) => process.stdout.write(`${line}\n`);

const client = new ServiceBusClient(connectionString);
const sender = client.createSender(queue);
client.createReceiver(queue).subscribe({
  processMessage: async ({ body }) => say(`received ${body}`),
  // The receiver continues after it: errors of connections and of locks come here for the application's log.
  processError: async () => {},
});
process.stdin.resume().on("end", () => process.exit(0));

for (let number = 1; ; ) {
  try {
    await sender.sendMessages({ body: String(number) });
    say(`sent ${number}`);
    number += 1;
    await sleep(PAUSE_MS);
  } catch (error) {
    say(`failed sending ${number}: ${error}`.replaceAll("\n", " "));
    await sleep(RETRY_MS);
  }
}
