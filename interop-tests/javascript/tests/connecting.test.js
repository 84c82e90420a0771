import assert from "node:assert/strict";
import { fails, receiveNothing, receiveOne, topic } from "../harness.js";

topic("connecting", (scenario) => {
  scenario("S01 a message is sent, received and completed", async (client) => {
    await client.createSender("s01").sendMessages({ body: "hello" });
    const receiver = client.createReceiver("s01");
    const message = await receiveOne(receiver);
    assert.equal(message.body, "hello");
    await receiver.completeMessage(message);
    await receiveNothing(receiver);
  });

  scenario("S02 an unknown queue is not found", async (client) => {
    const wanted = /The messaging entity .* could not be found/;
    const send = client.createSender("no-such-queue").sendMessages({ body: 1 });
    const receive = client.createReceiver("no-such-queue").receiveMessages(1, { maxWaitTimeInMs: 1_000 });
    const peek = client.createReceiver("no-such-queue").peekMessages(1);
    await Promise.all([send, receive, peek].map((each) => fails(each, "MessagingEntityNotFound", wanted)));
  });

  scenario("S03 names of queues do not depend on case", async (client) => {
    await client.createSender("S03").sendMessages({ body: 3 });
    assert.equal((await receiveOne(client.createReceiver("s03"))).body, 3);
  });

  scenario("S04 links of one connection live and die apart", async (client) => {
    const queues = ["s04", "s04", "s04b"];
    const senders = queues.map((queue) => client.createSender(queue));
    const receivers = queues.map((queue) => client.createReceiver(queue, { receiveMode: "receiveAndDelete" }));
    const roundTrip = async (index) => {
      await senders[index].sendMessages({ body: index });
      assert.equal((await receiveOne(receivers[index])).body, index);
    };
    for (const index of [0, 1, 2]) await roundTrip(index);
    await Promise.all([senders[0].close(), receivers[0].close()]);
    for (const index of [1, 2]) await roundTrip(index);
  });
});
