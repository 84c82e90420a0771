// Keys and certificates in SASL, and who has proved nothing.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import net from "node:net";
import tls from "node:tls";
import {
  DEADLINE, accept, bodies, close, commit, connect, declare, event, openCoordinator, openReceiver, openSender, receive,
  receiveAvailable, receiveOne, send, sendAccepted, sendIn, settle, topic, types,
} from "../harness.js";
import {
  ADDRESS, AMQPS_PORT, KEYS, OTHER_KEY, ROOT, SECOND_KEY, UNAUTHORIZED, connectByWebSocket, connectNameless, connectTo, denied,
  secured, inSeconds, openTokens, plain, putToken, roundTrip, saying, signed, trusting,
} from "../endpoints.js";

const EXTERNAL = { sasl_mechanisms: saying("EXTERNAL", "") };

const SASL_FAILED = { condition: "amqp:unauthorized-access" };

const SASL_HEADER = Buffer.from("AMQP\x03\x01\x00\x00");
/** rhea has no option for the address that it comes from. */
function comingFrom(localAddress) {
  return { connect: (port, host, _, then) => net.connect({ port, host, localAddress }, then) };
}

/** The frame by which SASL fails: code 1, auth. */
const OUTCOME_AUTH = saslFrame(types.wrap_described(types.wrap_list([types.wrap_ubyte(1), null]), 0x44));

function saslFrame(performative) {
  const writer = new types.Writer();
  writer.write(performative);
  const body = writer.toBuffer();
  const head = Buffer.from([0, 0, 0, 0, 2, 1, 0, 0]);
  head.writeUInt32BE(head.length + body.length);
  return Buffer.concat([head, body]);
}

topic("keys", (scenario) => {
  scenario("S264 a wrong key and an unknown name give nothing", async (connection) => {
    const put = await openTokens(connection);
    const audience = "sb://localhost/s264";
    for (const token of [signed(audience, ROOT, "wrong"), signed(audience, "no-such-name", KEYS[ROOT])]) {
      const { status, description } = await put(audience, token);
      assert.deepEqual([status, description.split(":")[0]], [401, "InvalidSignature"]);
      await denied(connection, "s264");
    }
    assert.equal((await put(audience, signed(audience, ROOT))).status, 202);
    await roundTrip(connection, "s264");
  });

  scenario("S269 the emulator's key is a key like any other", async (connection) => {
    const put = await openTokens(connection);
    const audience = "sb://localhost/s269";
    assert.equal((await put(audience, signed(audience, ROOT, "SAS_KEY_VALUE"))).status, 401);
    await denied(connection, "s269");
    await assert.rejects(connectTo(secured, ROOT, "SAS_KEY_VALUE"), SASL_FAILED);
  });

  scenario("S291 a key in PLAIN does what its rule says, and a wrong one does not connect", async () => {
    const root = await connectTo(secured, ROOT);
    await roundTrip(root, "s291b");
    const [listener, speaker] = [await connectTo(secured, "listener"), await connectTo(secured, "speaker")];
    const second = await connectTo(secured, "speaker", SECOND_KEY);
    for (const [number, connection] of [speaker, second].entries()) {
      await sendAccepted(await openSender(connection, "s291"), { body: number });
      await assert.rejects(openReceiver(connection, "s291"), UNAUTHORIZED);
    }
    await assert.rejects(openSender(listener, "s291"), UNAUTHORIZED);
    await accept(...await receive(await openReceiver(listener, "s291"), 2));
    for (const each of [root, listener, speaker, second]) await close(each);
    // Whom one speaks for may be said too, as RFC 4616 has it.
    const spoken = await connect({ port: secured.amqp, sasl_mechanisms: saying("PLAIN", `${ROOT}\0${ROOT}\0${KEYS[ROOT]}`) });
    await roundTrip(spoken, "s291");
    await close(spoken);
    const wrong = [
      [ROOT, "wrong"], [ROOT, KEYS.listener], [ROOT, ""], ["no-such-name", KEYS[ROOT]], ["", KEYS[ROOT]], ["", ""],
      [ROOT.toUpperCase(), KEYS[ROOT]], [ROOT, KEYS[ROOT].slice(0, -1)], [ROOT, `${KEYS[ROOT]} `],
    ];
    for (const [name, key] of wrong) await assert.rejects(connectTo(secured, name, key), SASL_FAILED, `${name} ${key}`);
  });

  scenario("S291 an entity's key is good there and below, and nowhere else", async () => {
    const own = await connectTo(secured, "own", "a key of s291");
    await roundTrip(own, "s291");
    await openReceiver(own, "s291/$DeadLetterQueue");
    await denied(own, "s291b");
    // Nor does it tell what is there.
    await denied(own, "no-such-queue");
    await denied(own, "s291c");
    await close(own);
    // The same name, another queue, another key.
    const other = await connectTo(secured, "own", "a key of s291b");
    await openReceiver(other, "s291b");
    await assert.rejects(openSender(other, "s291b"), UNAUTHORIZED);
    await denied(other, "s291");
    await close(other);
    const topics = await connectTo(secured, "topic's", "a key of s291t");
    await roundTrip(topics, "s291t", "s291t/Subscriptions/all");
    await denied(topics, "s291");
    await close(topics);
  });

  scenario("S292 a certificate in EXTERNAL is the rule of its name", async () => {
    const certificateOf = async (name) => ({
      ...await trusting(secured, { port: secured.amqp, ...EXTERNAL }),
      key: await readFile(secured.file(`${name}.key`)), cert: await readFile(secured.file(`${name}.pem`)),
    });
    const certified = async (name, more = {}) => connect({ ...await certificateOf(name), ...more });
    const root = await connectTo(secured, ROOT);
    await sendAccepted(await openSender(root, "s292"), { body: 1 }, { body: 2 });
    for (const endpoint of [{}, { host: ADDRESS, port: AMQPS_PORT }]) {
      const listener = await certified("listener", endpoint);
      await accept(await receiveOne(await openReceiver(listener, "s292")));
      await assert.rejects(openSender(listener, "s292"), UNAUTHORIZED);
      await close(listener);
    }
    // By WebSocket too.
    const address = `wss://localhost:${secured.http}/$servicebus/websocket`;
    const { key, cert, ca } = await certificateOf("listener");
    const { connection } = await connectByWebSocket(address, ["amqp"], { key, cert, ca }, EXTERNAL);
    await assert.rejects(openSender(connection, "s292"), UNAUTHORIZED);
    await openReceiver(connection, "s292");
    await close(connection);
    await close(root);
    // A certificate that is in order, of which no rule knows.
    await assert.rejects(certified("nobody"), SASL_FAILED);
    // Without a certificate it is not offered, and not taken.
    const bare = await trusting(secured, { port: secured.amqp, ...EXTERNAL });
    await assert.rejects(connect(bare), { message: /No suitable mechanism; server supports MSSBCBS,PLAIN,ANONYMOUS$/ });
    const socket = tls.connect(bare);
    const init = types.wrap_described(types.wrap_list([types.wrap_symbol("EXTERNAL"), types.wrap_binary(Buffer.alloc(0))]), 0x41);
    const began = Date.now();
    socket.write(Buffer.concat([SASL_HEADER, saslFrame(init)]));
    const answer = Buffer.concat(await socket.toArray());
    assert.equal(answer.subarray(-OUTCOME_AUTH.length).toString("hex"), OUTCOME_AUTH.toString("hex"));
    // The broker ends it, and does not wait until we do.
    assert.ok(Date.now() - began < 4_000, `${Date.now() - began} ms`);
  });

  scenario("S293 who has no token sees $cbs and nothing else", async (connection) => {
    for (const node of ["s293", "s293/$DeadLetterQueue", "s293/$management", "$management", "no-such-queue"]) {
      await denied(connection, node);
    }
    // .NET declares a transaction before it puts a token. What belongs to it needs the right.
    const coordinator = await openCoordinator(connection);
    const transaction = await declare(coordinator);
    const put = await openTokens(connection);
    const audience = "sb://localhost/s293";
    assert.equal((await put(audience, signed(audience, ROOT))).status, 202);
    await roundTrip(connection, "s293");
    const [sender, receiver] = [await openSender(connection, "s293"), await openReceiver(connection, "s293")];
    assert.deepEqual(await sendIn(transaction, sender, { body: "in it" }), { name: "accepted", transaction });
    assert.deepEqual(await commit(coordinator, transaction), { name: "accepted" });
    const received = await receiveOne(receiver);
    assert.deepEqual(bodies([received]), ["in it"]);
    await accept(received);
    // One who is known has no second way to it either.
    await assert.rejects(openSender(connection, "$cbs"), { condition: "amqp:not-allowed" });
  });

  scenario("S293 what is too large for a token does not come in", async () => {
    const connection = await connectNameless(secured);
    const put = await openTokens(connection);
    const request = { message_id: "large", application_properties: { operation: "put-token" }, body: "x".repeat(100 * 1024) };
    const ended = event(connection, "connection_error");
    put.request.sender.send(request);
    const context = await ended;
    assert.equal(context.connection.error.condition, "amqp:connection:framing-error");
    // A request as large as one may be.
    const another = await connectNameless(secured);
    const ask = await openTokens(another);
    assert.equal((await ask("sb://localhost/s293", "x".repeat(27 * 1024))).status, 401);
    await close(another);
  });

  scenario("S293 who has no token has a bounded number of sessions", async () => {
    const many = async (connection) => {
      const sessions = Array.from({ length: 200 }, () => connection.create_session());
      for (const session of sessions) session.open();
      const opened = Promise.all(sessions.map((session) => event(session, "session_open")));
      const ended = event(connection, "connection_error").then((context) => { throw context.connection.error; });
      ended.catch(() => {});
      opened.catch(() => {});
      await Promise.race([opened, ended]);
    };
    const known = await connectTo(secured, "speaker");
    await many(known);
    await close(known);
    await assert.rejects(many(await connectNameless(secured)), { condition: "amqp:not-allowed", description: /64 sessions/ });
  });

  scenario("S293 who has no token after twenty seconds is shown out", async () => {
    const began = Date.now();
    const shownOut = async (ended) => {
      await ended;
      const waited = Date.now() - began;
      assert.ok(waited > 18_000 && waited < 25_000, `after ${waited} ms`);
    };
    const trusted = await trusting(secured, { port: secured.amqp });
    const nameless = await connectNameless(secured);
    const refused = await connectNameless(secured);
    const address = `wss://localhost:${secured.http}/$servicebus/websocket`;
    const { connection: webbed } = await connectByWebSocket(address, ["AMQPWSB10"], { ca: trusted.ca });
    const put = await openTokens(refused);
    assert.equal((await put("sb://localhost/s293", "no token")).status, 401);
    const [welcome, known] = [await connectNameless(secured), await connectTo(secured, "speaker")];
    await putToken(welcome, "sb://localhost/s293", "speaker");
    const silent = net.connect(secured.amqp, "localhost").resume();
    const encrypted = tls.connect(trusted).resume();
    const halfway = net.connect(secured.amqp, "localhost").resume();
    halfway.write(SASL_HEADER);
    for (const socket of [silent, encrypted, halfway]) socket.on("error", () => {});
    await Promise.all([
      ...[nameless, refused, webbed].map((each) => shownOut(event(each, "connection_error", () => true, 30_000))),
      ...[silent, encrypted, halfway].map((each) => shownOut(event(each, "close", () => true, 30_000))),
    ]);
    for (const each of [nameless, refused, webbed]) {
      const { condition, description } = each.error;
      assert.equal(condition, "amqp:connection:forced");
      assert.match(description, /no accepted token for 20 seconds/);
    }
    for (const each of [welcome, known]) {
      await sendAccepted(await openSender(each, "s293"), { body: "still here" });
      await close(each);
    }
  });

  scenario("S297 who guesses too often waits, and nobody else does", async (connection) => {
    const audience = "sb://localhost/s297";
    const from = comingFrom("127.0.0.97");
    const guesser = await connectNameless(secured, from);
    const put = await openTokens(guesser);
    const answers = new Set();
    // Guesses until no more are looked at, and tells how many it took.
    const untilBusy = async () => {
      for (let guesses = 0; ; guesses += 1) {
        assert.ok(guesses < 2_000, "the guesses are not counted");
        const { status, description } = await put(audience, signed(audience, ROOT, `guess ${guesses}`));
        answers.add(`${status} ${description.split(":")[0]}`);
        if (status === 503) return guesses;
      }
    };
    const guesses = await untilBusy();
    assert.ok(guesses >= 100, `${guesses} guesses`);
    assert.deepEqual([...answers], ["401 InvalidSignature", "503 ServerBusy"]);
    // The right key comes in meanwhile, by whichever way: who guesses at a name keeps its owner from nothing.
    assert.equal((await put(audience, signed(audience, ROOT))).status, 202);
    await untilBusy();
    await close(await connectTo(secured, ROOT, KEYS[ROOT], from));
    // Another name is no guess.
    assert.equal((await put(audience, signed(audience, "speaker"))).status, 202);
    await putToken(connection, audience, ROOT);
    await roundTrip(connection, "s297");
    // It is forgotten in time.
    const until = Date.now() + DEADLINE;
    while ((await put(audience, signed(audience, ROOT))).status !== 202) assert.ok(Date.now() < until, "still busy");
    await roundTrip(guesser, "s297");
    await close(guesser);
  });

  scenario("S297 a token that was good is no guess, however often it comes", async (connection) => {
    const other = await connectNameless(secured, comingFrom("127.0.0.98"));
    const put = await openTokens(other);
    const audience = "sb://localhost/s297";
    const over = signed(audience, ROOT, KEYS[ROOT], { expiry: inSeconds(-1) });
    const elsewhere = signed("sb://localhost/s293", ROOT);
    for (let count = 0; count < 100; count += 1) {
      assert.equal((await put(audience, over)).description.split(":")[0], "ExpiredToken");
      assert.equal((await put(audience, elsewhere)).description.split(":")[0], "InvalidAudience");
    }
    assert.equal((await put(audience, signed(audience, ROOT))).status, 202);
    await close(other);
    await putToken(connection, audience, ROOT);
  });

  scenario("S299 a key is good in its namespace only", async (connection) => {
    const elsewhere = { hostname: "elsewhere.localhost" };
    const audience = "sb://elsewhere.localhost/s299";
    const stranger = await connectNameless(secured, elsewhere);
    const put = await openTokens(stranger);
    assert.equal((await put(audience, signed(audience, ROOT))).status, 401);
    assert.equal((await put(audience, signed(audience, "speaker"))).status, 401);
    assert.equal((await put(audience, signed(audience, ROOT, OTHER_KEY))).status, 202);
    await sendAccepted(await openSender(stranger, "s299"), { body: "elsewhere" });

    const here = await openTokens(connection);
    // The host in the token is not what tells the namespace.
    assert.equal((await here(audience, signed(audience, ROOT, OTHER_KEY))).status, 401);
    assert.equal((await here(audience, signed(audience, ROOT))).status, 202);
    assert.deepEqual(bodies(await receiveAvailable(await openReceiver(connection, "s299"))), []);

    for (const [key, options] of [[KEYS[ROOT], elsewhere], [OTHER_KEY, {}]]) {
      const misplaced = await connectTo(secured, ROOT, key, options);
      await denied(misplaced, "s299");
      await close(misplaced);
    }
    // TLS names the server too.
    const named = await trusting(secured, { port: secured.amqp, servername: "elsewhere.localhost", ...plain(ROOT, OTHER_KEY) });
    for (const other of [await connectTo(secured, ROOT, OTHER_KEY, elsewhere), await connect(named)]) {
      const received = await receiveOne(await openReceiver(other, "s299"));
      assert.equal(received.message.body, "elsewhere");
      assert.deepEqual(await settle(received, "released"), { name: "released" });
      await close(other);
    }
    await close(stranger);
  });
}, secured);
