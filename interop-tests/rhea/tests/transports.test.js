// TLS and WebSockets, on every port.

import assert from "node:assert/strict";
import tls from "node:tls";
import WebSocket from "ws";
import {
  PLAIN, accept, bodies, close, connect, event, openManagement, openReceiver, openSender, openSession, range, receive, receiveOne,
  sendAccepted, sendBatch, topic, types,
} from "../harness.js";
import { authority, connectByWebSocket, makeQueue, open, trusting } from "../endpoints.js";

const SIZES = [1, 200 * 1024];

/** Sends small and large messages, and takes them back. */
async function roundTrip(connection, queue) {
  const [sender, receiver] = [await openSender(connection, queue), await openReceiver(connection, queue)];
  for (const size of SIZES) {
    const body = Buffer.from(range(1, size).map((number) => number % 251));
    await sendAccepted(sender, { body });
    const received = await receiveOne(receiver);
    assert.ok(body.equals(received.message.body), `${size} bytes`);
    await accept(received);
  }
}

function ports() {
  const { amqp, http } = open();
  return [amqp, http];
}

/** Every way in by WebSocket: its address, and the port for the failure's message. */
function addresses(path = "/$servicebus/websocket") {
  return ports().flatMap((port) => ["wss", "ws"].map((scheme) => `${scheme}://localhost:${port}${path}`));
}

topic("transports", (scenario) => {
  scenario("S261 AMQPS is on every port, with TLS 1.2 and 1.3", async () => {
    await makeQueue(open(), "s261");
    for (const port of ports()) {
      for (const version of ["TLSv1.2", "TLSv1.3"]) {
        const trusted = await trusting(open(), { port, minVersion: version, maxVersion: version });
        for (const identity of [{ username: "anonymous" }, PLAIN]) {
          const connection = await connect({ ...trusted, ...identity });
          assert.equal(connection.socket.getProtocol(), version);
          await roundTrip(connection, "s261");
          await close(connection);
        }
      }
    }
  });

  scenario("S261 a session of TLS is taken up again", async () => {
    const trusted = await trusting(open(), { port: open().amqp });
    const first = tls.connect(trusted);
    const { 0: session } = await new Promise((resolve) => first.once("session", (...given) => resolve(given)));
    first.destroy();
    const connection = await connect({ ...trusted, session });
    assert.ok(connection.socket.isSessionReused());
    await close(connection);
  });

  scenario("S262 who does not trust the authority does not connect", async () => {
    const trusted = await trusting(open());
    for (const port of ports()) {
      const strange = { ...trusted, port, ca: undefined };
      await assert.rejects(connect(strange), { code: "SELF_SIGNED_CERT_IN_CHAIN" });
      await assert.rejects(connect({ ...trusted, port, servername: "example.com" }), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    }
    // Nor does a version that nobody should speak any more.
    const old = { ...trusted, port: open().amqp, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" };
    await assert.rejects(connect(old), { code: /^ERR_SSL_.*_ALERT_/ });
    assert.equal(await authority(open()), trusted.ca);
  });

  scenario("S263 WebSockets are on every port, with TLS and without, in the subprotocol asked for", async () => {
    await makeQueue(open(), "s263");
    const ca = await authority(open());
    for (const url of addresses()) {
      for (const wanted of [["amqp"], ["AMQPWSB10"], ["other", "amqp"], ["AMQPWSB10", "other"], ["amqp", "AMQPWSB10"]]) {
        const { connection, subprotocol } = await connectByWebSocket(url, wanted, { ca });
        assert.ok(subprotocol !== "other" && wanted.includes(subprotocol), `${url} ${wanted}: ${subprotocol}`);
        await roundTrip(connection, "s263");
        await close(connection);
      }
    }
    const [url] = addresses("/$servicebus/websocket/");
    const { connection } = await connectByWebSocket(url, ["AMQPWSB10"], { ca }, PLAIN);
    await roundTrip(connection, "s263");
    await close(connection);
  });

  scenario("S263 sessions, batches and the management node go by WebSocket", async () => {
    await makeQueue(open(), "s263s", "<RequiresSession>true</RequiresSession>");
    const ca = await authority(open());
    const { connection } = await connectByWebSocket(addresses()[0], ["amqp"], { ca });
    await sendBatch(await openSender(connection, "s263s"), range(1, 100).map((body) => ({ body, group_id: "x" })));
    const receiver = await openSession(connection, "s263s", null);
    const received = await receive(receiver, 100);
    assert.deepEqual(bodies(received), range(1, 100));
    const request = await openManagement(connection, "s263s");
    const state = Buffer.alloc(100 * 1024, 7);
    const session = { "session-id": "x" };
    const set = await request("com.microsoft:set-session-state", { ...session, "session-state": types.wrap_binary(state) });
    assert.equal(set.status, 200);
    const { body } = await request("com.microsoft:get-session-state", session);
    assert.ok(state.equals(body["session-state"]));
    await accept(...received);
    await close(connection);
  });

  scenario("S263 AMQP in pieces of one byte and in one piece is the same", async () => {
    await makeQueue(open(), "s263p");
    const ca = await authority(open());
    class Crumbling extends WebSocket {
      send(data, options) {
        for (const byte of data) super.send(Buffer.of(byte), options);
      }
    }
    const { connection } = await connectByWebSocket(addresses()[0], ["amqp"], { ca }, { username: "anonymous" }, Crumbling);
    await sendAccepted(await openSender(connection, "s263p"), { body: "in crumbs" });
    assert.deepEqual(bodies(await receive(await openReceiver(connection, "s263p"), 1)), ["in crumbs"]);
    await close(connection);
  });

  scenario("S263 what is no WebSocket for AMQP is refused", async () => {
    const ca = await authority(open());
    const [url] = addresses();
    const refused = async (address, subprotocols) => {
      const socket = new WebSocket(address, subprotocols, { ca });
      const { message } = await new Promise((resolve, reject) => {
        socket.on("error", resolve);
        socket.on("open", () => reject(new Error(`open: '${socket.protocol}'`)));
      });
      return message;
    };
    assert.equal(await refused(url, ["mqtt"]), "Server sent no subprotocol");
    assert.match(await refused(url.replace("websocket", "elsewhere"), ["amqp"]), /Unexpected server response: 40[0-9]/);
    // Text where bytes should be ends it.
    const socket = new WebSocket(url, ["amqp"], { ca });
    await event(socket, "open");
    const closed = event(socket, "close");
    socket.send("AMQP");
    await closed;
  });
});
