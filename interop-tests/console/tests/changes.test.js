// The stream of changes: where it ends, breaks, or is refused.

import assert from "node:assert/strict";
import { api, inBrowser, live, open, until, url } from "../harness.js";
import { breaker } from "../proxy.js";
import { entity, send } from "../seed.js";

const active = (page) => page.locator("dl.figures > div").filter({ hasText: "Active" });

inBrowser("changes", (test) => {
  test("a stream that ends is resumed where it was, and nobody notices", async (page) => {
    await entity(api, "resumed");
    const ids = [];
    // The broker ends it after a second.
    await page.route("**/api/v1/changes", (route) => {
      ids.push(route.request().headers()["last-event-id"]);
      return route.continue({ url: `${route.request().url()}?seconds=1` });
    });
    await open(page, "#/entity/resumed");
    await page.evaluate(() => {
      window.statuses = new Set();
      const status = document.querySelector(".status");
      new MutationObserver((records) => {
        for (const { oldValue } of records) window.statuses.add(`${oldValue} -> ${status.className}, ${status.title}`);
      }).observe(status, { attributeFilter: ["class"], attributeOldValue: true });
    });
    await until(() => 3 <= ids.length, "it ends and is opened again");
    assert.equal(ids[0], undefined);
    assert(
      ids.slice(1).every((id) => id !== undefined),
      `${ids}`,
    );
    await send(api, "resumed", { body: "a" }, { body: "b" });
    await active(page).getByText("2", { exact: true }).waitFor();
    assert.deepEqual(await page.evaluate(() => [...window.statuses]), []);
  });

  test(
    "where no stream passes, changes are polled; another tab gets them too",
    async (page, context) => {
      await entity(api, "polled");
      const proxy = await breaker(url, () => true);
      try {
        await page.goto(`${proxy.url}/#/entity/polled`);
        await page.locator(".status.polling").waitFor();
        const opened = proxy.streams.length;
        assert.equal(opened, 3);
        await send(api, "polled", { body: "a" });
        await active(page).getByText("1", { exact: true }).waitFor();
        const second = await context.newPage();
        await second.goto(`${proxy.url}/#/entity/polled`);
        await second.locator(".status.polling").waitFor();
        await active(second).getByText("1", { exact: true }).waitFor();
        await send(api, "polled", { body: "b" });
        for (const tab of [page, second]) await active(tab).getByText("2", { exact: true }).waitFor();
        assert.equal(proxy.streams.length, opened, "no stream is tried in between");
      } finally {
        proxy.close();
      }
    },
    { allow: [/ERR_/, /Failed to load resource/] },
  );

  test(
    "one that breaks once goes on where it was",
    async (page) => {
      await entity(api, "broken");
      let breaks = 1;
      const proxy = await breaker(url, () => breaks-- === 1);
      try {
        await page.goto(`${proxy.url}/#/entity/broken`);
        await until(() => proxy.streams.length === 2, "it is opened again");
        await live(page);
        await send(api, "broken", { body: "a" });
        await active(page).getByText("1", { exact: true }).waitFor();
      } finally {
        proxy.close();
      }
    },
    { allow: [/ERR_/, /Failed to load resource/] },
  );

  test(
    "too many of them: the broker's words are shown, and it is asked again when it says",
    async (page) => {
      const detail = "There are streams enough <b>here</b>.";
      const asked = [];
      await page.route("**/api/v1/changes", (route) => {
        asked.push(Date.now());
        if (1 < asked.length) return route.continue();
        return route.fulfill({
          status: 429,
          contentType: "application/problem+json",
          headers: { "Retry-After": "1" },
          body: JSON.stringify({ status: 429, title: "Too Many Requests", detail, reason: "limit" }),
        });
      });
      await page.goto(`${url}/#/`);
      await page.getByText(detail).waitFor();
      await live(page);
      await page.getByText(detail).waitFor({ state: "detached" });
      assert.equal(asked.length, 2);
      const waited = asked[1] - asked[0];
      assert(900 <= waited && waited < 8_000, `${waited} ms`);
    },
    { allow: [/429/] },
  );
});
