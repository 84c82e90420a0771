import assert from "node:assert/strict";
import { bodies, fails, noRenewal, peekAll, range, receive, receiveNothing, topic } from "../harness.js";

topic("limits", (scenario) => {
  scenario("S64 a queue that takes nothing still gives", async (client) => {
    await fails(client.createSender("s64").sendMessages({ body: 1 }), "MessagingEntityDisabled");
    await receiveNothing(client.createReceiver("s64"));
  });

  scenario("S65 a queue that gives nothing still takes", async (client) => {
    await client.createSender("s65").sendMessages({ body: 1 });
    const receiving = client.createReceiver("s65").receiveMessages(1, { maxWaitTimeInMs: 1_000 });
    await fails(receiving, "MessagingEntityDisabled");
  });

  scenario("S66 a disabled queue neither takes nor gives", async (client) => {
    await fails(client.createSender("s66").sendMessages({ body: 1 }), "MessagingEntityDisabled");
    const receiving = client.createReceiver("s66").receiveMessages(1, { maxWaitTimeInMs: 1_000 });
    await fails(receiving, "MessagingEntityDisabled");
  });

  scenario("S67 a full queue refuses, and takes again when there is room", async (client) => {
    const sender = client.createSender("s67");
    const filler = "x".repeat(100 * 1024);
    const send = (index) => sender.sendMessages({ body: `${index} ${filler}` });
    let accepted = 0;
    let refusal;
    while (accepted < 30 && refusal === undefined) {
      await send(accepted).then(() => { accepted += 1; }, (error) => { refusal = error; });
    }
    assert.equal(refusal?.code, "QuotaExceeded");
    const receiver = client.createReceiver("s67", noRenewal);
    const indexes = (messages) => bodies(messages).map((body) => Number.parseInt(body, 10));
    assert.deepEqual(indexes(await peekAll(receiver)), range(0, accepted - 1));
    for (const message of await receive(receiver, 5)) await receiver.completeMessage(message);
    await send(accepted);
    assert.deepEqual(indexes(await peekAll(receiver)), range(5, accepted));
  });
});
