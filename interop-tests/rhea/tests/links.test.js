// Credit, drain, flows and windows: what a generic client sees of a link.

import assert from "node:assert/strict";
import frames from "rhea/lib/frames.js";
import {
  accept, bodies, closeLink, event, openReceiver, openSender, range, receive, receiveAvailable, receiveOne,
  record, sendAccepted, sendBatch, topic,
} from "../harness.js";

topic("links", (scenario) => {
  scenario("S04 a link is closed, and attached again under its name", async (connection) => {
    for (const body of [1, 2, 3]) {
      const sender = await openSender(connection, "s04b", { name: "again" });
      const receiver = await openReceiver(connection, "s04b", { name: "again-receiver" });
      await sendAccepted(sender, { body });
      const received = await receiveOne(receiver);
      assert.equal(received.message.body, body);
      await accept(received);
      await closeLink(sender);
      await closeLink(receiver);
    }
  });

  scenario("S33 a drain on an empty queue ends the credit", async (connection) => {
    const receiver = await openReceiver(connection, "s33");
    const flows = record(receiver.session, "flow");
    assert.deepEqual(await receiveAvailable(receiver, 10), []);
    const answer = flows.find((flow) => flow.drain);
    assert.deepEqual([answer.link_credit, answer.delivery_count], [0, 10]);
    for (const field of ["next_incoming_id", "incoming_window", "next_outgoing_id", "outgoing_window"]) {
      assert.equal(typeof answer[field], "number", field);
    }
    // What is sent to a drained link stays in the queue until there is credit again.
    await sendAccepted(await openSender(connection, "s33"), { body: "late" });
    const other = await openReceiver(connection, "s33");
    const [received] = await receiveAvailable(other, 1);
    assert.equal(received.message.body, "late");
    assert.deepEqual(receiver.inbox, []);
  });

  scenario("S36 a drain brings what is there, and no more than the credit", async (connection) => {
    await sendBatch(await openSender(connection, "s36"), range(1, 10).map((body) => ({ body })));
    const receiver = await openReceiver(connection, "s36");
    const first = await receiveAvailable(receiver, 4);
    assert.deepEqual(bodies(first), [1, 2, 3, 4]);
    const flows = record(receiver.session, "flow");
    const rest = await receiveAvailable(receiver, 100);
    assert.deepEqual(bodies(rest), range(5, 10));
    assert.deepEqual(flows.filter((flow) => flow.drain).map((flow) => [flow.link_credit, flow.delivery_count]), [[0, 104]]);
    await accept(...first, ...rest);
  });

  scenario("S34 an echo is answered, and credit that is taken back is not used", async (connection) => {
    const receiver = await openReceiver(connection, "s34");
    for (const credit of [3, 0]) {
      const { link_credit, delivery_count, drain } = await echo(receiver, credit);
      assert.deepEqual([link_credit, delivery_count, drain ?? false], [credit, 0, false]);
    }
    await sendAccepted(await openSender(connection, "s34"), { body: 1 });
    assert.deepEqual(bodies(await receive(await openReceiver(connection, "s34"), 1)), [1]);
    assert.deepEqual(receiver.inbox, []);
  });
});

/** Sends a flow that rhea has no call for, and returns the answer. */
async function echo(receiver, credit) {
  const flows = record(receiver.session, "flow");
  const answered = event(receiver, "receiver_flow");
  receiver.session.output(frames.flow({
    next_incoming_id: 0, incoming_window: 2_048, next_outgoing_id: 0, outgoing_window: 2_048,
    handle: receiver.local.handle, delivery_count: 0, link_credit: credit, echo: true,
  }));
  receiver.connection._register();
  await answered;
  return flows.find((flow) => flow.handle !== undefined && flow.handle !== null);
}
