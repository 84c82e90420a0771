// Histories of an hour, a day and a week, and what has changed: lines beside numbers, and dead letters that are new.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until } from "../harness.js";
import { entity, job, send } from "../seed.js";

const WIDTHS = [360, 768, 1440];
const MINUTE = 60_000;
const LENGTHS = { hour: 10_000, day: 5 * MINUTE, week: 30 * MINUTE };
const COUNT = 60;

/** A history that ends now, in which the number of active messages tells the interval, with a gap in its middle. */
function historyOf(range) {
  const length = LENGTHS[range];
  const end = Date.now();
  const gap = 20 * length;
  const at = (place) => end - (COUNT - 1 - place) * length - (place < COUNT / 2 ? gap : 0);
  const point = (time, place) => ({
    at: new Date(time).toISOString(),
    seconds: length / 1000,
    incoming: length / 1000,
    published: 0,
    completed: 0,
    dead_lettered: 0,
    active: place,
    deferred: 0,
    scheduled: 0,
    dead_letters: 0,
  });
  const times = Array.from({ length: COUNT }, (_, place) => at(place));
  return {
    range,
    interval_seconds: length / 1000,
    rates: { incoming: 1, published: 0, completed: 0, dead_lettered: 0 },
    points: times.slice(0, range === "hour" ? COUNT : COUNT - 1).map(point),
    ...(range === "hour" ? {} : { current: point(times[COUNT - 1], COUNT - 1) }),
    gaps: [
      { from: new Date(times[COUNT / 2 - 1]).toISOString(), until: new Date(times[COUNT / 2] - length).toISOString() },
    ],
  };
}

/** Answers for the histories; returns the ranges that the page has asked for. */
async function withHistory(page) {
  const asked = [];
  await page.route(/\/api\/v1\/(entities\/[^/]+\/)?history(\?|$)/, (route) => {
    const { searchParams } = new URL(route.request().url());
    const range = searchParams.get("range");
    asked.push(range);
    return route.fulfill({ json: historyOf(range) });
  });
  return asked;
}

const change = (now, hour, day, hours) => ({
  now,
  hour,
  day,
  hours: hours ?? [...Array.from({ length: 23 }, () => Math.max(0, now - hour)), now],
});
const withTrends = (page, trends) =>
  page.route(/\/api\/v1\/trends(\?|$)/, (route) =>
    route.fulfill({
      json: {
        whole: Object.values(trends)[0],
        trends: Object.entries(trends).map(([path, trend]) => ({ path, trend })),
      },
    }),
  );

const charts = (page) => page.locator(".chart [role=img]");
const active = (page) => page.locator(".chart").nth(1).locator(".legend-item").first().locator("b").textContent();
const times = (page) => page.locator(".chart .legend > .muted").allTextContents();
const choice = (page, name) => page.getByRole("group", { name: "Time", exact: true }).getByText(name, { exact: true });
const row = (page, name) => page.locator("tbody tr").filter({ has: page.getByRole("link", { name, exact: true }) });
const fits = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1);

/** Sends messages and dead-letters them. */
async function deadLetters(path, count) {
  await send(api, path, ...Array.from({ length: count }, () => ({ body: "bad" })));
  await job(api, path, { kind: "dead_letter", reason: "Bad", description: "it is bad" });
}

inBrowser("histories", (test) => {
  before(() => entity(api, "trend-none"));

  test("a range is chosen, is in the address, and has one cursor for both charts and a part of its own", async (page) => {
    const asked = await withHistory(page);
    for (const address of ["#/", "#/entity/trend-none"]) {
      await open(page, address);
      await page.locator(".chart .u-over").nth(1).waitFor();
      assert.equal(asked.at(-1), "hour");
      for (const [name, range] of [
        ["24h", "day"],
        ["7d", "week"],
      ]) {
        await choice(page, name).click();
        await until(() => asked.at(-1) === range, "the range is asked for");
        await page.waitForURL(new RegExp(`range=${range}`));
        await page.locator(".chart .u-over").nth(1).waitFor();
        // The interval that has begun is the newest value.
        await until(async () => (await active(page)) === String(COUNT - 1), "the newest value");
        await charts(page).first().focus();
        await page.keyboard.press("Home");
        await until(async () => (await active(page)) === "0", "the oldest");
        const [one, other] = await times(page);
        assert.equal(one, other);
        // More than a time of the day.
        assert.match(one, /[a-z]{2}/i);
        await page.keyboard.press("+");
        await page.locator(".chart-part").waitFor();
        assert.match(page.url(), /begin=.*range=|range=.*begin=/);
        await page.reload();
        await page.locator(".chart-part").waitFor();
      }
      await choice(page, "1h").click();
      await until(() => asked.at(-1) === "hour", "the hour is asked for");
      assert(!/range=|begin=/.test(page.url()), page.url());
      assert.equal(await page.locator(".chart-part").count(), 0);
    }
  });

  test("a gap has no values, and no line goes over it", async (page) => {
    await withHistory(page);
    await open(page, "#/?range=day");
    await page.locator(".chart .u-over").nth(1).waitFor();
    await isAccessible(page);
    await charts(page).first().focus();
    await page.keyboard.press("Home");
    for (let step = 1; step < COUNT / 2; step += 1) await page.keyboard.press("ArrowRight");
    await until(async () => (await active(page)) === String(COUNT / 2 - 1), "the last value before the gap");
    await page.keyboard.press("ArrowRight");
    await until(async () => (await active(page)) === "–", "nothing is known in the gap");
    await page.keyboard.press("ArrowRight");
    await until(async () => (await active(page)) === String(COUNT / 2), "the first value behind the gap");
  });
});

inBrowser("trends", (test) => {
  before(async () => {
    for (const path of ["trend-old", "trend-new", "trend-seen"]) await entity(api, path);
    await deadLetters("trend-old", 5);
    await deadLetters("trend-new", 5);
  });

  test("red are dead letters that have come within the last hour, and no others", async (page) => {
    const none = change(0, 0, 0);
    await withTrends(page, {
      "trend-old": {
        since: "2026-11-28T10:00:00Z",
        active: change(0, -3, 1),
        dead_letters: change(5, 0, 2),
        dead_lettered: { hour: 0, day: 2 },
      },
      "trend-new": {
        since: "2026-11-28T10:00:00Z",
        active: none,
        dead_letters: change(5, 3, 5),
        dead_lettered: { hour: 3, day: 5 },
      },
    });
    await open(page, "#/entities?filter=trend-");
    const [old, fresh] = [row(page, "trend-old"), row(page, "trend-new")];
    const dead = (of) => of.locator("a.number", { hasText: /^5$/ });
    await fresh.locator(".trend-change.alarm").waitFor();
    const colours = await Promise.all(
      [dead(old), dead(fresh)].map((link) => link.evaluate((element) => getComputedStyle(element).color)),
    );
    assert.notEqual(colours[0], colours[1]);
    assert.equal(await fresh.locator(".trend-change").textContent(), "+3");
    assert.match(
      await fresh.locator(".trend-change").getAttribute("title"),
      /\+3 within the last hour, \+5 within the last day/,
    );
    assert.equal(await old.locator(".trend-change").textContent(), "−3");
    assert.equal(await old.locator(".trend-change.alarm").count(), 0);
    assert.equal(await fresh.locator(".sparkline.alarm").count(), 1);
    await isAccessible(page);
    // What comes after the answer is new, too.
    await deadLetters("trend-old", 1);
    await row(page, "trend-old").locator("a.number.alarm", { hasText: /^6$/ }).waitFor();
    await row(page, "trend-old").locator(".trend-change.alarm").getByText("+1", { exact: true }).waitFor();
  });

  test("the number beside Entities is red if some are new", async (page) => {
    const badge = page.locator("nav .badge");
    await open(page, "#/entities");
    await badge.waitFor();
    await until(async () => (await badge.getAttribute("class")) === "badge", "some are new");
  });

  test("what has changed fits into each width", async (page) => {
    await withTrends(page, {
      "trend-new": {
        since: "2026-11-28T10:00:00Z",
        active: change(12_345, -1_234, 5),
        dead_letters: change(5, 3, 5),
        dead_lettered: { hour: 3, day: 5 },
      },
    });
    for (const address of ["#/entities", "#/?range=week", "#/entity/trend-new"]) {
      await open(page, address);
      await page.locator(".number").first().waitFor();
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        await until(() => fits(page), `${address} fits into ${width} pixels`);
      }
    }
  });

  test("the broker's own trends are shown", async (page) => {
    const told = page.waitForResponse(/\/api\/v1\/trends/);
    await open(page, "#/");
    const answer = await (await told).json();
    assert(
      answer.trends.every(({ trend }) => trend.dead_letters.hours.length === 24),
      JSON.stringify(answer),
    );
    await heading(page, "Overview");
    await page.locator("dl.figures > div").filter({ hasText: "Dead letters" }).locator(".number.alarm").waitFor();
  });

  test("dead letters that have come since the reader looked are counted, for each entity", async (page) => {
    const badge = row(page, "trend-seen").locator(".unseen");
    await deadLetters("trend-seen", 2);
    await open(page, "#/entities?filter=trend-");
    await row(page, "trend-seen").getByText("2", { exact: true }).waitFor();
    assert.equal(await badge.count(), 0, "nobody has looked yet");
    await row(page, "trend-seen").getByRole("link", { name: "trend-seen", exact: true }).click();
    await heading(page, "trend-seen");
    await page.locator(".tab-count", { hasText: /^2$/ }).waitFor();
    await page.goBack();
    await heading(page, "Entities");
    assert.equal(await badge.count(), 0);
    await deadLetters("trend-seen", 3);
    await until(async () => (await badge.textContent()) === "3 new", "three have come");
    assert.match(await badge.getAttribute("title"), /3 dead letters have come since you opened/);
    await page.reload();
    await until(async () => (await badge.textContent()) === "3 new", "the browser keeps it");
    // What is gone is not missed when others come.
    await job(api, "trend-seen/$DeadLetterQueue", { kind: "delete" });
    await badge.waitFor({ state: "detached" });
    await deadLetters("trend-seen", 1);
    await until(async () => (await badge.textContent()) === "1 new", "one has come");
    await open(page, "#/entity/trend-seen");
    await page.locator(".tab-count", { hasText: /^1$/ }).waitFor();
    await open(page, "#/entities?filter=trend-");
    await row(page, "trend-seen").getByText("1", { exact: true }).waitFor();
    assert.equal(await badge.count(), 0);
  });
});
