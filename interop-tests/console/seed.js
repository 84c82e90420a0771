// What the tests find in a namespace, made with the JSON API and with nothing else.

/** A client of the JSON API. */
export function client(url, authorization) {
  return async function call(method, path, body) {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        ...(authorization ? { Authorization: authorization } : {}),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
}

const at = (path) => `/entities/${encodeURIComponent(path)}`;

/** Makes an entity, if it is not there; returns nothing if it is. */
export const entity = (call, path, kind = "queue", properties = {}) =>
  call("PUT", at(path), { kind, properties }).catch((error) => {
    if (!error.message.includes('"reason":"exists"')) throw error;
  });
export const rule = (call, subscription, name, body) =>
  call("PUT", `${at(subscription)}/rules/${encodeURIComponent(name)}`, body);
export const send = (call, path, ...messages) => call("POST", `${at(path)}/send`, { messages });

/** Changes messages by a job, and waits for its end. */
export async function job(call, path, action, selection = {}) {
  let { id, state, ...rest } = await call("POST", "/jobs?wait=10", { entity: path, selection, action });
  while (state === "running") ({ state, ...rest } = await call("GET", `/jobs/${id}?wait=10`));
  if (state !== "completed") throw new Error(`job ${id} is ${state}: ${rest.error}`);
  return rest;
}

/** Markup, code, terminal codes and marks that turn texts around: all of it must stay text. */
export const HOSTILE = [
  "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>",
  "\u001b[31mred\u001b[0m",
  "\u202egnp.exe",
  "a\u0000b",
  "javascript:alert(1)",
  "{{constructor}}",
];

/** A shop: queues with messages in every state, dead letters for several reasons, a topic with filtered
 * subscriptions. */
export async function shop(call) {
  await entity(call, "orders", "queue", { max_delivery_count: 5 });
  await entity(call, "payments");
  await entity(call, "invoices", "queue", { requires_session: true });
  await entity(call, "news", "topic");
  for (const [name, expression] of [
    ["eu", "region = 'EU'"],
    ["us", "region = 'US'"],
    ["urgent", "priority > 5"],
  ]) {
    await entity(call, `news/Subscriptions/${name}`, "subscription");
    await rule(call, `news/Subscriptions/${name}`, "wanted", { filter: { kind: "sql", expression } });
    await call("DELETE", `${at(`news/Subscriptions/${name}`)}/rules/${encodeURIComponent("$Default")}`).catch(() => {});
  }
  const order = (number) => ({
    body: JSON.stringify({
      order: number,
      amount: number * 1.5,
      customer: { name: `Customer ${number}`, country: "NL" },
      lines: [{ sku: `A-${number}`, count: 2 }],
    }),
    content_type: "application/json",
    message_id: `order-${number}`,
    correlation_id: `cart-${number % 10}`,
    subject: "order placed",
    properties: { region: number % 2 ? "EU" : "US", attempts: number, vip: number % 7 === 0 },
  });
  await send(call, "orders", ...Array.from({ length: 60 }, (_, number) => order(number + 1)));
  await job(
    call,
    "orders",
    { kind: "dead_letter", reason: "BadAmount", description: "amount must be at least 5" },
    { numbers: [1, 2, 3] },
  );
  await job(
    call,
    "orders",
    { kind: "dead_letter", reason: "UnknownCustomer", description: "no such customer" },
    { numbers: [4, 5, 6, 7, 8, 9, 10, 11] },
  );
  await job(
    call,
    "orders",
    {
      kind: "dead_letter",
      reason: "MaxDeliveryCountExceeded",
      description: "Message could not be consumed after 5 delivery attempts.",
    },
    { numbers: [12, 13] },
  );
  const soon = (minutes) => new Date(Date.now() + minutes * 60_000).toISOString();
  await send(
    call,
    "payments",
    ...Array.from({ length: 12 }, (_, number) => ({
      body: `payment ${number}`,
      message_id: `payment-${number}`,
      scheduled_for: soon(10 + number * 25),
    })),
  );
  await send(call, "payments", { body: "now", message_id: "payment-now", properties: { amount: 10 } });
  await send(
    call,
    "news",
    ...Array.from({ length: 20 }, (_, number) => ({
      body: `news ${number}`,
      properties: { region: number % 2 ? "EU" : "US", priority: number % 8 },
    })),
  );
  await send(
    call,
    "invoices",
    ...Array.from({ length: 9 }, (_, number) => ({ body: `invoice ${number}`, session_id: `customer-${number % 3}` })),
  );
}

/** A queue whose names, properties and bodies want to be more than text. */
export async function hostile(call) {
  // Several files of tests want it, and it is there once.
  if ((await entity(call, "hostile")) === undefined) return;
  await send(
    call,
    "hostile",
    ...HOSTILE.map((text, number) => ({
      body: text,
      message_id: `hostile-${number} ${text}`.slice(0, 128),
      subject: text,
      content_type: "text/html",
      properties: { [`name ${number}`]: text },
    })),
  );
  await send(call, "hostile", {
    body_base64: Buffer.from([0x68, 0x69, 0xff, 0xfe, 0xc3, 0x28, 0x0a, 0x1b]).toString("base64"),
    message_id: "invalid",
  });
  await send(call, "hostile", { body: "x".repeat(200_000), message_id: "long" });
}
