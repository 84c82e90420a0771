// "My message was never received": the search over a namespace.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { HOSTILE, entity, hostile, job, send } from "../seed.js";

const input = (page, name) => page.getByRole("searchbox", { name });
const links = (page) => page.locator("tbody a.number").allTextContents();

inBrowser("messages", (test) => {
  before(async () => {
    await entity(api, "sought");
    await entity(api, "sought-later");
    await entity(api, "seekers", "topic");
    await entity(api, "seekers/Subscriptions/one", "subscription");
    await send(api, "sought", {
      body: '{"city": "Ghent", "lines": [{"sku": "A-1"}]}',
      message_id: "lost-1",
      correlation_id: "lost",
      session_id: "seeker",
      properties: { region: "EU" },
    });
    await send(api, "sought", {
      body: '{"city": "Lille"}',
      message_id: "lost-2",
      correlation_id: "lost",
      properties: { region: "US" },
    });
    await job(
      api,
      "sought",
      { kind: "dead_letter", reason: "NoSuchCity", description: "Lille is unknown" },
      { message_id: "lost-2" },
    );
    await send(api, "sought-later", {
      body: "later",
      message_id: "lost-3",
      correlation_id: "lost",
      scheduled_for: new Date(Date.now() + 3_600_000).toISOString(),
    });
    await send(api, "seekers", { body: "copy", message_id: "lost-4", correlation_id: "lost" });
    await hostile(api);
  });

  test("the journey by mouse: three clicks to the whole situation", async (page) => {
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Messages", exact: true }).click();
    await heading(page, "Messages");
    await input(page, "Message id").click();
    await page.keyboard.type("lost-2");
    await page.keyboard.press("Enter");
    await page.getByText("1 message found").first().waitFor();
    await page.getByText("NoSuchCity").waitFor();
    await page.locator("tbody a.number").click();
    await heading(page, "Message 2");
    await page.getByText("A dead letter: it stays here").waitFor();
    await page.getByRole("definition").getByText("Lille is unknown").first().waitFor();
    assert.equal(clicks(), 3);
    await page.goBack();
    await page.getByText("1 message found").first().waitFor();
    assert.equal(await input(page, "Message id").inputValue(), "lost-2");
    await page.reload();
    await page.getByText("1 message found").first().waitFor();
  });

  test("the journey by keyboard alone", async (page) => {
    await open(page);
    await page.keyboard.press("/");
    await page.keyboard.type("lost-3");
    await page.getByRole("option", { name: /message id/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("1 message found").first().waitFor();
    await tabTo(page, /^Messages found$/, "group");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await heading(page, "Message 1");
    await page.getByText("Scheduled: it becomes active").waitFor();
  });

  test("by keyboard: conditions are chosen, added and removed", async (page) => {
    await open(page, "#/messages");
    await tabTo(page, /^Search by$/);
    await page.keyboard.press("ArrowDown");
    await tabTo(page, /^Correlation id$/);
    await page.keyboard.type("lost");
    await page.keyboard.press("Enter");
    await page.getByText("4 messages found").first().waitFor();
    await tabTo(page, /^Add a condition$/);
    await page.keyboard.press("Enter");
    await input(page, "Message id").waitFor();
    await tabTo(page, /^Search$/, "button");
    await page.keyboard.press("Shift+Tab");
    await input(page, "Message id").focus();
    await page.keyboard.type("lost-1");
    await page.keyboard.press("Enter");
    await page.getByText("1 message found").first().waitFor();
    await page.getByRole("button", { name: "Remove: Message id" }).focus();
    await page.keyboard.press("Enter");
    await tabTo(page, /^Search$/, "button");
    await page.keyboard.press("Enter");
    await page.getByText("4 messages found").first().waitFor();
  });

  test("every condition finds, in every kind of queue", async (page) => {
    const cases = [
      ["correlation_id=lost", 4],
      ["correlation_id=lost&state=scheduled", 1],
      ["correlation_id=lost&state=active", 3],
      ["text=Ghent&correlation_id=lost", 1],
      ["filter=region+%3D+%27US%27+AND+sys.CorrelationId+%3D+%27lost%27", 1],
      ["json_path=%24.lines%5B%3F%40.sku+%3D%3D+%27A-1%27%5D&correlation_id=lost", 1],
      ["sequence_number=1&correlation_id=lost", 3],
      ["session_id=seeker", 1],
      ["session_id=nobody", 0],
    ];
    for (const [query, count] of cases) {
      await open(page, `#/messages?${query}`);
      await page
        .locator(".search-state", { hasText: "all queues searched" })
        .getByText(count === 1 ? "1 message found" : `${count} messages found`)
        .waitFor();
      await until(async () => (await links(page)).length === count, `${count} hits of ${query}`);
    }
    await page.getByText("No queue has such a message now.").waitFor();
    await page.getByRole("link", { name: "Test which subscriptions take it" }).click();
    await heading(page, "Rule test");
  });

  test("a long search shows where it is, stops, and goes on from there", async (page) => {
    // Answers of the broker come one at a time, when the test lets them.
    const places = [];
    let release = () => {};
    await page.route(/\/api\/v1\/messages\?/, async (route) => {
      places.push(new URL(route.request().url()).searchParams.get("from_queue"));
      await new Promise((done) => {
        release = done;
      });
      const answer = places.length === 1 ? { messages: [], next_queue: "sought", next_number: 1 } : null;
      if (answer === null) await route.continue();
      else await route.fulfill({ json: answer });
    });
    await open(page, "#/messages?correlation_id=lost");
    await page.getByRole("progressbar", { name: "Queues searched" }).waitFor();
    await until(() => places.length === 1, "the first step is asked for");
    release();
    await page.getByText("searching sought").waitFor();
    await until(() => places.length === 2, "the second step is asked for");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("stopped at sought").waitFor();
    await isAccessible(page);
    await page.getByRole("button", { name: "Continue the search" }).click();
    await until(() => places.length === 3, "the step is asked for again");
    release();
    await page.getByText("all queues searched").first().waitFor();
    assert.deepEqual(places, [null, "sought", "sought"]);
    await page
      .getByText(/messages? found/)
      .first()
      .waitFor();
  });

  test(
    "what cannot be read is said at its field, in the broker's words",
    async (page) => {
      await open(page, "#/messages?filter=a+%3D&text=x");
      await page.getByText("filter: expected a property").waitFor();
      const field = input(page, "SQL filter");
      assert.equal(await field.getAttribute("aria-invalid"), "true");
      assert.equal(await input(page, "Text in the body").getAttribute("aria-invalid"), null);
      await isAccessible(page);
      await field.fill("a = 1");
      await page.keyboard.press("Enter");
      await page.getByText("0 messages found").first().waitFor();
      await open(page, "#/messages?text=x&sequence_number=1.5");
      await page.getByRole("alert").getByText("invalid digit").waitFor();
      assert.equal(await input(page, "Sequence number").getAttribute("aria-invalid"), "true");
      assert.equal(await input(page, "Text in the body").getAttribute("aria-invalid"), null);
      await open(page, "#/messages");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByText("Type what is searched for").waitFor();
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("hostile ids and bodies stay text", async (page) => {
    await open(page, "#/messages?filter=sys.MessageId+LIKE+%27hostile-%25%27");
    await page.getByText(`${HOSTILE.length} messages found`).first().waitFor();
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await open(page, `#/messages?message_id=${encodeURIComponent("<img src=x onerror=alert(1)>\u202e")}`);
    await page.getByText("No queue has such a message now.").waitFor();
  });

  test("narrow, axe finds nothing", async (page) => {
    await page.setViewportSize({ width: 360, height: 800 });
    for (const address of ["#/messages", "#/messages?correlation_id=lost", "#/messages?message_id=none"]) {
      await open(page, address);
      if (address !== "#/messages") await page.getByText("all queues searched").first().waitFor();
      await isAccessible(page);
    }
  });
});
