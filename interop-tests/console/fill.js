// A namespace with much in it, for pictures and measurements: a shop at work, and names and bodies of all kinds.

import rhea from "rhea";
import { connect, event, receive, sender } from "./client.js";
import { entity, hostile, job, rule, send, shop } from "./seed.js";

const LONG = "a-name-that-is-as-long-as-those-who-generate-names-make-them";
/** Messages a second that each queue of the shop gets while it is at work. */
const RATES = { "shop/checkout": 40, "shop/stock": 25, "shop/mail": 8 };

/** Fills a namespace by the API and by AMQP.
 * @param {ReturnType<import("./seed.js").client>} call
 * @param {number} port of AMQP */
export async function fill(call, port) {
  await entity(call, "invoices", "queue", { requires_session: true, lock_duration: "PT5M" });
  await shop(call);
  await hostile(call);
  for (const path of [...Object.keys(RATES), "shop/deferred", `${LONG}/${LONG}/${LONG}`]) await entity(call, path);
  await Promise.all(
    Array.from({ length: 120 }, (_, number) => entity(call, `archive/region-${number % 6}/store-${number}`)),
  );
  for (const number of [3, 17, 44])
    await send(
      call,
      `archive/region-${number % 6}/store-${number}`,
      ...Array.from({ length: 250 }, (_, at) => ({ body: `receipt ${at}` })),
    );
  await rule(call, "news/Subscriptions/urgent", "from-the-desk", {
    filter: { kind: "correlation", subject: "desk", properties: { priority: 9 } },
    action: "SET seen = true",
  });
  const soon = (minutes) => new Date(Date.now() + minutes * 60_000).toISOString();
  await send(
    call,
    "payments",
    ...Array.from({ length: 240 }, (_, number) => ({
      body: `payment ${number}`,
      scheduled_for: soon(5 + (number * number) / 15),
    })),
  );
  await send(
    call,
    "shop/deferred",
    ...Array.from({ length: 40 }, (_, number) => ({
      body: `order ${number}`,
      message_id: `order-${number}`,
      subject: "waits for stock",
    })),
  );
  const connection = await connect("warehouse-2", { port });
  const { receiver, messages } = await receive(connection, "shop/deferred", { credit: 40 });
  while (messages.length < 40) await event(receiver, "message");
  for (const delivery of messages)
    delivery.update(false, rhea.message.modified({ undeliverable_here: true }).described());
  await job(
    call,
    "archive/region-3/store-3",
    { kind: "dead_letter", reason: "Expired", description: "older than a year" },
    { numbers: Array.from({ length: 40 }, (_, at) => at + 1) },
  );
  await job(call, "archive/region-5/store-17", { kind: "delete" });
  await call("PUT", "/entities/orders/authorization-rules/checkout", { rights: ["send"] });
  await call("PUT", "/entities/orders/authorization-rules/billing", { rights: ["listen", "send"] });
  // One is stuck: it took five, and settles none.
  await receive(await connect("billing-worker-1", { port }), "orders", { credit: 5 });
  await receive(connection, "invoices", { credit: 2, session: "customer-1" });
}

/** Clients send and receive until the returned function is called.
 * @param {number} port */
export async function work(port) {
  const timers = [];
  const connections = [];
  for (const [path, rate] of Object.entries(RATES)) {
    const name = path.split("/").at(-1);
    const [from, to] = [await connect(`${name}-web`, { port }), await connect(`${name}-worker`, { port })];
    connections.push(from, to);
    const link = await sender(from, path);
    timers.push(
      setInterval(() => {
        for (let at = 0; at < rate / 4; at += 1)
          if (link.sendable()) link.send({ body: "order placed", message_id: `${name}-${Date.now()}-${at}` });
      }, 250),
    );
    const { receiver } = await receive(to, path, { credit: 50 });
    receiver.on("message", ({ delivery }) => {
      delivery.accept();
      receiver.add_credit(1);
    });
  }
  return () => {
    timers.forEach(clearInterval);
    for (const connection of connections) connection.close();
  };
}
