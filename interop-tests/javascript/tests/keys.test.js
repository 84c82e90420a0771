// Who may do what: keys, signatures, tokens, and what becomes of open links when these end or are renewed.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { AzureNamedKeyCredential, AzureSASCredential } from "@azure/core-auth";
import { ServiceBusAdministrationClient } from "@azure/service-bus";
import {
  bodies, connectionString, deadLetters, fails, inMilliseconds, noRenewal, peekAll, range, receive, receiveOne, sendNumbered,
  until, withClient,
} from "../harness.js";
import {
  administrator, denied, deniedReceiving, deniedScheduling, deniedSending, securedTopic, keyed, keyOf, ONCE, roundTrip, rule,
  UNAUTHORIZED, UNAUTHORIZED_REQUEST, visit, withKey,
} from "../clients.js";
import { secured, HOST, LISTENER, ROOT, SPEAKER } from "../secured.js";
import { forgedIdentity, identity, inSeconds, token } from "../identity.js";

/** A shared access signature as anybody can make one. */
function signed(resource, until, { name, key } = ROOT) {
  const audience = encodeURIComponent(resource);
  const signature = createHmac("sha256", key).update(`${audience}\n${until}`).digest("base64");
  return `SharedAccessSignature sr=${audience}&sig=${encodeURIComponent(signature)}&se=${until}&skn=${encodeURIComponent(name)}`;
}

/** Uses a client whose connection string has a signature in place of a key. */
function withSignature(signature, use) {
  return withClient(use, ONCE, `Endpoint=sb://${HOST}/;SharedAccessSignature=${signature}`);
}

function withCredential(credential, use) {
  return withClient(use, ONCE, HOST, credential);
}

/** Receives all the time, and tells of its errors. */
function listen(client, queue) {
  const seen = { bodies: [], errors: [] };
  client.createReceiver(queue).subscribe({
    processMessage: async (message) => { seen.bodies.push(message.body); },
    processError: async ({ error }) => { seen.errors.push(error); },
  });
  return seen;
}

securedTopic("keys", (scenario) => {
  scenario("S264 a wrong key and an unknown name are unauthorized", async (client, admin) => {
    await admin.createQueue("s264");
    await withKey({ ...ROOT, key: "wrong" }, (other) => denied(other, "s264"));
    await withKey({ ...ROOT, name: "no-such-name" }, (other) => denied(other, "s264"));
    await roundTrip(client, "s264");
    await withKey(SPEAKER, async (speaker) => {
      await speaker.createSender("s264").sendMessages({ body: 1 });
      await deniedReceiving(speaker, "s264");
    });
    await withKey(LISTENER, async (listener) => {
      assert.equal((await receiveOne(listener.createReceiver("s264"))).body, 1);
      await deniedSending(listener, "s264");
    });
  });

  scenario("S264 a credential with a name and a key, and one whose key is changed", async (client, admin) => {
    await admin.createQueue("s264b");
    const credential = new AzureNamedKeyCredential(ROOT.name, "wrong");
    await withCredential(credential, async (other) => {
      await denied(other, "s264b");
      credential.update(ROOT.name, ROOT.key);
      await roundTrip(other, "s264b");
    });
    const named = new ServiceBusAdministrationClient(HOST, credential);
    assert.equal((await named.getQueue("s264b")).name, "s264b");
  });

  scenario("S265 a signature is good for its resource and its time", async (client, admin) => {
    for (const queue of ["s265", "s265b"]) await admin.createQueue(queue);
    const soon = inSeconds(3_600);
    const whole = `sb://${HOST}/`;
    for (const resource of [whole, `amqps://${HOST}:5671`, `https://${HOST}`, HOST]) {
      await withSignature(signed(resource, soon), (other) => roundTrip(other, "s265"));
    }
    await withSignature(signed(`${whole}S265`, soon), async (other) => {
      await roundTrip(other, "s265");
      await denied(other, "s265b");
    });
    for (const wrong of [
      signed(whole, inSeconds(-3_600)),
      signed(whole, soon, { ...ROOT, key: "wrong" }),
      signed(whole, soon).replace("&se=", "&se=1"),
      "SharedAccessSignature sr=nonsense",
    ]) {
      await withSignature(wrong, (other) => denied(other, "s265"));
    }
  });

  scenario("S265 a link ends with its signature", async (client, admin) => {
    await admin.createQueue("s265c");
    await withSignature(signed(`sb://${HOST}/s265c`, inSeconds(8)), async (other) => {
      const sender = other.createSender("s265c");
      const seen = listen(other, "s265c");
      await sender.sendMessages({ body: 1 });
      await until(() => seen.bodies.length === 1);
      await until(() => seen.errors.length > 0);
      assert.equal(seen.errors[0].code, UNAUTHORIZED);
      await fails(sender.sendMessages({ body: 2 }), UNAUTHORIZED);
      await denied(other, "s265c");
    });
  });

  scenario("S265 a fresh signature keeps links open that the old one would have ended", async (client, admin) => {
    await admin.createQueue("s265d");
    const resource = `sb://${HOST}/s265d`;
    const end = inSeconds(8);
    const credential = new AzureSASCredential(signed(resource, end));
    await withCredential(credential, async (other) => {
      const sender = other.createSender("s265d");
      const seen = listen(other, "s265d");
      await sender.sendMessages({ body: 1 });
      await until(() => seen.bodies.length === 1);
      // Any new link brings the fresh one, which is for the same resource.
      credential.update(signed(resource, inSeconds(3_600)));
      const fresh = other.createSender("s265d");
      await fresh.sendMessages({ body: 2 });
      // From now on a new link of this client would be refused: what goes on working was never closed.
      credential.update("SharedAccessSignature sr=nonsense");
      await until(() => inSeconds(0) > end + 2);
      await sender.sendMessages({ body: 3 });
      await until(() => seen.bodies.length === 3);
      assert.deepEqual(seen, { bodies: [1, 2, 3], errors: [] });
      await denied(other, "s265d");
    });
  });

  scenario("S265 the SDK renews what it signs with a connection string's key, without a break", async (client, admin) => {
    for (const queue of ["s265e", "s265f"]) await admin.createQueue(queue);
    const options = ["--import", "./late-clock.js"];
    const [renewed, stale] = await Promise.all([
      visit("s265e", { options, seconds: 15, environment: { ...process.env, HURRY: "yes" } }),
      visit("s265f", { options, seconds: 15 }),
    ]);
    assert.equal(renewed, "welcome");
    // When it does not, its links end.
    assert.match(stale, new RegExp(`^${UNAUTHORIZED}: `));
  });

  scenario("S266 a key allows what its rule says, on its entity", async (client, admin) => {
    const [listener, speaker, manager] = [
      rule("listener", "Listen"), rule("speaker", "Send"), rule("manager", "Manage", "Send", "Listen"),
    ];
    await admin.createQueue("s266", { authorizationRules: [listener, speaker, manager] });
    await admin.createQueue("s266b");
    await withKey(keyOf(speaker), async (other) => {
      await sendNumbered(other, "s266", 3);
      const sender = other.createSender("s266");
      await sender.cancelScheduledMessages(await sender.scheduleMessages({ body: 3 }, inMilliseconds(3_600_000)));
      await deniedReceiving(other, "s266");
    });
    await withKey(keyOf(listener, "secondaryKey"), async (other) => {
      const receiver = other.createReceiver("s266", noRenewal);
      assert.deepEqual(bodies(await peekAll(receiver)), range(0, 2));
      const [completed, deferred, dead] = await receive(receiver, 3);
      await receiver.completeMessage(completed);
      await receiver.deferMessage(deferred);
      await receiver.deadLetterMessage(dead);
      const [again] = await receiver.receiveDeferredMessages(deferred.sequenceNumber);
      await receiver.renewMessageLock(again);
      await receiver.completeMessage(again);
      const letters = deadLetters(other, "s266");
      const letter = await receiveOne(letters);
      assert.equal(letter.body, 2);
      await letters.completeMessage(letter);
      await deniedSending(other, "s266");
      await deniedScheduling(other, "s266");
    });
    await withKey(keyOf(manager), async (other) => {
      await roundTrip(other, "s266");
      await denied(other, "s266b");
    });
    await withKey(keyOf(speaker), (other) => denied(other, "s266b"));
    // The right key under another name.
    await withKey({ name: "speaker", key: listener.primaryKey }, (other) => denied(other, "s266"));
  });

  scenario("S267 the keys of a topic are good for its subscriptions, and its rules", async (client, admin) => {
    const [listener, speaker] = [rule("listener", "Listen"), rule("speaker", "Send")];
    await admin.createTopic("s267", { authorizationRules: [listener, speaker] });
    await admin.createSubscription("s267", "a");
    await withKey(keyOf(speaker), async (other) => {
      await other.createSender("s267").sendMessages({ body: 1 });
      await deniedReceiving(other, "s267", "a");
      await fails(other.createRuleManager("s267", "a").getRules(), UNAUTHORIZED);
    });
    await withKey(keyOf(listener), async (other) => {
      assert.equal((await receiveOne(other.createReceiver("s267", "a"))).body, 1);
      assert.deepEqual((await other.createRuleManager("s267", "a").getRules()).map(({ name }) => name), ["$Default"]);
      await deniedSending(other, "s267");
    });
  });

  scenario("S267 the audit log names the key that changed rules", async (client, admin) => {
    const manager = rule("manager", "Manage", "Send", "Listen");
    await admin.createTopic("s267c", { authorizationRules: [manager] });
    await admin.createSubscription("s267c", "a");
    for (const key of [keyOf(manager), ROOT]) {
      await withKey(key, async (other) => {
        const rules = other.createRuleManager("s267c", "a");
        await rules.createRule(`by-${key.name}`, { sqlExpression: "1=0" });
        await rules.deleteRule(`by-${key.name}`);
      });
    }
    const entity = encodeURIComponent("s267c/Subscriptions/a");
    const answer = await fetch(`http://127.0.0.1:${secured.httpPort}/api/v1/audit?entity=${entity}&limit=4`, {
      headers: { Authorization: signed(`http://${HOST}/`, inSeconds(60)) },
    });
    assert.equal(answer.status, 200);
    const { entries } = await answer.json();
    const seen = entries.map(({ operation, actor, detail }) => [operation, actor, detail.split(":")[0]]);
    const by = (name) => ["delete_rule", "create_rule"].map((operation) => [operation, `key ${name}`, `by-${name}`]);
    assert.deepEqual(seen, [...by(ROOT.name), ...by("manager")]);
  });

  scenario("S268 a key that was replaced opens nothing more", async (client, admin) => {
    const before = rule("speaker", "Send");
    const queue = await admin.createQueue("s268", { authorizationRules: [before] });
    await withKey(keyOf(before), (other) => other.createSender("s268").sendMessages({ body: 1 }));
    const after = { ...before, primaryKey: before.secondaryKey, secondaryKey: rule("other").primaryKey };
    await admin.updateQueue({ ...queue, authorizationRules: [after] });
    await withKey(keyOf(before), (other) => deniedSending(other, "s268"));
    await withKey(keyOf(after), (other) => other.createSender("s268").sendMessages({ body: 2 }));
    await withKey(keyOf(after, "secondaryKey"), (other) => other.createSender("s268").sendMessages({ body: 3 }));
    assert.deepEqual(bodies(await receive(client.createReceiver("s268"), 3)), range(1, 3));
  });

  scenario("S269 the emulator's connection string is verified too", async (client, admin) => {
    await admin.createQueue("s269");
    const emulator = (key) => `${keyed(key, `localhost:${secured.httpPort}`)};UseDevelopmentEmulator=true`;
    await withClient((other) => roundTrip(other, "s269"), {}, emulator(ROOT));
    await withClient((other) => denied(other, "s269"), ONCE, emulator({ ...ROOT, key: "SAS_KEY_VALUE" }));
    // Where no key is verified any is good.
    const any = connectionString.replace("SAS_KEY_VALUE", "any");
    assert.notEqual(any, connectionString);
    await withClient((other) => roundTrip(other, "s01"), {}, any);
  });

  scenario("S270 an identity does what its roles say", async (client, admin) => {
    const owners = new ServiceBusAdministrationClient(HOST, identity("Owner"));
    await owners.createQueue("s270");
    assert.equal((await owners.getQueue("s270")).maxDeliveryCount, 10);
    await withCredential(identity("Owner"), (other) => roundTrip(other, "s270"));
    await withCredential(identity("Sender"), async (other) => {
      await other.createSender("s270").sendMessages({ body: 1 });
      await deniedReceiving(other, "s270");
    });
    await withCredential(identity("Receiver"), async (other) => {
      assert.equal((await receiveOne(other.createReceiver("s270"))).body, 1);
      await deniedSending(other, "s270");
    });
    for (const stranger of [
      identity("Owner", { aud: "https://vault.azure.net" }), identity("Owner", { iss: "https://other.invalid" }),
      identity("Owner", { exp: inSeconds(-3_600) }), identity("Owner", { nbf: inSeconds(3_600) }), identity(undefined),
      forgedIdentity("Owner"),
    ]) {
      await withCredential(stranger, (other) => denied(other, "s270"));
    }
    for (const stranger of [forgedIdentity("Owner"), identity("Sender")]) {
      const strangers = new ServiceBusAdministrationClient(HOST, stranger);
      await fails(strangers.createQueue("s270b"), UNAUTHORIZED_REQUEST, /SubCode=401/);
    }
    assert.equal(await admin.queueExists("s270b"), false);
  });

  scenario("S270 an identity's token is renewed without a break", async (client, admin) => {
    await admin.createQueue("s270c");
    // The SDK asks for a fresh token two minutes before the one that it has ends; the broker lets it be for five minutes longer.
    const end = inSeconds(10);
    const roles = ["Azure Service Bus Data Owner"];
    const inAnHour = { exp: inSeconds(3_600), asks: Date.now() + 3_600_000 };
    let next = { exp: end - 300, asks: end * 1_000 - 1_500 };
    let given = 0;
    const credential = {
      async getToken() {
        given += 1;
        const { exp, asks } = next;
        return { token: await token({ roles, exp }), expiresOnTimestamp: asks + 120_000 };
      },
    };
    await withCredential(credential, async (other) => {
      const sender = other.createSender("s270c");
      const seen = listen(other, "s270c");
      await sender.sendMessages({ body: 1 });
      await until(() => seen.bodies.length === 1);
      const before = given;
      next = inAnHour;
      // One for each link.
      await until(() => given === before + 2);
      // From now on a new link of this client would be refused: what goes on working was never closed.
      next = { ...inAnHour, exp: inSeconds(-3_600) };
      await until(() => inSeconds(0) > end + 2);
      await sender.sendMessages({ body: 2 });
      await until(() => seen.bodies.length === 2);
      assert.deepEqual(seen, { bodies: [1, 2], errors: [] });
      await denied(other, "s270c");
    });
    // Without a fresh one the links end.
    await withCredential(identity("Owner", { exp: inSeconds(-292) }), async (other) => {
      const seen = listen(other, "s270c");
      await until(() => seen.errors.length > 0);
      assert.equal(seen.errors[0].code, UNAUTHORIZED);
    });
  });

  scenario("S287 administration needs the right to manage", async (client, admin) => {
    const speaker = rule("speaker", "Send", "Listen");
    await admin.createQueue("s287", { authorizationRules: [speaker] });
    const refused = /SubCode=401/;
    // A key that lacks the right is told which claims reading needs, in the service's words. A queue's key is good for
    // the queue only.
    const lacks = /^Manage,EntityRead claims required/;
    for (const [key, ofQueue, ofNamespace] of [
      [{ ...ROOT, key: "wrong" }, refused, refused], [{ ...ROOT, name: "no-such-name" }, refused, refused],
      [keyOf(speaker), lacks, refused], [LISTENER, lacks, lacks], [SPEAKER, lacks, lacks],
    ]) {
      const other = administrator(key);
      for (const [ask, words] of [
        [() => other.createQueue("s287b"), refused], [() => other.deleteQueue("s287"), refused],
        [() => other.createTopic("s287c"), refused], [() => other.getQueue("s287"), ofQueue],
        [() => other.getQueueRuntimeProperties("s287"), ofQueue], [() => other.listQueues().next(), ofNamespace],
        [() => other.getNamespaceProperties(), ofNamespace],
      ]) {
        await fails(ask(), UNAUTHORIZED_REQUEST, words);
      }
    }
    assert.equal((await admin.getQueue("s287")).name, "s287");
    assert.equal(await admin.queueExists("s287b"), false);
    assert.equal(await admin.topicExists("s287c"), false);
  });

  scenario("S287 the manager of a queue administers it, and nothing else", async (client, admin) => {
    const manager = rule("manager", "Manage", "Send", "Listen");
    const queue = await admin.createQueue("s287d", { authorizationRules: [manager] });
    await admin.createQueue("s287e");
    const own = administrator(keyOf(manager));
    assert.equal((await own.getQueue("s287d")).name, "s287d");
    await own.updateQueue({ ...queue, maxDeliveryCount: 3 });
    await fails(own.getQueue("s287e"), UNAUTHORIZED_REQUEST);
    await fails(own.deleteQueue("s287e"), UNAUTHORIZED_REQUEST);
    assert.equal((await admin.getQueue("s287d")).maxDeliveryCount, 3);
    assert.equal(await admin.queueExists("s287e"), true);
    await own.deleteQueue("s287d");
    assert.equal(await admin.queueExists("s287d"), false);
  });
});
