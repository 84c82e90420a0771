// The fault proxy between a client and the broker (../fault_proxy.py), as a child process.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Starts one of its own for a scenario, and ends it after. It is told what to do by `tell`, and answers how many it met. */
export async function withFaultProxy(use) {
  const [python = "python3"] = process.env.JITNEY_BROKER_CONTROL?.split(" ") ?? [];
  const program = fileURLToPath(new URL("../fault_proxy.py", import.meta.url));
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
