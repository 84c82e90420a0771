// What needs attention, as the broker tells it: since when, acknowledged, muted, and shown again.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until, url } from "../harness.js";
import { entity, job, send } from "../seed.js";
import { tabTo } from "../journey.js";

inBrowser("attention", (test) => {
  before(async () => {
    for (const path of ["needy", "noisy", "returning", "by-key", "healthy"]) await entity(api, path);
    await send(api, "needy", { body: "a" }, { body: "b" });
    for (const path of ["noisy", "returning", "by-key"]) await send(api, path, { body: "a" });
  });

  const region = (page) => page.getByRole("region", { name: "Needs attention" });
  const item = (page, text) => region(page).getByRole("listitem").filter({ hasText: text });

  test("the page of an entity says what is the matter with it alone, and since when", async (page) => {
    await open(page, "#/entity/needy");
    await item(page, "2 messages wait, and no receiver is attached.")
      .getByText(/^for \d+/)
      .waitFor();
    assert.equal(await region(page).getByRole("listitem").count(), 1);
    const {
      items: [told],
    } = await api("GET", "/attention?entity=needy");
    assert.deepEqual([told.kind, told.count, told.id], ["no_receiver", 2, "no_receiver::needy"]);
    assert.equal(
      await item(page, "2 messages wait")
        .getByText(/^for \d+/)
        .getAttribute("title"),
      told.since,
    );
    await isAccessible(page);
    await open(page, "#/entity/healthy");
    await heading(page, "healthy");
    await page.locator("dl.figures").first().waitFor();
    assert.equal(await region(page).count(), 0);
  });

  test("what is acknowledged is hidden until its number grows", async (page) => {
    await open(page, "#/entity/needy");
    await item(page, "messages wait")
      .getByRole("button", { name: /^Acknowledge needy/ })
      .click();
    await region(page).getByText("Nothing but what is hidden.").waitFor();
    await region(page).getByText("1 hidden").waitFor();
    await page.reload();
    await region(page).getByText("1 hidden").waitFor();
    assert.equal(await region(page).getByRole("listitem").count(), 0);
    await send(api, "needy", { body: "c" });
    await item(page, "3 messages wait")
      .getByRole("button", { name: /^Acknowledge needy/ })
      .waitFor();
    assert.equal(await region(page).getByText("1 hidden").count(), 0);
  });

  test("what is acknowledged is shown again when it has gone and comes back", async (page) => {
    await open(page, "#/entity/returning");
    await item(page, "1 message waits")
      .getByRole("button", { name: /^Acknowledge returning/ })
      .click();
    await region(page).getByText("1 hidden").waitFor();
    await job(api, "returning", { kind: "delete" });
    await region(page).waitFor({ state: "detached" });
    await send(api, "returning", { body: "again" });
    await item(page, "1 message waits")
      .getByRole("button", { name: /^Acknowledge returning/ })
      .waitFor();
  });

  test("what is muted is hidden until it is unmuted", async (page) => {
    await open(page, "#/entity/noisy");
    await item(page, "1 message waits")
      .getByRole("button", { name: /^Mute noisy/ })
      .click();
    await region(page).getByText("1 hidden").waitFor();
    await send(api, "noisy", { body: "b" });
    await until(
      async () => (await api("GET", "/attention?entity=noisy")).items[0]?.count === 2,
      "the broker tells more",
    );
    await region(page).getByRole("button", { name: "Show hidden" }).click();
    await item(page, "2 messages wait").getByText("muted").waitFor();
    await isAccessible(page);
    await region(page).getByRole("button", { name: "Hide again" }).click();
    assert.equal(await region(page).getByRole("listitem").count(), 0);
    await page.reload();
    await region(page).getByRole("button", { name: "Show hidden" }).click();
    await item(page, "2 messages wait")
      .getByRole("button", { name: /^Unmute noisy/ })
      .click();
    await item(page, "2 messages wait")
      .getByRole("button", { name: /^Mute noisy/ })
      .waitFor();
    assert.equal(await region(page).getByText("1 hidden").count(), 0);
  });

  test("by keyboard: an item is acknowledged, and shown again", async (page) => {
    await open(page, "#/entity/by-key");
    await item(page, "1 message waits").waitFor();
    await tabTo(page, /^Acknowledge by-key/);
    await page.keyboard.press("Enter");
    await region(page).getByText("1 hidden").waitFor();
    await tabTo(page, /^Show hidden$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Show again by-key/);
    await page.keyboard.press("Enter");
    await item(page, "1 message waits")
      .getByRole("button", { name: /^Acknowledge by-key/ })
      .waitFor();
  });

  test("the overview says that nothing is known while the broker has told nothing", async (page) => {
    let release = () => {};
    const held = new Promise((done) => {
      release = done;
    });
    await page.route("**/api/v1/changes*", async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(`${url}/#/`);
    await heading(page, "Overview");
    await region(page).getByText("Not known yet").waitFor();
    assert.equal(await region(page).getByText("Nothing needs attention.").count(), 0);
    release();
    await region(page).getByRole("listitem").first().waitFor();
  });

  test("at 360 pixels nothing is wider than the page", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/");
    await region(page).getByRole("listitem").first().waitFor();
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= 360));
    await isAccessible(page);
  });
});
