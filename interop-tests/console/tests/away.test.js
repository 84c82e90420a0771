// One stream for all tabs, and a broker that is away.

import assert from "node:assert/strict";
import { api, control, heading, inBrowser, isAccessible, live, open, until, url } from "../harness.js";
import { entity, send } from "../seed.js";

inBrowser("away", (test) => {
  test("all tabs of a browser share one stream, and the next tab takes over", async (page, context) => {
    await entity(api, "shared");
    const streams = [];
    context.on("request", (request) => request.url().includes("/api/v1/changes") && streams.push(request));
    await open(page, "#/entity/shared");
    const second = await context.newPage();
    await open(second, "#/entity/shared");
    const third = await context.newPage();
    await open(third, "#/entity/shared");
    assert.equal(streams.length, 1);
    await send(api, "shared", { body: "a" }, { body: "b" });
    const active = (tab) => tab.locator("dl.figures > div").filter({ hasText: "Active" });
    for (const tab of [page, second, third]) await active(tab).getByText("2", { exact: true }).waitFor();
    await page.close();
    await until(() => streams.length === 2, "another tab follows");
    assert.notEqual(streams[1].headers()["last-event-id"], undefined, "it continues where the first was");
    await send(api, "shared", { body: "c" });
    for (const tab of [second, third]) await active(tab).getByText("3", { exact: true }).waitFor();
  });

  test(
    "a lost broker is announced, and the page comes back by itself",
    async (page) => {
      await entity(api, "0-away");
      await send(api, "0-away", { body: "a" });
      await open(page, "#/entity/0-away");
      await page.waitForFunction(() =>
        performance.getEntriesByType("resource").some(({ name }) => name.endsWith("/styles/settings.css")),
      );
      await control("kill");
      try {
        await page.getByRole("alert").getByText("Cannot reach the broker.").waitFor();
        await page.getByRole("status").getByText("Cannot reach the broker.").waitFor();
        await isAccessible(page);
        // What was known is still shown, and pages can be changed.
        await page.locator("#navigation").getByRole("link", { name: "Entities" }).click();
        await page.getByRole("link", { name: "0-away" }).waitFor();
      } finally {
        // The tests of other files need it.
        await control("start");
      }
      await live(page);
      await page.getByRole("status").getByText("The broker is back.").waitFor();
      await page.getByRole("link", { name: "0-away" }).click();
      await page.locator("dl.figures > div").filter({ hasText: "Active" }).getByText("1", { exact: true }).waitFor();
    },
    { isIdle: true, allow: [/ERR_/, /Failed to load resource/] },
  );

  test(
    "a page that is opened before the broker answers its questions waits",
    async (page) => {
      let isBlocked = true;
      await page.route("**/api/v1/**", (route) => (isBlocked ? route.abort() : route.continue()));
      await page.goto(url);
      await page.getByRole("heading", { name: "Cannot reach the broker" }).waitFor();
      isBlocked = false;
      await heading(page, "Overview");
    },
    { allow: [/ERR_FAILED/] },
  );
});
