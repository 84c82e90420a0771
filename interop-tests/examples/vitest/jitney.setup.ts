// One Jitney for a test run: `globalSetup` of vitest.config.ts. Copy this file, jitney.ts and Config.json.
//
// JITNEY_BINARY names the program; without it, `jitney` is looked for in PATH.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    jitney: { connectionString: string; config: string };
  }
}

const SECONDS = 30;

export default async function setup(project: TestProject) {
  // Every namespace has the entities of this file.
  const config = readFileSync(new URL("Config.json", import.meta.url), "utf8");
  const ports = ["--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"];
  // The broker stops when its input is closed, which the system does when this process ends, however it ends.
  const options = ["--ephemeral", "--config-json", config, ...ports, "--stop-on-stdin-close"];
  const program = process.env.JITNEY_BINARY ?? "jitney";
  const broker = spawn(program, ["serve", ...options], { stdio: ["pipe", "ignore", "pipe"] });
  const timer = setTimeout(() => broker.kill("SIGKILL"), SECONDS * 1000);
  const connectionString = await new Promise<string>((resolve, reject) => {
    let log = "";
    broker.on("error", (error) => {
      reject(new Error(`There is no program jitney in PATH, nor where JITNEY_BINARY says: ${error.message}`));
    });
    broker.on("close", () => reject(new Error(`The broker has not started:\n${log}`)));
    broker.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      const found = /Endpoint=sb:\/\/localhost:\d+;[^\s"]+(?=[\s"])/.exec(log);
      if (found) resolve(found[0]);
    });
  }).finally(() => clearTimeout(timer));
  // The rest of the log is read, so that the broker never waits for that.
  broker.stderr.removeAllListeners("data").resume();
  project.provide("jitney", { connectionString, config });
  return async () => {
    const ended = once(broker, "close");
    broker.stdin.end();
    await ended;
  };
}
