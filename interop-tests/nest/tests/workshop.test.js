const assert = require("node:assert/strict");
const { after, before, describe, it } = require("node:test");
const Long = require("long");
const { bodies, broker, client, emptied, same, send, start, take, text, until } = require("../harness.js");

describe("@team-supercharge/nest-amqp", { timeout: 120_000 }, () => {
  let workshop;

  before(async () => { workshop = await start("workshop"); });
  after(async () => {
    workshop?.kill();
    await client.close();
  });

  it("S365 S366 jobs are done and told on, by a queue and by a topic", async () => {
    const jobs = Array.from({ length: 20 }, (_, index) => ({ id: `j${index}`, hours: 1 + (index % 4) }));
    await send("s365", ...jobs.map((job) => text(JSON.stringify(job))));
    const quick = jobs.filter(({ hours }) => hours < 3);
    const wanted = [...jobs.map(({ id }) => ({ id, done: true })), ...quick.map(({ id }) => ({ id, heard: true }))];
    const told = (await take("s365b", wanted.length)).map(({ body }) => JSON.parse(body));
    same(told, wanted);
    await emptied("s365");
    await emptied("s366", "quick");
  });

  it("S365 what is malformed, refused or fails is dead-lettered, and what is put off is deferred", async () => {
    const jobs = {
      "no-json": "{", "not-a-job": JSON.stringify({ id: 1, hours: 0 }), "too-long": JSON.stringify({ id: "x", hours: 9 }),
      clumsy: JSON.stringify({ id: "clumsy", hours: 1 }), later: JSON.stringify({ id: "later", hours: 1 }),
    };
    const why = {};
    for (const [messageId, body] of Object.entries(jobs)) {
      // One by one: of neighbours that it settles in one turn, rhea 3.0.5 tells the second as it does the first.
      await send("s365", text(body, messageId));
      if (messageId === "later") continue;
      const [dead] = await take("s365", 1, { subQueueType: "deadLetter" });
      why[dead.messageId] = [dead.deadLetterReason, dead.deadLetterErrorDescription];
    }
    const reason = "amqp:precondition-failed";
    assert.deepEqual(Object.keys(why), Object.keys(jobs).filter((each) => each !== "later"));
    assert.deepEqual([why["too-long"], why.clumsy], [[reason, "it takes too long"], [reason, "it slipped"]]);
    assert.match(why["no-json"][1], /JSON/);
    assert.match(why["not-a-job"][1], /isString.*min/);
    // Its release is a modification that says "undeliverable here", and that is how one defers.
    const receiver = client.createReceiver("s365");
    const later = await until(async () => {
      const [found] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ZERO });
      return found?.state === "deferred" && found;
    });
    assert.equal(later.messageId, "later");
    const [again] = await receiver.receiveDeferredMessages(later.sequenceNumber);
    await receiver.completeMessage(again);
    await receiver.close();
    await emptied("s365");
  });

  it("S365 the program goes on after the broker was killed, and ends when it is told to", async () => {
    await broker("kill");
    await broker("start");
    await send("s365", text(JSON.stringify({ id: "after", hours: 5 })));
    assert.deepEqual(bodies(await take("s365b", 1)).map((body) => JSON.parse(body)), [{ id: "after", done: true }]);
    await workshop.stop();
  });
});
