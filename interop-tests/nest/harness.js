// What every test needs: a program of its own, looked at from outside with the SDK and by HTTP.

const assert = require("node:assert/strict");
const { spawn, execFile } = require("node:child_process");
const { once } = require("node:events");
const path = require("node:path");
const readline = require("node:readline");
const { setTimeout: pause } = require("node:timers/promises");
const { promisify } = require("node:util");
const Long = require("long");
const { ServiceBusClient } = require("@azure/service-bus");

/** How long an expected message may take, milliseconds. */
const DEADLINE = 20_000;
/** How long a program may take to be loaded. */
const OPENING = 60_000;

const client = new ServiceBusClient(process.env.JITNEY_CONNECTION_STRING, {
  retryOptions: { maxRetries: 3, retryDelayInMs: 200, timeoutInMs: DEADLINE },
});

/** Starts a program of target/, and waits until it says that it is open: where, and a way to end it. */
async function start(name) {
  const program = spawn(process.execPath, [path.join(__dirname, "target", `${name}.js`)], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(program, "exit");
  const lines = readline.createInterface({ input: program.stdout });
  const late = pause(OPENING, undefined, { ref: false });
  const [line] = await Promise.race([
    once(lines, "line"),
    ended.then(([code]) => { throw new Error(`${name} ended with ${code}`); }),
    late.then(() => { throw new Error(`${name} does not open`); }),
  ]).catch((error) => {
    program.kill("SIGKILL");
    throw error;
  });
  lines.on("line", (more) => process.stdout.write(`${more}\n`));
  const match = /^open(?: at (\S+))?$/.exec(line);
  assert.ok(match, line);
  return {
    url: match[1],
    /** What a failed test left must not keep the process. */
    kill() {
      program.kill("SIGKILL");
    },
    /** Ends it as a supervisor does; fails when it does not end well. */
    async stop() {
      program.kill("SIGTERM");
      const late = pause(DEADLINE, "late", { ref: false });
      if (await Promise.race([ended, late]) === "late") {
        program.kill("SIGKILL");
        assert.fail(`${name} did not end`);
      }
      const [code, signal] = await ended;
      assert.ok(code === 0 || signal === "SIGTERM", `${name} ended with ${code ?? signal}`);
    },
  };
}

async function post(url, body) {
  const answer = await fetch(url, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${url}: ${answer.status}`);
  const text = await answer.text();
  return text && JSON.parse(text);
}

async function send(target, ...messages) {
  const sender = client.createSender(target);
  await sender.sendMessages(messages);
  await sender.close();
}

/** Takes exactly `count` messages from a queue, for good. */
async function take(queue, count, options = {}) {
  const receiver = client.createReceiver(queue, { receiveMode: "receiveAndDelete", ...options });
  const end = Date.now() + DEADLINE;
  const messages = [];
  while (messages.length < count) {
    const remaining = end - Date.now();
    assert.ok(remaining > 0, `${messages.length} of ${count} messages within ${DEADLINE} ms`);
    messages.push(...(await receiver.receiveMessages(count - messages.length, { maxWaitTimeInMs: remaining })));
  }
  await receiver.close();
  return messages;
}

/** Asks again and again, until the answer is one. */
async function until(ask) {
  const end = Date.now() + DEADLINE;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    assert.ok(Date.now() < end, `no answer within ${DEADLINE} ms`);
    await pause(50);
  }
}

/** Waits until nothing is there that could be peeked: neither active nor locked, deferred or scheduled. */
async function emptied(...source) {
  const receiver = client.createReceiver(...source);
  await until(async () => (await receiver.peekMessages(1, { fromSequenceNumber: Long.ZERO })).length === 0);
  await receiver.close();
}

/** Has the runner's command `kill` or `start` the broker. */
async function broker(verb) {
  const [program, ...words] = process.env.JITNEY_BROKER_CONTROL.split(" ");
  await promisify(execFile)(program, [...words, verb]);
}

/** A message whose body is a text, as AMQP's value. */
function text(body, messageId) {
  return { body, bodyType: "value", properties: { messageId } };
}

function bodies(messages) {
  return messages.map(({ body }) => body);
}

/** Checks that these are the same, in whichever order. */
function same(found, wanted) {
  const sorted = (all) => all.map((each) => JSON.stringify(each)).sort();
  assert.deepEqual(sorted(found), sorted(wanted));
}

module.exports = { DEADLINE, bodies, broker, client, emptied, post, same, send, start, take, text, until };
