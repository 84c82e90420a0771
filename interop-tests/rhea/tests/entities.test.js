// Topics, duplicates, forwards and partitions, as one who knows links only sees them.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import rhea from "rhea";
import {
  accept, bodies, numbers, openReceiveAndDelete, openReceiver, openSender, openSession, range, receive,
  receiveAvailable, receiveOne, send, sendAccepted, sendBatch, settle, topic, types,
} from "../harness.js";

const { message: build } = rhea;
const LARGE = 100 * 1024;
const DISABLED = { condition: "com.microsoft:entity-disabled" };

const at = (name, subscription) => `${name}/Subscriptions/${subscription}`;
const dead = (entity) => `${entity}/$DeadLetterQueue`;
const reasons = (received) => received.map(({ message }) => message.application_properties.DeadLetterReason);
const enqueued = (received) => received.map(({ message }) => message.message_annotations["x-opt-enqueue-sequence-number"]);

async function sendTo(connection, address, ...messages) {
  await sendAccepted(await openSender(connection, address), ...messages);
}

/** Messages with an application property `n`. */
const withN = (...values) => values.map((n) => ({ body: n, application_properties: { n: types.wrap_int(n) } }));

/** Takes exactly `count` messages for good, and checks that no more are there. */
async function take(connection, address, count) {
  const receiver = await openReceiveAndDelete(connection, address);
  const received = await receive(receiver, count);
  assert.deepEqual(await receiveAvailable(receiver), []);
  return received;
}

async function nothing(connection, ...addresses) {
  for (const address of addresses) assert.deepEqual(await receiveAvailable(await openReceiver(connection, address)), [], address);
}

/** Sends 100 KiB messages until one is refused, and returns how many were taken. */
async function fill(connection, address) {
  const sender = await openSender(connection, address);
  for (const taken of range(0, 30)) {
    const { name, error } = await send(sender, { body: build.data_section(Buffer.alloc(LARGE)) });
    if (name !== "accepted") {
      assert.equal(error.condition, "amqp:resource-limit-exceeded");
      return taken;
    }
  }
  return assert.fail("it takes everything");
}

/** The partitions of messages: the topmost 16 bits of their numbers, which may be more than a number holds. */
function partitions(received) {
  return numbers(received).map((each) => (Buffer.isBuffer(each) ? each.readUInt16BE() : Math.floor(each / 2 ** 48)));
}

function keyed(key, ...contents) {
  return contents.map((body) => ({ body, message_annotations: { "x-opt-partition-key": key } }));
}

topic("entities", (scenario) => {
  scenario("S141 every subscription gets its copies, with numbers of its own", async (connection) => {
    await sendTo(connection, "s141", ...withN(1, 2, 3, 4, 5));
    for (const [subscription, wanted] of [["a", range(1, 5)], ["b", range(1, 5)], ["odd", [1, 3, 5]]]) {
      const received = await take(connection, at("s141", subscription), wanted.length);
      assert.deepEqual([bodies(received), enqueued(received)], [wanted, wanted]);
      assert.deepEqual(numbers(received), range(1, wanted.length));
    }
  });

  scenario("S142 a topic without subscriptions takes messages", async (connection) => {
    const sender = await openSender(connection, "s142");
    await sendAccepted(sender, { body: 1 });
    assert.deepEqual(await sendBatch(sender, [{ body: 2 }, { body: 3 }]), { name: "accepted" });
  });

  scenario("S143 subscriptions settle apart", async (connection) => {
    await sendTo(connection, "s143", { body: 1 }, { body: 2 }, { body: 3 });
    const [completed, deferred, abandoned] = await receive(await openReceiver(connection, at("s143", "a")), 3);
    await accept(completed);
    await settle(deferred, "modified", { undeliverable_here: true });
    await settle(abandoned, "modified", { delivery_failed: true });
    const others = await receive(await openReceiver(connection, at("s143", "b")), 3);
    assert.deepEqual(others.map(({ message }) => [message.body, message.delivery_count ?? 0]), [[1, 0], [2, 0], [3, 0]]);
    const left = await receiveAvailable(await openReceiver(connection, at("s143", "a")));
    assert.deepEqual(left.map(({ message }) => [message.body, message.delivery_count]), [[3, 1]]);
  });

  scenario("S145 S146 a subscription with sessions, beside one without", async (connection) => {
    await sendTo(connection, "s145", { body: 1, group_id: "x" }, { body: 2, group_id: "y" });
    assert.deepEqual(bodies(await take(connection, at("s145", "plain"), 2)), [1, 2]);
    for (const [session, body] of [["x", 1], ["y", 2]]) {
      const received = await receiveOne(await openSession(connection, at("s145", "s"), session));
      assert.deepEqual([received.message.body, received.message.group_id], [body, session]);
      await accept(received);
    }
    await sendTo(connection, "s146", { body: "none" });
    assert.deepEqual(bodies(await take(connection, at("s146", "plain"), 1)), ["none"]);
    const lost = await take(connection, dead(at("s146", "s")), 1);
    assert.deepEqual([bodies(lost), reasons(lost).length], [["none"], 1]);
  });

  scenario("S154 three subscriptions have a batch and a large message, byte for byte", async (connection) => {
    const sender = await openSender(connection, "s154");
    await sendBatch(sender, range(1, 100).map((body) => ({ body })));
    const content = randomBytes(2 * LARGE);
    await sendAccepted(sender, { body: build.data_section(content) });
    for (const subscription of ["a", "b", "c"]) {
      const received = await take(connection, at("s154", subscription), 101);
      assert.deepEqual(bodies(received.slice(0, 100)), range(1, 100));
      assert.ok(content.equals(received[100].message.body.content));
    }
  });

  scenario("S155 a disabled topic is read, a disabled subscription is written", async (connection) => {
    await assert.rejects(openSender(connection, "s155"), DISABLED);
    await nothing(connection, at("s155", "a"));
    await sendTo(connection, "s155b", { body: 1 });
    assert.deepEqual(bodies(await take(connection, at("s155b", "on"), 1)), [1]);
    await assert.rejects(openReceiver(connection, at("s155b", "off")), DISABLED);
  });

  scenario("S161 true and false rules", async (connection) => {
    await sendTo(connection, "s161", { body: 1 }, { body: 2 });
    for (const subscription of ["all", "every"]) {
      assert.deepEqual(bodies(await take(connection, at("s161", subscription), 2)), [1, 2]);
    }
    await nothing(connection, at("s161", "none"));
  });

  scenario("S163 correlation filters compare with case and type", async (connection) => {
    const matching = {
      body: "matching", correlation_id: "c1", subject: "s1", message_id: "m1", to: "t1", reply_to: "r1", reply_to_group_id: "rs1",
      group_id: "x1", content_type: "text/plain", application_properties: { color: "red", size: types.wrap_int(1) },
    };
    const otherwise = Object.fromEntries(Object.keys(matching).slice(1, -1).map((name) => [name, "other"]));
    await sendTo(
      connection, "s163", matching, { ...otherwise, body: "other", application_properties: { color: "blue" } }, { body: "nothing" },
      { body: "case", subject: "S1", application_properties: { color: "red", size: "1" } },
    );
    for (const subscription of ["id", "label", "mid", "to", "reply", "rsid", "sid", "type", "both"]) {
      assert.deepEqual(bodies(await take(connection, at("s163", subscription), 1)), ["matching"], subscription);
    }
    assert.deepEqual(bodies(await take(connection, at("s163", "prop"), 2)), ["matching", "case"]);
  });

  scenario("S165 several rules, with and without actions", async (connection) => {
    await sendTo(connection, "s165", ...withN(1, 2));
    const received = await take(connection, at("s165", "five"), 4);
    const told = ({ message: { body, application_properties: { source, RuleName: rule } } }) => [body, source, rule];
    const wanted = [[1, "r4", "r4"], [1, "r5", "r5"], [1, undefined, undefined], [2, undefined, undefined]];
    assert.deepEqual(received.map(told).sort(), wanted.sort());
    assert.deepEqual([numbers(received), enqueued(received)], [range(1, 4), [1, 1, 1, 2]]);
  });

  scenario("S166 S167 each message of a batch is judged, and a filter that fails is told", async (connection) => {
    const batch = [...withN(1, 2, 1), { body: "none" }];
    assert.deepEqual(await sendBatch(await openSender(connection, "s166"), batch), { name: "accepted" });
    const some = await take(connection, at("s166", "some"), 2);
    assert.deepEqual([bodies(some), numbers(some)], [[1, 1], [1, 2]]);
    await sendTo(connection, "s167", ...withN(2, 0), { body: "missing" });
    for (const subscription of ["strict", "lax"]) {
      assert.deepEqual(bodies(await take(connection, at("s167", subscription), 1)), [2]);
    }
    const [failed] = await take(connection, dead(at("s167", "strict")), 1);
    assert.equal(failed.message.body, 0);
    const { DeadLetterReason: reason, DeadLetterErrorDescription: description } = failed.message.application_properties;
    assert.ok(reason && description);
    await nothing(connection, dead(at("s167", "lax")));
  });

  scenario("S172 an action moves a message to another session", async (connection) => {
    await sendTo(connection, "s172", { body: 1, group_id: "x" });
    const received = await receiveOne(await openSession(connection, at("s172", "s"), "moved"));
    assert.equal(received.message.group_id, "moved");
  });

  scenario("S181 S183 a duplicate is accepted, and takes no number", async (connection) => {
    const sender = await openSender(connection, "s181");
    await sendAccepted(sender, ...range(1, 5).map((body) => ({ body, message_id: "one" })), { body: 6, message_id: "two" });
    const received = await take(connection, "s181", 2);
    assert.deepEqual([bodies(received), numbers(received)], [[1, 6], [1, 2]]);
    const ids = [1, 2, 1, 3, 3].map((id) => ({ body: id, message_id: `id-${id}` }));
    assert.deepEqual(await sendBatch(await openSender(connection, "s183"), ids), { name: "accepted" });
    const batch = await take(connection, "s183", 3);
    assert.deepEqual([bodies(batch), numbers(batch)], [range(1, 3), range(1, 3)]);
  });

  scenario("S184 S187 S189 duplicates of what was settled, of a topic's, of another session's", async (connection) => {
    const sender = await openSender(connection, "s184");
    const all = range(1, 3).map((id) => ({ body: id, message_id: `id-${id}` }));
    await sendAccepted(sender, ...all);
    const [completed, deferred, rejected] = await receive(await openReceiver(connection, "s184"), 3);
    await accept(completed);
    await settle(deferred, "modified", { undeliverable_here: true });
    await settle(rejected, "rejected");
    await sendAccepted(sender, ...all);
    await nothing(connection, "s184");
    await sendTo(connection, "s187", { body: 1, message_id: "id" }, { body: 2, message_id: "id" });
    for (const subscription of ["a", "b"]) assert.deepEqual(bodies(await take(connection, at("s187", subscription), 1)), [1]);
    await sendTo(connection, "s189", { body: 1, message_id: "id", group_id: "x" }, { body: 2, message_id: "id", group_id: "y" });
    assert.deepEqual(bodies(await receiveAvailable(await openSession(connection, "s189", "x"))), [1]);
    assert.deepEqual(await receiveAvailable(await openSession(connection, "s189", "y")), []);
  });

  scenario("S191 S192 forwarded messages have the target's numbers, and remember their first", async (connection) => {
    await sendTo(connection, "s191b", { body: 1 }, { body: 2 });
    const sender = await openSender(connection, "s191");
    await sendAccepted(sender, { body: 3 }, { body: 4 });
    await sendBatch(sender, [{ body: 5 }]);
    const received = await take(connection, "s191b", 5);
    assert.deepEqual([bodies(received), numbers(received), enqueued(received).slice(2)], [range(1, 5), range(1, 5), [1, 2, 3]]);
    for (const [body, queue] of ["s192c", "s192b", "s192"].entries()) await sendTo(connection, queue, { body });
    const chain = await take(connection, "s192c", 3);
    assert.deepEqual(bodies(chain).sort(), [0, 1, 2]);
    assert.deepEqual(enqueued(chain), [0, 1, 1]);
  });

  scenario("S193 S195 what goes too far, or nowhere, is a dead letter", async (connection) => {
    await sendTo(connection, "s193", { body: "far" });
    await sendTo(connection, "s193b", { body: "near" });
    assert.deepEqual(bodies(await take(connection, "s193f", 1)), ["near"]);
    const far = await take(connection, dead("s193e"), 1);
    assert.deepEqual([bodies(far), reasons(far)], [["far"], ["MaxTransferHopCountExceeded"]]);
    await sendTo(connection, "s195", { body: 1 });
    const refused = await receiveOne(await openReceiver(connection, dead("s195")));
    assert.ok(refused.message.application_properties.DeadLetterReason);
    await accept(refused);
  });

  scenario("S194 nobody receives from what forwards", async (connection) => {
    await assert.rejects(openReceiver(connection, "s194"), { condition: "amqp:not-allowed" });
  });

  scenario("S196 what does not fit the target is a dead letter", async (connection) => {
    const content = build.data_section(Buffer.alloc(LARGE));
    await sendTo(connection, "s196", ...range(1, 15).map((id) => ({ message_id: `id-${id}`, body: content })));
    const there = await receiveAvailable(await openReceiver(connection, "s196b"));
    const rest = await take(connection, dead("s196"), 15 - there.length);
    const ids = [...there, ...rest].map(({ message }) => message.message_id);
    assert.deepEqual(ids.sort(), range(1, 15).map((id) => `id-${id}`).sort());
    assert.ok(there.length > 0 && rest.length > 0);
  });

  scenario("S197 S198 forwards from a subscription, and to a topic", async (connection) => {
    await sendTo(connection, "s197", ...withN(1, 2, 3));
    const received = await take(connection, "s197b", 2);
    assert.deepEqual([bodies(received), numbers(received), enqueued(received)], [[2, 3], [1, 2], [2, 3]]);
    await sendTo(connection, "s198", ...["red", "blue"].map((color) => ({ body: color, application_properties: { color } })));
    assert.deepEqual(bodies(await take(connection, at("s198b", "red"), 1)), ["red"]);
    assert.deepEqual(bodies(await take(connection, at("s198b", "all"), 2)), ["red", "blue"]);
  });

  scenario("S199 S200 dead letters are forwarded, with their source", async (connection) => {
    await sendTo(connection, "s199", { body: "rejected" }, { body: "abandoned" });
    const [rejected, abandoned] = await receive(await openReceiver(connection, "s199"), 2);
    await settle(rejected, "rejected", { error: { condition: "com.microsoft:dead-letter", info: { DeadLetterReason: "why" } } });
    await settle(abandoned, "modified", { delivery_failed: true });
    await sendTo(connection, "s199", { body: "expired", ttl: 500 });
    const received = await take(connection, "s199b", 3);
    assert.deepEqual(bodies(received), ["rejected", "abandoned", "expired"]);
    assert.deepEqual(reasons(received), ["why", "MaxDeliveryCountExceeded", "TTLExpiredException"]);
    const sources = received.map(({ message }) => message.message_annotations["x-opt-deadletter-source"]);
    assert.deepEqual(sources, Array(3).fill("s199"));
    await sendTo(connection, "s200", { body: 1 });
    await settle(await receiveOne(await openReceiver(connection, at("s200", "a"))), "rejected");
    const [letter] = await take(connection, "s200b", 1);
    assert.match(letter.message.message_annotations["x-opt-deadletter-source"], /s200/i);
  });

  scenario("S202 S203 forwards to sessions, and to duplicate detection", async (connection) => {
    await sendTo(connection, "s202", { body: 1, group_id: "x" }, { body: 2 });
    assert.equal((await receiveOne(await openSession(connection, "s202b", "x"))).message.body, 1);
    assert.deepEqual(bodies(await take(connection, dead("s202"), 1)), [2]);
    await sendTo(connection, "s203", { body: 1, message_id: "id" }, { body: 2, message_id: "id" });
    await sendTo(connection, "s203b", { body: 3, message_id: "id" });
    await take(connection, "s203b", 1);
  });

  scenario("S211 S215 a partition key keeps its messages together, in order", async (connection) => {
    const sender = await openSender(connection, "s211");
    for (const body of range(1, 5)) await sendAccepted(sender, ...keyed("k", body), ...keyed("j", -body));
    const received = await take(connection, "s211", 10);
    for (const [key, sign] of [["k", 1], ["j", -1]]) {
      const its = received.filter(({ message }) => message.message_annotations["x-opt-partition-key"] === key);
      assert.deepEqual(bodies(its), range(1, 5).map((body) => sign * body));
      assert.equal(new Set(partitions(its)).size, 1);
      assert.ok(partitions(its)[0] < 16);
    }
    assert.deepEqual(await sendBatch(await openSender(connection, "s215"), keyed("k", ...range(1, 10))), { name: "accepted" });
    const batch = await take(connection, "s215", 10);
    assert.deepEqual([bodies(batch), new Set(partitions(batch)).size], [range(1, 10), 1]);
  });

  scenario("S214 S216 keys part duplicates, and hold for subscriptions too", async (connection) => {
    const withId = (id, key, body) => ({ body, message_id: id, ...(key && { message_annotations: { "x-opt-partition-key": key } }) });
    const sent = [["1", undefined, 1], ["1", undefined, 2], ["2", "k", 3], ["2", "k", 4], ["2", "j", 5]];
    await sendTo(connection, "s214", ...sent.map((each) => withId(...each)));
    assert.deepEqual(bodies(await take(connection, "s214", 3)).sort(), [1, 3, 5]);
    await sendTo(connection, "s216", ...keyed("k", 1, 2), ...keyed("j", 3, 4));
    const received = await take(connection, at("s216", "a"), 4);
    for (const [key, wanted] of [["k", [1, 2]], ["j", [3, 4]]]) {
      const its = received.filter(({ message }) => message.message_annotations["x-opt-partition-key"] === key);
      assert.deepEqual([bodies(its), new Set(partitions(its)).size], [wanted, 1]);
    }
  });

  scenario("S156 a full topic takes again when all subscriptions have let go", async (connection) => {
    const taken = await fill(connection, "s156");
    assert.ok(taken > 0);
    for (const subscription of ["a", "b"]) await take(connection, at("s156", subscription), taken);
    await sendTo(connection, "s156", { body: "again" });
  });
});
