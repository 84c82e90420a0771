// The management node by hand: requests as a generic client writes them, answers with their exact types.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import rhea from "rhea";
import {
  elementType, lockToken, openManagement, openReceiver, openSender, range, receive,
  receiveAvailable, sections, sendBatch, topic, typeName, typedMap, types,
} from "../harness.js";

const { wrap_int: int, wrap_long: long, wrap_ulong: ulong, wrap_list: list } = types;

const LATER = 3_600_000;

/** The body of an answer, with its types: `{ key: [type, value] }`. */
function typedBody({ raw }) {
  return typedMap(sections(raw).value[0]);
}

function encoded(message) {
  return types.wrap_binary(rhea.message.encode(message));
}

/** Messages in an answer, decoded. */
function decoded({ body }) {
  return body.messages.map((each) => rhea.message.decode(each.message));
}

async function sendNumbered(connection, queue, count) {
  await sendBatch(await openSender(connection, queue), range(1, count).map((body) => ({ body })));
}

topic("management", (scenario) => {
  scenario("S45 S49 S52 messages are scheduled, cancelled, and cancelled in vain", async (connection) => {
    const request = await openManagement(connection, "s45");
    const annotations = { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(Date.now() + LATER) };
    const messages = [1, 2].map((body) => ({ "message-id": `id-${body}`, message: encoded({ body, message_annotations: annotations }) }));
    const scheduled = await request("com.microsoft:schedule-message", { messages });
    assert.equal(scheduled.status, 200);
    const found = sections(scheduled.raw).value[0].value[1];
    assert.deepEqual([typeName(found), elementType(found)], ["array", "long"]);
    assert.deepEqual(scheduled.body["sequence-numbers"], [1, 2]);

    const peeked = await request("com.microsoft:peek-message", {
      "from-sequence-number": int(0), "message-count": long(10),
    });
    assert.deepEqual(decoded(peeked).map((message) => message.message_annotations["x-opt-message-state"]), [2, 2]);

    // Numbers as ulong and in a list, one that was never scheduled among them: all or nothing.
    const cancel = (...wanted) => request("com.microsoft:cancel-scheduled-message", {
      "sequence-numbers": list(wanted.map((number) => ulong(number))),
    });
    const { status, condition } = await cancel(1, 99);
    assert.deepEqual([status, condition], [404, "com.microsoft:message-not-found"]);
    assert.equal((await cancel(1, 2)).status, 200);
    assert.equal((await cancel(1)).status, 404);
    const empty = await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 10 });
    assert.equal(empty.status, 204);
  });

  scenario("S68 an unknown operation is not implemented", async (connection) => {
    const request = await openManagement(connection, "s68");
    for (const operation of ["com.microsoft:no-such-operation", "READ"]) {
      const { status, condition, description } = await request(operation, {});
      assert.deepEqual([status, condition], [501, "amqp:not-implemented"]);
      assert.ok(description);
    }
    const { status } = await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 1 });
    assert.equal(status, 204);
  });

  scenario("S69 a malformed request is answered, and the links live on", async (connection) => {
    const request = await openManagement(connection, "s69");
    const malformed = [
      ["com.microsoft:peek-message", { "from-sequence-number": long(0) }],
      ["com.microsoft:renew-lock", { "lock-tokens": "no array" }],
      ["com.microsoft:renew-lock", "no map"],
      [undefined, {}],
    ];
    for (const [operation, body] of malformed) {
      const { status, condition, description } = await request(operation, body);
      assert.equal(status, 400);
      assert.ok(condition && description);
    }
    const { status } = await request("com.microsoft:peek-message", { "from-sequence-number": 0, "message-count": 1 });
    assert.equal(status, 204);
  });

  scenario("S70 messages are deleted in batches", async (connection) => {
    await sendNumbered(connection, "s70", 5);
    const request = await openManagement(connection, "s70");
    const deleteBatch = (count) => request("com.microsoft:batch-delete-messages", {
      "message-count": int(count), "enqueued-time-utc": types.wrap_timestamp(Date.now() + 1_000),
    });
    const some = await deleteBatch(3);
    assert.equal(some.status, 200);
    assert.deepEqual(typedBody(some)["message-count"], ["int", 3]);
    assert.deepEqual(typedBody(await deleteBatch(100))["message-count"], ["int", 2]);
    const none = await deleteBatch(100);
    assert.ok(none.status === 204 || none.body["message-count"] === 0);
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s70")), []);
  });

  scenario("S71 locks are renewed and messages settled by hand, and every answer has its types", async (connection) => {
    await sendNumbered(connection, "s71", 5);
    const receiver = await openReceiver(connection, "s71");
    const tokens = (await receive(receiver, 5)).map(lockToken);
    const request = await openManagement(connection, "s71");
    const linkName = { properties: { "associated-link-name": receiver.name } };

    for (const id of [randomUUID(), Buffer.from(range(1, 16)), 2 ** 40]) {
      // The harness compares the correlation id of the answer, whose type is that of the message id.
      const answer = await request("com.microsoft:renew-lock", { "lock-tokens": list(tokens) }, { id, ...linkName });
      assert.equal(answer.status, 200);
      const [name, expirations] = sections(answer.raw).value[0].value;
      assert.deepEqual([name.value, typeName(expirations), elementType(expirations)], ["expirations", "array", "timestamp"]);
      assert.equal(expirations.value.length, 5);
      const properties = typedMap(sections(answer.raw)["application-properties"][0]);
      assert.deepEqual(properties.statusCode, ["int", 200]);
    }

    const update = (token, status, more = {}) => request("com.microsoft:update-disposition", {
      "disposition-status": status, "lock-tokens": list([token]), ...more,
    }, linkName);
    const changed = { "properties-to-modify": { attempt: int(1) } };
    assert.equal((await update(tokens[0], "completed")).status, 200);
    assert.equal((await update(tokens[1], "abandoned", changed)).status, 200);
    assert.equal((await update(tokens[2], "defered")).status, 200);
    assert.equal((await update(tokens[3], "suspended", { "deadletter-reason": "why", "deadletter-description": "because" })).status, 200);
    const lost = await update(tokens[0], "completed");
    assert.deepEqual([lost.status, lost.condition], [410, "com.microsoft:message-lock-lost"]);
    // None of those ended the lock that was left alone, nor does an unknown status.
    assert.equal((await update(tokens[4], "no-such-status")).status, 400);
    assert.equal((await update(tokens[4], "completed")).status, 200);

    const [abandoned] = await receiveAvailable(await openReceiver(connection, "s71"));
    assert.deepEqual([abandoned.message.body, abandoned.message.delivery_count], [2, 1]);
    assert.equal(abandoned.message.application_properties.attempt, 1);
    const [dead] = await receiveAvailable(await openReceiver(connection, "s71/$DeadLetterQueue"));
    assert.deepEqual([dead.message.body, dead.message.application_properties.DeadLetterReason], [4, "why"]);

    // Numbers as ints in a list, the mode as ubyte.
    const deferred = await request("com.microsoft:receive-by-sequence-number", {
      "sequence-numbers": list([int(3)]), "receiver-settle-mode": types.wrap_ubyte(1),
    }, linkName);
    assert.equal(deferred.status, 200);
    assert.deepEqual(decoded(deferred).map((message) => message.body), [3]);
    const token = deferred.body.messages[0]["lock-token"];
    assert.equal((await update(types.wrap_uuid(token), "completed")).status, 200);
    const gone = await request("com.microsoft:receive-by-sequence-number", {
      "sequence-numbers": list([int(3)]), "receiver-settle-mode": types.wrap_ubyte(0),
    }, linkName);
    assert.deepEqual([gone.status, gone.condition], [404, "com.microsoft:message-not-found"]);
  });
});
