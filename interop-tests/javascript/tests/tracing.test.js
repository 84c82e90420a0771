// The SDK's own tracing, in a process of its own (traced.cjs): what traces must be there before the SDK is.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connectionString, peekAll, topic } from "../harness.js";

topic("tracing", (scenario) => {
  scenario("S325 a trace goes with its messages, and the receiver's spans are linked to the sender's", async (client) => {
    const program = fileURLToPath(new URL("../traced.cjs", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program, connectionString, "s325"]);
    const { messages, spans } = JSON.parse(stdout);
    const outer = spans.find(({ name }) => name === "outer");
    const named = (name) => spans.filter((span) => span.name === name);
    const sent = named("message");
    assert.deepEqual(messages.map(({ body }) => body), ["single", "batched"]);
    assert.deepEqual(sent.map(({ trace, parent }) => [trace, parent]), Array(2).fill([outer.trace, outer.id]));
    const ids = messages.map(({ applicationProperties }) => applicationProperties["Diagnostic-Id"]);
    assert.deepEqual(ids, sent.map(({ id }) => `00-${outer.trace}-${id}-01`));
    for (const name of ["ServiceBusSender.send", "StreamReceiver.process", "ServicebusReceiver.complete"]) {
      const found = named(name);
      assert.deepEqual(found.map(({ trace, links }) => [trace, ...links]), sent.map(({ id }) => [outer.trace, id]), name);
    }
    assert.deepEqual(await peekAll(client.createReceiver("s325")), []);
  });
});
