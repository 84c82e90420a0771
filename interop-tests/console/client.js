// A client of the broker, for tests of pages that show clients.

import rhea from "rhea";
import { DEADLINE } from "./harness.js";

const SESSION_FILTER = "com.microsoft:session-filter";

/** Connects a client that is called so. It does not come back when it is closed.
 * @param {string} name */
export async function connect(
  name,
  { host = "127.0.0.1", port = process.env.JITNEY_AMQP_PORT, properties = undefined } = {},
) {
  const connection = rhea
    .create_container({ id: name })
    .connect({ host, port, username: "anonymous", reconnect: false, properties });
  for (const event of ["connection_error", "connection_close", "disconnected"]) connection.on(event, () => {});
  await event(connection, "connection_open");
  return connection;
}

/** Opens a receiver that takes `credit` messages and settles none. With `session` it holds that message session. */
export async function receive(connection, address, { credit = 0, session } = {}) {
  const source = session === undefined ? { address } : { address, filter: { [SESSION_FILTER]: session } };
  const receiver = connection.open_receiver({ source, rcv_settle_mode: 1, credit_window: 0, autoaccept: false });
  receiver.on("receiver_error", () => {});
  const messages = [];
  receiver.on("message", ({ delivery }) => messages.push(delivery));
  await event(receiver, "receiver_open");
  if (credit !== 0) receiver.add_credit(credit);
  return { receiver, messages };
}

/** Opens a link that sends. */
export async function sender(connection, address) {
  const link = connection.open_sender({ target: { address } });
  link.on("sender_error", () => {});
  await event(link, "sender_open");
  return link;
}

/** Waits for an event of a connection or a link. */
export function event(emitter, name) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${name} within ${DEADLINE} ms`)), DEADLINE);
    emitter.once(name, (context) => {
      clearTimeout(timer);
      resolve(context);
    });
  });
}
