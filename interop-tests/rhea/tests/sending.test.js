import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import rhea from "rhea";
import {
  ANONYMOUS, accept, bodies, close, connect, event, numbers, openReceiveAndDelete, openReceiver, openSender, range,
  receive, receiveAvailable, receiveOne, sections, send, sendAccepted, sendBatch, topic, typedMap, types, value,
} from "../harness.js";

const { message: build } = rhea;

/** rhea writes a missing body as a null value: 00 53 77 40. */
const NULL_BODY_BYTES = 4;
/** What rhea writes in front of a body: an empty header and empty properties. */
const NO_BODY = build.encode({}).subarray(0, -NULL_BODY_BYTES);

const BODIES = {
  "one data section": build.data_section(Buffer.from([0, 255])),
  "an empty data section": build.data_section(Buffer.alloc(0)),
  "several data sections": build.data_sections([Buffer.from("a"), Buffer.from("b"), Buffer.from("c")]),
  "one sequence": build.sequence_section([1, "two", null]),
  "several sequences": build.sequence_sections([[1], [2, 3], []]),
  "a string": "text",
  "an int": types.wrap_int(-1),
  "an ulong": types.wrap_ulong(2 ** 40),
  "a map": { key: "value", nested: { list: ["x"] } },
  "a list": ["a", ["b"]],
  "an array": types.wrap_array([1, 2, 3], 0x81),
  "null": null,
};

/** Every primitive type, in application properties. */
const PROPERTIES = {
  "null": null,
  "boolean": types.wrap_boolean(true),
  "ubyte": types.wrap_ubyte(255),
  "ushort": types.wrap_ushort(65_535),
  "uint": types.wrap_uint(4_000_000_000),
  "ulong": types.wrap_ulong(2 ** 50),
  "byte": types.wrap_byte(-128),
  "short": types.wrap_short(-32_768),
  "int": types.wrap_int(-2_000_000_000),
  "long": types.wrap_long(-(2 ** 50)),
  "float": types.wrap_float(1.5),
  "double": types.wrap_double(-2.25),
  "char": types.wrap_char(0x1f600),
  "timestamp": types.wrap_timestamp(1_700_000_000_123),
  "uuid": types.wrap_uuid(Buffer.from(range(1, 16))),
  "binary": types.wrap_binary(Buffer.from([0, 1])),
  "string": types.wrap_string("ü"),
  "symbol": types.wrap_symbol("symbol"),
};

topic("sending", (scenario) => {
  scenario("S07 every kind of body comes back as it was", async (connection) => {
    const sender = await openSender(connection, "s07");
    const receiver = await openReceiver(connection, "s07");
    for (const [name, body] of Object.entries(BODIES)) {
      await sendAccepted(sender, { body });
      const received = await receiveOne(receiver);
      const sent = build.encode({ body }).subarray(NO_BODY.length);
      assert.ok(received.message.raw.subarray(-sent.length).equals(sent), name);
      await accept(received);
    }
    const described = value(types.wrap_described("P1D", "com.example:period"));
    await send(sender, described, { format: 0 });
    const period = await receiveOne(receiver);
    assert.ok(period.message.raw.subarray(-described.length).equals(described));
    await accept(period);
    const nothing = build.encode({ subject: "nothing" }).subarray(0, -NULL_BODY_BYTES);
    await send(sender, nothing, { format: 0 });
    const { message } = await receiveOne(receiver);
    assert.deepEqual([message.subject, message.body], ["nothing", undefined]);
  });

  scenario("S08 every property and type comes back", async (connection) => {
    const sent = {
      message_id: Buffer.from(range(1, 16)),
      user_id: Buffer.from("user"),
      to: "to",
      subject: "subject",
      reply_to: "reply-to",
      correlation_id: 2 ** 40,
      content_type: "text/plain",
      content_encoding: "gzip",
      group_id: "group",
      group_sequence: 7,
      reply_to_group_id: "reply-to-group",
    };
    await sendAccepted(await openSender(connection, "s08"), { ...sent, application_properties: PROPERTIES, body: 1 });
    const { message } = await receiveOne(await openReceiver(connection, "s08"));
    for (const [name, value] of Object.entries(sent)) assert.deepEqual(message[name], value, name);
    const wanted = sections(build.encode({ application_properties: PROPERTIES }))["application-properties"][0];
    const got = sections(message.raw)["application-properties"][0];
    assert.deepEqual(typedMap(got), typedMap(wanted));
  });

  scenario("S09 annotations, header and footer of the sender come back", async (connection) => {
    await sendAccepted(await openSender(connection, "s09"), {
      durable: true,
      priority: 9,
      delivery_annotations: { "x-delivery": "delivery" },
      message_annotations: { "x-message": types.wrap_uint(7) },
      footer: { "x-footer": "footer" },
      body: 1,
    });
    const { message } = await receiveOne(await openReceiver(connection, "s09"));
    assert.deepEqual([message.durable, message.priority], [true, 9]);
    assert.equal(message.delivery_annotations["x-delivery"], "delivery");
    const found = sections(message.raw);
    assert.deepEqual(typedMap(found["message-annotations"][0])["x-message"], ["uint", 7]);
    assert.deepEqual(message.footer, { "x-footer": "footer" });
  });

  scenario("S10 the batch format is split into its messages", async (connection) => {
    const sender = await openSender(connection, "s10");
    const batch = range(1, 100).map((body) => ({ body, message_id: `id-${body}`, application_properties: { body } }));
    assert.deepEqual(await sendBatch(sender, batch), { name: "accepted" });
    const received = await receive(await openReceiver(connection, "s10"), 100);
    assert.deepEqual(bodies(received), range(1, 100));
    assert.deepEqual(numbers(received), range(1, 100));
    for (const { message } of received) {
      assert.equal(message.message_id, `id-${message.body}`);
      assert.deepEqual(message.application_properties, { body: message.body });
    }
  });

  scenario("S11 messages of many frames come back byte for byte", async () => {
    // Small frames to us, as Java wants them over WebSocket, and a window that holds one large message and no more: rhea
    // opens it again between messages only.
    const small = await connect({ ...ANONYMOUS, max_frame_size: 4_096, session_buffer_size: { incoming: 256, outgoing: 64 } });
    const plain = await connect();
    const sender = await openSender(plain, "s11");
    const receivers = [await openReceiveAndDelete(small, "s11"), await openReceiveAndDelete(plain, "s11")];
    for (const size of [1, 64 * 1024, 200 * 1024, 900 * 1024]) {
      const content = randomBytes(size);
      for (const receiver of receivers) {
        await sendAccepted(sender, { body: build.data_section(content) });
        const { message } = await receiveOne(receiver);
        assert.ok(content.equals(message.body.content), `${size} bytes`);
      }
    }
    await Promise.all([close(small), close(plain)]);
  });

  scenario("S12 a message that is too large is refused, and the next is not", async (connection) => {
    const large = { body: build.data_section(Buffer.alloc(100 * 1024)) };
    let sender = await openSender(connection, "s12");
    assert.equal(Number(sender.max_message_size), 64 * 1024);
    // By a rejection or by a detach: the service does the latter.
    const refused = await Promise.race([
      send(sender, large).then(({ error }) => error),
      event(sender, "sender_error").then(() => sender.error),
    ]);
    assert.equal(refused.condition, "amqp:link:message-size-exceeded");
    if (!sender.is_remote_open()) sender = await openSender(connection, "s12");
    await sendAccepted(sender, { body: "small" });
    const received = await receiveAvailable(await openReceiver(connection, "s12"));
    assert.deepEqual(bodies(received), ["small"]);
  });

  scenario("S13 two senders and a receiver of 2000 messages", async (connection) => {
    const connections = [await connect(), await connect()];
    const senders = await Promise.all(connections.map((each) => openSender(each, "s13")));
    const receiver = await openReceiver(connection, "s13", { credit_window: 100 });
    const sends = senders.map(async (sender, name) => {
      for (let first = 0; first < 1_000; first += 100) {
        await Promise.all(range(first, first + 99).map((index) => sendAccepted(sender, { body: [name, index] })));
      }
    });
    const seen = [[], []];
    for (let count = 0; count < 2_000; count += 1) {
      if (receiver.inbox.length === 0) await event(receiver, "message");
      const received = receiver.inbox.shift();
      const [name, index] = received.message.body;
      seen[name].push(index);
      received.delivery.accept();
    }
    await Promise.all(sends);
    assert.deepEqual(seen, [range(0, 999), range(0, 999)]);
    await Promise.all(connections.map(close));
  });

  scenario("S14 pre-settled messages arrive, on a link for them and on a mixed one", async (connection) => {
    for (const mode of [1, 2]) {
      const sender = await openSender(connection, "s14", { snd_settle_mode: mode });
      assert.equal(sender.snd_settle_mode, mode);
      if (!sender.sendable()) await event(sender, "sendable");
      for (const body of [1, 2]) sender.send({ body }).settled = true;
      if (mode === 2) await sendAccepted(sender, { body: 3 });
    }
    const received = await receive(await openReceiver(connection, "s14"), 5);
    assert.deepEqual(bodies(received), [1, 2, 1, 2, 3]);
  });
});
