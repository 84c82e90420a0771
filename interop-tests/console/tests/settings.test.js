// Settings: who is signed in, keys of queues and topics, and the namespace as a file.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, securedUrl, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { entity, rule } from "../seed.js";

const refused = { allow: [/40[0-9] \(/] };
const ROOT =
  "Endpoint=sb://localhost/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";
const LISTENER =
  "Endpoint=sb://localhost/;SharedAccessKeyName=listener;SharedAccessKey=bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";
const button = (page, name) => page.getByRole("button", { name, exact: true });
const keysOf = async (path) =>
  (await api("GET", `/entities/${encodeURIComponent(path)}/authorization-rules`)).authorization_rules;
const copied = (page) => page.evaluate(() => navigator.clipboard.readText());
const file = (queues = [], topics = []) =>
  JSON.stringify({ UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: queues, Topics: topics }] } }, null, 2);

async function signIn(page, text) {
  await page.goto(securedUrl);
  await page.getByLabel("Connection string", { exact: true }).last().fill(text);
  await button(page, "Sign in").click();
  await live(page);
}

inBrowser("settings", (test) => {
  before(async () => {
    await entity(api, "keyed");
    await entity(api, "keyed-too", "topic");
    await api("PUT", "/entities/keyed-too/authorization-rules/%3Cimg%20src%3Dx%3E", { rights: ["listen"] });
    await entity(api, "imported", "queue", { lock_duration: "PT1M", max_delivery_count: 5 });
    await entity(api, "imported-same");
    await entity(api, "imported-topic", "topic");
    await entity(api, "imported-topic/Subscriptions/one", "subscription");
    await rule(api, "imported-topic/Subscriptions/one", "more", { filter: { kind: "sql", expression: "a = 1" } });
  });

  test(
    "it says who is signed in, with which rights, to which namespace",
    async (page) => {
      const clicks = await countClicks(page);
      await open(page);
      await page.getByRole("link", { name: "Settings" }).click();
      await heading(page, "Settings");
      assert.equal(clicks(), 1);
      const signedIn = page.getByRole("region", { name: "Signed in" });
      await signedIn.getByText("no credentials needed").waitFor();
      assert.deepEqual(await signedIn.locator("dd").nth(3).textContent(), "yes");
      await page.getByRole("region", { name: "Namespace", exact: true }).getByText("sbemulatorns").waitFor();
      await page.getByLabel("Name", { exact: true }).fill("nowhere");
      await page.keyboard.press("Enter");
      await page.getByText("There is no namespace 'nowhere'.").waitFor();
      assert.equal(await page.getByLabel("Name", { exact: true }).getAttribute("aria-invalid"), "true");
      await isAccessible(page);
      await page.getByLabel("Name", { exact: true }).fill("sbemulatorns");
      await page.keyboard.press("Enter");
      await page.getByText("This is sbemulatorns now.").first().waitFor();
      await live(page);
    },
    refused,
  );

  test(
    "by mouse: a rule is created, its connection string copied, its keys rotated, its rights edited, and it is deleted",
    async (page, context) => {
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      await open(page, "#/settings?tab=keys&entity=keyed");
      await page.getByText("keyed has no keys of its own.").waitFor();
      await page.getByLabel("Name", { exact: true }).fill("app");
      await button(page, "Create").click();
      await page.getByText(/Rights: found 'none'; allowed/).waitFor();
      await isAccessible(page);
      await page.getByLabel("Send", { exact: true }).check();
      await button(page, "Create").click();
      const card = page.getByRole("region", { name: "app", exact: true });
      await card.waitFor();
      const [made] = await keysOf("keyed");
      assert.deepEqual(made.rights, ["send"]);
      assert.equal(await page.getByText(made.primary_key).count(), 0, "a key is not shown before the reader asks");
      await button(page, "Show the primary key of app").click();
      await card.getByText(made.primary_key).waitFor();
      await card.getByRole("button", { name: "Copy connection string" }).first().click();
      await card.getByRole("button", { name: "Copied" }).waitFor();
      assert.equal(
        await copied(page),
        `Endpoint=sb://127.0.0.1/;SharedAccessKeyName=app;SharedAccessKey=${made.primary_key};EntityPath=keyed;UseDevelopmentEmulator=true`,
      );
      await isAccessible(page);
      await button(page, "Rotate the secondary key of app").click();
      await isAccessible(page);
      await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
      await page.getByText("The secondary key of app was rotated.").first().waitFor();
      const [rotated] = await keysOf("keyed");
      assert.equal(rotated.primary_key, made.primary_key);
      assert.notEqual(rotated.secondary_key, made.secondary_key);
      await button(page, "Rotate the primary key of app").click();
      await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
      await page.getByText("The primary key of app was rotated.").first().waitFor();
      assert.notEqual((await keysOf("keyed"))[0].primary_key, made.primary_key);
      await button(page, "Edit rights of app").click();
      await page.getByRole("dialog").getByLabel("Listen").check();
      await button(page, "Save").click();
      await page.getByText("The rights of app were updated.").first().waitFor();
      const [changed] = await keysOf("keyed");
      assert.deepEqual(changed.rights, ["send", "listen"]);
      assert.equal(changed.secondary_key, rotated.secondary_key, "its keys stay");
      await page.getByLabel("Name", { exact: true }).fill("app");
      await button(page, "Create").click();
      await page.getByText("There is a rule of this name").waitFor();
      await button(page, "Delete app").click();
      assert(await page.getByRole("dialog").getByRole("button", { name: "Delete" }).isDisabled());
      await page.getByRole("dialog").getByRole("textbox").fill("app");
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText("keyed has no keys of its own.").waitFor();
      assert.deepEqual(await keysOf("keyed"), []);
    },
    refused,
  );

  test("by keyboard: from the list of all keys to one that is rotated", async (page) => {
    await entity(api, "keyed-by-keys");
    await api("PUT", "/entities/keyed-by-keys/authorization-rules/app", { rights: ["manage"] });
    const [{ primary_key: before_ }] = await keysOf("keyed-by-keys");
    await open(page, "#/settings");
    await tabTo(page, /^Keys$/);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "keyed-by-keys" }).waitFor();
    assert.equal(await page.locator("main img").count(), 0);
    await page.getByText("<img src=x>").waitFor();
    await isAccessible(page);
    await tabTo(page, /^keyed-by-keys$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Rotate the primary key of app$/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await tabTo(page, /^Rotate$/);
    await page.keyboard.press("Enter");
    await page
      .locator(".announcements", { hasText: "The primary key of app was rotated." })
      .waitFor({ state: "attached" });
    assert.notEqual((await keysOf("keyed-by-keys"))[0].primary_key, before_);
  });

  test(
    "a key that was created signs in, and one that was rotated does not",
    async (page, context) => {
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      await signIn(page, ROOT);
      await page.goto(`${securedUrl}/#/settings`);
      await page.getByRole("region", { name: "Signed in" }).getByText("key RootManageSharedAccessKey").waitFor();
      await page.goto(`${securedUrl}/#/settings?tab=keys&entity=guarded`);
      await page.getByLabel("Name", { exact: true }).fill("made");
      await page.getByLabel("Manage", { exact: true }).check();
      await button(page, "Create").click();
      const card = page.getByRole("region", { name: "made", exact: true });
      await card.getByRole("button", { name: "Copy connection string" }).first().click();
      await card.getByRole("button", { name: "Copied" }).waitFor();
      const string = await copied(page);
      assert.match(
        string,
        /^Endpoint=sb:\/\/127\.0\.0\.1\/;SharedAccessKeyName=made;SharedAccessKey=.+;EntityPath=guarded$/,
      );
      const other = await context.newPage();
      await other.goto(securedUrl);
      const tries = async () => {
        await other.getByLabel("Connection string", { exact: true }).last().fill(string);
        await button(other, "Sign in").click();
      };
      await tries();
      await other.locator(".account").getByText("key made").waitFor();
      await button(page, "Rotate the primary key of made").click();
      await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
      await page.getByText("The primary key of made was rotated.").first().waitFor();
      await other.locator(".account").getByRole("button", { name: "Sign out" }).click();
      await tries();
      await other
        .getByRole("alert")
        .getByText(/signature/i)
        .waitFor();
      assert.equal(await other.locator(".account").count(), 0);
    },
    refused,
  );

  test("the namespace is exported, with keys where they are asked for", async (page) => {
    await open(page, "#/settings?tab=file");
    const exported = async () => {
      const [download] = await Promise.all([page.waitForEvent("download"), button(page, "Export Config.json").click()]);
      return readFile(await download.path(), "utf8");
    };
    const without = await exported();
    assert(JSON.parse(without).UserConfig.Namespaces[0].Queues.some(({ Name }) => Name === "imported"));
    assert(!without.includes("PrimaryKey"));
    await page.getByLabel(/^With the keys/).check();
    assert((await exported()).includes("PrimaryKey"));
  });

  test(
    "a file is looked at before it is applied: what is new, what changes, what is refused",
    async (page) => {
      await open(page, "#/settings?tab=file");
      const text = file(
        [
          { Name: "imported", Properties: { LockDuration: "PT2M", MaxDeliveryCount: 5 } },
          { Name: "imported-same", Properties: { LockDuration: "PT60S" } },
          { Name: "imported-new" },
          { Name: "keyed", Properties: { RequiresSession: true } },
        ],
        [
          {
            Name: "imported-topic",
            Subscriptions: [
              {
                Name: "one",
                Rules: [{ Name: "other", Properties: { FilterType: "Sql", SqlFilter: { SqlExpression: "b = 2" } } }],
              },
              { Name: "two" },
            ],
          },
        ],
      ).replace("{", "{ // a file that people write");
      await page
        .getByLabel("File", { exact: true })
        .setInputFiles({ name: "Config.json", mimeType: "application/json", buffer: Buffer.from(text) });
      const row = (name) => page.locator(".named li").filter({ has: page.getByText(name, { exact: true }) });
      await row("imported-new").getByText("is created").waitFor();
      await row("imported").getByText("LockDuration: PT1M → PT2M").waitFor();
      await row("imported-same").getByText("unchanged").waitFor();
      await row("imported-topic/Subscriptions/one").getByText("its rules are updated").waitFor();
      await row("imported-topic/Subscriptions/two").getByText("is created").waitFor();
      await isAccessible(page);
      await page.reload();
      await row("imported-new").getByText("is created").waitFor();
      await assert.rejects(api("GET", "/entities/imported-new"), "nothing happens before it is applied");
      await button(page, "Apply").click();
      await page.getByText("These could not be created or updated").waitFor();
      await page
        .getByRole("alert")
        .getByText(/RequiresSession/)
        .waitFor();
      await row("imported-new").getByText("unchanged").waitFor();
      assert.equal((await api("GET", "/entities/imported")).properties.lock_duration, "PT2M");
      assert.equal((await api("GET", "/entities/keyed")).properties.requires_session, false);
    },
    refused,
  );

  test(
    "by keyboard: mistakes in a file are named with their places, and each leads there",
    async (page) => {
      await open(page, "#/settings?tab=file");
      await tabTo(page, /^Config\.json$/, "textarea");
      await page.keyboard.insertText(file([{ Name: "no blanks" }, { Name: "<img src=x onerror=alert(1)>" }]));
      await tabTo(page, /^Apply$/);
      await page.keyboard.press("Enter");
      await page.getByText(/Queues\[0\]\.Name: found "no blanks"/).waitFor();
      await page.getByText(/Queues\[1\]\.Name: found "<img/).waitFor();
      assert.equal(await page.locator("main img").count(), 0);
      await isAccessible(page);
      await page
        .getByRole("button", { name: /^\d+:\d+$/ })
        .first()
        .focus();
      await page.keyboard.press("Enter");
      const place = await page.evaluate(() => {
        const { value, selectionStart, tagName } = document.activeElement;
        return tagName === "TEXTAREA" ? value.slice(selectionStart) : "";
      });
      assert(place.startsWith('"no blanks"'), place.slice(0, 40));
      await page.getByLabel("Config.json", { exact: true }).fill("{ no JSON");
      await page.getByText("It cannot be read yet:").waitFor();
    },
    refused,
  );

  test(
    "narrow, axe finds nothing",
    async (page) => {
      await page.setViewportSize({ width: 360, height: 800 });
      for (const address of [
        "#/settings",
        "#/settings?tab=keys",
        "#/settings?tab=keys&entity=keyed-too",
        "#/settings?tab=keys&entity=nowhere",
        "#/settings?tab=file",
      ]) {
        await open(page, address);
        await page.locator(".loading").first().waitFor({ state: "detached" });
        await isAccessible(page);
        assert(
          await page.evaluate(
            () => document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth,
          ),
          `${address} is as wide as the window`,
        );
      }
    },
    refused,
  );

  test(
    "without the right Manage keys and files are not offered",
    async (page) => {
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/settings`);
      const signedIn = page.getByRole("region", { name: "Signed in" });
      await signedIn.getByText("key listener").waitFor();
      assert.deepEqual(
        await signedIn
          .locator("dd")
          .allTextContents()
          .then((all) => all.slice(1, 4)),
        ["yes", "no", "no"],
      );
      for (const tab of ["keys", "file"]) {
        await page.goto(`${securedUrl}/#/settings?tab=${tab}`);
        await page.getByText("This needs the right Manage.").waitFor();
        assert.equal(await page.locator("main form, main button").count(), 0);
      }
    },
    refused,
  );
});
