// What may be between a browser and the broker: a proxy that breaks the stream of changes.

import { once } from "node:events";
import { createServer, request } from "node:http";

/** Starts it before a broker. `isBreaking` tells whether a stream is broken, as soon as something of it has come
 * through; answers that end by themselves after `seconds` pass.
 * @param {string} target */
export async function breaker(target, isBreaking) {
  const { hostname, port } = new URL(target);
  const streams = [];
  const server = createServer((incoming, outgoing) => {
    const isStream = /\/api\/v1\/changes(\?|$)/.test(incoming.url) && !/[?&]seconds=/.test(incoming.url);
    if (isStream) streams.push(incoming.headers["last-event-id"]);
    const onward = request(
      { hostname, port, path: incoming.url, method: incoming.method, headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
        if (isStream && isBreaking()) answer.once("data", () => setImmediate(() => outgoing.destroy()));
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, streams, close };
}
