// rhea with promises: every wait has a deadline, and messages keep their bytes.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, describe, it } from "node:test";
import rhea from "rhea";
import terminus from "rhea/lib/terminus.js";

export const { types } = rhea;

/** How long anything may take, milliseconds. */
export const DEADLINE = 20_000;

export const ANONYMOUS = { username: "anonymous" };
export const PLAIN = { username: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE" };

/** Message-format of a batch (messaging.md#batches). */
const BATCH_FORMAT = 0x80013700;

// What rhea decodes into plain values has lost its AMQP types: keep the bytes beside it.
const decode = rhea.message.decode;
rhea.message.decode = (bytes) => Object.assign(decode(bytes), { raw: bytes });

// Transactions, which rhea does not know: the states that they bring, the target that leads to them, and the field of a
// transfer that it never fills.
const STATES = {
  0x33: state("declared", 0x33, [{ name: "txn_id", type: "binary" }]),
  0x34: state("transactional_state", 0x34, [{ name: "txn_id", type: "binary" }, { name: "outcome", type: "*" }]),
};
const COORDINATOR = 0x30;
const STATE_BYTES_MAX = 64;
types.wrap_delivery_state = (typed) => typed;
const unwrapOutcome = rhea.message.unwrap_outcome;
rhea.message.unwrap_outcome = (typed) => {
  const State = STATES[typed?.descriptor?.value];
  return State ? new State(typed.value) : unwrapOutcome(typed);
};
const unwrapTerminus = terminus.unwrap;
terminus.unwrap = (typed) => (typed?.descriptor?.value === COORDINATOR ? { coordinator: true } : unwrapTerminus(typed));

function state(name, code, fields) {
  return Object.assign(types.define_composite({ name, code, fields }), { composite_type: name });
}

/**
 * Declares a group of scenarios that run at the same time, each with a connection to the suite's broker or to another
 * (endpoints.js), which is closed at its end.
 */
export function topic(name, declare, broker) {
  describe(name, { concurrency: true, timeout: 120_000 }, () => {
    after(() => {
      // What a failed test left open must not keep the process.
      setTimeout(() => process.exit(), 1_000).unref();
    });
    declare((title, body) => {
      it(title, async () => {
        const connection = await connect({ ...ANONYMOUS, ...(broker && { port: broker.amqp }) });
        try {
          await body(connection);
        } finally {
          await close(connection);
        }
      });
    });
  });
}

export async function connect(options = ANONYMOUS) {
  const port = process.env.JITNEY_AMQP_PORT;
  assert.ok(port, "JITNEY_AMQP_PORT is not set");
  const connection = rhea.create_container().connect({ host: "localhost", port, reconnect: false, ...options });
  await opening(connection);
  return connection;
}

/** Waits until the peer has opened the connection; fails with the reason when it is lost before. */
export async function opening(connection) {
  // Without a listener, rhea throws what the peer says where nobody can catch it, or prints it.
  for (const name of ["connection_error", "disconnected"]) connection.on(name, () => {});
  const ends = ["connection_error", "disconnected"].map((name) =>
    event(connection, name).then(({ error }) => { throw error ?? connection.error ?? new Error("disconnected"); }));
  // It may also be lost much later, or never.
  for (const end of ends) end.catch(() => {});
  await Promise.race([event(connection, "connection_open"), ...ends]);
}

export async function close(connection) {
  if (!connection.is_open()) return;
  const closed = event(connection, "connection_close");
  connection.close();
  await closed;
}

/** Resolves with the context of the next event of this name that `matches`. */
export function event(emitter, name, matches = () => true, deadline = DEADLINE) {
  return new Promise((resolve, reject) => {
    const finish = (settle, value) => {
      clearTimeout(timer);
      emitter.removeListener(name, listener);
      settle(value);
    };
    const listener = (context) => {
      if (matches(context)) finish(resolve, context);
    };
    const timer = setTimeout(() => finish(reject, new Error(`no ${name} within ${deadline} ms`)), deadline);
    // Some of these never come, and nobody waits for them: they must not keep the process.
    timer.unref();
    emitter.on(name, listener);
  });
}

/** Opens a sender on a connection or a session. Fails with the peer's error when it is refused. */
export function openSender(parent, address, options = {}) {
  return opened(parent.open_sender({ target: { address }, ...options }), "sender");
}

/** Opens a receiver without credit, whose messages gather in `inbox`. */
export function openReceiver(parent, address, options = {}) {
  const receiver = parent.open_receiver({
    source: { address }, rcv_settle_mode: 1, credit_window: 0, autoaccept: false, ...options,
  });
  receiver.inbox = [];
  receiver.on("message", ({ message, delivery }) => {
    // rhea keeps a place in its window for what it has not settled, though the peer has.
    if (delivery.remote_settled) delivery.settled = true;
    receiver.inbox.push({ message, delivery, receiver });
  });
  return opened(receiver, "receiver");
}

export function openReceiveAndDelete(parent, address) {
  return openReceiver(parent, address, { snd_settle_mode: 1, rcv_settle_mode: 0 });
}

async function opened(link, role) {
  // Many sends may wait at a time, each for its own answer.
  link.setMaxListeners(0);
  const failed = event(link, `${role}_error`).then(() => { throw link.error; });
  failed.catch(() => {});
  link.on(`${role}_error`, () => {});
  await Promise.race([event(link, `${role}_open`), failed]);
  // A refused link is answered by an attach without a terminus, and then the reason
  // (transport.md#refused-links).
  const remote = role === "sender" ? link.target : link.source;
  if (!remote?.address && !remote?.coordinator) await failed;
  return link;
}

/** The key of the filter that asks for a session, and says which was granted (receiving.md#session-filter). */
export const SESSION_FILTER = "com.microsoft:session-filter";

/** Opens a receiver of a session: of the one named, or with null of the next that has messages and is not locked. */
export function openSession(parent, address, id, { timeout, ...options } = {}) {
  return openReceiver(parent, address, {
    source: { address, filter: { [SESSION_FILTER]: id } },
    ...(timeout && { properties: { "com.microsoft:timeout": types.wrap_uint(timeout) } }),
    ...options,
  });
}

/** The session that was granted. */
export function sessionOf({ source }) {
  return source.filter[SESSION_FILTER];
}

/** Until when a session is locked: ticks of 100 ns since the year 1, and more than a number holds. */
export function sessionLockedUntil({ properties }) {
  const ticks = properties["com.microsoft:locked-until-utc"].readBigInt64BE();
  return new Date(Number((ticks - 621_355_968_000_000_000n) / 10_000n));
}

/** Waits for the peer to end the link, and returns why. */
export async function ended(link) {
  if (!link.error) await event(link, link.is_sender() ? "sender_error" : "receiver_error");
  const { condition, description } = link.error;
  return { condition, description };
}

export async function closeLink(link) {
  const closed = event(link, link.is_sender() ? "sender_close" : "receiver_close");
  link.close();
  await closed;
}

/** Sends, and returns the outcome's name and error. Bytes with a `format` go as they are. */
export async function send(sender, message, { tag, format } = {}) {
  let delivery;
  const settled = event(sender, "settled", (context) => context.delivery === delivery);
  delivery = sender.send(message, tag, format);
  await settled;
  return outcome(delivery);
}

export async function sendAccepted(sender, ...messages) {
  for (const message of messages) assert.deepEqual(await send(sender, message), { name: "accepted" });
}

/** Sends messages as one delivery in the batch format. */
export function sendBatch(sender, messages) {
  const body = rhea.message.data_sections(messages.map((message) => rhea.message.encode(message)));
  return send(sender, rhea.message.encode({ body }), { format: BATCH_FORMAT });
}

/** Grants the credit for `count` messages, and waits until they are there. */
export async function receive(receiver, count = 1) {
  receiver.add_credit(count);
  return arrived(receiver, count);
}

export async function receiveOne(receiver) {
  const [received] = await receive(receiver, 1);
  return received;
}

/** Takes `count` messages for which there is credit already. */
export async function arrived(receiver, count) {
  if (receiver.inbox.length < count) await event(receiver, "message", () => receiver.inbox.length >= count);
  return receiver.inbox.splice(0, count);
}

/** Asks for `credit` messages and takes the credit back by a drain: what was there. */
export async function receiveAvailable(receiver, credit = 100) {
  const drained = event(receiver, "receiver_drained");
  if (credit > 0) receiver.add_credit(credit);
  receiver.drain_credit();
  await drained;
  receiver.drain = false;
  return receiver.inbox.splice(0);
}

/** Settles with an outcome that the broker must confirm, and returns what it answered. */
export async function settle({ delivery, receiver }, name, fields) {
  const settled = event(receiver, "settled", (context) => context.delivery === delivery);
  delivery.update(false, rhea.message[name](fields).described());
  await settled;
  return outcome(delivery);
}

export async function accept(...received) {
  for (const each of received) assert.deepEqual(await settle(each, "accepted"), { name: "accepted" });
}

function outcome({ remote_state: state }) {
  if (state instanceof STATES[0x34]) {
    return { ...outcome({ remote_state: unwrapOutcome(state.outcome) }), transaction: state.txn_id };
  }
  const { condition, description } = state.error ?? {};
  const error = condition ? { condition, description } : undefined;
  return { name: state.constructor.composite_type, ...(error && { error }), ...(state.txn_id && { id: state.txn_id }) };
}

/** Opens the link on which transactions begin and end. */
export async function openCoordinator(parent) {
  const sender = parent.open_sender({ target: {} });
  // The attach leaves in the next turn.
  sender.local.attach.target = types.wrap_described([types.wrap_array([], 0xa3)], COORDINATOR);
  return opened(sender, "sender");
}

/** Begins a transaction, and returns its id. */
export async function declare(coordinator) {
  const { name, id } = await send(coordinator, value(described(0x31)), { format: 0 });
  assert.equal(name, "declared");
  assert.ok(id.length >= 1 && id.length <= 32);
  return id;
}

/** Commits or rolls back, and returns the outcome. */
export function commit(coordinator, id) {
  return discharge(coordinator, id, types.wrap_boolean(false));
}

export function rollback(coordinator, id) {
  return discharge(coordinator, id, types.wrap_boolean(true));
}

function discharge(coordinator, id, fail) {
  return send(coordinator, value(described(0x32, types.wrap_binary(id), fail)), { format: 0 });
}

function described(code, ...fields) {
  return types.wrap_described(types.wrap_list(fields), code);
}

/** The bytes of a message whose body is this value: rhea would lose its descriptor under that of the section. */
export function value(typed) {
  const writer = new types.Writer();
  writer.write(typed);
  return Buffer.concat([Buffer.from([0x00, 0x53, 0x77]), writer.toBuffer()]);
}

function transactional(id, outcome) {
  return STATES[0x34].create({ txn_id: id, outcome }).described();
}

/** Sends in a transaction: like `send`, and the outcome tells the transaction. */
export function sendIn(id, sender, message, options) {
  const { session } = sender;
  transferStates(session).set(session.outgoing.next_delivery_id, transactional(id));
  return send(sender, message, options);
}

/** Sends settled in a transaction: nobody answers. */
export function sendPresettledIn(id, sender, message) {
  const { session } = sender;
  transferStates(session).set(session.outgoing.next_delivery_id, transactional(id));
  return sender.send(message);
}

/** By delivery id, the states that transfers of a session are to have. */
function transferStates(session) {
  session.transfer_states ??= new Map();
  if (!Object.hasOwn(session, "output")) {
    const { output } = session;
    session.output = (frame, payload) => {
      const found = session.transfer_states.get(frame.delivery_id);
      if (found) frame.state = found;
      output.call(session, frame, payload);
    };
    // A state makes a frame longer than rhea thinks.
    const { outgoing } = session;
    const { compute_max_payload: room } = outgoing;
    outgoing.compute_max_payload = (tag) => room.call(outgoing, tag) - STATE_BYTES_MAX;
  }
  return session.transfer_states;
}

/** Settles in a transaction: like `settle`, and the outcome, which is provisional, tells the transaction. */
export async function settleIn(id, { delivery, receiver }, name, fields) {
  const { session } = receiver;
  tellDispositions(session);
  const ofIt = ({ first, last }) => first <= delivery.id && delivery.id <= (last ?? first);
  const answered = event(session, "disposition", ofIt);
  delivery.update(false, transactional(id, rhea.message[name](fields).described()));
  await answered;
  return outcome(delivery);
}

/** Has a session emit the dispositions that it gets: rhea tells of those that settle only. */
function tellDispositions(session) {
  const { incoming } = session;
  if (Object.hasOwn(incoming, "on_disposition")) return;
  const { on_disposition: handle } = incoming;
  incoming.on_disposition = (fields) => {
    handle.call(incoming, fields);
    session.emit("disposition", fields);
  };
}

/** Records the performatives of a kind (`transfer`, `flow`, `disposition`) that a session gets. */
export function record(session, kind) {
  const seen = [];
  const handle = session[`on_${kind}`];
  session[`on_${kind}`] = function (frame) {
    seen.push(frame.performative);
    return handle.call(this, frame);
  };
  return seen;
}

/** Request and response over an entity's management node. */
export async function openManagement(connection, entity) {
  const node = entity.startsWith("$") ? entity : `${entity}/$management`;
  const replyTo = randomUUID();
  const receiver = await openReceiver(connection, node, {
    target: { address: replyTo }, snd_settle_mode: 1, rcv_settle_mode: 0,
  });
  const sender = await openSender(connection, node);
  const request = async (operation, body, { id = randomUUID(), properties = {}, transaction } = {}) => {
    const message = {
      message_id: id,
      reply_to: replyTo,
      application_properties: { ...(operation && { operation }), ...properties },
      body,
    };
    const { name } = await (transaction ? sendIn(transaction, sender, message) : send(sender, message));
    assert.equal(name, "accepted");
    const { message: answer } = await receiveOne(receiver);
    assert.deepEqual(answer.correlation_id, id);
    const told = answer.application_properties;
    return {
      status: told.statusCode ?? told["status-code"],
      condition: told.errorCondition ?? told["error-condition"],
      description: told.statusDescription ?? told["status-description"],
      body: answer.body,
      raw: answer.raw,
    };
  };
  return Object.assign(request, { sender, receiver });
}

const SECTIONS = {
  0x70: "header",
  0x71: "delivery-annotations",
  0x72: "message-annotations",
  0x73: "properties",
  0x74: "application-properties",
  0x75: "data",
  0x76: "sequence",
  0x77: "value",
  0x78: "footer",
};

/** The sections of an encoded message with their AMQP types: by name, a list of typed values each. */
export function sections(raw) {
  const reader = new types.Reader(raw);
  const found = {};
  while (reader.remaining()) {
    const section = reader.read();
    (found[SECTIONS[Number(section.descriptor.value)]] ??= []).push(section);
  }
  return found;
}

/** A typed map as `{ key: [type, value] }`. */
export function typedMap(typed) {
  const entries = {};
  for (let index = 0; index < typed.value.length; index += 2) {
    const value = typed.value[index + 1];
    entries[typed.value[index].value] = [typeName(value), value.value];
  }
  return entries;
}

/** The AMQP type, whatever its encoding: `SmallLong` and `Long` are both `long`. */
export function typeName({ type }) {
  const name = type.name.replace(/^Small/, "").replace(/(8|32|0)$/, "").toLowerCase();
  return { str: "string", sym: "symbol", vbin: "binary" }[name] ?? name;
}

/** The AMQP type of the elements of a typed array. */
export function elementType(typed) {
  return typeName({ type: types.by_code[typed.array_constructor.typecode] });
}

/** The lock token of a delivery as an AMQP uuid: the tag has .NET's byte order (receiving.md#lock-tokens). */
export function lockToken({ delivery: { tag } }) {
  assert.equal(tag.length, 16);
  const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
  return types.wrap_uuid(Buffer.from(order.map((index) => tag[index])));
}

export function bodies(received) {
  return received.map(({ message }) => message.body);
}

export function numbers(received) {
  return received.map(({ message }) => message.message_annotations["x-opt-sequence-number"]);
}

/** first, first + 1, … last. */
export function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

export function inMilliseconds(milliseconds) {
  return new Date(Date.now() + milliseconds);
}
