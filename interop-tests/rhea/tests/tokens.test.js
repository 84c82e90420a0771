// Tokens on $cbs, written by hand: those that are good, those that are not, and those that end.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import {
  accept, close, closeLink, ended, openManagement, openReceiver, openSender, range, receiveOne, sendAccepted, topic,
} from "../harness.js";
import {
  KEYS, ROOT, UNAUTHORIZED, connectNameless, connectTo, denied, secured, inSeconds, openTokens, putToken, roundTrip, signed,
  tokenFields, written,
} from "../endpoints.js";

const SERVICE = "sb://localhost";
const AUDIENCE = `${SERVICE}/s294`;

function lowerHex(text) {
  return encodeURIComponent(text).toLowerCase();
}

/** What each is, the token, and the word with which the refusal begins. */
function broken() {
  const good = () => tokenFields(AUDIENCE, ROOT);
  const changed = (changes) => written(Object.entries({ ...good(), ...changes }));
  const cases = [];
  for (const name of ["sr", "sig", "se", "skn"]) {
    const fields = Object.entries(good());
    cases.push([`${name} is missing`, written(fields.filter(([each]) => each !== name)), "MalformedToken"]);
    cases.push([`${name} is empty`, changed({ [name]: "" }), "MalformedToken"]);
    const [again] = fields.filter(([each]) => each === name);
    cases.push([`${name} stands twice`, written([...fields, again]), "MalformedToken"]);
  }
  const sign = (text, key = KEYS[ROOT]) => createHmac("sha256", key).update(text);
  const { sr, sig, se } = good();
  const past = { expiry: inSeconds(-1) };
  return [
    ...cases,
    ["there is nothing", "", "MalformedToken"],
    ["there is the scheme only", "SharedAccessSignature ", "MalformedToken"],
    ["there is no scheme", written(Object.entries(good())).split(" ")[1], "MalformedToken"],
    ["it is another scheme", written(Object.entries(good())).replace("Signature", "Key"), "MalformedToken"],
    ["it is a JWT of nobody", "eyJhbGciOiJub25lIn0.eyJhdWQiOiJzIn0.", "InvalidSignature"],
    ["it is too long", changed({ other: "x".repeat(16 * 1024) }), "MalformedToken"],
    ["the key is another", signed(AUDIENCE, ROOT, "wrong"), "InvalidSignature"],
    ["the key is another rule's", signed(AUDIENCE, ROOT, KEYS.listener), "InvalidSignature"],
    ["the key is decoded", signed(AUDIENCE, ROOT, Buffer.from(KEYS[ROOT], "base64")), "InvalidSignature"],
    ["there is no rule of the name", signed(AUDIENCE, "no-such-name", KEYS[ROOT]), "InvalidSignature"],
    ["the name is in another case", signed(AUDIENCE, ROOT.toLowerCase(), KEYS[ROOT]), "InvalidSignature"],
    ["the signature is of the decoded resource", changed({
      sig: encodeURIComponent(sign(`${AUDIENCE}\n${se}`).digest("base64")),
    }), "InvalidSignature"],
    ["the signature is of the resource alone", changed({
      sig: encodeURIComponent(sign(sr).digest("base64")),
    }), "InvalidSignature"],
    ["the signature is hexadecimal", changed({ sig: sign(`${sr}\n${se}`).digest("hex") }), "InvalidSignature"],
    ["the signature is cut", changed({ sig: sig.slice(0, 20) }), "InvalidSignature"],
    ["the signature is of the same letters in another case", changed({ sig: sig.toLowerCase() }), "InvalidSignature"],
    ["the signature is no base64", changed({ sig: "%2b%2b%2b" }), "InvalidSignature"],
    ["the resource was changed", changed({ sr: encodeURIComponent(SERVICE) }), "InvalidSignature"],
    ["the resource is encoded in another way than signed", changed({ sr: sr.toLowerCase() }), "InvalidSignature"],
    ["the expiry was changed", changed({ se: `1${se}` }), "InvalidSignature"],
    ["the name was changed", changed({ skn: "listener" }), "InvalidSignature"],
    ["the expiry is a word", signed(AUDIENCE, ROOT, KEYS[ROOT], { expiry: "tomorrow" }), "MalformedToken"],
    ["the expiry is no whole number", signed(AUDIENCE, ROOT, KEYS[ROOT], { expiry: `${se}.5` }), "MalformedToken"],
    ["the expiry is beyond 64 bits", signed(AUDIENCE, ROOT, KEYS[ROOT], { expiry: "9".repeat(30) }), "MalformedToken"],
    ["its time is over", signed(AUDIENCE, ROOT, KEYS[ROOT], past), "ExpiredToken"],
    ["its time was over in 1969", signed(AUDIENCE, ROOT, KEYS[ROOT], { expiry: -1 }), "ExpiredToken"],
    ["it is for another queue", signed(`${SERVICE}/s294b`, ROOT), "InvalidAudience"],
    ["it is for a queue whose name is a part of this one's", signed(`${SERVICE}/s29`, ROOT), "InvalidAudience"],
    ["it is for a queue below", signed(`${SERVICE}/s294/below`, ROOT), "InvalidAudience"],
  ];
}

/** What each is, and a token for s294 that is good. */
function good() {
  const encoded = (encode) => signed(AUDIENCE, ROOT, KEYS[ROOT], { encode });
  const fields = Object.entries(tokenFields(AUDIENCE, ROOT));
  const strange = "Root Key/x";
  const named = (skn) => written(Object.entries({ ...tokenFields(AUDIENCE, strange), skn }));
  return [
    ["as JavaScript writes it", signed(AUDIENCE, ROOT)],
    ["lower-case hexadecimals", encoded(lowerHex)],
    ["not encoded at all", encoded((text) => text)],
    ["everything encoded", encoded((text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join(""))],
    ["the scheme in lower case", signed(AUDIENCE, ROOT).replace("SharedAccessSignature", "sharedaccesssignature")],
    ["the scheme in upper case", signed(AUDIENCE, ROOT).replace("SharedAccessSignature", "SHAREDACCESSSIGNATURE")],
    ["fields in another order", written(fields.toReversed())],
    ["a field that nobody knows", written([["other", "1"], ...fields])],
    ["a name that is encoded once", named("Root%20Key%2Fx")],
    ["a name with a plus for its blank", named("Root+Key%2Fx")],
    ["a name that is encoded twice", named("Root%2BKey%252Fx")],
    ["a name that is not encoded", named(strange)],
    ["a slash at the end", signed(`${AUDIENCE}/`, ROOT)],
    ["another case", signed(`${SERVICE}/S294`, ROOT)],
    ["another host, port and scheme", signed("amqps://elsewhere.example:5671/s294", ROOT)],
    ["a query", signed("https://localhost/s294?api-version=2021-05", ROOT)],
    ["the management node", signed(`${AUDIENCE}/$management`, ROOT)],
    ["the namespace", signed(`${SERVICE}/`, ROOT)],
    ["the namespace without a slash", signed(SERVICE, ROOT)],
    ["the host alone", signed("localhost", ROOT)],
    ["a time that is far away", signed(AUDIENCE, ROOT, KEYS[ROOT], { expiry: "9223372036854775807" })],
  ];
}

topic("tokens", (scenario) => {
  scenario("S265 a token is good for its resource and what is below", async (connection) => {
    const put = await openTokens(connection);
    const token = signed(`${SERVICE}/s265`, ROOT);
    for (const audience of ["/s265/$management", "/s265/$DeadLetterQueue", "/S265", "/s265"]) {
      assert.equal((await put(`${SERVICE}${audience}`, token)).status, 202, audience);
    }
    for (const audience of ["/s265b", "/", "", "/s2"]) {
      assert.equal((await put(`${SERVICE}${audience}`, token)).status, 401, audience);
    }
    await roundTrip(connection, "s265");
    await openManagement(connection, "s265");
    await denied(connection, "s265b");
    // What was asked for is what is given, though the token would give more.
    assert.equal((await put(`${SERVICE}/s265b`, signed(`${SERVICE}/`, ROOT))).status, 202);
    await roundTrip(connection, "s265b");
    await denied(connection, "s298");
  });

  for (const [what, token] of good()) {
    scenario(`S294 a token with ${what} is taken`, async (connection) => {
      const put = await openTokens(connection);
      const { status, description } = await put(AUDIENCE, token);
      assert.equal(status, 202, description);
      await closeLink(await openSender(connection, "s294"));
      await closeLink(await openReceiver(connection, "s294"));
    });
  }

  scenario("S294 no broken token is taken, or gives anything", async (connection) => {
    const put = await openTokens(connection);
    const found = [];
    const cases = broken();
    for (const [what, token] of cases) {
      const { status, condition, description } = await put(AUDIENCE, token);
      found.push([what, status, condition ?? null, description.split(":")[0]]);
      await assert.rejects(openSender(connection, "s294"), UNAUTHORIZED, what);
    }
    assert.deepEqual(found, cases.map(([what, , word]) => [what, 401, "amqp:unauthorized-access", word]));
  });

  scenario("S294 a refused token takes nothing away", async (connection) => {
    const put = await putToken(connection, AUDIENCE, ROOT);
    const sender = await openSender(connection, "s294");
    assert.equal((await put(AUDIENCE, "no token")).status, 401);
    await sendAccepted(sender, { body: 1 });
    await accept(await receiveOne(await openReceiver(connection, "s294")));
  });

  scenario("S294 a request to $cbs that is none is answered", async (connection) => {
    const put = await openTokens(connection);
    const token = signed(AUDIENCE, ROOT);
    assert.equal((await put(AUDIENCE, token, "some:other-token")).status, 401);
    // Python names its signatures so.
    assert.equal((await put(AUDIENCE, token, "jwt")).status, 202);
    const named = { type: "servicebus.windows.net:sastoken", name: AUDIENCE };
    for (const [operation, body, properties] of [
      ["put-token", token, { name: AUDIENCE }], ["put-token", { token }, named], ["no-such-operation", token, named],
    ]) {
      const { status, description } = await put.request(operation, body, { properties });
      assert.equal(status, 400, `${operation} ${JSON.stringify(properties)}`);
      assert.ok(description);
    }
    // Without an audience it is for everything, which this one is not.
    assert.equal((await put.request("put-token", token, { properties: { type: named.type } })).status, 401);
    await closeLink(await openSender(connection, "s294"));
  });

  scenario("S295 links end in the second in which their token does, and others stay", async (connection) => {
    const other = await connectNameless(secured);
    await putToken(other, `${SERVICE}/s295`, ROOT);
    const elsewhere = await openSender(other, "s295");
    const put = await putToken(connection, `${SERVICE}/s295b`, ROOT);
    const stays = await openSender(connection, "s295b");

    const expiry = inSeconds(4);
    const token = signed(`${SERVICE}/s295`, ROOT, KEYS[ROOT], { expiry });
    assert.equal((await put(`${SERVICE}/s295`, token)).status, 202);
    const request = await openManagement(connection, "s295");
    const links = [
      await openSender(connection, "s295"), await openReceiver(connection, "s295"),
      await openReceiver(connection, "s295/$DeadLetterQueue"), request.sender, request.receiver,
    ];
    // A receiver with credit, in the middle of something.
    links[1].add_credit(5);
    await sendAccepted(links[0], { body: 1 });
    const ends = await Promise.all(links.map(async (link) => ({ ...await ended(link), late: Date.now() - expiry * 1_000 })));
    for (const { condition, description, late } of ends) {
      assert.equal(condition, "amqp:unauthorized-access");
      assert.match(description, /^ExpiredToken: The token is expired. Expiration time: /);
      assert.ok(late >= 0 && late < 1_000, `${late} ms late`);
    }
    await denied(connection, "s295");
    for (const sender of [stays, elsewhere]) await sendAccepted(sender, { body: 2 });
    assert.equal((await put(`${SERVICE}/s295`, token)).status, 401);
    // A new one brings all of it back.
    assert.equal((await put(`${SERVICE}/s295`, signed(`${SERVICE}/s295`, ROOT))).status, 202);
    await sendAccepted(await openSender(connection, "s295"), { body: 3 });
    await close(other);
  });

  scenario("S295 a token that is renewed in time is no break", async (connection) => {
    const [queue, witness] = ["s295-1", "s295-2"];
    const put = await openTokens(connection);
    const expiry = inSeconds(4);
    const short = (name) => signed(`${SERVICE}/${name}`, ROOT, KEYS[ROOT], { expiry });
    for (const name of [queue, witness]) assert.equal((await put(`${SERVICE}/${name}`, short(name))).status, 202);
    const [sender, receiver] = [await openSender(connection, queue), await openReceiver(connection, queue)];
    const witnessed = ended(await openSender(connection, witness));
    assert.equal((await put(`${SERVICE}/${queue}`, signed(`${SERVICE}/${queue}`, ROOT))).status, 202);
    let sent = 0;
    let isOver = false;
    witnessed.then(() => { isOver = true; });
    for (; !isOver; sent += 1) {
      await sendAccepted(sender, { body: sent });
      const received = await receiveOne(receiver);
      assert.equal(received.message.body, sent);
      await accept(received);
    }
    assert.ok(sent > 10, `${sent} messages`);
    await sendAccepted(sender, { body: "after" });
    await accept(await receiveOne(receiver));
  });

  scenario("S295 of two tokens for one audience the later one counts", async (connection) => {
    const audience = `${SERVICE}/s295-3`;
    const put = await putToken(connection, audience, ROOT);
    const sender = await openSender(connection, "s295-3");
    const expiry = inSeconds(3);
    assert.equal((await put(audience, signed(audience, ROOT, KEYS[ROOT], { expiry }))).status, 202);
    await sendAccepted(sender, { body: 1 });
    assert.equal((await ended(sender)).condition, "amqp:unauthorized-access");
    assert.ok(Date.now() >= expiry * 1_000);
    await denied(connection, "s295-3");
  });

  scenario("S295 a token of the namespace carries on where that of a queue ends", async (connection) => {
    const put = await putToken(connection, `${SERVICE}/`, ROOT);
    const expiry = inSeconds(3);
    for (const name of ["s295-4", "s295-5"]) {
      assert.equal((await put(`${SERVICE}/${name}`, signed(`${SERVICE}/${name}`, ROOT, KEYS[ROOT], { expiry }))).status, 202);
    }
    const carried = await openSender(connection, "s295-4");
    const other = await connectNameless(secured);
    const putOther = await openTokens(other);
    assert.equal((await putOther(`${SERVICE}/s295-5`, signed(`${SERVICE}/s295-5`, ROOT, KEYS[ROOT], { expiry }))).status, 202);
    await ended(await openSender(other, "s295-5"));
    await sendAccepted(carried, { body: 1 });
    await close(other);
  });

  scenario("S295 a key in PLAIN has no end, whatever tokens come and go", async () => {
    const connection = await connectTo(secured, ROOT);
    const sender = await openSender(connection, "s295-6");
    const put = await openTokens(connection);
    const expiry = inSeconds(2);
    for (const audience of [`${SERVICE}/s295-6`, `${SERVICE}/`]) {
      assert.equal((await put(audience, signed(audience, "listener"))).status, 202);
      assert.equal((await put.away(audience)).status, 202);
      assert.equal((await put(audience, signed(audience, "listener", KEYS.listener, { expiry }))).status, 202);
    }
    // Elsewhere, a token of that time ends.
    const other = await connectNameless(secured);
    const audience = `${SERVICE}/s295-7`;
    assert.equal((await (await openTokens(other))(audience, signed(audience, ROOT, KEYS[ROOT], { expiry }))).status, 202);
    await ended(await openSender(other, "s295-7"));
    await sendAccepted(sender, { body: 1 });
    await sendAccepted(await openSender(connection, "s295-6"), { body: 2 });
    for (const each of [connection, other]) await close(each);
  });

  scenario("S298 a token that is taken back, or put with less, ends what needed it", async (connection) => {
    const put = await putToken(connection, `${SERVICE}/s298`, ROOT);
    const [sender, receiver] = [await openSender(connection, "s298"), await openReceiver(connection, "s298")];
    assert.equal((await put(`${SERVICE}/s298`, signed(`${SERVICE}/s298`, "listener"))).status, 202);
    assert.equal((await ended(sender)).condition, "amqp:unauthorized-access");
    const other = await openSender(await connectTo(secured, "speaker"), "s298");
    await sendAccepted(other, { body: 1 });
    await accept(await receiveOne(receiver));
    assert.equal((await put.away(`${SERVICE}/s298`)).status, 202);
    assert.equal((await ended(receiver)).condition, "amqp:unauthorized-access");
    await denied(connection, "s298");
    await close(other.connection);
  });

  scenario("S298 a token is its connection's own", async (connection) => {
    const put = await putToken(connection, `${SERVICE}/s298b`, ROOT);
    const other = await connectNameless(secured);
    await denied(other, "s298b");
    await openTokens(other);
    // Nor does it come from the dead.
    await put.away(`${SERVICE}/s298b`);
    await denied(connection, "s298b");
    await close(other);
  });
}, secured);
