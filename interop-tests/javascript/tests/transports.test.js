// TLS, WebSockets and plain HTTP, on every port.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ServiceBusAdministrationClient } from "@azure/service-bus";
import WebSocket from "ws";
import { accept, bodies, connectionString, range, receive, withClient } from "../harness.js";
import { administrator, securedTopic, keyed, pattern, roundTrip, visit } from "../clients.js";
import { secured, HOST, ROOT } from "../secured.js";

const amqpPort = process.env.JITNEY_AMQP_PORT;
const httpPort = process.env.JITNEY_HTTP_PORT;

/** The keys of the runner's broker: any are good. */
const ANY = { name: ROOT.name, key: "SAS_KEY_VALUE" };

/** Every port that has a certificate for its name: the secured broker's, and those of the runner's broker. */
const PORTS = [
  [ROOT, `${HOST}:5671`], [ROOT, `${HOST}:443`], [ANY, `localhost:${amqpPort}`], [ANY, `localhost:${httpPort}`],
];

/** The WebSocket of `ws` with another scheme or subprotocol than the SDK asks for; `answered` gets the broker's choice. */
function dialler(scheme, subprotocol, answered) {
  return class extends WebSocket {
    constructor(address, _, options) {
      super(address.replace(/^wss/, scheme), [subprotocol], options);
      this.once("open", () => answered.push(this.protocol));
    }
  };
}

securedTopic("transports", (scenario) => {
  scenario("S261 AMQPS on every port, with the keys of a production-style connection string", async () => {
    for (const [key, endpoint] of [[ROOT, HOST], ...PORTS]) {
      const queue = `s261-${endpoint.replace(":", "-")}`;
      await administrator(key, endpoint).createQueue(queue);
      await withClient((client) => roundTrip(client, queue), {}, keyed(key, endpoint));
    }
  });

  scenario("S261 TLS 1.2 and TLS 1.3", async (client, admin) => {
    await admin.createQueue("s261");
    for (const options of [["--tls-max-v1.2"], ["--tls-min-v1.3"]]) {
      assert.equal(await visit("s261", { options }), "welcome", options[0]);
    }
  });

  scenario("S261 the namespace's name, and the broker's address as the custom endpoint", async (client, admin) => {
    await admin.createQueue("s261c");
    const text = keyed(ROOT, "secured.servicebus.windows.net");
    for (const customEndpointAddress of [`sb://${HOST}`, `sb://${HOST}:443`]) {
      await withClient((other) => roundTrip(other, "s261c"), { customEndpointAddress }, text);
    }
  });

  scenario("S262 a client that does not trust the authority refuses the broker", async (client, admin) => {
    await admin.createQueue("s262");
    const { NODE_EXTRA_CA_CERTS: _, ...without } = process.env;
    assert.match(await visit("s262", { environment: without }), /unable to verify|self.signed certificate/);
    assert.equal(await visit("s262"), "welcome");
  });

  scenario("S263 WebSockets with TLS and without, on every port, with either subprotocol", async () => {
    for (const [key, endpoint] of PORTS) {
      const queue = `s263-${endpoint.replace(":", "-")}`;
      await administrator(key, endpoint).createQueue(queue);
      for (const scheme of ["wss", "ws"]) {
        for (const subprotocol of ["AMQPWSB10", "amqp"]) {
          const answered = [];
          const webSocketOptions = { webSocket: dialler(scheme, subprotocol, answered) };
          await withClient((client) => roundTrip(client, queue), { webSocketOptions }, keyed(key, endpoint));
          assert.deepEqual(answered, [subprotocol]);
        }
      }
    }
  });

  scenario("S263 the SDK's own way: ws with the authority among its options", async (client, admin) => {
    await admin.createQueue("s263o");
    const webSocketOptions = {
      webSocket: WebSocket, webSocketConstructorOptions: { ca: await readFile(secured.authority) },
    };
    await withClient((other) => roundTrip(other, "s263o"), { webSocketOptions }, keyed());
  });

  scenario("S263 sessions and batches over a WebSocket", async (_, admin) => {
    await admin.createQueue("s263s", { requiresSession: true });
    await withClient(async (client) => {
      const sender = client.createSender("s263s");
      const batch = await sender.createMessageBatch();
      for (const body of range(1, 100)) assert.ok(batch.tryAddMessage({ body, sessionId: "x" }));
      await sender.sendMessages(batch);
      const receiver = await accept(client, "s263s", "x");
      const messages = await receive(receiver, 100);
      assert.deepEqual(bodies(messages), range(1, 100));
      const state = pattern(100 * 1024).toString("base64");
      await receiver.setSessionState(state);
      assert.equal(await receiver.getSessionState(), state);
      for (const message of messages) await receiver.completeMessage(message);
    }, { webSocketOptions: { webSocket: WebSocket } }, keyed());
  });

  scenario("S288 administration on every port, with TLS and without", async () => {
    for (const [key, endpoint] of PORTS) {
      for (const scheme of ["https:", "http:"]) {
        const queue = `s288-${endpoint.replace(":", "-")}-${scheme.slice(0, -1)}`;
        const own = administrator(key, endpoint, { additionalPolicies: [over(scheme)] });
        await own.createQueue(queue);
        await withClient((client) => roundTrip(client, queue, [1]), {}, keyed(key, endpoint));
        assert.equal((await own.getQueue(queue)).name, queue);
        await own.deleteQueue(queue);
        assert.equal(await own.queueExists(queue), false);
      }
    }
  });

  scenario("S288 administration by the emulator's connection string", async () => {
    const policy = over("http:", `localhost:${httpPort}`);
    const admin = new ServiceBusAdministrationClient(connectionString, { additionalPolicies: [policy] });
    await admin.createQueue("s288");
    await withClient((client) => roundTrip(client, "s288"));
    await admin.deleteQueue("s288");
  });
});

/** Sends requests by another scheme, to another host if need be: the SDK knows only HTTPS. */
function over(scheme, host) {
  return {
    position: "perCall",
    policy: {
      name: "other transport",
      sendRequest(request, next) {
        const address = new URL(request.url);
        if (host) address.host = host;
        request.url = address.href.replace(/^https:/, scheme);
        request.allowInsecureConnection = true;
        return next(request);
      },
    },
  };
}
