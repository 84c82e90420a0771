// The child that stands between a client and the broker (../between.py), and does to the client what networks and the service do.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Starts one of its own for a scenario, and ends it after. It is told what to do by `tell`, and answers how many it met. */
export async function withBetween(use) {
  const [python = "python3"] = process.env.JITNEY_BROKER_CONTROL?.split(" ") ?? [];
  const program = fileURLToPath(new URL("../between.py", import.meta.url));
  const child = spawn(python, [program], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    const { value: port } = await lines.next();
    const tell = async (words) => {
      child.stdin.write(`${words}\n`);
      const { value } = await lines.next();
      return Number(value);
    };
    return await use({ port: Number(port), tell });
  } finally {
    const ended = once(child, "exit");
    child.stdin.end();
    await ended;
  }
}
