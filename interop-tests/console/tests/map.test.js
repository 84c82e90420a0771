// A topic as a map: its subscriptions with what they take, the worst first.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until } from "../harness.js";
import { entity, job, rule, send } from "../seed.js";
import { tabTo } from "../journey.js";

const MANY = 40;
const WIDTHS = [360, 768, 1440];
const of = (topic, name) => `${topic}/Subscriptions/${name}`;
const at = (path) => `/entities/${encodeURIComponent(path)}`;

inBrowser("the map of a topic", (test) => {
  before(
    async () => {
      await entity(api, "mapped-end");
      await entity(api, "mapped", "topic");
      await entity(api, of("mapped", "all"), "subscription");
      await entity(api, of("mapped", "filtered"), "subscription");
      await entity(api, of("mapped", "forwarding"), "subscription", { forward_to: "mapped-end" });
      await rule(api, of("mapped", "filtered"), "eu", {
        filter: { kind: "sql", expression: "region = 'EU'" },
        action: "SET seen = true",
      });
      await rule(api, of("mapped", "filtered"), "urgent", { filter: { kind: "correlation", subject: "urgent" } });
      await rule(api, of("mapped", "filtered"), "nothing", { filter: { kind: "false" } });
      await api("DELETE", `${at(of("mapped", "filtered"))}/rules/${encodeURIComponent("$Default")}`);
      await send(
        api,
        "mapped",
        ...Array.from({ length: 6 }, (_, number) => ({
          body: `${number}`,
          properties: { region: number < 2 ? "EU" : "US" },
        })),
      );
      await job(api, of("mapped", "all"), { kind: "dead_letter", reason: "Test" }, { numbers: [1, 2, 3] });
      await entity(api, "mapped-many", "topic");
      for (let number = 0; number < MANY; number += 1)
        await entity(api, of("mapped-many", `part-${number}`), "subscription");
      await send(api, "mapped-many", { body: "a" }, { body: "b" });
      await job(api, of("mapped-many", "part-37"), { kind: "dead_letter", reason: "Test" }, { numbers: [1] });
      await job(api, of("mapped-many", "part-5"), { kind: "delete" });
      await entity(api, "mapped-none", "topic");
      await send(api, "mapped-none", { body: "a" }, { body: "b" });
    },
    { timeout: 60_000 },
  );

  const branches = (page) => page.getByRole("list", { name: "Subscriptions" });
  const branch = (page, name) =>
    branches(page)
      .getByRole("listitem")
      .filter({ has: page.getByRole("link", { name, exact: true }) });
  const figure = (page, name, label) =>
    branch(page, name)
      .locator("dl > div")
      .filter({ has: page.getByText(label, { exact: true }) })
      .locator("dd");
  const names = (page) => branches(page).locator(".branch-name > a").allTextContents();

  test("a subscription says what it takes, what it has, and where it forwards to", async (page) => {
    await open(page, "#/entity/mapped");
    await page.getByText("6 in all", { exact: true }).waitFor();
    await branch(page, "all").getByText("takes every message").waitFor();
    assert.equal(await figure(page, "all", "Active").textContent(), "3");
    assert.equal(await figure(page, "all", "Dead letters").textContent(), "3");
    assert.equal(await figure(page, "filtered", "Active").textContent(), "2");
    await branch(page, "filtered").getByText("region = 'EU'", { exact: true }).waitFor();
    await branch(page, "filtered").getByText("SET seen = true", { exact: true }).waitFor();
    await branch(page, "filtered").getByText("and 1 more", { exact: true }).waitFor();
    assert.deepEqual(await names(page), ["all", "filtered", "forwarding"]);
    await branch(page, "forwarding").getByRole("link", { name: "mapped-end" }).click();
    await heading(page, "mapped-end");
    await page.goBack();
    await figure(page, "all", "Dead letters").getByRole("link").click();
    await page.getByRole("heading", { name: "Dead letters by reason" }).waitFor();
    await page.goBack();
    await branch(page, "filtered")
      .getByRole("link", { name: /region = 'EU'/ })
      .click();
    await page.getByRole("heading", { name: "urgent" }).waitFor();
  });

  test("of many the worst are first, and all are in the table", async (page) => {
    await open(page, "#/entity/mapped-many");
    await until(async () => (await names(page)).length === 12, "twelve are shown");
    assert.equal((await names(page))[0], "part-37", "that with a dead letter");
    assert(!(await names(page)).includes("part-5"), "that without a message is none of the worst");
    await page.getByText("28 others have fewer dead letters or a shorter backlog.").waitFor();
    await tabTo(page, /^Show all 40$/, "a");
    await page.keyboard.press("Enter");
    const table = page.getByRole("table", { name: "Subscriptions" });
    await until(async () => (await table.getAttribute("aria-rowcount")) === `${MANY + 1}`, "all are rows");
    await table.getByRole("link", { name: "takes every message" }).first().waitFor();
    await isAccessible(page);
  });

  test("only what is in sight asks for its rules", async (page) => {
    let asked = 0;
    await page.route("**/rules*", (route) => {
      asked += 1;
      return route.continue();
    });
    await open(page, "#/entity/mapped-many");
    await until(
      async () => (await branches(page).getByText("takes every message").count()) === 12,
      "the rules are there",
    );
    // The state of a namespace comes in parts: until it is whole, others may be the worst.
    assert(asked <= 24, `${asked} requests for ${MANY} subscriptions`);
  });

  test("a topic that no subscription takes from says so", async (page) => {
    await open(page, "#/entity/mapped-none");
    await page.getByText("This topic has no subscriptions: messages that are sent to it are discarded.").waitFor();
    await page
      .locator("dl > div")
      .filter({ hasText: "Taken by no subscription" })
      .getByText("2 in all", { exact: true })
      .waitFor();
    await page.getByRole("link", { name: "Create one here" }).click();
    await heading(page, "New entity");
    assert.match(page.url(), /kind=subscription/);
    assert.match(page.url(), /topic=mapped-none/);
  });

  test("in the table of subscriptions the rules have room", async (page) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await open(page, "#/entity/mapped?tab=subscriptions");
    const rules = page.getByRole("cell").filter({ hasText: "region = 'EU'" });
    await rules.waitFor();
    const { width } = await rules.boundingBox();
    assert(200 <= width, `${width}`);
  });

  test("it has room at every width", async (page) => {
    await open(page, "#/entity/mapped");
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const cut = await page.locator(".flow dl > div, .flow .branch-name").evaluateAll((found) =>
        found
          .filter((element) => {
            const { left, right } = element.getBoundingClientRect();
            return left < 0 || window.innerWidth < right || element.clientWidth < element.scrollWidth;
          })
          .map((element) => element.textContent),
      );
      assert.deepEqual(cut, [], `${width}`);
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width}`);
      if (width !== 768) await isAccessible(page);
    }
  });
});
