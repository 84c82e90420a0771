// The secured broker (../secured.py): it verifies every key, signature and token, and listens where the SDK looks for the service, at
// ports 5671 and 443 of an address of its own.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Its address: the SDK adds the ports. */
export const HOST = process.env.JITNEY_SECURED_ADDRESS;

/** Keys of its namespace. */
export const ROOT = { name: "RootManageSharedAccessKey", key: "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==" };
export const LISTENER = { name: "listener", key: "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=" };
export const SPEAKER = { name: "speaker", key: "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE=" };

/** Expressions of the only rule in secured.json. */
export const LINES = { filter: "n = 1\n  AND\tm = 2", action: "SET a = 1;\nSET b = '<2>'" };

/** Why scenarios that need it are left out; false when the runner has started it. */
export const skip = HOST ? false : "JITNEY_SECURED_ADDRESS is not set";

/** The certificate of its authority, and its port for plain HTTP. */
export const secured = skip ? undefined : {
  authority: path.join(process.env.JITNEY_SECURED_CERTIFICATES, "ca.pem"),
  httpPort: Number(process.env.JITNEY_SECURED_HTTP_PORT),
};

/** Has the broker `start`, `kill` or `stop`. */
export async function control(verb) {
  const [program, ...words] = process.env.JITNEY_SECURED_CONTROL.split(" ");
  await run(program, [...words, verb]);
}
