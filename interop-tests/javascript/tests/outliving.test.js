// What administrators have done outlives the guarded broker. It is killed for this, so these scenarios have a file of their own.

import assert from "node:assert/strict";
import { acceptNext, bodies, fails, receiveOne, sendTo } from "../harness.js";
import {
  collect, deniedSending, given, guardedTopic, keyOf, rule, withKey,
} from "../doors.js";
import { control } from "../guarded.js";

guardedTopic("outliving", (scenario) => {
  scenario("S290 what administrators made, changed and deleted outlives the broker", async (client, office) => {
    const [before, after] = [rule("speaker", "Send"), { ...rule("other"), keyName: "speaker", accessRights: ["Send"] }];
    const one = {
      name: "one", filter: { sqlExpression: "n = @n", sqlParameters: { "@n": 1 } }, action: { sqlExpression: "SET seen = TRUE" },
    };
    await office.createQueue("s290", {
      lockDuration: "PT45S", requiresSession: true, userMetadata: "mine", authorizationRules: [before],
    });
    const queue = await office.updateQueue({ ...await office.getQueue("s290"), maxDeliveryCount: 3, authorizationRules: [after] });
    await sendTo(client, "s290", "x");
    const topic = await office.createTopic("s290t", { userMetadata: "<topic>" });
    await office.createSubscription("s290t", "a", { defaultRuleOptions: one });
    const subscription = await office.updateSubscription({ ...await office.getSubscription("s290t", "a"), lockDuration: "PT7S" });
    await office.createSubscription("s290t", "gone");
    await office.deleteSubscription("s290t", "gone");
    await office.createQueue("s290-gone");
    await office.deleteQueue("s290-gone");
    await office.createQueue("s290-target");
    await office.createQueue("s290-stranded", { forwardTo: "s290-target" });
    await office.deleteQueue("s290-target");
    const created = (await office.getQueueRuntimeProperties("s290")).createdAt;

    for (const way of ["kill", "stop"]) {
      await control(way);
      await control("start");
      assert.deepEqual(await office.getQueue("s290"), queue);
      assert.deepEqual((await office.getQueueRuntimeProperties("s290")).createdAt, created);
      assert.deepEqual(await office.getTopic("s290t"), topic);
      assert.deepEqual(await collect(office.listSubscriptions("s290t")), [subscription]);
      const rules = await collect(office.listRules("s290t", "a"));
      assert.deepEqual(rules.map(({ name, filter, action }) => ({ name, filter, action: given(action) })), [one]);
      assert.equal(await office.queueExists("s290-gone"), false);
      assert.equal((await office.getQueue("s290-stranded")).name, "s290-stranded");
      await withKey(keyOf(before), (other) => deniedSending(other, "s290"));
      await withKey(keyOf(after), (other) => sendTo(other, "s290", "y"));
    }
    // The client that was there all the time.
    const receiver = await acceptNext(client, "s290");
    assert.deepEqual([receiver.sessionId, bodies([await receiveOne(receiver)])], ["x", [0]]);
    await client.createSender("s290t").sendMessages([{ body: 1, applicationProperties: { n: 1 } }, { body: 2 }]);
    const message = await receiveOne(client.createReceiver("s290t", "a"));
    assert.deepEqual([message.body, message.applicationProperties.seen], [1, true]);
    await fails(client.createSender("s290-gone").sendMessages({ body: 1 }), "MessagingEntityNotFound");
  });
});
