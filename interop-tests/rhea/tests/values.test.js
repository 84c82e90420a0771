// What is sent is what comes, byte for byte; and much of it.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import rhea from "rhea";
import {
  accept, bodies, numbers, openManagement, openReceiveAndDelete, openReceiver, openSender, range, receive,
  receiveAvailable, receiveOne, send, sendAccepted, sendBatch, settle, topic, types,
} from "../harness.js";

const { message: build } = rhea;
const MIB = 1024 * 1024;
/** The service takes no more messages in one batch in its Standard tier. */
const BATCH_MAX = 4_500;
const data = (size) => build.data_section(Buffer.alloc(size, 7));

const bytes = (hex) => Buffer.from(hex.replaceAll(" ", ""), "hex");

/** Every primitive type, at its bounds, in every encoding: what stands behind the constructor is sent as it is. */
const SCALARS = {
  "null": "40", "true": "41", "false": "42", "boolean true": "56 01", "boolean false": "56 00",
  "ubyte 0": "50 00", "ubyte 255": "50 ff", "ushort 0": "60 0000", "ushort 65535": "60 ffff",
  "uint 0": "43", "uint 0, long": "70 00000000", "uint 255": "52 ff", "uint 2^32 - 1": "70 ffffffff",
  "ulong 0": "44", "ulong 0, long": "80 0000000000000000", "ulong 255": "53 ff", "ulong 2^64 - 1": "80 ffffffffffffffff",
  "byte -128": "51 80", "byte 127": "51 7f", "short -32768": "61 8000", "short 32767": "61 7fff",
  "int -1": "54 ff", "int 1, long": "71 00000001", "int -2^31": "71 80000000", "int 2^31 - 1": "71 7fffffff",
  "long -1": "55 ff", "long 1, long": "81 0000000000000001", "long -2^63": "81 8000000000000000",
  "long 2^63 - 1": "81 7fffffffffffffff",
  "float 0": "72 00000000", "float -0": "72 80000000", "float 1.5": "72 3fc00000",
  "float infinity": "72 7f800000", "float NaN": "72 7fc00000",
  "double 0": "82 0000000000000000", "double -0": "82 8000000000000000", "double, the largest": "82 7fefffffffffffff",
  "double, the least": "82 0000000000000001", "double -infinity": "82 fff0000000000000", "double NaN": "82 7ff8000000000001",
  "decimal32": "74 22500001", "decimal64": "84 2238000000000001", "decimal128": "94 22080000000000000000000000000001",
  "char": "73 0001f600", "timestamp 0": "83 0000000000000000", "timestamp before 1970": "83 ffffff0000000000",
  "timestamp after 3000": "83 00001d9000000000", "uuid": "98 000102030405060708090a0b0c0d0e0f",
  "binary, empty": "a0 00", "binary 300": `b0 0000012c ${"07".repeat(300)}`, "binary, long": "b0 00000001 ff",
  "string, empty": "a1 00", "string ü€😀": "a1 09 c3bc e282ac f09f9880", "string 300": `b1 0000012c ${"78".repeat(300)}`,
  "string, long": "b1 00000001 61", "symbol": "a3 03 616263", "symbol, empty": "a3 00", "symbol, long": "b3 00000001 61",
};

const [LIST8, MAP8, ARRAY8, LIST32, MAP32, ARRAY32] = [0xc0, 0xc1, 0xe0, 0xd0, 0xd1, 0xf0];

/** The hex of a list, a map or an array, from that of its elements. */
function compound(code, elements, constructor = "") {
  const width = [LIST32, MAP32, ARRAY32].includes(code) ? 4 : 1;
  const content = [constructor, ...elements].join("").replaceAll(" ", "");
  return [number(code, 1), number(content.length / 2 + width, width), number(elements.length, width), content].join("");
}

function text(word) {
  return `a1${number(Buffer.byteLength(word), 1)}${Buffer.from(word).toString("hex")}`;
}

function number(value, width) {
  return value.toString(16).padStart(2 * width, "0");
}

const INNER = compound(LIST8, ["5401", "40"]);
const COMPOSITES = {
  "list, empty": "45",
  "list8, empty": compound(LIST8, []),
  "list32": compound(LIST32, ["5401", "40"]),
  "lists in a list": compound(LIST8, [INNER, "40", "45"]),
  "map, empty": compound(MAP8, []),
  "map of a list": compound(MAP8, ["a10161", INNER]),
  "map32": compound(MAP32, ["a10161", "5401"]),
  "map whose keys are no texts": compound(MAP8, ["5401", "40", "a0 01 ff", "41"]),
  "array of ints": compound(ARRAY8, ["00000001", "ffffffff"], "71"),
  "array of strings": compound(ARRAY8, ["0161", "00"], "a1"),
  "array32, empty": compound(ARRAY32, [], "40"),
  "array of described values": compound(ARRAY8, ["01", "02"], "00 a3 02 703a 54"),
  "described by a symbol": "00 a3 02 703a 54 01",
  "described by a number": "00 80 0000000000000001 40",
};

const section = (code, hex) => Buffer.concat([Buffer.from([0x00, 0x53, code]), bytes(hex)]);
const VALUE = 0x77;
const DATA = 0x75;
const SEQUENCE = 0x76;
const NULL_BODY = section(VALUE, "40");

/** Sends these bytes as messages, each behind a message id, and compares what comes. */
async function comesBack(connection, queue, wanted) {
  const sender = await openSender(connection, queue);
  const head = build.encode({ message_id: "id", body: null }).subarray(0, -NULL_BODY.length);
  const sent = Object.entries(wanted);
  const outcomes = await Promise.all(sent.map(([, body]) => send(sender, Buffer.concat([head, body]), { format: 0 })));
  assert.deepEqual(outcomes, sent.map(() => ({ name: "accepted" })));
  const received = await receive(await openReceiveAndDelete(connection, queue), sent.length);
  received.forEach(({ message: { raw } }, index) => {
    const [name, body] = sent[index];
    assert.equal(raw.subarray(-body.length).toString("hex"), body.toString("hex"), name);
  });
}

topic("values", (scenario) => {
  scenario("S321 a value of every type, at its bounds and in every encoding, comes back as it was", async (connection) => {
    const all = Object.entries({ ...SCALARS, ...COMPOSITES });
    await comesBack(connection, "s321", Object.fromEntries(all.map(([name, hex]) => [name, section(VALUE, hex)])));
  });

  scenario("S322 and so it does as an application property", async (connection) => {
    const entries = Object.entries(SCALARS).flatMap(([name, hex]) => [text(name), hex]);
    const properties = section(0x74, compound(MAP32, entries));
    await comesBack(connection, "s322", { all: Buffer.concat([properties, NULL_BODY]) });
  });

  scenario("S323 sections of data and of sequences keep their number, order and bytes", async (connection) => {
    const several = (code, ...all) => Buffer.concat(all.map((hex) => section(code, hex)));
    await comesBack(connection, "s323", {
      "several data sections": several(DATA, "a0 03 010203", "a0 00", "b0 00000001 ff"),
      "several sequences": several(SEQUENCE, "45", INNER, compound(LIST32, ["a10161"])),
      "a hundred data sections": several(DATA, ...range(0, 99).map((byte) => `a0 01 ${number(byte, 1)}`)),
    });
  });

  scenario("S324 what is encoded in unusual ways stays so, abandoned or not", async (connection) => {
    const symbol = (word) => text(word).replace("a1", "a3");
    const string = (word) => `b1${number(word.length, 4)}${Buffer.from(word).toString("hex")}`;
    const head = bytes([
      // A header in its long form, and an annotation that nobody knows, both described by their names.
      `00 ${symbol("amqp:header:list")}`, compound(LIST32, ["41", "50 09"]),
      `00 ${symbol("amqp:message-annotations:map")}`, compound(MAP32, [symbol("x-y"), "70 00000001"]),
    ].join(""));
    const footer = compound(MAP8, [symbol("x-f"), "54 01"]);
    const application = compound(MAP32, [string("n"), "71 00000001", string("u"), "80 0000000000000001"]);
    const data = ["b0 00000003 010203", "a0 00"];
    const bare = bytes([
      // Properties in the longest forms, with nulls behind them; small numbers in theirs.
      "00 80 0000000000000073", compound(LIST32, [string("id"), "40", "40", string("subject"), "40", "40"]),
      `00 ${symbol("amqp:application-properties:map")}`, application,
      "00 80 0000000000000075", data[0], "00 53 75", data[1], `00 ${symbol("amqp:footer:map")}`, footer,
    ].join(""));
    const sender = await openSender(connection, "s324");
    assert.deepEqual(await send(sender, Buffer.concat([head, bare]), { format: 0 }), { name: "accepted" });
    const receiver = await openReceiver(connection, "s324");
    const forms = new Set();
    for (const count of [0, 1, 2]) {
      const received = await receiveOne(receiver);
      const { message } = received;
      // The broker writes descriptors its own way, and stamps the properties; what stands behind them is the sender's.
      const known = Buffer.concat([section(0x74, application), ...data.map((each) => section(DATA, each)), section(0x78, footer)]);
      assert.equal(message.raw.subarray(-known.length).toString("hex"), known.toString("hex"));
      forms.add(message.raw.subarray(message.raw.indexOf(bytes("005373"))).toString("hex"));
      assert.deepEqual([message.message_id, message.subject, message.correlation_id], ["id", "subject", undefined]);
      assert.deepEqual([message.durable, message.priority, message.delivery_count ?? 0], [true, 9, count]);
      assert.equal(message.message_annotations["x-y"], 1);
      await settle(received, "modified", { delivery_failed: true });
    }
    assert.equal(forms.size, 1, "it is the same each time");
  });

  scenario("S326 tracing headers come back on every way", async (connection) => {
    const trace = {
      "Diagnostic-Id": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
      tracestate: "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    };
    const message = (body, more) => ({ body, application_properties: trace, ...more });
    const soon = { message_annotations: { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(Date.now() + 1_000) } };
    const sent = [message("plain"), message("deferred"), message("dead"), message("scheduled", soon)];
    await sendAccepted(await openSender(connection, "s326"), ...sent);
    await sendAccepted(await openSender(connection, "s326t"), message("topic"));
    const receiver = await openReceiver(connection, "s326");
    const [plain, deferred, dead] = await receive(receiver, 3);
    await settle(deferred, "modified", { undeliverable_here: true });
    await settle(dead, "rejected");
    const request = await openManagement(connection, "s326");
    const { body } = await request("com.microsoft:receive-by-sequence-number", {
      "sequence-numbers": types.wrap_list([types.wrap_long(numbers([deferred])[0])]), "receiver-settle-mode": types.wrap_uint(0),
    });
    const others = [
      plain, await receiveOne(await openReceiver(connection, "s326/$DeadLetterQueue")), await receiveOne(receiver),
      await receiveOne(await openReceiver(connection, "s326t/Subscriptions/a")),
    ];
    assert.deepEqual(bodies(others), ["plain", "dead", "scheduled", "topic"]);
    const all = [...others.map((each) => each.message), build.decode(body.messages[0].message)];
    assert.equal(all.at(-1).body, "deferred");
    for (const { body: name, application_properties: found } of all) assert.deepEqual({ ...found, ...trace }, found, name);
  });

  scenario("S309 a thousand messages are unsettled on one link, and settled in no order", async (connection) => {
    const sender = await openSender(connection, "s309");
    for (const first of [1, 251, 501, 751]) await sendBatch(sender, range(first, first + 249).map((body) => ({ body })));
    const receiver = await openReceiver(connection, "s309");
    const received = await receive(receiver, 1_000);
    assert.deepEqual(numbers(received), range(1, 1_000));
    receiver.setMaxListeners(0);
    const mixed = received.map((each) => [Math.random(), each]).sort(([one], [other]) => one - other);
    const outcomes = await Promise.all(mixed.map(([, each]) => settle(each, "accepted")));
    assert.ok(outcomes.every(({ name }) => name === "accepted"));
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s309")), []);
  });

  scenario("S312 a message of 20 MiB comes back byte for byte", async (connection) => {
    const content = randomBytes(20 * MIB);
    await sendAccepted(await openSender(connection, "s312"), { body: build.data_section(content) });
    const received = await receiveOne(await openReceiver(connection, "s312"));
    assert.ok(content.equals(received.message.body.content));
    await accept(received);
  });

  scenario("S310 S311 a batch is full, a message just below the limit and one above", async (connection) => {
    const sender = await openSender(connection, "s310");
    assert.equal(Number(sender.max_message_size), MIB);
    for (const [size, count] of [[1_000, 1_000], [10, BATCH_MAX]]) {
      const outcome = await sendBatch(sender, range(1, count).map(() => ({ body: data(size) })));
      assert.deepEqual(outcome, { name: "accepted" });
      const receiver = await openReceiveAndDelete(connection, "s310");
      for (const _ of range(1, count / 500)) await receive(receiver, 500);
      assert.deepEqual(await receiveAvailable(receiver), []);
    }
    const other = await openSender(connection, "s311");
    await sendAccepted(other, { body: data(1_000_000) });
    assert.deepEqual(await sendBatch(other, [{ body: data(1_000_000) }]), { name: "accepted" });
    const refused = await Promise.race([
      send(other, { body: data(1_100_000) }).then(({ error }) => error),
      new Promise((done) => { other.on("sender_error", () => done(other.error)); }),
    ]);
    assert.equal(refused.condition, "amqp:link:message-size-exceeded");
    const received = await receiveAvailable(await openReceiveAndDelete(connection, "s311"));
    assert.deepEqual(received.map(({ message }) => message.body.content.length), [1_000_000, 1_000_000]);
  });
});
