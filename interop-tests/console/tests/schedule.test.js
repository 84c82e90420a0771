// What becomes active when: the histogram, its zoom, and messages that are rescheduled, made active or cancelled.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { HOSTILE, entity, send } from "../seed.js";

const HOUR = 3_600_000;
const BEGIN = Math.ceil(Date.now() / HOUR) * HOUR + 24 * HOUR;
const at = (hours) => new Date(BEGIN + hours * HOUR).toISOString();
const message = async (path, number) =>
  (await api("GET", `/entities/${path}/messages?state=scheduled`)).messages.find(
    (each) => each.sequence_number === number,
  );
const bars = (page) => page.getByRole("listbox", { name: "Scheduled messages over time" });
const range = (page) => page.locator("main .card h2").first().textContent();
const numbers = (page) => page.locator("tbody a.number").allTextContents();

/** Drags over a part of the bars, from one share of their width to another. */
async function drag(page, from, to) {
  const box = await bars(page).boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + (box.width * (from + to)) / 2, y);
  await page.mouse.move(box.x + box.width * to, y);
  await page.mouse.up();
}

inBrowser("schedule", (test) => {
  before(async () => {
    await entity(api, "alarms");
    await entity(api, "bells");
    await send(
      api,
      "alarms",
      ...Array.from({ length: 20 }, (_, number) => ({
        body: `alarm ${number}`,
        message_id: `alarm-${number}`,
        scheduled_for: at(number),
      })),
    );
    await send(
      api,
      "bells",
      ...HOSTILE.map((text, number) => ({ body: text, message_id: text, scheduled_for: at(number) })),
    );
  });

  test("the journey by mouse: zoomed by dragging, one gets another time, in four clicks", async (page) => {
    await entity(api, "put-off");
    // Far behind everything else that is scheduled.
    await send(
      api,
      "put-off",
      ...Array.from({ length: 10 }, (_, number) => ({
        body: `${number}`,
        scheduled_for: `2045-03-0${(number % 5) + 1}T00:00:00Z`,
      })),
    );
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Schedule", exact: true }).click();
    await heading(page, "Schedule");
    await page.locator("tbody a.number").first().waitFor();
    const before = await range(page);
    await drag(page, 0.93, 0.99);
    await until(
      async () => (await range(page)) !== before && (await numbers(page)).length === 10,
      "those of this time are listed",
    );
    await page.getByRole("button", { name: "Reschedule message 2", exact: true }).click();
    const field = page.getByLabel("Becomes active");
    await field.waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("type")), "datetime-local");
    await page.getByRole("dialog").getByText("UTC").waitFor();
    await field.fill("2031-02-03T04:05:06");
    await page.getByRole("button", { name: "Reschedule", exact: true }).click();
    await page
      .getByText(/Message 2 becomes active/)
      .first()
      .waitFor();
    assert.equal(clicks(), 4);
    assert.equal((await message("put-off", 2)).scheduled_for, "2031-02-03T03:05:06Z");
    await until(async () => !(await numbers(page)).includes("2"), "it is not in this time any more");
    await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
    await until(async () => (await numbers(page)).includes("2"), "it is in this time again");
    assert.equal((await message("put-off", 2)).scheduled_for, "2045-03-02T00:00:00Z");
  });

  test("in four clicks: a bar is chosen, and its message is cancelled", async (page) => {
    await entity(api, "called-off");
    await send(api, "called-off", { body: "a", scheduled_for: "2060-03-01T00:00:00Z" });
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Schedule", exact: true }).click();
    await bars(page).getByRole("option").last().click();
    await until(async () => (await numbers(page)).join() === "1", "the message of the bar is listed");
    await page.getByRole("button", { name: "Cancel message 1", exact: true }).click();
    await page.getByRole("dialog").getByText("It is deleted from called-off").waitFor();
    await page.getByRole("button", { name: "Cancel the message" }).click();
    await page.getByText("Message 1 was cancelled.").first().waitFor();
    assert.equal(clicks(), 4);
    assert.equal(await message("called-off", 1), undefined);
  });

  test("in three clicks: a message is sent now, once it was asked", async (page) => {
    await entity(api, "hurried");
    await send(api, "hurried", { body: "soon", scheduled_for: new Date(Date.now() + 300_000).toISOString() });
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Schedule", exact: true }).click();
    const row = page.locator("tbody tr").filter({ hasText: "hurried" });
    await row.getByRole("button", { name: "Make active: message 1" }).click();
    await page.getByRole("dialog").getByText("Make message 1 of hurried active?").waitFor();
    assert.equal((await message("hurried", 1)).state, "scheduled");
    await page.getByRole("dialog").getByRole("button", { name: "Make active" }).click();
    await page.getByText("Message 1 is active now.").first().waitFor();
    assert.equal(clicks(), 3);
    await row.waitFor({ state: "detached" });
    const { messages } = await api("GET", "/entities/hurried/messages");
    assert.deepEqual(
      messages.map(({ state, body }) => [state, body.text]),
      [["active", "soon"]],
    );
  });

  test("the journey by keyboard alone: zoomed, chosen, changed, cancelled", async (page) => {
    await entity(api, "keyed");
    await send(
      api,
      "keyed",
      ...Array.from({ length: 4 }, (_, number) => ({ body: `${number}`, scheduled_for: at(10 * number) })),
    );
    await open(page);
    await tabTo(page, /^Schedule$/);
    await page.keyboard.press("Enter");
    await heading(page, "Schedule");
    await tabTo(page, /^Entity$/);
    await page.keyboard.type("keyed");
    await until(async () => (await numbers(page)).length === 4, "the entity is chosen");
    await tabTo(page, /^Scheduled messages over time$/, "listbox");
    const whole = await range(page);
    await page.keyboard.press("+");
    await until(async () => (await range(page)) !== whole, "zoomed in");
    assert.equal(
      await page.evaluate(() => document.activeElement?.getAttribute("role")),
      "listbox",
      "the bars keep the focus",
    );
    await page
      .locator("[role=status].announcements")
      .filter({ hasText: /messages?$/ })
      .waitFor({ state: "attached" });
    await page.keyboard.press("-");
    await page.keyboard.press("PageDown");
    await page.keyboard.press("0");
    await until(async () => (await range(page)) === whole, "all is shown again");
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+ArrowRight");
    await until(async () => (await numbers(page)).join() === "1", "the selection has one message");
    assert.equal(await page.locator("[role=option][aria-selected=true]").count(), 2);
    await page.reload();
    await live(page);
    await until(async () => (await numbers(page)).join() === "1", "a reload keeps the selection");
    await tabTo(page, /^Reschedule message 1$/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await tabTo(page, /^\+1d$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Reschedule$/);
    await page.keyboard.press("Enter");
    await page
      .getByText(/Message 1 becomes active/)
      .first()
      .waitFor();
    assert.equal((await message("keyed", 1)).scheduled_for, at(24).replace(".000", ""));
    await tabTo(page, /^Show all times$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Cancel message 2$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Cancel the message$/);
    await page.keyboard.press("Enter");
    await page.getByText("Message 2 was cancelled.").first().waitFor();
    await until(async () => !(await numbers(page)).includes("2"), "it is not listed any more");
    await until(() => page.evaluate(() => document.activeElement !== document.body), "the focus is not lost");
  });

  test("several entities are counted together, and texts of others stay texts", async (page) => {
    await open(page, `#/schedule?from=${at(-1)}&before=${at(30)}`);
    const all = `${20 + HOSTILE.length}`;
    await page.getByRole("heading", { name: new RegExp(`^Messages (\\d+) of \\1$`) }).waitFor();
    await page.getByRole("link", { name: "bells" }).first().waitFor();
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    const sum = await bars(page)
      .getByRole("option")
      .evaluateAll((all) =>
        all.reduce(
          (before, option) => before + Number(/: (\d+) message/.exec(option.getAttribute("aria-label"))?.[1] ?? 0),
          0,
        ),
      );
    assert(Number(all) <= sum, `${sum} messages are in the bars`);
  });

  test("one message far ahead does not take the room of all others", async (page) => {
    await entity(api, "outlier");
    const near = (number) => new Date(Date.now() + 3_600_000 + number * 400_000).toISOString();
    for (let batch = 0; batch < 2; batch += 1)
      await send(
        api,
        "outlier",
        ...Array.from({ length: 100 }, (_, number) => ({
          body: `${number}`,
          scheduled_for: near(number + 100 * batch),
        })),
      );
    await send(api, "outlier", { body: "far", scheduled_for: "2046-01-01T00:00:00Z" });
    await open(page, "#/schedule?entity=outlier");
    const high = async () =>
      await bars(page)
        .getByRole("option")
        .evaluateAll((all) => all.filter((option) => !/: 0 message/.test(option.getAttribute("aria-label"))).length);
    await until(async () => 10 < (await high()), "the others have many bars");
    await page.getByRole("heading", { name: "Messages 200 of 200" }).waitFor();
    await isAccessible(page);
    await page.getByRole("button", { name: /^1 message is much later, until 1 Jan 2046/ }).click();
    await until(async () => (await high()) <= 2, "all are shown");
    await page.getByRole("heading", { name: "Messages 201 of 201" }).waitFor();
    await page.getByRole("button", { name: "All", exact: true }).click();
    await until(async () => 10 < (await high()), "as at first");
  });

  test("the broker finds those of a time", async (page) => {
    const asked = [];
    page.on("request", (request) => asked.push(decodeURIComponent(request.url())));
    await open(page, `#/schedule?entity=alarms&from=${at(2)}&before=${at(5)}`);
    await page.locator("tbody a.number").first().waitFor();
    assert(
      asked.some((url) => /\/messages\?/.test(url) && /scheduled_from=/.test(url) && /scheduled_before=/.test(url)),
      "by its own conditions",
    );
  });

  test("a time that is none is refused at its field", async (page) => {
    await open(page, "#/schedule?entity=alarms");
    await page.getByRole("button", { name: "Reschedule message 1", exact: true }).click();
    await page.getByLabel("Becomes active").fill("");
    await page.getByRole("button", { name: "Reschedule", exact: true }).click();
    await page.getByRole("alert").getByText("A time is needed.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test(
    "axe finds nothing",
    async (page) => {
      for (const address of [
        "#/schedule",
        `#/schedule?entity=alarms&from=${at(0)}&before=${at(6)}&at=${at(1)}..${at(2)}`,
        "#/schedule?entity=none",
      ]) {
        await open(page, address);
        await page.locator(".loading").first().waitFor({ state: "detached" });
        await isAccessible(page);
      }
      await page.setViewportSize({ width: 360, height: 740 });
      await open(page, "#/schedule?entity=alarms");
      await page.getByRole("button", { name: "Reschedule message 1", exact: true }).click();
      await page.getByLabel("Becomes active").waitFor();
      await isAccessible(page);
    },
    { allow: [/404 \(Not Found\)/] },
  );
});
