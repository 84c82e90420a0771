// Rules by hand: requests as other SDKs write them, answers with their exact types; topics by their paths.

import assert from "node:assert/strict";
import {
  bodies, numbers, openManagement, openReceiver, openSender, openSession, receive, receiveAvailable, sections, sendAccepted, sendBatch,
  topic, typeName, typedMap, types,
} from "../harness.js";

/** Descriptors of §7.4: those of the rule and its action have one hex digit more than those of filters. */
const RULE = 0x13700000004;
const EMPTY_ACTION = 0x13700000005;
const SQL_ACTION = 0x13700000006;
const SQL_FILTER = 0x1370000006;
const TRUE_FILTER = 0x1370000007;
const FALSE_FILTER = 0x1370000008;
const CORRELATION_FILTER = 0x1370000009;

const { wrap_int: int } = types;

function operations(request) {
  return {
    add: (name, description) => request("com.microsoft:add-rule", { "rule-name": name, "rule-description": description }),
    remove: (name) => request("com.microsoft:remove-rule", { "rule-name": name }),
    list: (skip = 0, top = 100) => request("com.microsoft:enumerate-rules", { skip: int(skip), top: int(top) }),
  };
}

/** The rules of an answer, with their types: typed described lists. */
function rulesOf({ raw }) {
  const [key, rules] = sections(raw).value[0].value;
  assert.equal(key.value, "rules");
  assert.ok(["list", "array"].includes(typeName(rules)));
  return rules.value.map((rule) => {
    const [name, description] = rule.value;
    assert.equal(name.value, "rule-description");
    return description;
  });
}

function descriptor(typed) {
  assert.equal(typeName(typed), "list");
  assert.equal(typeName(typed.descriptor), "ulong");
  return Number(typed.descriptor.value);
}

topic("rules", (scenario) => {
  scenario("S168 S171 rules are listed with their descriptors and types", async (connection) => {
    const { add, remove, list } = operations(await openManagement(connection, "s171/Subscriptions/a"));
    const nulls = Object.fromEntries(
      ["correlation-id", "message-id", "to", "reply-to", "session-id", "reply-to-session-id", "content-type"].map((key) => [key, null]),
    );
    const added = [
      // Without an action: none, null, and the empty map of Java; the name once more inside, as .NET has it.
      ["sql", { "rule-name": "sql", "sql-filter": { expression: "n = 1" }, "sql-rule-action": null }],
      ["action", { "sql-filter": { expression: "n = 2" }, "sql-rule-action": { expression: "SET m = 1" } }],
      ["label", { "correlation-filter": { ...nulls, label: "s", properties: null }, "sql-rule-action": {} }],
      ["color", { "correlation-filter": { ...nulls, label: null, properties: { color: "red", size: int(1) } } }],
      ["true", { "true-filter": {} }],
      ["false", { "false-filter": {} }],
    ];
    for (const [name, description] of added) assert.equal((await add(name, description)).status, 200, name);
    const answer = await list();
    assert.equal(answer.status, 200);
    const found = {};
    for (const rule of rulesOf(answer)) {
      assert.equal(descriptor(rule), RULE);
      const [filter, action, name, created] = rule.value;
      assert.deepEqual([typeName(name), typeName(created)], ["string", "timestamp"]);
      found[name.value] = { filter, action, created: created.value };
    }
    assert.deepEqual(Object.keys(found).sort(), ["$Default", "action", "color", "false", "label", "sql", "true"]);
    const filters = Object.fromEntries(Object.entries(found).map(([name, { filter }]) => [name, descriptor(filter)]));
    const { $Default: first, ...others } = filters;
    assert.ok([TRUE_FILTER, SQL_FILTER].includes(first));
    assert.ok([TRUE_FILTER, SQL_FILTER].includes(others.true));
    assert.ok([FALSE_FILTER, SQL_FILTER].includes(others.false));
    assert.deepEqual([others.sql, others.action], [SQL_FILTER, SQL_FILTER]);
    assert.deepEqual([others.label, others.color], [CORRELATION_FILTER, CORRELATION_FILTER]);
    assert.deepEqual([typeName(found.sql.filter.value[0]), found.sql.filter.value[0].value], ["string", "n = 1"]);
    for (const [name, { action, created }] of Object.entries(found)) {
      assert.equal(descriptor(action), name === "action" ? SQL_ACTION : EMPTY_ACTION, name);
      if (name !== "$Default") assert.ok(Math.abs(created - Date.now()) < 10_000);
    }
    assert.equal(found.action.action.value[0].value, "SET m = 1");
    const { value: fields } = found.color.filter;
    assert.equal(fields.length, 9);
    for (const field of fields.slice(0, 8)) assert.equal(field.value, null);
    // Integers are kept by their value: of which width they come back is open.
    const { color, size: [width, size] } = typedMap(fields[8]);
    assert.deepEqual([color, size], [["string", "red"], 1]);
    assert.match(width, /^(int|long)$/);
    const { value: label } = found.label.filter;
    assert.deepEqual([label[4].value, typeName(label[8]), label[8].value], ["s", "map", []]);

    // In pages, and nothing beyond the end.
    const names = [];
    for (let skip = 0; ; skip += 3) {
      const page = await list(skip, 3);
      if (page.status === 204) break;
      const rules = rulesOf(page);
      assert.ok(rules.length <= 3);
      names.push(...rules.map((rule) => rule.value[2].value));
    }
    assert.deepEqual(names.sort(), Object.keys(found).sort());
    for (const name of names) assert.equal((await remove(name)).status, 200);
    assert.equal((await list()).status, 204);
    // Without rules there is nothing.
    await sendAccepted(await openSender(connection, "s171"), { body: 1, subject: "s" });
    assert.deepEqual(await receiveAvailable(await openReceiver(connection, "s171/Subscriptions/a")), []);
  });

  scenario("S169 what is no rule is refused, and says why", async (connection) => {
    const { add, remove, list } = operations(await openManagement(connection, "s169/Subscriptions/a"));
    const refused = [
      ["SQL", { "sql-filter": { expression: "SELECT * FROM" } }],
      ["action", { "sql-filter": { expression: "1=1" }, "sql-rule-action": { expression: "JUMP" } }],
      ["no filter", {}],
      ["empty correlation filter", { "correlation-filter": { "correlation-id": null, properties: null } }],
      ["no expression", { "sql-filter": {} }],
      ["a text that is too long", { "sql-filter": { expression: `n = '${"x".repeat(1_100)}'` } }],
    ];
    for (const [name, description] of refused) {
      const { status, condition, description: why } = await add(name.replaceAll(" ", "-"), description);
      assert.equal(status, 400, name);
      assert.ok(condition && why, name);
    }
    assert.equal((await add("x".repeat(51), { "sql-filter": { expression: "1=1" } })).status, 400);
    const twice = { "sql-filter": { expression: "1=1" } };
    assert.equal((await add("twice", twice)).status, 200);
    for (const name of ["twice", "TWICE"]) {
      const { status, condition } = await add(name, twice);
      assert.deepEqual([status, condition], [409, "com.microsoft:entity-already-exists"]);
    }
    const { status, condition } = await remove("no-such");
    assert.deepEqual([status, condition], [404, "amqp:not-found"]);
    assert.deepEqual(rulesOf(await list()).map((rule) => rule.value[2].value).sort(), ["$Default", "twice"]);
    // A queue has no rules.
    const queue = operations(await openManagement(connection, "s233"));
    assert.ok((await queue.list()).status >= 400);
    assert.ok((await queue.add("rule", twice)).status >= 400);
  });

  scenario("S162 numbers of every type are numbers to a filter", async (connection) => {
    const { add, remove } = operations(await openManagement(connection, "s168/Subscriptions/a"));
    await remove("$Default");
    await add("seven", { "sql-filter": { expression: "n = 7" } });
    await add("eight", { "correlation-filter": { properties: { n: int(8) } } });
    const wrappers = ["byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong", "float", "double"];
    const messages = wrappers.flatMap((name) => [7, 8, 9].map((n) => ({
      body: `${name} ${n}`, application_properties: { n: types[`wrap_${name}`](n) },
    })));
    await sendBatch(await openSender(connection, "s168"), messages);
    const received = await receiveAvailable(await openReceiver(connection, "s168/Subscriptions/a"), 100);
    const wanted = messages.map(({ body }) => body).filter((body) => !body.endsWith("9"));
    const integral = (body) => !/float|double/.test(body) || body.endsWith("7");
    // Whether a double equals an int in a correlation filter is not known; integers of all types do.
    assert.deepEqual(bodies(received).filter(integral), wanted.filter(integral));
  });

  scenario("S144 S151 subscriptions are named by paths in any case", async (connection) => {
    await sendAccepted(await openSender(connection, "S151"), { body: 1 }, { body: 2 });
    const received = await receive(await openReceiver(connection, "s151/SUBSCRIPTIONS/mixed"), 2);
    assert.deepEqual([bodies(received), numbers(received)], [[1, 2], [1, 2]]);
    assert.deepEqual(received.map(({ message }) => message.message_annotations["x-opt-enqueue-sequence-number"]), [1, 2]);
    await openReceiver(connection, "s151/subscriptions/mixed/$deadletterqueue");
    for (const address of ["s151/Subscriptions/no-such", "no-such/Subscriptions/mixed"]) {
      await assert.rejects(openReceiver(connection, address), { condition: "amqp:not-found", description: /could not be found/ });
    }
    await assert.rejects(openReceiver(connection, "s151"), { condition: "amqp:not-allowed" });
    await assert.rejects(openSender(connection, "s151/Subscriptions/mixed"), { condition: "amqp:not-allowed" });
    await assert.rejects(openSession(connection, "s151/Subscriptions/mixed", "x"), { condition: "amqp:not-allowed" });
  });

  scenario("S185 ids of different types are different, or not, but none is lost for want of one", async (connection) => {
    const sender = await openSender(connection, "s185");
    await sendAccepted(sender, { body: 1, message_id: "7" }, { body: 2, message_id: 7 }, { body: 3, message_id: "7" }, { body: 4 }, { body: 5 });
    const received = bodies(await receiveAvailable(await openReceiver(connection, "s185")));
    assert.deepEqual(received.filter((body) => body !== 2), [1, 4, 5]);
  });
});
