import assert from "node:assert/strict";
import { bodies, newClient, noRenewal, range, topic } from "../harness.js";

topic("draining", (scenario) => {
  scenario("S33 nothing is lost between short receives that end in a drain", async (client) => {
    const other = newClient();
    const sender = other.createSender("s33");
    const sending = (async () => {
      for (const body of range(1, 200)) await sender.sendMessages({ body });
    })();
    const receiver = client.createReceiver("s33", noRenewal);
    const seen = [];
    for (const end = Date.now() + 60_000; seen.length < 200 && Date.now() < end; ) {
      const messages = await receiver.receiveMessages(50, { maxWaitTimeInMs: 5 });
      seen.push(...messages);
      await Promise.all(messages.map((message) => receiver.completeMessage(message)));
    }
    await sending;
    assert.deepEqual(bodies(seen), range(1, 200));
    assert.deepEqual(seen.filter((message) => message.deliveryCount > 0), []);
    await other.close();
  });
});
