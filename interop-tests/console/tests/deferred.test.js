// Deferred messages: made active, or received by number and settled.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, securedUrl, until, url } from "../harness.js";
import { LISTENER, countClicks, rootToken, signIn, tabTo } from "../journey.js";
import { HOSTILE, client, entity, send } from "../seed.js";

const at = (path) => `/entities/${encodeURIComponent(path)}`;
const states = async (path) => (await api("GET", `${at(path)}/messages`)).messages.map(({ state }) => state);

/** Makes an entity with deferred messages: received over the REST interface, and settled. */
async function deferred(path, messages, properties = {}, { base = url, call = api, headers = {} } = {}) {
  await entity(call, path, "queue", properties);
  await send(call, path, ...messages);
  for (const _ of messages) {
    const answer = await fetch(`${base}/${path}/messages/head?timeout=10`, { method: "POST", headers });
    await answer.arrayBuffer();
    const { LockToken: token } = JSON.parse(answer.headers.get("brokerproperties"));
    await call("POST", `${at(path)}/settle`, { settlements: [{ lock_token: token, outcome: "defer" }] });
  }
}

const some = (count) =>
  Array.from({ length: count }, (_, number) => ({
    body: `parked ${number}`,
    message_id: `parked-${number}`,
    properties: { number },
  }));

inBrowser("deferred", (test) => {
  before(async () => {
    await deferred("parked-a", some(5));
  });

  test("the journey by mouse: four clicks to all of them made active", async (page) => {
    await deferred("parked-all", some(3));
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Deferred", exact: true }).click();
    await heading(page, "Deferred");
    await page.getByRole("link", { name: "parked-all" }).click();
    await page.getByRole("button", { name: "Make all 3 active" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Make active" }).click();
    await page.getByText("3 messages are active now.").first().waitFor();
    assert.equal(clicks(), 4);
    assert.deepEqual(await states("parked-all"), ["active", "active", "active"]);
    await page.getByText("This entity has no deferred messages.").waitFor();
  });

  test("in four clicks: one is received, and completed", async (page) => {
    await deferred("parked-one", some(2));
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Deferred", exact: true }).click();
    await page.getByRole("link", { name: "parked-one" }).click();
    await page.getByRole("button", { name: "Receive message 2", exact: true }).click();
    const held = page.getByRole("region", { name: "Message 2" });
    await held.getByText("parked-1").waitFor();
    await held.getByText(/locked for \d+s more|locked for 1m more/).waitFor();
    await held.getByText("parked 1", { exact: true }).waitFor();
    await held.getByRole("button", { name: "Complete" }).click();
    await page.getByText("Message 2 was completed.").first().waitFor();
    assert.equal(clicks(), 4);
    await held.waitFor({ state: "detached" });
    const { messages } = await api("GET", `${at("parked-one")}/messages`);
    assert.deepEqual(
      messages.map(({ sequence_number: number }) => number),
      [1],
    );
  });

  test(
    "the journey by keyboard alone: received by number, kept by a reload, dead-lettered with a reason",
    async (page) => {
      await open(page);
      await tabTo(page, /^Deferred$/);
      await page.keyboard.press("Enter");
      await heading(page, "Deferred");
      await tabTo(page, /^parked-a$/);
      await page.keyboard.press("Enter");
      await tabTo(page, /^Receive by number$/);
      await page.keyboard.type("77");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("The message 77 is not there.").waitFor();
      await page.keyboard.press("Control+A");
      await page.keyboard.type("3");
      await page.keyboard.press("Enter");
      await page.getByRole("region", { name: "Message 3" }).waitFor();
      await until(
        () => page.evaluate(() => document.activeElement?.textContent?.startsWith("Message 3")),
        "what was received has the focus",
      );
      await page.reload();
      await live(page);
      const held = page.getByRole("region", { name: "Message 3" });
      await held.getByText("parked-2").waitFor();
      await tabTo(page, /^Dead-letter…$/);
      await page.keyboard.press("Enter");
      await until(
        () => page.evaluate(() => document.activeElement?.labels?.[0]?.textContent === "Reason"),
        "the reason has the cursor",
      );
      await page.keyboard.type("TooLate");
      await page.keyboard.press("Tab");
      await page.keyboard.type("the invoice was cancelled");
      await page.keyboard.press("Enter");
      await page.getByText("Message 3 was dead-lettered.").first().waitFor();
      const { groups } = await api("GET", `${at("parked-a")}/dead-letters`);
      assert.deepEqual(
        groups.map(({ reason, description }) => [reason, description]),
        [["TooLate", "the invoice was cancelled"]],
      );
      await until(() => page.evaluate(() => document.activeElement !== document.body), "the focus is not lost");
      await tabTo(page, /^Make active: message 1$/);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByText("Make message 1 of parked-a active?").waitFor();
      await tabTo(page, /^Make active$/);
      await page.keyboard.press("Enter");
      await page.getByText("Message 1 is active now.").first().waitFor();
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test("abandoned and deferred messages stay deferred; those that are selected are made active", async (page) => {
    await deferred("parked-some", some(4));
    await open(page, "#/deferred?entity=parked-some");
    for (const [number, action, said] of [
      ["1", "Abandon", "Message 1 was abandoned."],
      ["2", "Defer", "Message 2 is deferred again."],
    ]) {
      await page.getByRole("button", { name: `Receive message ${number}`, exact: true }).click();
      await page
        .getByRole("region", { name: `Message ${number}` })
        .getByRole("button", { name: action, exact: true })
        .click();
      await page.getByText(said).first().waitFor();
    }
    const { messages } = await api("GET", `${at("parked-some")}/messages`);
    assert.deepEqual(
      messages.map(({ state }) => state),
      ["deferred", "deferred", "deferred", "deferred"],
    );
    await page.getByLabel("Select message 2").check();
    await page.getByLabel("Select message 4").check();
    await page.getByRole("button", { name: "Make 2 selected active" }).click();
    await page.getByRole("dialog").getByText("Make 2 selected deferred messages of parked-some active?").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Make active" }).click();
    await page.getByText("2 messages are active now.").first().waitFor();
    const after = (await api("GET", `${at("parked-some")}/messages?state=deferred`)).messages;
    assert.deepEqual(
      after.map(({ sequence_number: number }) => number),
      [1, 3],
    );
  });

  test("two clicks at once make one message active at most, on its page too", async (page) => {
    await deferred("parked-twice", some(3));
    await open(page, "#/deferred?entity=parked-twice");
    const button = page.getByRole("button", { name: "Make active: message 1", exact: true });
    const { x, y } = await button.boundingBox();
    await page.mouse.click(x + 8, y + 8);
    await page.mouse.click(x + 8, y + 8);
    assert.deepEqual(await states("parked-twice"), ["deferred", "deferred", "deferred"]);
    await open(page, "#/entity/parked-twice/message/2");
    await page.getByRole("button", { name: "Make active" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: /^Make active .*message 2/ }).waitFor();
    assert.deepEqual(await states("parked-twice"), ["deferred", "deferred", "deferred"]);
    await dialog.getByRole("button", { name: /^Make active/ }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual((await states("parked-twice")).toSorted(), ["active", "deferred", "deferred"]);
  });

  test("a lock that has ended is said, and settles nothing", async (page) => {
    await deferred("parked-short", some(1), { lock_duration: "PT5S" });
    await open(page, "#/deferred?entity=parked-short");
    await page.getByRole("button", { name: "Receive message 1", exact: true }).click();
    const held = page.getByRole("region", { name: "Message 1" });
    await held.getByText("The lock has ended").waitFor();
    await held.getByRole("button", { name: "Complete" }).waitFor({ state: "detached" });
    await held.getByRole("button", { name: "Dismiss" }).click();
    await held.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Receive message 1", exact: true }).waitFor();
    assert.deepEqual(await states("parked-short"), ["deferred"]);
  });

  test("hostile texts stay texts", async (page) => {
    await deferred(
      "parked-odd",
      HOSTILE.map((text) => ({ body: text, subject: text, message_id: text, properties: { [text]: text } })),
    );
    await open(page, "#/deferred?entity=parked-odd");
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    await page.getByRole("button", { name: "Receive message 2", exact: true }).click();
    await page.getByRole("region", { name: "Message 2" }).getByText("<script>alert(1)</script>").first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
  });

  test(
    "what a right does not allow is not offered",
    async (page) => {
      const token = rootToken();
      const call = client(securedUrl, token);
      await deferred("parked-guarded", some(2), {}, { base: securedUrl, call, headers: { Authorization: token } });
      await send(call, "parked-guarded", {
        body: "later",
        scheduled_for: new Date(Date.now() + 3_600_000).toISOString(),
      });
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/deferred?entity=parked-guarded`);
      await page.getByText("needs the right Manage").waitFor();
      await page.locator("tbody").getByText("parked-0").waitFor();
      assert.equal(
        await page
          .locator("main")
          .getByRole("button", { name: /Put|Receive/ })
          .count(),
        0,
      );
      assert.equal(await page.locator("main").getByRole("checkbox").count(), 0);
      await page.goto(`${securedUrl}/#/schedule?entity=parked-guarded`);
      await page.locator("tbody").getByText("later").waitFor();
      assert.equal(await page.locator("tbody").getByRole("button").count(), 0);
      await page.goto(`${securedUrl}/#/send?entity=parked-guarded`);
      await page.getByText("This key does not allow sending.").waitFor();
      assert.equal(await page.locator("main").getByRole("button").count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );

  test(
    "axe finds nothing",
    async (page) => {
      await open(page, "#/deferred");
      await page.getByRole("link", { name: "parked-a" }).waitFor();
      await isAccessible(page);
      await open(page, "#/deferred?entity=parked-a");
      await page.getByRole("button", { name: "Receive message 2", exact: true }).click();
      await page.getByRole("region", { name: "Message 2" }).getByText("parked-1").waitFor();
      await page.getByLabel("Select message 5").check();
      await isAccessible(page);
      await page.getByRole("button", { name: "Dead-letter…" }).click();
      await page.setViewportSize({ width: 360, height: 740 });
      await isAccessible(page);
      await open(page, "#/deferred?entity=none");
      await page.getByText("This entity has no deferred messages.").waitFor();
      await isAccessible(page);
    },
    { allow: [/404 \(Not Found\)/] },
  );
});
