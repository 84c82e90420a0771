const assert = require("node:assert/strict");
const { after, before, describe, it } = require("node:test");
const { bodies, broker, client, emptied, same, send, start, take, text } = require("../harness.js");

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
    await send("s365", ...Object.entries(jobs).map(([messageId, body]) => text(body, messageId)));
    const dead = await take("s365", 4, { subQueueType: "deadLetter" });
    same(dead.map(({ messageId }) => messageId), ["no-json", "not-a-job", "too-long", "clumsy"]);
    const why = Object.fromEntries(dead.map((each) => [each.messageId, each.deadLetterErrorDescription]));
    assert.deepEqual([why["too-long"], why.clumsy], ["it takes too long", "it slipped"]);
    // Its release is a modification that says "undeliverable here", and that is how one defers.
    const receiver = client.createReceiver("s365");
    const [later] = await receiver.peekMessages(10);
    assert.deepEqual([later.messageId, later.state], ["later", "deferred"]);
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
