// What administrators have done outlives the secured broker. It is killed for this, so these scenarios have a file of their own.

import assert from "node:assert/strict";
import { acceptNext, bodies, fails, receiveOne, sendTo } from "../harness.js";
import {
  collect, deniedSending, given, securedTopic, keyOf, rule, withKey,
} from "../clients.js";
import { control } from "../secured.js";

securedTopic("restarts of entities", (scenario) => {
  scenario("S290 what administrators made, changed and deleted outlives the broker", async (client, admin) => {
    const [before, after] = [rule("speaker", "Send"), { ...rule("other"), keyName: "speaker", accessRights: ["Send"] }];
    const one = {
      name: "one", filter: { sqlExpression: "n = @n", sqlParameters: { "@n": 1 } }, action: { sqlExpression: "SET seen = TRUE" },
    };
    await admin.createQueue("s290", {
      lockDuration: "PT45S", requiresSession: true, userMetadata: "mine", authorizationRules: [before],
    });
    const queue = await admin.updateQueue({ ...await admin.getQueue("s290"), maxDeliveryCount: 3, authorizationRules: [after] });
    await sendTo(client, "s290", "x");
    const topic = await admin.createTopic("s290t", { userMetadata: "<topic>" });
    await admin.createSubscription("s290t", "a", { defaultRuleOptions: one });
    const subscription = await admin.updateSubscription({ ...await admin.getSubscription("s290t", "a"), lockDuration: "PT7S" });
    await admin.createSubscription("s290t", "gone");
    await admin.deleteSubscription("s290t", "gone");
    await admin.createQueue("s290-gone");
    await admin.deleteQueue("s290-gone");
    await admin.createQueue("s290-target");
    await admin.createQueue("s290-stranded", { forwardTo: "s290-target" });
    await admin.deleteQueue("s290-target");
    const created = (await admin.getQueueRuntimeProperties("s290")).createdAt;

    for (const way of ["kill", "stop"]) {
      await control(way);
      await control("start");
      assert.deepEqual(await admin.getQueue("s290"), queue);
      assert.deepEqual((await admin.getQueueRuntimeProperties("s290")).createdAt, created);
      assert.deepEqual(await admin.getTopic("s290t"), topic);
      assert.deepEqual(await collect(admin.listSubscriptions("s290t")), [subscription]);
      const rules = await collect(admin.listRules("s290t", "a"));
      assert.deepEqual(rules.map(({ name, filter, action }) => ({ name, filter, action: given(action) })), [one]);
      assert.equal(await admin.queueExists("s290-gone"), false);
      assert.equal((await admin.getQueue("s290-stranded")).name, "s290-stranded");
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
