// The broker is stopped in good order, for which these scenarios have a file of their own.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { goesOn, inUse, topic } from "../harness.js";

const control = process.env.JITNEY_BROKER_CONTROL?.split(" ");
const skip = control === undefined ? "JITNEY_BROKER_CONTROL is not set" : false;

topic("restarts in order", (scenario) => {
  scenario("S308 the same objects go on after the broker was stopped in good order", async (client) => {
    const used = await inUse(client, "s308");
    const [program, ...words] = control;
    // `stop` fails when the exit code is not 0.
    for (const verb of ["stop", "start"]) await promisify(execFile)(program, [...words, verb]);
    await goesOn(used);
  }, { skip });
});
