// A second broker, for the scenarios of doors and of administration: it verifies every key, signature and token, and is found where
// the SDKs look for the service, at ports 5671 and 443 of an address of its own.
//
//     guarded.js start     make its certificates, keys and configuration below JITNEY_WORK; start it
//     guarded.js stop      stop it; fail if it did not end in good order, or has panicked
//
// A test that imports this file gets what `start` has left.

import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where it is: the SDKs add the ports themselves. */
export const HOST = "127.0.0.23";

/** Whose tokens it believes. */
export const ISSUER = "https://issuer.invalid/tenant";

export const ROOT = { name: "RootManageSharedAccessKey", key: "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==" };
export const LISTENER = { name: "listener", key: "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=" };
export const SPEAKER = { name: "speaker", key: "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE=" };

const directory = path.join(process.env.JITNEY_WORK ?? "/nonexistent", "guarded");
const file = (name) => path.join(directory, name);

/** Expressions of the file's only rule. */
export const LINES = { filter: "n = 1\n  AND\tm = 2", action: "SET a = 1;\nSET b = '<2>'" };

const CONFIG = {
  UserConfig: {
    Namespaces: [{
      Name: "guarded",
      AuthorizationRules: [
        { Name: ROOT.name, Rights: ["Manage", "Send", "Listen"], PrimaryKey: ROOT.key },
        { Name: LISTENER.name, Rights: ["Listen"], PrimaryKey: LISTENER.key },
        { Name: SPEAKER.name, Rights: ["Send"], PrimaryKey: "other", SecondaryKey: SPEAKER.key },
      ],
      Queues: [],
      Topics: [{
        Name: "s276-lines",
        Subscriptions: [{
          Name: "a",
          Rules: [{
            Name: "lines",
            Properties: {
              FilterType: "Sql", SqlFilter: { SqlExpression: LINES.filter }, Action: { SqlExpression: LINES.action },
            },
          }],
        }],
      }],
    }],
  },
};

/** Why scenarios that need it are left out; false when it is there. */
export const skip = existsSync(file("broker.json")) ? false : "JITNEY_BROKER_STATE and JITNEY_WORK are not set";

/** What the tests want to know of it: the certificates of its authority, the key that signs tokens, its port for plain HTTP. */
export const guarded = skip ? undefined : {
  authority: file("certificates/ca.pem"),
  issuerKey: await readFile(file("issuer.pem"), "utf8"),
  httpPort: JSON.parse(await readFile(file("broker.json"), "utf8")).http_port,
};

/** Has the runner's command `start`, `kill` or `stop` this broker, in the place of the runner's. */
export async function control(verb) {
  const [program, ...words] = process.env.JITNEY_BROKER_CONTROL.split(" ");
  await run(program, [...words.slice(0, -1), file("broker.json"), verb]);
}

/** Ports that nobody listens on now. All are held until all are known, so that they differ. */
async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(servers.map((server) => new Promise((done, failed) => {
    server.once("error", failed).listen(0, "127.0.0.1", done);
  })));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => { server.close(done); })));
  return ports;
}

async function start() {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const state = JSON.parse(await readFile(process.env.JITNEY_BROKER_STATE, "utf8"));
  await run(state.binary, ["certs", file("certificates"), "--name", HOST]);
  // The clients trust this broker's authority and that of the runner's broker, which has made its own.
  const other = await fetch(`http://127.0.0.1:${process.env.JITNEY_HTTP_PORT}/ca.pem`);
  if (!other.ok) throw new Error(`GET /ca.pem: ${other.status}`);
  await writeFile(file("authorities.pem"), `${await readFile(file("certificates/ca.pem"), "utf8")}\n${await other.text()}`);

  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { ...publicKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: "one" };
  await writeFile(file("keys.json"), JSON.stringify({ keys: [key] }));
  await writeFile(file("issuer.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
  const [amqpPort, httpPort] = await freePorts(2);
  await writeFile(file("config.json"), JSON.stringify(CONFIG));
  await writeFile(file("broker.json"), JSON.stringify({
    ...state,
    config: file("config.json"),
    data_dir: file("data"),
    log: file("broker.log"),
    amqp_port: amqpPort,
    http_port: httpPort,
    arguments: [
      "--amqps", `${HOST}:5671`, "--https", `${HOST}:443`,
      "--tls-cert", file("certificates/server.pem"), "--tls-key", file("certificates/server.key"),
      "--auth", "sas", "--oidc-issuer", ISSUER, "--oidc-jwks", file("keys.json"),
    ],
    pid: null,
    exit_code: null,
  }));
  await control("start");
}

async function stop() {
  await control("stop");
  const log = await readFile(file("broker.log"), "utf8");
  if (log.includes("panicked at")) throw new Error(`the guarded broker panicked: ${file("broker.log")}`);
}

const verbs = { start, stop };
if (process.argv[1] === import.meta.filename) await verbs[process.argv[2]]();
