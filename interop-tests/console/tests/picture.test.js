// The picture of a queue: what arrives, what is here, what leaves; each figure leads to what it counts.

import assert from "node:assert/strict";
import { before } from "node:test";
import { connect, event, receive } from "../client.js";
import { api, heading, inBrowser, isAccessible, open, until } from "../harness.js";
import { entity, job, send } from "../seed.js";
import { tabTo } from "../journey.js";

const WIDTHS = [360, 768, 1440];
const at = (path) => `/entities/${encodeURIComponent(path)}`;
const later = () => new Date(Date.now() + 3_600_000).toISOString();

inBrowser("the picture of a queue", (test) => {
  before(async () => {
    for (const path of ["pictured", "pictured-end", "pictured-dead-end"]) await entity(api, path);
    await entity(api, "pictured-through", "queue", {
      forward_to: "pictured-end",
      forward_dead_letters_to: "pictured-dead-end",
    });
    await send(api, "pictured", ...Array.from({ length: 8 }, (_, number) => ({ body: `${number}` })), {
      body: "later",
      scheduled_for: later(),
    });
    await send(api, "pictured", { body: "short", time_to_live: "PT1S" });
    await send(api, "pictured-through", { body: "a" }, { body: "b" }, { body: "c" });
    await job(api, "pictured", { kind: "dead_letter", reason: "Test" }, { numbers: [1, 2] });
    const { messages } = await api("POST", `${at("pictured")}/lock`, { sequence_numbers: [3, 4] });
    await api("POST", `${at("pictured")}/settle`, {
      settlements: messages.map(({ lock_token: token }, number) => ({
        lock_token: token,
        outcome: number === 0 ? "complete" : "defer",
      })),
    });
  });

  const step = (page, name) =>
    page
      .getByRole("list", { name: "The way of messages" })
      .getByRole("listitem")
      .filter({ has: page.getByText(name, { exact: true }) });
  const box = (page, name, label) =>
    step(page, name)
      .locator("dl > div")
      .filter({ has: page.getByText(label, { exact: true }) });

  test("each state and each end has its count, and its way", async (page) => {
    const connection = await connect("pictured-worker");
    try {
      const { receiver, messages } = await receive(connection, "pictured", { credit: 2 });
      while (messages.length < 2) await event(receiver, "message");
      await open(page, "#/entity/pictured");
      await box(page, "Is here now", "Active").getByText("4", { exact: true }).waitFor();
      await box(page, "Is here now", "Locked").getByText("2", { exact: true }).waitFor();
      await box(page, "Is here now", "Locked").getByText("1 receiver", { exact: true }).waitFor();
      await box(page, "Is here now", "Scheduled").getByText("1", { exact: true }).waitFor();
      await box(page, "Is here now", "Deferred").getByText("1", { exact: true }).waitFor();
      await box(page, "Arrives", "In").getByText("10 in all", { exact: true }).waitFor();
      await box(page, "Leaves", "Completed").getByText("1 in all", { exact: true }).waitFor();
      await box(page, "Leaves", "Dead-lettered").getByText("2 in all", { exact: true }).waitFor();
      await box(page, "Leaves", "Expired").getByText("1 in all", { exact: true }).waitFor();
      await box(page, "Is here now", "Locked").getByRole("link", { name: "Locked: 2" }).click();
      await page.getByRole("link", { name: "pictured-worker" }).waitFor();
    } finally {
      connection.close();
    }
    await page.goBack();
    await box(page, "Leaves", "Dead-lettered").getByRole("link", { name: "2 dead letters" }).click();
    await page.getByRole("heading", { name: "Dead letters by reason" }).waitFor();
  });

  test("what is forwarded says where to", async (page) => {
    await open(page, "#/entity/pictured-through");
    await box(page, "Leaves", "Forwarded").getByText("3 in all", { exact: true }).waitFor();
    await box(page, "Leaves", "Dead-lettered").getByRole("link", { name: "pictured-dead-end" }).waitFor();
    await box(page, "Leaves", "Forwarded").getByRole("link", { name: "pictured-end" }).click();
    await heading(page, "pictured-end");
    await box(page, "Arrives", "In").getByText("3 in all", { exact: true }).waitFor();
  });

  test("rates follow what happens", async (page) => {
    await entity(api, "pictured-rates");
    await open(page, "#/entity/pictured-rates");
    const rate = box(page, "Arrives", "In").locator("dd").first();
    await until(async () => (await rate.textContent()) === "0 /s", "that nothing arrives is known");
    await until(async () => {
      await send(api, "pictured-rates", { body: "a" });
      return /^(0\.[1-9]|[1-9]).* \/s$/.test(await rate.textContent());
    }, "messages arrive");
  });

  test("by keyboard: a count leads to the messages of its state", async (page) => {
    await open(page, "#/entity/pictured");
    await tabTo(page, /^Scheduled: 1$/, "a");
    await page.keyboard.press("Enter");
    await page.getByRole("radio", { name: "Scheduled" }).waitFor({ state: "attached" });
    assert(await page.getByRole("radio", { name: "Scheduled" }).isChecked());
    await page.getByRole("link", { name: "9", exact: true }).waitFor();
  });

  test("it has room at every width, in one row where there is much", async (page) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await open(page, "#/entity/pictured-through");
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const boxes = await page.locator(".flow dl > div").evaluateAll((found) =>
        found.map((element) => {
          const { left, right, top } = element.getBoundingClientRect();
          return { left, right, top, isCut: element.clientWidth < element.scrollWidth };
        }),
      );
      assert.equal(boxes.length, 9);
      for (const { left, right, isCut } of boxes)
        assert(0 <= left && right <= width && !isCut, `${width}: ${left} to ${right}`);
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width}`);
      if (width === 1440) assert.equal(new Set(boxes.map(({ top }) => Math.round(top))).size, 1, "one row");
      if (width !== 768) await isAccessible(page);
    }
  });
});
