// The console's files: types, checksums, operations, size, headers.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inBrowser, live, open, url } from "../harness.js";

const run = promisify(execFile);
const HERE = join(dirname(fileURLToPath(import.meta.url)), "..");
const SOURCES = join(HERE, "../../src/console");
/** Bytes of everything that the first page needs, compressed. */
const BYTES_MAX = 150 * 1024;

async function passes(...command) {
  await run(process.execPath, command, { cwd: HERE }).catch(({ stdout, stderr }) => assert.fail(stdout + stderr));
}

async function sources() {
  const entries = await readdir(SOURCES, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && /\.(js|css|html|svg)$/.test(entry.name));
  return Promise.all(
    files.map(async (entry) => {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      return { name: path.slice(SOURCES.length + 1), text: await readFile(path, "utf8") };
    }),
  );
}

/** Words that no text of the console has, and what is written instead. */
const BANNED = [
  [/\bmak(e|es|ing)\b(?!.*\bactive\b)/i, "create"],
  [/\bmade\b(?! active)/i, "created"],
  [/^Change\b/, "Edit"],
  [/\bdrop(s|ped)?\b/i, "delete, or discard"],
  [/(?<!jitney )\bpurge/i, "delete"],
  [/\bput .*\bback\b|\bsend .*\bnow\b/i, "make active"],
  [/\baway\b/i, "cannot reach"],
  [/\b(it|this|that|which) is no\b|” is no\b/i, "is not a, not valid"],
  [/\bat most\b|\bso many\b/i, "limit"],
  [/\blook(s|ed)? (at|further)\b|\bits page\b/i, "open, count, continue"],
  [/\blays? out\b|\blayout\b/i, "format"],
  [/\b(leave|left) out\b/i, "remove"],
  [/^And…/, "what is added"],
  [/\bmeant\b/i, "will be"],
  [/\bconsumers?\b/i, "clients, or receivers"],
  [/\bbeg[au]n\b|\bbegin a\b/i, "start"],
  [/\bgo(es)? on\b/i, "continue"],
  [/\bunpack/i, "decompress"],
  [/\d (ms|s|min|h|d)\b/, "30s, 10m, 1h"],
  [/\b(whoever|nobody|somebody|everybody)\b/i, "who is meant"],
];

/** All texts of the console: the strings of `strings/`, and what its functions make of two. */
async function texts() {
  const found = [];
  const walk = (value, name) => {
    if (typeof value === "string") found.push({ name, text: value });
    else if (typeof value === "function") walk(value(...Array(value.length).fill("2")), name);
    else for (const [key, each] of Object.entries(value ?? {})) walk(each, `${name}.${key}`);
  };
  for (const { name, text } of await sources()) {
    if (name.startsWith("strings/")) walk(await import(`data:text/javascript,${encodeURIComponent(text)}`), name);
  }
  assert(1_000 < found.length, `${found.length} texts`);
  return found;
}

describe("files", { concurrency: true }, () => {
  it("the types are right", () => passes("node_modules/typescript/bin/tsc", "-p", "."));
  it("vendored files are those of their packages", () => passes("vendor.mjs", "--check"));
  it("the page names the modules that it needs", () => passes("modules.mjs", "--check"));
  it("sources are laid out as the formatter does it", () => passes("format.mjs", "--check"));
  it("operations and types are those of the broker's OpenAPI document", () => passes("generate.mjs", url, "--check"));

  it("no source makes markup of texts, or code", async () => {
    const forbidden =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function|DOMParser|srcdoc/;
    for (const { name, text } of await sources()) {
      if (!name.startsWith("vendor/")) assert(!forbidden.test(text), `${name}: ${forbidden.exec(text)}`);
    }
  });

  it("texts have the words of the command line and of the documents", async () => {
    const wrong = [];
    for (const { name, text } of await texts()) {
      for (const [word, instead] of BANNED) if (word.test(text)) wrong.push(`${name}: “${text}”: write ${instead}`);
    }
    assert.deepEqual(wrong, []);
  });

  it("commands that are shown are those of the binary", async () => {
    const { binary } = JSON.parse(await readFile(process.env.JITNEY_BROKER_STATE, "utf8"));
    const commands = (await texts()).filter(({ text }) => /^jitney [a-z]/.test(text));
    assert(10 < commands.length);
    for (const { name, text } of commands) {
      // What is not known is refused before the help is printed.
      const words = text.replace("ADDRESS", "127.0.0.1").split(" ").slice(1);
      await run(binary, [...words, "--help"]).catch(({ stderr }) => assert.fail(`${name}: ${text}: ${stderr}`));
    }
  });

  it("a page's style does not reach other pages", async () => {
    // The styles of all pages are in one document, in the order in which pages were seen.
    const SHARED = ["base", "components", "layout"];
    const owners = new Map();
    for (const { name, text } of await sources()) {
      const [, file] = /^styles\/([\w-]+)\.css$/.exec(name) ?? [];
      if (file === undefined) continue;
      for (const [, selectors] of text.replace(/\/\*.*?\*\//gs, "").matchAll(/([^{}]+)\{/g)) {
        for (const selector of selectors.split(",").map((each) => each.trim())) {
          const first = /^[\w-]*\.[\w-]+/.exec(selector)?.[0];
          if (first !== undefined)
            owners.set(first, (owners.get(first) ?? new Set()).add(SHARED.includes(file) ? "shared" : file));
        }
      }
    }
    // What pages add to shared classes, they add to one with another class of theirs.
    const contested = [...owners].filter(([, files]) => !files.has("shared") && 1 < files.size);
    assert.deepEqual(
      contested.map(([name, files]) => `${name}: ${[...files].join(", ")}`),
      [],
    );
  });

  it("every document has the policy, and a file that is known is not sent again", async () => {
    for (const path of ["/", "/$console/app.js", "/%24console/styles/base.css", "/$console/nothing.js"]) {
      const answer = await fetch(url + path);
      const policy = answer.headers.get("content-security-policy");
      if (!/\.(js|css)$/.test(path) || !answer.ok) {
        assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
        assert.doesNotMatch(policy, /unsafe/);
      }
      for (const [name, value] of [
        ["x-content-type-options", "nosniff"],
        ["referrer-policy", "no-referrer"],
        ["cross-origin-opener-policy", "same-origin"],
      ]) {
        assert.equal(answer.headers.get(name), value, path);
      }
      if (!answer.ok) continue;
      const again = await fetch(url + path, { headers: { "If-None-Match": answer.headers.get("etag") } });
      assert.equal(again.status, 304);
      const head = await fetch(url + path, { method: "HEAD" });
      assert.equal(head.status, 200);
      assert.equal(await head.text(), "");
    }
  });

  it("browsers keep the files that the page names, and no others", async () => {
    const html = await (await fetch(url)).text();
    const [, version] = /src="\/\$console\/([0-9a-f]{16})\/app\.js"/.exec(html);
    const named = [...html.matchAll(/"(\/\$console\/[^"]*)"/g)].map(([, path]) => path);
    assert(30 < named.length);
    for (const path of named) {
      assert(path.startsWith(`/$console/${version}/`), path);
      const answer = await fetch(url + path);
      assert.equal(answer.headers.get("cache-control"), "public, max-age=31536000, immutable", path);
      await answer.arrayBuffer();
    }
    // A server of another version may be asked while servers are upgraded: what it sends is not kept.
    for (const path of [
      "/",
      "/$console/app.js",
      "/$console/00000000000000ff/app.js",
      `/$console/${version}/index.html`,
      "/$console/sign-in.json",
    ]) {
      const answer = await fetch(url + path);
      assert.deepEqual([answer.status, answer.headers.get("cache-control")], [200, "no-cache"], path);
      await answer.arrayBuffer();
    }
  });

  it("entities and the administration API keep their addresses", async () => {
    const feed = await fetch(`${url}/$Resources/queues?api-version=2021-05`);
    assert.match(await feed.text(), /<feed/);
    assert.doesNotMatch(await (await fetch(`${url}/?api-version=2021-05`)).text(), /<html/);
  });
});

inBrowser("first load", (test) => {
  test("the page loads within its budget, and asks nothing but the broker", async (page, context) => {
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    let bytes = 0;
    const hosts = new Set();
    const files = new Map();
    session.on("Network.requestWillBeSent", ({ requestId, request }) => {
      hosts.add(new URL(request.url).origin);
      files.set(requestId, new URL(request.url).pathname);
    });
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      if (!files.get(requestId)?.startsWith("/api/")) bytes += encodedDataLength;
    });
    await open(page);
    await page.waitForLoadState("load");
    console.log(`first load: ${bytes} bytes with headers, ${files.size} requests`);
    assert(0 < bytes && bytes <= BYTES_MAX, `${bytes} bytes`);
    assert.deepEqual([...hosts], [url]);
  });

  test("a reload asks for the page alone", async (page, context) => {
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    const paths = new Map();
    const kept = new Set();
    session.on("Network.requestWillBeSent", ({ requestId, request }) =>
      paths.set(requestId, new URL(request.url).pathname),
    );
    session.on("Network.requestServedFromCache", ({ requestId }) => kept.add(requestId));
    session.on("Network.responseReceived", ({ requestId, response }) => response.fromDiskCache && kept.add(requestId));
    await open(page);
    await page.waitForLoadState("load");
    paths.clear();
    await page.reload();
    await live(page);
    await page.waitForLoadState("load");
    const asked = [...paths].filter(([id, path]) => !kept.has(id) && !path.startsWith("/api/")).map(([, path]) => path);
    assert(40 < kept.size);
    assert.deepEqual(asked, ["/"]);
  });
});
