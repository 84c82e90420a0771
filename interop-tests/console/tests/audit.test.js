// The log of administrative operations.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, securedUrl, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { entity, rule } from "../seed.js";

const times = (page) => page.locator("tbody time").count();
const entitiesOf = (page) => page.locator("tbody tr:not(.space) td:nth-child(3)").allTextContents();
const LISTENER =
  "Endpoint=sb://localhost/;SharedAccessKeyName=listener;SharedAccessKey=bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";

inBrowser("audit", (test) => {
  before(async () => {
    await entity(api, "audited");
    await entity(api, "audited-topic", "topic");
    await entity(api, "audited-topic/Subscriptions/one", "subscription");
    await rule(api, "audited-topic/Subscriptions/one", "hostile", {
      filter: { kind: "sql", expression: "a = '<img src=x onerror=alert(1)>\u202e<script>alert(1)</script>'" },
    });
    await entity(api, "audited-gone");
    await api("DELETE", "/entities/audited-gone");
    // More than a page of the log, so that a filter has to read on.
    for (let number = 0; number < 120; number += 1) await entity(api, `audited-later-${number}`);
  });

  test("by mouse: an entry says who, from where and what, and leads to its entity", async (page) => {
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Audit log" }).click();
    await heading(page, "Audit log");
    await page.getByLabel("Entity", { exact: true }).fill("audited-topic");
    await page.getByText(/^3 of \d+/).waitFor();
    await page.getByRole("button", { name: "create rule" }).click();
    const whole = page.locator("section", { has: page.getByRole("heading", { name: /^Operation \d+$/ }) });
    await whole.getByText("127.0.0.1").waitFor();
    await whole.getByText("<script>alert(1)</script>").waitFor();
    await whole.getByText("\\u{202e}").first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await isAccessible(page);
    await page.reload();
    await whole.getByText("127.0.0.1").waitFor();
    await whole.getByRole("link", { name: "audited-topic/Subscriptions/one" }).click();
    await heading(page, "one");
    assert.equal(clicks(), 3);
    await page.goBack();
    await whole.waitFor();
    await whole.getByRole("button", { name: "Close" }).click();
    await whole.waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Entity", { exact: true }).inputValue(), "audited-topic");
  });

  test("by keyboard: a filter is chosen, an entry is opened, what is gone has no link", async (page) => {
    await open(page, "#/audit");
    await page.locator("tbody time").first().waitFor();
    await tabTo(page, /^Operation$/, "select");
    await page.keyboard.type("delete");
    await until(async () => (await entitiesOf(page)).join() === "audited-gone", "the deletion alone is shown");
    assert.equal(await page.getByRole("link", { name: "audited-gone" }).count(), 0);
    await tabTo(page, /^Administrative operations$/, "group");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Operation \d+$/ }).waitFor();
    await until(
      () => page.evaluate(() => /^Operation \d+$/.test(document.activeElement?.textContent ?? "")),
      "the entry has the focus",
    );
  });

  test("by time: in the reader's zone, in the address in UTC", async (page) => {
    await open(page, "#/audit?entity=audited-gone");
    await until(async () => (await times(page)) === 2, "both entries are shown");
    const [first] = (await api("GET", "/audit")).entries;
    const shown = page.locator("tbody time").first();
    assert.match(await shown.getAttribute("title"), /UTC$/);
    // Amsterdam is ahead of UTC.
    const hour = (Date.parse(first.at) - Date.parse(await shown.getAttribute("datetime"))) / 3_600_000;
    assert(hour < 1, "the entry is of this run");
    const local = new Intl.DateTimeFormat("en-GB", {
      hour: "2-digit",
      minute: "2-digit",
      timeZone: "Europe/Amsterdam",
    }).format(new Date(await shown.getAttribute("datetime")));
    assert((await shown.textContent()).includes(local));
    await page.getByText("Range…").click();
    await page.getByLabel("From").fill("2020-06-01T12:00:00");
    await page.getByLabel("Until").fill("2020-06-02T12:00:00");
    await page.getByLabel("Until").blur();
    await page.getByText("No operation matches.").waitFor();
    assert.match(decodeURIComponent(page.url()), /from=2020-06-01T10:00:00.000Z&until=2020-06-02T10:00:00.000Z/);
    await page.reload();
    await page.getByText("No operation matches.").waitFor();
    assert.match(await page.getByLabel("From").inputValue(), /^2020-06-01T12:00/);
    await isAccessible(page);
    await page.getByText("1 hour").click();
    await until(async () => (await times(page)) === 2, "both are of the last hour");
    await page.getByLabel("Who").fill("no such client");
    await page.getByRole("button", { name: "Show all" }).click();
    await until(async () => 20 < (await times(page)), "all are shown");
  });

  test("older entries come as the table is scrolled, new ones by themselves", async (page) => {
    await open(page, "#/audit");
    await page.getByText(/^100$/).waitFor();
    await page.getByRole("group", { name: "Administrative operations" }).focus();
    await page.keyboard.press("End");
    await page.getByText(/, all shown/).waitFor();
    await page.keyboard.press("Home");
    await entity(api, "audited-new");
    await page.locator("tbody").getByText("audited-new", { exact: true }).waitFor();
  });

  test("narrow, axe finds nothing", async (page) => {
    await page.setViewportSize({ width: 360, height: 800 });
    await open(page, "#/audit");
    await page.locator("tbody time").first().waitFor();
    await isAccessible(page);
  });

  test(
    "without the right Manage the page says what is needed",
    async (page) => {
      await page.goto(securedUrl);
      await page.getByLabel("Connection string", { exact: true }).last().fill(LISTENER);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.locator(".status.live").waitFor();
      await page.goto(`${securedUrl}/#/audit`);
      await page.getByText("The log needs the right Manage.").waitFor();
      assert.equal(await page.locator("table").count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );
});
