// Servers that share namespaces, for tests of the page about them: fleet.py as a process.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));

/** Starts so many servers; returns their addresses, and functions that kill, start and end them. */
export async function startFleet(count) {
  const parent = process.env.JITNEY_WORK ?? tmpdir();
  const directory = await mkdtemp(join(parent, "fleet-"));
  const child = spawn(join(HERE, "../../.venv/bin/python"), [join(HERE, "fleet.py"), directory, String(count)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  // It may have ended before it is told to.
  const ended = new Promise((done) => child.once("exit", done));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error("fleet.py has ended: see above");
    return JSON.parse(value);
  };
  const { servers, namespaces } = await next();
  const command = async (...words) => {
    child.stdin.write(`${JSON.stringify(words)}\n`);
    await next();
  };
  return {
    servers,
    namespaces,
    kill: (server) => command("kill", server),
    start: (server) => command("start", server),
    query: (sql) => command("query", sql),
    end: () => {
      child.stdin.end();
      return ended;
    },
  };
}
