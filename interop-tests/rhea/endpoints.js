// Connections to the suite's broker, which accepts any key, and to the secured broker.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import rhea from "rhea";
import WebSocket from "ws";
import {
  ANONYMOUS, accept, connect, opening, openManagement, openReceiver, openSender, receiveOne, sendAccepted,
} from "./harness.js";

/** The secured broker's address, besides 127.0.0.1: there it has the port that clients of AMQPS use without being told. */
export const ADDRESS = process.env.JITNEY_SECURED_ADDRESS;
export const AMQPS_PORT = 5671;

export const ROOT = "RootManageSharedAccessKey";

/** The keys of the secured broker, by the names of their rules: those of ../secured.py, and of secured.json. */
export const KEYS = {
  [ROOT]: "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==",
  listener: "a key that may listen",
  speaker: "a key that may send",
  // As Python's users have it: a name that is not the same after it was encoded.
  "Root Key/x": "a key with a name to encode",
};
export const SECOND_KEY = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE=";
export const OTHER_KEY = "the key of the other namespace";

/** The secured broker (../secured.py). */
export const secured = {
  amqp: process.env.JITNEY_SECURED_AMQP_PORT,
  http: process.env.JITNEY_SECURED_HTTP_PORT,
  /** A file that `jitney certs` made. */
  file: (name) => join(environment("JITNEY_SECURED_CERTIFICATES"), name),
};

/** The suite's own broker. */
export function open() {
  return { amqp: environment("JITNEY_AMQP_PORT"), http: environment("JITNEY_HTTP_PORT") };
}

function environment(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

/** The authority of a broker, as it hands it out. */
export async function authority({ http }) {
  const answer = await fetch(`http://localhost:${http}/ca.pem`);
  assert.equal(answer.status, 200);
  return answer.text();
}

/** What a client needs for TLS. */
export async function trusting(endpoint, options = {}) {
  return { transport: "tls", host: "localhost", servername: "localhost", ca: await authority(endpoint), ...options };
}

/** One SASL mechanism that the client picks, and what it says in it. */
export function saying(mechanism, response) {
  return { [mechanism]: () => ({ start: (send) => send(undefined, Buffer.from(response)) }) };
}

/** PLAIN by hand: rhea has none for an empty key, and counts characters. */
export function plain(username, password = KEYS[username]) {
  return { sasl_mechanisms: saying("PLAIN", `\0${username}\0${password}`) };
}

/** Connects without TLS: by PLAIN with a rule's name and a key. */
export function connectTo(endpoint, username, password = KEYS[username], options = {}) {
  return connect({ port: endpoint.amqp, ...plain(username, password), ...options });
}

/** Connects without TLS and without a key. */
export function connectNameless(endpoint, options = {}) {
  return connect({ ...ANONYMOUS, port: endpoint.amqp, ...options });
}

/** Connects by a WebSocket, and resolves with the connection and the subprotocol that the broker chose. */
export async function connectByWebSocket(url, subprotocols, options = {}, identity = ANONYMOUS, Socket = WebSocket) {
  const container = rhea.create_container();
  let socket;
  class Kept extends Socket {
    constructor(...given) {
      super(...given);
      socket = this;
    }
  }
  const details = container.websocket_connect(Kept)(url, subprotocols, options);
  const connection = container.connect({ connection_details: details, reconnect: false, ...identity });
  await opening(connection);
  return { connection, subprotocol: socket.protocol };
}

/** The fields of a token, each as it stands in it. */
export function tokenFields(resource, name, key = KEYS[name], { expiry = inSeconds(600), encode = encodeURIComponent } = {}) {
  const sr = encode(resource);
  const signature = createHmac("sha256", key).update(`${sr}\n${expiry}`).digest("base64");
  return { sr, sig: encodeURIComponent(signature), se: String(expiry), skn: encodeURIComponent(name) };
}

/** A shared access signature. */
export function signed(...described) {
  return written(Object.entries(tokenFields(...described)));
}

/** A token of these fields, in their order. */
export function written(fields) {
  return `SharedAccessSignature ${fields.map(([name, value]) => `${name}=${value}`).join("&")}`;
}

/** The time in that many seconds, in whole ones since 1970. */
export function inSeconds(seconds) {
  return Math.floor(Date.now() / 1_000) + seconds;
}

/** Opens `$cbs`; the result puts a token for an audience and returns the answer. */
export async function openTokens(connection) {
  const request = await openManagement(connection, "$cbs");
  const put = (audience, token, type = "servicebus.windows.net:sastoken") =>
    request("put-token", token, { properties: { type, name: audience } });
  put.away = (audience) => request("delete-token", "", { properties: { name: audience } });
  put.request = request;
  return put;
}

/** Puts a token of a key for an audience, which must be taken. */
export async function putToken(connection, audience, name, ...more) {
  const put = await openTokens(connection);
  assert.equal((await put(audience, signed(audience, name, ...more))).status, 202);
  return put;
}

/** Makes a queue by the administration API of a broker that takes any key. */
export async function makeQueue({ http }, name, description = "") {
  const body = `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">`
    + `<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" `
    + `xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${description}</QueueDescription></content></entry>`;
  const url = `http://localhost:${http}/${name}`;
  const headers = { "Content-Type": "application/atom+xml", Authorization: signed(url, ROOT) };
  const answer = await fetch(`${url}?api-version=2021-05`, { method: "PUT", body, headers });
  assert.equal(answer.status, 201, await answer.text());
}

export const UNAUTHORIZED = { condition: "amqp:unauthorized-access", description: /claim\(s\) are required/ };

/** Sends one message and takes it back. */
export async function roundTrip(connection, queue, from = queue) {
  await sendAccepted(await openSender(connection, queue), { body: queue });
  const received = await receiveOne(await openReceiver(connection, from));
  assert.equal(received.message.body, queue);
  await accept(received);
}

/** Checks that a connection can neither send to a node nor receive from it. */
export async function denied(connection, node) {
  await assert.rejects(openSender(connection, node), UNAUTHORIZED, `to ${node}`);
  await assert.rejects(openReceiver(connection, node), UNAUTHORIZED, `from ${node}`);
}
