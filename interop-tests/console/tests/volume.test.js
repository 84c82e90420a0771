// Many entities: a table of them is a few elements, and stays quick.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, inBrowser, open, until } from "../harness.js";
import { entity, send } from "../seed.js";

/** With those of all other tests they stay below the 10,000 that the stream of changes has. */
const COUNT = 9_500;
const TOGETHER = 50;
/** Milliseconds for a sort or a filter of all of them, on two busy cores. */
const SLOW = 1_000;

inBrowser("volume", (test) => {
  before(
    async () => {
      for (let from = 0; from < COUNT; from += TOGETHER) {
        await Promise.all(Array.from({ length: TOGETHER }, (_, at) => entity(api, `many/service-${from + at}`)));
      }
      await send(api, "many/service-7777", { body: "a" });
    },
    { timeout: 100_000 },
  );

  test("thousands of entities are sorted, filtered and scrolled without delay", async (page) => {
    await open(page, "#/entities");
    await page.getByText(/^9,[5-9]\d\d$/).waitFor();
    assert((await page.locator("tbody tr").count()) < 100, "only rows in sight are elements");
    const first = () => page.locator("tbody .entity-name a").first().textContent();
    const timed = async (what, act) => {
      const began = Date.now();
      await act();
      const milliseconds = Date.now() - began;
      console.log(`${what}: ${milliseconds} ms`);
      assert(milliseconds < SLOW, `${what}: ${milliseconds} ms`);
    };
    await timed("filter", async () => {
      await page.getByRole("searchbox").fill("service-7777");
      await until(async () => (await page.locator("tbody tr").count()) === 1, "one matches");
    });
    await page.getByRole("searchbox").fill("many/");
    await timed("sort", async () => {
      await page.getByRole("button", { name: "Active" }).click();
      await until(async () => (await first()) === "many/service-7777", "the only one with messages is first");
    });
    await timed("scroll", async () => {
      await page.getByRole("group", { name: "Entities" }).focus();
      await page.keyboard.press("End");
      await page.getByRole("link", { name: "many/service-9499", exact: true }).waitFor();
    });
    assert((await page.locator("tbody tr").count()) < 100);
  });
});
