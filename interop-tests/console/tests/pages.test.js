// Overview, entities, an entity, its dead letters, a message: by mouse, and by keyboard alone.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, until } from "../harness.js";
import { tabTo } from "../journey.js";
import { entity, job, send, shop } from "../seed.js";

inBrowser("pages", (test) => {
  before(() => shop(api));

  test("the overview says what needs a person, and leads there", async (page) => {
    await open(page);
    await page.getByText("Development profile").waitFor();
    await page
      .getByRole("listitem")
      .filter({ hasText: "13 dead letters" })
      .getByRole("link", { name: "orders" })
      .click();
    await heading(page, "orders");
    await page.getByRole("heading", { name: "Dead letters by reason" }).waitFor();
    await page.getByRole("button", { name: "BadAmount", exact: true }).click();
    await page.getByRole("link", { name: "1", exact: true }).click();
    await heading(page, "Message 1");
    await page.getByText("amount must be at least 5").first().waitFor();
    await page.locator("pre.body").getByText('"amount": 1.5').waitFor();
  });

  test("addresses are kept by a reload, and back leads back", async (page) => {
    await open(page, "#/entities?filter=ord&sort=-dead");
    assert.equal(await page.getByRole("searchbox", { name: "Filter by name" }).inputValue(), "ord");
    await page.getByRole("link", { name: "orders", exact: true }).click();
    await page.getByRole("link", { name: /^Messages \d/ }).click();
    await page.getByRole("link", { name: "20", exact: true }).click();
    await heading(page, "Message 20");
    await page.reload();
    await heading(page, "Message 20");
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await heading(page, "Entities");
    assert.equal(await page.getByRole("searchbox", { name: "Filter by name" }).inputValue(), "ord");
  });

  test("counts change while the page is looked at", async (page) => {
    await entity(api, "live");
    await open(page, "#/entity/live");
    await page.locator("dl.figures > div").filter({ hasText: "Active" }).getByText("0", { exact: true }).waitFor();
    await send(api, "live", { body: "a" }, { body: "b" }, { body: "c" });
    await page.locator("dl.figures > div").filter({ hasText: "Active" }).getByText("3", { exact: true }).waitFor();
  });

  test("entities are a tree that sorts, filters and closes", async (page) => {
    // More dead letters than any other test makes.
    await entity(api, "tree", "topic");
    await entity(api, "tree/Subscriptions/branch", "subscription");
    for (let batch = 0; batch < 4; batch += 1)
      await send(api, "tree", ...Array.from({ length: 250 }, () => ({ body: "fallen" })));
    await job(api, "tree/Subscriptions/branch", { kind: "dead_letter", reason: "Fallen" });
    await open(page, "#/entities");
    const names = () => page.locator("tbody .entity-name a").allTextContents();
    // Only the rows that fit are in the page: the order brings these into sight, however many entities other tests have
    // made.
    await page.getByRole("button", { name: "Dead letters" }).click();
    await until(async () => (await names())[0] === "tree", "the most dead letters are first");
    await page.getByRole("link", { name: "branch" }).waitFor();
    await page.locator("tr", { hasText: "tree" }).getByRole("button", { name: "Hide the subscriptions" }).click();
    await page.getByRole("link", { name: "branch" }).waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("link", { name: "tree", exact: true }).waitFor();
    assert(!(await names()).includes("branch"));
    await page.getByRole("button", { name: "Show the subscriptions" }).first().click();
    await page.getByRole("searchbox").fill("branc");
    await until(async () => (await names()).join() === "tree,branch", "the topic of what matches is shown");
    await page.getByRole("searchbox").fill("nothing like it");
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("link", { name: "orders", exact: true }).waitFor();
  });

  test("by keyboard: the box finds an entity, arrows and Enter open a message", async (page) => {
    await open(page);
    await page.keyboard.press("/");
    await page.keyboard.type("payme");
    await page.getByRole("option", { name: /payments/ }).waitFor();
    await page.keyboard.press("Enter");
    await heading(page, "payments");
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "H1", "the heading has the focus");
    await tabTo(page, /^Messages/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Messages/, "group");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await heading(page, "Message 2");
    await page.getByText("Scheduled: it becomes active").waitFor();
  });

  test("by keyboard: the first stop is the link to the content", async (page) => {
    await open(page);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
    assert.equal(new URL(page.url()).hash, "#/");
  });

  test(
    "a dead letter is repaired, the difference is shown, and it is sent again",
    async (page) => {
      await entity(api, "repaired");
      await send(api, "repaired", { body: '{"amount": -1}', content_type: "application/json" });
      await api("POST", "/jobs?wait=10", {
        entity: "repaired",
        selection: {},
        action: { kind: "dead_letter", reason: "BadAmount" },
      });
      await open(page, `#/entity/${encodeURIComponent("repaired/$DeadLetterQueue")}/message/1`);
      await page.getByRole("button", { name: "Repair" }).click();
      await page.getByRole("textbox", { name: "Body" }).fill('{"amount": 12.5}');
      await page.locator(".removed", { hasText: "-1" }).waitFor();
      await page.locator(".added", { hasText: "12.5" }).waitFor();
      await isAccessible(page);
      await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
      await page.locator("main").getByText("Dead letter 1 of repaired was sent again.").waitFor();
      const { messages } = await api("GET", "/entities/repaired/messages?body=full");
      assert.equal(messages[0].body.text, '{"amount": 12.5}');
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "a repair changes what was edited, and no byte more; another layout is said",
    async (page) => {
      await entity(api, "spaced");
      const text = '{"amount" :-1,\r\n\t"note":  "a,b"  }';
      await send(api, "spaced", { body: text, content_type: "application/json" });
      await api("POST", "/jobs?wait=10", {
        entity: "spaced",
        selection: {},
        action: { kind: "dead_letter", reason: "BadAmount" },
      });
      await open(page, `#/entity/${encodeURIComponent("spaced/$DeadLetterQueue")}/message/1`);
      await page.getByRole("button", { name: "Repair" }).click();
      const body = page.getByRole("textbox", { name: "Body" });
      const layout = page.getByText(/The format of the body changes too: 34 B become \d+ B/);
      await page.getByText("The values of the body are as they were.").waitFor();
      await page.getByRole("button", { name: "Format" }).click();
      await layout.waitFor();
      await body.fill((await body.inputValue()).replace("-1", "5"));
      await layout.waitFor();
      await body.fill(text.replace("-1", "5").replace("\r\n", "\n"));
      await layout.waitFor({ state: "detached" });
      await page.locator(".removed", { hasText: "-1" }).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
      await page.getByText("Message 1 was sent again.").first().waitFor();
      const { messages } = await api("GET", "/entities/spaced/messages?body=full");
      assert.equal(messages[0].body.text, text.replace("-1", "5"));
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "what the broker refuses is said in its words",
    async (page) => {
      await open(page, "#/entity/orders?tab=messages&by=filter&value=color%20%3D%3D%201");
      const refused = page.getByRole("alert");
      await refused.waitFor();
      const response = await fetch(
        `${new URL(page.url()).origin}/api/v1/entities/orders/messages?filter=color%20%3D%3D%201`,
      );
      assert.match(
        await refused.textContent(),
        new RegExp((await response.json()).detail.slice(0, 20).replace(/[^\w ]/g, ".")),
      );
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("deleting all messages is confirmed by the name", async (page) => {
    await entity(api, "purged");
    await send(api, "purged", { body: "a" }, { body: "b" });
    await open(page, "#/entity/purged");
    await page.getByRole("button", { name: "Delete messages" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Delete all 2 messages of purged" }).waitFor();
    const button = dialog.getByRole("button", { name: "Delete 2 messages" });
    assert(await button.isDisabled());
    await dialog.getByLabel(/To confirm, type purged/).fill("purged");
    await button.click();
    await page
      .getByRole("status")
      .getByText(/^2 messages of purged were deleted in /)
      .waitFor();
    await open(page, "#/entity/purged");
    await page.locator("dl.figures > div").filter({ hasText: "Active" }).getByText("0", { exact: true }).waitFor();
  });

  test("axe finds nothing", async (page) => {
    const addresses = [
      "#/",
      "#/entities",
      "#/entity/orders",
      "#/entity/orders?tab=messages",
      "#/entity/orders?tab=dead-letters",
      "#/entity/orders?tab=consumers",
      "#/entity/orders?tab=properties",
      "#/entity/news?tab=subscriptions",
      `#/entity/${encodeURIComponent("news/Subscriptions/eu")}?tab=rules`,
      "#/entity/orders/message/20",
      `#/entity/${encodeURIComponent("orders/$DeadLetterQueue")}/message/1`,
      "#/entity/none",
      "#/nowhere",
    ];
    for (const address of addresses) {
      await open(page, address);
      await page.locator(".loading").first().waitFor({ state: "detached" });
      await isAccessible(page);
    }
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByRole("button", { name: "Pages" }).click();
    await isAccessible(page);
    await live(page);
  });
});
