// A broker that verifies keys: sign-in, what a right does not allow, and what is kept.

import assert from "node:assert/strict";
import { inBrowser, isAccessible, live, securedUrl } from "../harness.js";

const ROOT = "RootManageSharedAccessKey";
const ROOT_KEY = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";
const LISTENER_KEY = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";
const connection = (name, key) => `Endpoint=sb://localhost/;SharedAccessKeyName=${name};SharedAccessKey=${key}`;
/** Without credentials, the first question of a page is refused. */
const refused = { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] };

async function signIn(page, text) {
  await page.getByLabel("Connection string", { exact: true }).last().fill(text);
  await page.getByRole("button", { name: "Sign in" }).click();
}

inBrowser("signing in", (test) => {
  test("a connection string signs in; its key is not sent, and ends with the tab", async (page, context) => {
    const sent = [];
    page.on("request", (request) => sent.push(request.url(), JSON.stringify(request.headers()), request.postData() ?? ""));
    await page.goto(securedUrl);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await isAccessible(page);
    await signIn(page, connection(ROOT, ROOT_KEY));
    await live(page);
    await page.getByText(`key ${ROOT}`).waitFor();
    assert(sent.some((text) => text.includes("SharedAccessSignature")));
    for (const secret of [ROOT_KEY, encodeURIComponent(ROOT_KEY)]) assert(!sent.some((text) => text.includes(secret)), "the key is not sent");
    await page.reload();
    await live(page);
    const other = await context.newPage();
    await other.goto(securedUrl);
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  }, refused);

  test("by keyboard alone, and a wrong key is refused in the broker's words", async (page) => {
    await page.goto(securedUrl);
    const field = page.getByLabel("Connection string", { exact: true }).last();
    await field.focus();
    await page.keyboard.type("Endpoint=sb://localhost/");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("SharedAccessKeyName").waitFor();
    await field.fill(connection(ROOT, "wrong"));
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText(/signature/i).waitFor();
    await field.fill(connection(ROOT, ROOT_KEY));
    await page.keyboard.press("Enter");
    await live(page);
  }, refused);

  test("a key that may listen sees, and is not offered what it may not", async (page) => {
    await page.goto(securedUrl);
    await signIn(page, connection("listener", LISTENER_KEY));
    await live(page);
    await page.goto(`${securedUrl}/#/entities`);
    await page.locator("tbody a").first().click();
    await page.getByRole("link", { name: "Properties" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Purge" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
  }, refused);

  test("without the browser's cryptography a library signs", async (page) => {
    await page.addInitScript(() => Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined }));
    await page.goto(securedUrl);
    await signIn(page, connection(ROOT, ROOT_KEY));
    await live(page);
  }, refused);
});
