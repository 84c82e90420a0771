// A program with the SDK, for what belongs to a process: which authorities it trusts, and which versions of TLS it speaks.
//
//     visitor.js CONNECTION-STRING QUEUE     send, receive and complete one message; say "welcome", or why not

import { ServiceBusClient } from "@azure/service-bus";

const [text, queue] = process.argv.slice(2);
const client = new ServiceBusClient(text, { retryOptions: { maxRetries: 0, timeoutInMs: 10_000 } });
try {
  await client.createSender(queue).sendMessages({ body: "hello" });
  const receiver = client.createReceiver(queue);
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  await receiver.completeMessage(message);
  process.stdout.write(message.body === "hello" ? "welcome\n" : "another message\n");
} catch (error) {
  process.stdout.write(`${error.message}\n`);
} finally {
  await client.close();
}
