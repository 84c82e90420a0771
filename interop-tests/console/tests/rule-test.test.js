// Why does this subscription not get it: a message is tested against rules.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { HOSTILE, entity, rule, send } from "../seed.js";

const card = (page, name) =>
  page.locator("ul.tests > li").filter({ has: page.getByRole("link", { name, exact: true }) });
const box = (page) => page.getByLabel("The message as JSON");
const MESSAGE = { subject: "order", properties: { region: "EU", priority: 3, zero: 0 } };

async function subscription(topic, name, filter) {
  const path = `${topic}/Subscriptions/${name}`;
  await entity(api, path, "subscription");
  await rule(api, path, "wanted", { filter });
  await api("DELETE", `/entities/${encodeURIComponent(path)}/rules/${encodeURIComponent("$Default")}`);
}

inBrowser("rule-test", (test) => {
  before(async () => {
    await entity(api, "aac-tested", "topic");
    await subscription("aac-tested", "both", { kind: "sql", expression: "region = 'EU' AND priority > 5" });
    await subscription("aac-tested", "either", { kind: "sql", expression: "NOT (region = 'EU') OR vip IS NULL" });
    await subscription("aac-tested", "missing", { kind: "sql", expression: "colour = 'red'" });
    await subscription("aac-tested", "broken", { kind: "sql", expression: "1 / zero > 2" });
    await subscription("aac-tested", "like", { kind: "correlation", subject: "order" });
    await entity(api, "held-back");
    await send(api, "held-back", {
      body: "a",
      subject: "order",
      message_id: "held-1",
      properties: { region: "EU", priority: 7, zero: 1 },
    });
  });

  test("the journey by mouse: three clicks, and the message is pasted", async (page, context) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const clicks = await countClicks(page);
    await open(page);
    await page.evaluate((text) => navigator.clipboard.writeText(text), JSON.stringify(MESSAGE));
    await page
      .getByRole("link", { name: /^Entities/ })
      .first()
      .click();
    await page.getByRole("link", { name: "aac-tested", exact: true }).click();
    await page.locator("main").getByRole("link", { name: "Rule test" }).click();
    await heading(page, "Rule test");
    await page.keyboard.press("Control+V");
    await page.getByRole("heading", { name: "2 of 5 subscriptions take it." }).waitFor();
    assert.equal(clicks(), 3);
    // The part that decided, and what it read.
    const both = card(page, "both");
    await both.getByText("does not take it").waitFor();
    const decided = both.locator(".decided");
    await decided.getByText("priority > 5").waitFor();
    await decided.getByText("priority = 3").waitFor();
    assert.equal(await decided.getByText("region").count(), 0, "what is true did not decide");
    await card(page, "either").locator(".decided").getByText("vip is absent").waitFor();
    await card(page, "missing").getByText("unknown", { exact: true }).waitFor();
    await card(page, "missing").getByText("colour is absent").waitFor();
    await card(page, "broken").getByText("division by zero").first().waitFor();
    await card(page, "like").getByText("takes it", { exact: true }).waitFor();
    await page.reload();
    await live(page);
    await page.getByRole("heading", { name: "2 of 5 subscriptions take it." }).waitFor();
    const { counts } = await api("GET", `/entities/${encodeURIComponent("aac-tested/Subscriptions/like")}`);
    assert.equal(counts.active, 0, "nothing is sent");
  });

  test("in three clicks from the first page: a message of a queue, against a topic", async (page) => {
    const clicks = await countClicks(page);
    await open(page);
    await page.keyboard.press("/");
    await page.keyboard.type("held-1");
    await page.getByRole("option", { name: /Messages with message id/ }).click();
    await page.locator("tbody a.number").first().click();
    await heading(page, "Message 1");
    await page.locator("main").getByRole("link", { name: "Rule test" }).click();
    await until(() => page.evaluate(() => document.activeElement?.tagName === "H1"), "the heading has the focus");
    // A list where there are few, a box where there are many.
    await page.getByLabel("Topic or subscription").focus();
    await page.keyboard.type("aac-tested");
    await page.getByRole("heading", { name: "3 of 5 subscriptions take it." }).waitFor();
    assert.equal(clicks(), 3);
    await card(page, "both").getByText("takes it", { exact: true }).waitFor();
    await page.getByText("Do not", { exact: true }).click();
    await until(async () => (await page.locator("ul.tests > li").count()) === 2, "those that do not take it are shown");
  });

  test(
    "the journey by keyboard alone: one of a queue is picked",
    async (page) => {
      await open(page);
      await tabTo(page, /^Rule test$/);
      await page.keyboard.press("Enter");
      await heading(page, "Rule test");
      await tabTo(page, /^Topic or subscription$/);
      await page.keyboard.type("aac-tested/Subscriptions/both");
      await tabTo(page, /^Paste a message$/);
      await page.keyboard.press("ArrowRight");
      await tabTo(page, /^Where it is$/);
      await page.keyboard.type("held-back");
      await tabTo(page, /^Test message 1$/);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "1 of 1 subscriptions takes it." }).waitFor();
      const opener = page.getByText("The whole expression");
      await tabTo(page, /^The whole expression$/);
      await page.keyboard.press("Enter");
      await opener.waitFor();
      await page.locator(".tree").getByText('region = "EU"').first().waitFor();
      await tabTo(page, /^Number$/);
      await page.keyboard.press("Control+A");
      await page.keyboard.type("99");
      await page.getByRole("alert").getByText("'held-back' has no message 99 that can be read.").waitFor();
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "messages are read as the API shows them, as SDKs print them, and as properties alone",
    async (page) => {
      await open(page, "#/rule-test?entity=aac-tested");
      const takes = (count) => page.getByRole("heading", { name: `${count} of 5 subscriptions` }).waitFor();
      const [shown] = (await api("GET", "/entities/held-back/messages")).messages;
      await box(page).fill(JSON.stringify(shown));
      await takes(3);
      await box(page).fill(
        JSON.stringify({
          applicationProperties: { region: "EU", priority: 9 },
          messageId: "x",
          timeToLive: 1000,
          body: { a: 1 },
        }),
      );
      await takes(2);
      await box(page).fill(JSON.stringify({ colour: "red" }));
      await page.getByText("Read as application properties").waitFor();
      await card(page, "missing").getByText("takes it", { exact: true }).waitFor();
      await box(page).fill('{"colour": "red"');
      await page.getByRole("alert").getByText("Not valid JSON").waitFor();
      await box(page).fill('{"subject": "a", "colour": "red"}');
      await page.getByRole("alert").getByText("'colour' is not known").waitFor();
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("hostile rules and values stay texts", async (page) => {
    await entity(api, "odd-rules", "topic");
    await subscription("odd-rules", "odd", {
      kind: "correlation",
      properties: Object.fromEntries(HOSTILE.map((text, at) => [`name ${at} <b>`, text])),
    });
    await open(page, "#/rule-test?entity=odd-rules");
    await box(page).fill(
      JSON.stringify({
        properties: Object.fromEntries(HOSTILE.map((text, at) => [`name ${at} <b>`, at % 2 ? text : `${text}!`])),
      }),
    );
    await page.getByText("None of 1 subscriptions takes it.").waitFor();
    await page.getByText("The whole expression").click();
    await page.locator(".tree").getByText("<script>alert(1)</script>").first().waitFor();
    assert.equal(await page.locator("main img, main script, main b b").count(), 0);
  });

  test("axe finds nothing", async (page) => {
    await open(page, "#/rule-test");
    await isAccessible(page);
    await open(page, "#/rule-test?entity=aac-tested");
    await box(page).fill(JSON.stringify(MESSAGE));
    await page.getByRole("heading", { name: "2 of 5" }).waitFor();
    await page.getByText("The whole expression").first().click();
    await isAccessible(page);
    await open(page, "#/rule-test?entity=aac-tested&of=held-back");
    await page.getByRole("button", { name: "Test message 1" }).waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    await isAccessible(page);
  });
});
