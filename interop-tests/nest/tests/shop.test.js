const assert = require("node:assert/strict");
const { after, before, describe, it } = require("node:test");
const Long = require("long");
const { bodies, broker, client, emptied, post, same, send, start, take } = require("../harness.js");

const SMALL = 5;
const LARGE = 50;

describe("nestjs-azure-service-bus-transporter", { timeout: 120_000 }, () => {
  let shop;

  before(async () => { shop = await start("shop"); });
  after(async () => {
    shop?.kill();
    await client.close();
  });

  function reports(orders) {
    const report = (by) => ({ id }) => ({ by, id, subject: "ordered" });
    return [...orders.map(report("all")), ...orders.filter(({ amount }) => amount > SMALL).map(report("large"))];
  }

  it("S361 S362 orders by HTTP and by queue become events for the subscriptions whose rules take them", async () => {
    const orders = Array.from({ length: 20 }, (_, index) => ({ id: `o${index}`, amount: index % 2 ? LARGE : SMALL }));
    await Promise.all(orders.slice(0, 10).map((order) => post(`${shop.url}/orders`, order)));
    await send("s361", ...orders.slice(10).map((order) => ({ body: order })));
    const wanted = reports(orders);
    same(bodies(await take("s361b", wanted.length)), wanted);
    await emptied("s361");
    await emptied("s361b");
    await emptied("s362", "all");
    await emptied("s362", "large");
  });

  it("S363 a question gets its answer, from the program itself and from outside", async () => {
    for (const item of ["bread", "cheese"]) {
      assert.deepEqual(await post(`${shop.url}/prices`, { item }), { item, price: item.length });
    }
    await send("s363", { messageId: "q1", replyTo: "s363b", body: { item: "salt" } });
    const [answer] = await take("s363b", 1);
    assert.deepEqual([answer.correlationId, answer.body], ["q1", { item: "salt", price: 4 }]);
    await emptied("s363");
    await emptied("s363.reply");
  });

  it("S364 what fails is tried again, put off, dead-lettered, or given up after its deliveries", async () => {
    const kinds = ["broken", "late", "nobody-home", "at-last"];
    await send("s364", ...kinds.map((kind) => ({ messageId: kind, body: { kind } })));
    assert.deepEqual(bodies(await take("s361b", 1)), [{ by: "parcels", kind: "at-last", tried: 2 }]);
    const dead = await take("s364", 2, { subQueueType: "deadLetter" });
    same(dead.map(({ messageId, deadLetterReason }) => [messageId, deadLetterReason]), [
      ["broken", "Broken"], ["nobody-home", "MaxDeliveryCountExceeded"],
    ]);
    assert.equal(dead.find(({ messageId }) => messageId === "nobody-home").applicationProperties.tried, 3);
    const receiver = client.createReceiver("s364");
    const [late] = await receiver.peekMessages(1, { fromSequenceNumber: Long.ZERO });
    assert.deepEqual([late.messageId, late.state], ["late", "deferred"]);
    const [again] = await receiver.receiveDeferredMessages(late.sequenceNumber);
    await receiver.completeMessage(again);
    await receiver.close();
    await emptied("s364");
  });

  it("S361 the program goes on after the broker was killed, and ends when it is told to", async () => {
    await broker("kill");
    await broker("start");
    const order = { id: "after", amount: LARGE };
    await post(`${shop.url}/orders`, order);
    same(bodies(await take("s361b", 2)), reports([order]));
    await shop.stop();
    // Nobody is there any more: what comes now stays.
    await send("s361", { messageId: "closed", body: order });
    assert.deepEqual((await take("s361", 1)).map(({ messageId }) => messageId), ["closed"]);
  });
});
