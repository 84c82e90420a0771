// Charts of the last hour: one cursor for both, and a part of the hour.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, inBrowser, isAccessible, open, until } from "../harness.js";
import { entity } from "../seed.js";

const POINTS = 100;
const BEGIN = Date.parse("2026-11-28T10:00:00Z");

/** An hour in which the number of active messages tells the interval. */
const hour = {
  range: "hour",
  interval_seconds: 10,
  gaps: [],
  rates: { incoming: 1, published: 0, completed: 1, dead_lettered: 0 },
  points: Array.from({ length: POINTS }, (_, at) => ({
    at: new Date(BEGIN + at * 10_000).toISOString(),
    seconds: 10,
    incoming: 10,
    published: 0,
    completed: 5,
    dead_lettered: 0,
    active: at,
    deferred: 1,
    scheduled: 2,
    dead_letters: 0,
  })),
};

const answer = (route) => {
  const isFirst = !new URL(route.request().url()).searchParams.has("after");
  return route.fulfill({ json: { ...hour, points: isFirst ? hour.points : [] } });
};
const charts = (page) => page.locator(".chart [role=img]");
const times = (page) => page.locator(".chart .legend > .muted").allTextContents();
const active = (page) => page.locator(".chart").nth(1).locator(".legend-item").first().locator("b").textContent();
const drawn = (page) => page.locator(".chart .u-over").nth(1).waitFor();

/** Opens a page with that hour. */
async function shown(page, address = "#/") {
  await page.route(/\/api\/v1\/(entities\/[^/]+\/)?history(\?|$)/, answer);
  await open(page, address);
  await drawn(page);
}

inBrowser("charts", (test) => {
  before(() => entity(api, "charted"));

  test("one cursor goes over both charts", async (page) => {
    for (const address of ["#/", "#/entity/charted"]) {
      await shown(page, address);
      await charts(page)
        .first()
        .hover({ position: { x: 200, y: 60 } });
      await until(async () => (await times(page)).length === 2, "both have a time");
      const [one, other] = await times(page);
      assert.equal(one, other);
      assert.notEqual(await active(page), String(POINTS - 1));
      await page.mouse.move(2, 2);
      await until(async () => (await times(page)).length === 0, "the newest values are back");
      assert.equal(await active(page), String(POINTS - 1));
    }
  });

  test("a part of the time is chosen by the mouse, is in the address, and ends", async (page) => {
    await shown(page);
    // What is loaded above a chart moves it: the pointer goes to where it is now.
    const over = page.locator(".chart .u-over").first();
    const { width } = await over.boundingBox();
    await over.hover({ position: { x: width * 0.25, y: 40 } });
    await page.mouse.down();
    const { x, y } = await over.boundingBox();
    await page.mouse.move(x + width * 0.5, y + 40, { steps: 5 });
    await page.mouse.up();
    const part = page.locator(".chart-part");
    await part.waitFor();
    await page.mouse.move(2, 2);
    await until(
      async () => Math.abs(Number(await active(page)) - POINTS / 2) <= 2,
      "the end of the part is the newest value",
    );
    const { begin, end } = await page.evaluate(() =>
      Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])),
    );
    assert(BEGIN < Date.parse(begin) && Date.parse(begin) < Date.parse(end), `${begin} ${end}`);
    const text = await part.textContent();
    await isAccessible(page);
    await page.reload();
    await drawn(page);
    assert.equal(await part.textContent(), text);
    await part.getByRole("button", { name: "Show all" }).click();
    await part.waitFor({ state: "detached" });
    assert.equal(await active(page), String(POINTS - 1));
    assert(!page.url().includes("begin="), page.url());
  });

  test("keys move the cursor, choose a part, and show all", async (page) => {
    await shown(page);
    await charts(page).nth(1).focus();
    await page.keyboard.press("Home");
    await until(async () => (await active(page)) === "0", "the oldest");
    await page.keyboard.press("ArrowRight");
    await until(async () => (await active(page)) === "1", "the next");
    assert.equal(new Set(await times(page)).size, 1);
    await page.keyboard.press("+");
    await page.locator(".chart-part").waitFor();
    await page.keyboard.press("End");
    await until(async () => {
      const value = Number(await active(page));
      return 20 < value && value < 40;
    }, "the end of the part");
    await page.keyboard.press("-");
    await page.locator(".chart-part").waitFor({ state: "detached" });
  });

  test("a part without points shows all", async (page) => {
    await shown(page, "#/?begin=2020-01-01T00:00:00Z&end=2020-01-02T00:00:00Z");
    assert.equal(await active(page), String(POINTS - 1));
    assert.equal(await page.locator(".chart-part").count(), 0);
  });
});
