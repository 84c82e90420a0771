// A broker that verifies keys: sign-in, what a right does not allow, and what is kept.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { OTHER } from "../browser.js";
import { rootToken } from "../journey.js";
import { client } from "../seed.js";
import { inBrowser, isAccessible, live, securedUrl } from "../harness.js";

const ROOT = "RootManageSharedAccessKey";
const ROOT_KEY = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";
const SPEAKER_KEY = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE=";
const LISTENER_KEY = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";
const connection = (name, key) => `Endpoint=sb://localhost/;SharedAccessKeyName=${name};SharedAccessKey=${key}`;
/** Without credentials, the first question of a page is refused. */
const refused = { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] };

async function signIn(page, text) {
  await page.getByLabel("Connection string", { exact: true }).last().fill(text);
  await page.getByRole("button", { name: "Sign in" }).click();
}

inBrowser("signing in", (test) => {
  test(
    "a connection string signs in; its key is not sent, and ends with the tab",
    async (page, context) => {
      const sent = [];
      page.on("request", (request) =>
        sent.push(request.url(), JSON.stringify(request.headers()), request.postData() ?? ""),
      );
      await page.goto(securedUrl);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await isAccessible(page);
      await signIn(page, connection(ROOT, ROOT_KEY));
      await live(page);
      await page.getByText(`key ${ROOT}`).waitFor();
      assert(sent.some((text) => text.includes("SharedAccessSignature")));
      for (const secret of [ROOT_KEY, encodeURIComponent(ROOT_KEY)])
        assert(!sent.some((text) => text.includes(secret)), "the key is not sent");
      await page.reload();
      await live(page);
      const other = await context.newPage();
      await other.goto(securedUrl);
      await other.getByRole("heading", { name: "Sign in" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
    },
    refused,
  );

  test(
    "by keyboard alone, and a wrong key is refused in words",
    async (page) => {
      await page.goto(securedUrl);
      const field = page.getByLabel("Connection string", { exact: true }).last();
      await field.focus();
      await page.keyboard.type("Endpoint=sb://localhost/");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("SharedAccessKeyName").waitFor();
      await field.fill(connection(ROOT, "wrong"));
      await page.keyboard.press("Enter");
      await page
        .getByRole("alert")
        .getByText(/^The key or its signature is wrong\./)
        .waitFor();
      await field.fill(connection(ROOT, ROOT_KEY));
      await page.keyboard.press("Enter");
      await live(page);
    },
    refused,
  );

  test(
    "a clock that is two hours slow signs in at once, and after a reload",
    async (page) => {
      await page.clock.install({ time: Date.now() - 2 * 3_600_000 });
      const answers = [];
      page.on("response", (response) => response.url().includes("/api/v1/access") && answers.push(response.status()));
      await page.goto(securedUrl);
      await signIn(page, connection(ROOT, ROOT_KEY));
      await live(page);
      assert.deepEqual(answers, [200]);
      await page.reload();
      await live(page);
    },
    refused,
  );

  test(
    "a key that may listen sees, and is not offered what it may not",
    async (page) => {
      await page.goto(securedUrl);
      await signIn(page, connection("listener", LISTENER_KEY));
      await live(page);
      await page.goto(`${securedUrl}/#/entities`);
      await page.locator("tbody a").first().click();
      await page.getByRole("link", { name: "Properties" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Delete messages" }).count(), 0);
      assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
    },
    refused,
  );

  test(
    "a key that may send sends, and is told what else it may not",
    async (page) => {
      const send = async (path) => {
        await page.getByRole("heading", { level: 1, name: "Send" }).waitFor();
        await page.getByRole("textbox", { name: "Body" }).fill("from one who may send");
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await page
          .getByText(new RegExp(`^Sent to ${path}: message \\d+\\.$`))
          .first()
          .waitFor();
        assert.equal(await page.locator(".loading").count(), 0);
      };
      await page.goto(`${securedUrl}/#/entities`);
      await signIn(page, connection("speaker", SPEAKER_KEY));
      await page.getByRole("heading", { level: 1, name: "Entities" }).waitFor();
      await page.getByText("This key may only send.").waitFor();
      await page.getByText("Send only").waitFor();
      assert.equal(await page.locator(".loading").count(), 0);
      await isAccessible(page);
      await page.locator("main").getByRole("link", { name: "Send" }).click();
      await page.getByLabel("To", { exact: true }).fill("guarded");
      await send("guarded");
      await isAccessible(page);
      await page.getByRole("button", { name: "Sign out" }).click();
      // A key of one entity knows where to.
      const call = client(securedUrl, rootToken());
      const [{ primary_key: key }] = [
        await call("PUT", "/entities/guarded/authorization-rules/writer", { rights: ["send"] }),
      ];
      await signIn(page, `${connection("writer", key)};EntityPath=guarded`);
      await page.locator("nav").getByRole("link", { name: "Send" }).click();
      await send("guarded");
      await page.getByRole("button", { name: "Sign out" }).click();
      await signIn(page, `${connection("writer", "d3Jvbmc=")};EntityPath=guarded`);
      await page
        .getByRole("alert")
        .getByText(/^The key or its signature is wrong\./)
        .waitFor();
    },
    { allow: [...refused.allow, /400 \(Bad Request\)/] },
  );

  test(
    "the operator's key allows everything; a wrong one is refused",
    async (page) => {
      const key = await readFile(join(process.env.JITNEY_SECURED, "data/operator.key"), "utf8");
      await page.goto(securedUrl);
      await page.getByText("Operator's key", { exact: true }).click();
      const field = page.getByLabel("Operator's key", { exact: true }).last();
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").getByText("Enter the key.").waitFor();
      await field.fill("not the key");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("This is not the operator's key of this broker.").waitFor();
      await isAccessible(page);
      await field.fill(key);
      await page.keyboard.press("Enter");
      await live(page);
      await page.locator(".account").getByText("operator").waitFor();
      // What is typed is for one namespace.
      const body = page.getByRole("textbox", { name: "Body" });
      const sends = async () => {
        await page.goto(`${securedUrl}/#/send?entity=guarded`);
        await body.waitFor();
      };
      const goes = async (name) => {
        await page.goto(`${securedUrl}/#/settings`);
        await page
          .getByRole("region", { name: "Namespaces" })
          .getByRole("button", { name: new RegExp(`\\b${name}\\b`) })
          .click();
        await page.getByText(`The namespace ${name} is shown now.`).first().waitFor();
        await live(page);
      };
      await sends();
      await body.fill("for the first");
      await goes("elsewhere");
      await sends();
      assert.equal(await body.inputValue(), "");
      await body.fill("for the other");
      await goes("secured");
      await sends();
      assert.equal(await body.inputValue(), "for the first");
      await page.reload();
      await live(page);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      assert.deepEqual(await page.evaluate(() => Object.keys(sessionStorage)), []);
    },
    refused,
  );

  test(
    "plain HTTP to another machine is warned of, and works without the browser's cryptography and locks",
    async (page) => {
      const warning = page.getByText("This page was loaded over plain HTTP");
      await page.goto(securedUrl);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      assert.equal(await warning.count(), 0, "loopback is no other machine");
      await page.goto(`http://${OTHER}:${new URL(securedUrl).port}`);
      await warning.waitFor();
      assert.equal(await page.evaluate(() => crypto.subtle ?? navigator.locks), undefined);
      await signIn(page, connection(ROOT, ROOT_KEY));
      await live(page);
      await warning.waitFor();
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      await isAccessible(page);
    },
    { allow: [...refused.allow, /Cross-Origin-Opener-Policy header has been ignored/] },
  );

  test(
    "without the browser's cryptography a library signs",
    async (page) => {
      await page.addInitScript(() => Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined }));
      await page.goto(securedUrl);
      await signIn(page, connection(ROOT, ROOT_KEY));
      await live(page);
    },
    refused,
  );
});
