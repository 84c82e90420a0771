// What arrives in a queue, as it arrives: bounded, filtered, paused, and never locked.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until } from "../harness.js";
import { entity, job, send } from "../seed.js";
import { tabTo } from "../journey.js";

const bodies = (length, of = () => ({})) =>
  Array.from({ length }, (_, number) => ({ body: `body ${number}`, message_id: `id-${number}`, ...of(number) }));

inBrowser("messages as they arrive", (test) => {
  before(async () => {
    for (const path of ["tailed", "tailed-many", "tailed-filter", "tailed-paused", "tailed-quiet", "tailed-back"])
      await entity(api, path);
    await entity(api, "tailed-parts", "queue", { partitioned: true });
    await entity(api, "tailed-topic", "topic");
    await send(api, "tailed", ...bodies(3));
  });

  const numbers = (page) =>
    page.getByRole("table", { name: "Messages as they arrive" }).locator("a.number").allTextContents();
  const follow = async (page, path, query = "") => {
    await open(page, `#/entity/${path}?tab=live${query}`);
    await page.getByText("Following", { exact: true }).waitFor();
  };

  test("a message is shown when it arrives, the newest first, and is not locked", async (page) => {
    await follow(page, "tailed");
    await page.getByText(/^No message has arrived since /).waitFor();
    await isAccessible(page);
    await send(api, "tailed", { body: "first", message_id: "one" });
    await until(async () => (await numbers(page)).join() === "4", "the first is shown, and none of before");
    await send(api, "tailed", { body: "second", message_id: "two" }, { body: "third", message_id: "three" });
    await until(async () => (await numbers(page)).join() === "6,5,4", "the newest is first");
    await page.getByText("second", { exact: true }).waitFor();
    await page.getByText(/^Since .*: 3 shown$/).waitFor();
    await page.getByRole("group", { name: "Messages as they arrive" }).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.locator("tr.cursor").getByRole("link", { name: "5", exact: true }).waitFor();
    await send(api, "tailed", { body: "fourth", message_id: "four" });
    await until(async () => (await numbers(page)).join() === "7,6,5,4", "another has come");
    await page.locator("tr.cursor").getByRole("link", { name: "5", exact: true }).waitFor();
    const { counts } = await api("GET", "/entities/tailed");
    assert.equal(counts.locked, 0);
    const { messages } = await api("GET", "/entities/tailed/messages");
    assert.deepEqual(
      messages.map(({ delivery_count: count }) => count),
      Array(7).fill(0),
    );
    await isAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    await isAccessible(page);
  });

  test("of more than a look takes the newest are shown, and the others are counted", async (page) => {
    await follow(page, "tailed-many");
    // They arrive while the page cannot ask.
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused", { exact: true }).waitFor();
    for (let batch = 0; batch < 4; batch += 1) await send(api, "tailed-many", ...bodies(100));
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText(/: 100 shown; 300 not read: more than 100 arrived at once$/).waitFor();
    assert.equal((await numbers(page))[0], "400");
    for (const [batch, shown] of [
      [0, 200],
      [1, 300],
    ]) {
      await send(api, "tailed-many", ...bodies(100));
      await page.getByText(new RegExp(`: ${shown} shown;`)).waitFor();
      await page.getByRole("link", { name: String(500 + 100 * batch), exact: true }).waitFor();
    }
    await page.getByText(/: 300 shown; the newest 200 are here; 300 not read/).waitFor();
    assert.equal(
      await page.getByRole("table", { name: "Messages as they arrive" }).getAttribute("aria-rowcount"),
      "201",
    );
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByText(/^No message has arrived since /).waitFor();
  });

  test(
    "a filter is the broker's, and what does not match is counted",
    async (page) => {
      await follow(page, "tailed-filter", `&by=filter&value=${encodeURIComponent("region = 'EU'")}`);
      await send(
        api,
        "tailed-filter",
        ...bodies(10, (number) => ({ properties: { region: number % 2 === 0 ? "EU" : "US" } })),
      );
      await until(async () => (await numbers(page)).join() === "9,7,5,3,1", "those of the region are shown");
      await page.getByText(/: 5 shown; 5 did not match, or had left the queue$/).waitFor();
      await page.getByRole("searchbox", { name: "Value" }).fill("region >");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByRole("alert").waitFor();
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("what receivers had before it could be shown is counted", async (page) => {
    await follow(page, "tailed-paused");
    await tabTo(page, /^Pause$/);
    await page.keyboard.press("Enter");
    await page.getByText("Paused", { exact: true }).waitFor();
    await send(api, "tailed-paused", ...bodies(3));
    const { messages } = await api("POST", "/entities/tailed-paused/lock", { sequence_numbers: [2] });
    await api("POST", "/entities/tailed-paused/settle", {
      settlements: [{ lock_token: messages[0].lock_token, outcome: "complete" }],
    });
    await page.getByRole("link", { name: /^Messages 2$/ }).waitFor();
    assert.deepEqual(await numbers(page), []);
    await page.keyboard.press("Enter");
    await until(async () => (await numbers(page)).join() === "3,1", "it continues where it was");
    await page.getByText(/: 2 shown; 1 had left the queue before they could be shown$/).waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await send(api, "tailed-paused", { body: "gone" });
    await page.getByRole("link", { name: /^Messages 3$/ }).waitFor();
    await job(api, "tailed-paused", { kind: "delete" });
    await page.getByRole("link", { name: /^Messages 0$/ }).waitFor();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("No message is shown of those that have arrived.").waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    assert(await page.locator("main").evaluate((main) => main.scrollWidth <= main.clientWidth));
    await isAccessible(page);
  });

  test("it asks once a second while messages arrive, and not at all while none do or the tab is hidden", async (page) => {
    const asked = [];
    await page.route(/tailed-quiet\/messages/, (route) => {
      asked.push(Date.now());
      return route.continue();
    });
    await follow(page, "tailed-quiet");
    await until(() => asked.length === 1, "the first look");
    const sent = 25;
    for (let number = 0; number < sent; number += 1) await send(api, "tailed-quiet", { body: `${number}` });
    await page.getByText(new RegExp(`: ${sent} shown$`)).waitFor();
    const before = asked.length;
    assert(before - 1 <= (asked.at(-1) - asked[0]) / 1_000 + 1, `${before} requests in ${asked.at(-1) - asked[0]} ms`);
    await page.evaluate(() => Object.defineProperty(document, "hidden", { configurable: true, value: true }));
    await send(api, "tailed-quiet", { body: "unseen" });
    await page.getByRole("link", { name: `Messages ${sent + 1}` }).waitFor();
    assert.equal(asked.length, before, "it does not ask while it is hidden");
    await page.evaluate(() => Object.defineProperty(document, "hidden", { configurable: true, value: false }));
    await page.getByText(new RegExp(`: ${sent + 1} shown$`)).waitFor();
  });

  test("the way back from a message leads to the rows that were there", async (page) => {
    await follow(page, "tailed-back");
    await send(api, "tailed-back", ...bodies(2));
    await page.getByRole("link", { name: "2", exact: true }).click();
    await heading(page, "Message 2");
    await send(api, "tailed-back", { body: "meanwhile" });
    await page.goBack();
    await until(async () => (await numbers(page)).join() === "3,2,1", "what was there, and what has come");
  });

  test("partitioned entities and topics have none", async (page) => {
    await open(page, "#/entity/tailed-parts?tab=live");
    await page.getByText("A partitioned entity has no live list.").waitFor();
    await open(page, "#/entity/tailed-topic");
    assert.equal(await page.getByRole("link", { name: "Live", exact: true }).count(), 0);
  });
});
