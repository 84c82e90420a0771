// An OIDC issuer of the tests, and a broker that trusts it and makes the console its client.
//
// The page on which people would sign in has a link for each answer. Everything that a client of the code flow has to
// do is checked, and what is wrong is an error of the issuer.

import { execFile } from "node:child_process";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";

const CLIENT = "jitney-console";
const AUDIENCE = "https://servicebus.azure.net";
/** The links of the page, with the roles of who signs in. */
const PEOPLE = { owner: ["Data Owner"], listener: ["Listen"], nothing: ["Reader"] };
/** What the issuer says when it refuses: as hostile as its words can be. */
export const REFUSAL = "<b>You</b> may not \u202eevil";
const LIFE_SECONDS = 3600;

/** Starts an issuer. Its properties are what tests change: `refreshes` whether it gives refresh tokens, `nonce` and
 * `state` what it answers instead of those that were sent, `claims` further claims of its ID tokens, `alg` their
 * algorithm, `tokenError` an error of the token endpoint. `grants` has the requests for tokens, `wrong` what clients
 * did wrong. */
export async function startIssuer() {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const server = createServer((request, response) => {
    answer(issuer, privateKey, request, response).catch((error) => {
      issuer.wrong.push(String(error));
      response.writeHead(400, { "Content-Type": "text/plain" }).end(String(error));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = {
    url: `http://127.0.0.1:${server.address().port}`,
    origin: "",
    keys: { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" }] },
    codes: new Map(),
    refreshTokens: new Map(),
    grants: [],
    wrong: [],
    stop: () => server.close().closeAllConnections(),
    reset: () =>
      Object.assign(issuer, {
        refreshes: true,
        nonce: undefined,
        state: undefined,
        claims: {},
        alg: "RS256",
        tokenError: undefined,
        grants: [],
        wrong: [],
      }),
  };
  issuer.reset();
  return issuer;
}

async function answer(issuer, key, request, response) {
  const { pathname, searchParams } = new URL(request.url, issuer.url);
  const json = (status, told, headers = {}) =>
    response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(told));
  switch (pathname) {
    case "/.well-known/openid-configuration":
      return json(200, {
        issuer: issuer.url,
        jwks_uri: `${issuer.url}/keys`,
        authorization_endpoint: `${issuer.url}/authorize?tenant=one`,
        token_endpoint: `${issuer.url}/token`,
      });
    case "/keys":
      return json(200, issuer.keys);
    case "/authorize":
      return response.writeHead(200, { "Content-Type": "text/html" }).end(page(issuer, searchParams));
    case "/token": {
      const [status, told] = issuer.tokenError ?? [
        200,
        tokens(issuer, key, request, new URLSearchParams((await request.toArray()).join(""))),
      ];
      return json(status, told, { "Access-Control-Allow-Origin": issuer.origin, "Cache-Control": "no-store" });
    }
    default:
      return response.writeHead(404).end();
  }
}

/** Checks what a client asks for, and returns the page with the answers. */
function page(issuer, asked) {
  const fields = Object.fromEntries(asked);
  expect(fields, {
    tenant: "one",
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: `${issuer.origin}/`,
    code_challenge_method: "S256",
  });
  for (const name of ["state", "nonce", "code_challenge"])
    must(fields[name]?.length === 43, `${name} is ${fields[name]}`);
  must(fields.scope === "openid profile", `the scope is ${fields.scope}`);
  const to = (answered) =>
    `${fields.redirect_uri}?${new URLSearchParams({ ...answered, state: issuer.state ?? fields.state, iss: issuer.url })}`;
  const link = (text, answered) => `<li><a href="${to(answered).replaceAll("&", "&amp;")}">${text}</a></li>`;
  const links = Object.entries(PEOPLE).map(([name, roles]) => {
    const code = randomUUID();
    issuer.codes.set(code, { ...fields, name, roles });
    return link(name, { code });
  });
  return `<!doctype html><title>Issuer</title><ul>${links.join("")}${link("refuse", { error: "access_denied", error_description: REFUSAL })}</ul>`;
}

function tokens(issuer, key, request, asked) {
  const fields = Object.fromEntries(asked);
  issuer.grants.push(fields.grant_type);
  must(
    request.method === "POST" && request.headers.authorization === undefined && request.headers.cookie === undefined,
    "a public client has no secret",
  );
  must(
    request.headers.origin === issuer.origin && request.headers.referer === undefined,
    `it comes from ${request.headers.origin}`,
  );
  const known =
    fields.grant_type === "refresh_token"
      ? take(issuer.refreshTokens, fields.refresh_token)
      : take(issuer.codes, fields.code);
  if (fields.grant_type === "authorization_code") {
    expect(fields, { client_id: CLIENT, redirect_uri: known.redirect_uri });
    must(
      createHash("sha256").update(fields.code_verifier).digest("base64url") === known.code_challenge,
      "the verifier is another",
    );
  } else expect(fields, { client_id: CLIENT, grant_type: "refresh_token" });
  const now = Math.floor(Date.now() / 1000);
  const common = { iss: issuer.url, sub: known.name, iat: now, exp: now + LIFE_SECONDS, jti: randomUUID() };
  const told = {
    token_type: "Bearer",
    expires_in: LIFE_SECONDS,
    access_token: signed(key, { ...common, aud: AUDIENCE, roles: known.roles }),
    id_token: signed(
      key,
      {
        ...common,
        aud: CLIENT,
        nonce: issuer.nonce ?? known.nonce,
        preferred_username: `${known.name}@example`,
        ...issuer.claims,
      },
      issuer.alg,
    ),
  };
  if (issuer.refreshes) {
    told.refresh_token = randomUUID();
    issuer.refreshTokens.set(told.refresh_token, known);
  }
  return told;
}

function signed(key, claims, alg = "RS256") {
  const text = [{ alg, typ: "JWT", kid: "one" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
}

/** A code and a refresh token are good once. */
function take(tokens, name) {
  const known = tokens.get(name);
  must(known !== undefined, "it is not known, or was used");
  tokens.delete(name);
  return known;
}

function expect(fields, expected) {
  for (const [name, value] of Object.entries(expected))
    must(fields[name] === value, `${name} is ${fields[name]}, and not ${value}`);
}

function must(holds, what) {
  if (!holds) throw new Error(what);
}

const run = promisify(execFile);

/** Starts a broker that trusts the issuer. */
export async function startTrusting(issuer) {
  const suite = JSON.parse(await readFile(process.env.JITNEY_BROKER_STATE, "utf8"));
  const directory = join(process.env.JITNEY_WORK, "trusting");
  await mkdir(directory, { recursive: true });
  const [amqp, http] = await freePorts();
  const namespace = { Name: "trusting", Queues: [{ Name: "guarded" }], Topics: [] };
  const config = join(directory, "config.json");
  await writeFile(config, JSON.stringify({ UserConfig: { Namespaces: [namespace] } }));
  const state = join(directory, "broker.json");
  await writeFile(
    state,
    JSON.stringify({
      binary: suite.binary,
      config,
      data_dir: join(directory, "data"),
      log: join(directory, "broker.log"),
      host: "127.0.0.1",
      amqp_port: amqp,
      http_port: http,
      ends_with: null,
      arguments: ["--oidc-issuer", issuer.url, "--console-client-id", CLIENT],
      pid: null,
      exit_code: null,
    }),
  );
  const [command, script] = process.env.JITNEY_BROKER_CONTROL.split(" ");
  await run(command, [script, state, "start"]);
  return { url: `http://127.0.0.1:${http}`, stop: () => run(command, [script, state, "stop"]) };
}

/** Two, held until both are known. */
async function freePorts() {
  const servers = await Promise.all(
    [0, 1].map(async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  return servers.map((server) => {
    const { port } = server.address();
    server.close();
    return port;
  });
}
