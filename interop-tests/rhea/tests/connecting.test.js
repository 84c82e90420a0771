import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import {
  ANONYMOUS, PLAIN, accept, bodies, close, closeLink, connect, event, openManagement, openReceiver, openSender,
  receive, receiveOne, sendAccepted, topic,
} from "../harness.js";

const NOT_FOUND = { condition: "amqp:not-found", description: /The messaging entity .* could not be found/ };

function sasToken(resource, key) {
  const encoded = encodeURIComponent(resource);
  const expiry = Math.floor(Date.now() / 1_000) + 600;
  const signature = createHmac("sha256", key).update(`${encoded}\n${expiry}`).digest("base64");
  return `SharedAccessSignature sr=${encoded}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=RootManageSharedAccessKey`;
}

topic("connecting", (scenario) => {
  scenario("S01 a message is sent, received and accepted", async (connection) => {
    await sendAccepted(await openSender(connection, "s01"), { body: "hello" });
    const received = await receiveOne(await openReceiver(connection, "s01"));
    assert.equal(received.message.body, "hello");
    await accept(received);
  });

  scenario("S02 a link to an unknown queue is attached and then detached", async (connection) => {
    await assert.rejects(openSender(connection, "no-such-queue"), NOT_FOUND);
    await assert.rejects(openReceiver(connection, "no-such-queue"), NOT_FOUND);
    // Only the links died.
    await openSender(connection, "s01");
  });

  scenario("S03 an address may be a URL, in any case, with a leading slash", async (connection) => {
    for (const address of ["S03", "amqps://localhost/s03", "/s03", "amqp://localhost:5672/S03"]) {
      const sender = await openSender(connection, address);
      assert.equal(sender.target.address, address);
      await sendAccepted(sender, { body: address });
      const receiver = await openReceiver(connection, address);
      assert.equal(receiver.source.address, address);
      const received = await receiveOne(receiver);
      assert.equal(received.message.body, address);
      await accept(received);
      await closeLink(receiver);
    }
  });

  scenario("S04 sessions and links of one connection live and die apart", async (connection) => {
    const sessions = Array.from({ length: 20 }, () => connection.create_session());
    for (const session of sessions) session.open();
    await Promise.all(sessions.map((session) => event(session, "session_open")));
    const queues = ["s04", "s04b"];
    const senders = await Promise.all(sessions.map((session, index) => openSender(session, queues[index % 2])));
    const receivers = await Promise.all(queues.map((queue) => openReceiver(connection, queue)));
    await Promise.all(senders.map((sender, index) => sendAccepted(sender, { body: index })));
    for (const receiver of receivers) {
      const received = await receive(receiver, 10);
      await Promise.all(received.map((each) => accept(each)));
    }
    const ended = event(sessions[0], "session_close");
    sessions[0].close();
    await ended;
    await closeLink(senders[1]);
    await sendAccepted(senders[2], { body: "alive" });
    assert.deepEqual(bodies(await receive(receivers[0], 1)), ["alive"]);
  });

  for (const [name, credentials] of Object.entries({ ANONYMOUS, PLAIN })) {
    scenario(`S05 SASL ${name} is enough to send and receive`, async () => {
      const connection = await connect(credentials);
      await sendAccepted(await openSender(connection, "s05"), { body: name });
      await accept(await receiveOne(await openReceiver(connection, "s05")));
      await close(connection);
    });
  }

  scenario("S06 a well-formed token is taken, and what is no token refused", async (connection) => {
    const request = await openManagement(connection, "$cbs");
    const putToken = (token) => request("put-token", token, {
      properties: { type: "servicebus.windows.net:sastoken", name: "sb://localhost/s06" },
    });
    assert.equal((await putToken("no token at all")).status, 401);
    assert.equal((await putToken(sasToken("sb://localhost/s06", "SAS_KEY_VALUE"))).status, 202);
    await sendAccepted(await openSender(connection, "s06"), { body: 1 });
  });
});
