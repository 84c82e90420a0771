// Dead letters have grown: which entity, which reasons, one message, mended and sent back to the one subscription that
// failed.

import assert from "node:assert/strict";
import { before } from "node:test";
import { DEADLINE, api, heading, inBrowser, isAccessible, open, until } from "../harness.js";
import { LISTENER, countClicks, signIn, tabTo } from "../journey.js";
import { entity, job, send } from "../seed.js";

const FAILED = "bookings/Subscriptions/billing";
const OTHER = "bookings/Subscriptions/mailing";
const at = (path) => `/entities/${encodeURIComponent(path)}`;
/** The counts of a subscription. */
const counts = async (path) => (await api("GET", at(path))).counts;

inBrowser("dead letters", (test) => {
  before(async () => {
    await entity(api, "bookings", "topic");
    await entity(api, FAILED, "subscription");
    await entity(api, OTHER, "subscription");
    const booking = (number, amount) => ({
      body: JSON.stringify({ booking: number, amount }),
      content_type: "application/json",
      message_id: `booking-${number}`,
      properties: { amount, vip: number % 2 === 0 },
    });
    await send(api, "bookings", ...Array.from({ length: 40 }, (_, number) => booking(number, number < 30 ? -5 : 7)));
    await job(
      api,
      FAILED,
      { kind: "dead_letter", reason: "BadAmount", description: "amount must not be negative" },
      { filter: "amount < 0" },
    );
    await job(
      api,
      FAILED,
      { kind: "dead_letter", reason: "NoSuchCustomer", description: "no such customer" },
      { filter: "sys.MessageId = 'booking-33'" },
    );
  });

  test(
    "the journey by mouse: six clicks from the first page to a message that is mended and sent back",
    async (page) => {
      const clicks = await countClicks(page);
      const had = [await counts(FAILED), await counts(OTHER)];
      await open(page);
      await page
        .getByRole("listitem")
        .filter({ hasText: /\d+ dead letters/ })
        .getByRole("link", { name: FAILED })
        .click();
      await heading(page, "billing");
      await page.getByRole("heading", { name: "Dead letters by reason" }).waitFor();
      const reasons = page.locator(".groups li");
      await reasons.filter({ hasText: "NoSuchCustomer" }).getByText("no such customer").waitFor();
      await reasons
        .filter({ hasText: "amount must not be negative" })
        .getByRole("button", { name: "BadAmount", exact: true })
        .click();
      await until(async () => new URL(page.url()).hash.includes("value=BadAmount"), "the reason is in the address");
      await page.locator("tbody a.number").first().click();
      await heading(page, /^Message \d+$/);
      await page.getByRole("definition").getByText("BadAmount").first().waitFor();
      await page.getByRole("definition").getByText("amount must not be negative").first().waitFor();
      await page
        .getByRole("definition")
        .getByText(/^booking-\d+$/)
        .waitFor();
      await page.locator("pre.body").getByText('"amount": -5').waitFor();
      const booking = await page
        .getByRole("definition")
        .getByText(/^booking-\d+$/)
        .textContent();
      await page.getByRole("button", { name: "Repair" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("textbox", { name: "Body" }).click();
      await page.keyboard.press("Control+A");
      await page.keyboard.type('{"booking": 0, "amount": 5}');
      await dialog.locator(".removed", { hasText: "-5" }).waitFor();
      await dialog.locator(".added", { hasText: "5" }).first().waitFor();
      await dialog.getByRole("button", { name: "Send again" }).click();
      await page
        .locator("main")
        .getByText(/^Dead letter \d+ of .* was sent again\.$/)
        .waitFor();
      assert.equal(clicks(), 6);
      const { messages } = await api("GET", `${at(FAILED)}/messages?message_id=${booking}&body=full`);
      assert.deepEqual(
        messages.map(({ body }) => body.text),
        ['{"booking": 0, "amount": 5}'],
      );
      const has = [await counts(FAILED), await counts(OTHER)];
      assert.equal(has[0].active, had[0].active + 1);
      assert.equal(has[0].dead_letters, had[0].dead_letters - 1);
      assert.deepEqual(has[1], had[1], "the other subscription gets nothing twice");
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "the journey by keyboard alone",
    async (page) => {
      const clicks = await countClicks(page);
      const had = await counts(OTHER);
      await open(page);
      await tabTo(page, /^bookings\/Subscriptions\/billing$/);
      await page.keyboard.press("Enter");
      await heading(page, "billing");
      await page.locator(".groups").getByText("amount must not be negative").waitFor();
      await tabTo(page, /^BadAmount$/);
      await page.keyboard.press("Enter");
      await until(async () => new URL(page.url()).hash.includes("value=BadAmount"), "the reason is in the address");
      await page.locator("tbody a.number").first().waitFor();
      await tabTo(page, /^Dead letters$/, "group");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await heading(page, /^Message \d+$/);
      const booking = await page
        .getByRole("definition")
        .getByText(/^booking-\d+$/)
        .textContent();
      await tabTo(page, /^Repair$/);
      await page.keyboard.press("Enter");
      await until(
        () => page.evaluate(() => document.activeElement?.labels?.[0]?.textContent === "Body"),
        "the body has the cursor",
      );
      await page.keyboard.press("Control+A");
      await page.keyboard.type('{"amount": 6}');
      await page.locator(".added", { hasText: "6" }).first().waitFor();
      await tabTo(page, /^Statements that edit properties$/);
      await page.keyboard.type("SET amount = 6");
      await page.keyboard.press("Enter");
      await page
        .locator("main")
        .getByText(/^Dead letter \d+ of .* was sent again\.$/)
        .waitFor();
      assert.equal(clicks(), 0);
      const { messages } = await api("GET", `${at(FAILED)}/messages?message_id=${booking}&body=full`);
      assert.deepEqual(
        messages.map(({ body, properties }) => [body.text, properties.amount]),
        [['{"amount": 6}', 6]],
      );
      assert.deepEqual(await counts(OTHER), had, "the other subscription gets nothing twice");
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test("all of a reason are sent again from their group, and the reader stays", async (page) => {
    await open(page, `#/entity/${encodeURIComponent(FAILED)}?tab=dead-letters`);
    await page.getByRole("button", { name: "Send again: NoSuchCustomer" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByRole("heading", {
        name: `Send again 1 dead letter of ${FAILED} with reason NoSuchCustomer and this description`,
      })
      .waitFor();
    await isAccessible(page);
    await dialog.getByRole("button", { name: "Send again 1 dead letter" }).click();
    await page
      .getByRole("status")
      .getByText(`1 dead letter of ${FAILED} with reason NoSuchCustomer and this description was sent again.`)
      .waitFor();
    await page.locator(".groups li").filter({ hasText: "NoSuchCustomer" }).waitFor({ state: "detached" });
    await page.getByRole("cell", { name: "NoSuchCustomer" }).waitFor({ state: "detached" });
    await heading(page, "billing");
    // On a telephone what a toast leads to is one line.
    await page.setViewportSize({ width: 360, height: 740 });
    const { height } = await page.locator(".toast a").boundingBox();
    assert(height < 30, `${height}`);
  });

  test(
    "a row acts on what it counts, with ids in descriptions and without a reason",
    async (page) => {
      await entity(api, "many-reasons");
      await entity(api, "many-reasons-to");
      await send(
        api,
        "many-reasons",
        ...Array.from({ length: 24 }, (_, number) => ({ body: `${number}`, properties: { number } })),
      );
      const dead = (description, filter, reason) =>
        job(api, "many-reasons", { kind: "dead_letter", reason, description }, { filter });
      for (let number = 0; number < 12; number += 1)
        await dead(`order 4711-${number} is unknown`, `number = ${number}`, "UnknownOrder");
      await dead("too large", "number < 17", "Invalid");
      await dead("too small", "number < 19", "Invalid");
      await dead(undefined, "number < 21", undefined);
      await dead("by hand", "number < 24", undefined);
      await open(page, "#/entity/many-reasons?tab=dead-letters");
      const rows = page.locator(".groups > li");
      await until(async () => (await rows.count()) === 3, "a row for each reason, and one for those without");
      assert.deepEqual(await rows.locator("> .group .group-count").allTextContents(), ["12", "7", "5"]);
      const unknown = rows.filter({ hasText: "UnknownOrder" });
      assert.equal(await unknown.locator(".descriptions li").count(), 5);
      await unknown.getByRole("button", { name: "7 more descriptions" }).click();
      await unknown.getByText("order 4711-11 is unknown").waitFor();
      assert.equal(await unknown.locator(".descriptions li").count(), 12);
      await isAccessible(page);
      const dialog = page.getByRole("dialog");
      const means = async (button, count) => {
        await page.getByRole("button", { name: button, exact: true }).click();
        await dialog.getByRole("heading", { name: count }).waitFor();
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
      };
      await means("Send again: UnknownOrder", "12 dead letters");
      await means("Send again: Invalid", "7 dead letters");
      await means("Delete: Invalid, too large", "5 dead letters");
      await means("Send again: no reason given", "5 dead letters");
      await means("Send again: no reason given, no description given", "2 dead letters");
      await page.getByRole("button", { name: "Move: no reason given, by hand", exact: true }).click();
      await dialog
        .getByRole("heading", { name: "Move 3 dead letters of many-reasons without a reason and this description" })
        .waitFor();
      await dialog.getByText("Conditions: No reason given; Dead-letter description: by hand").waitFor();
      await isAccessible(page);
      await dialog.getByRole("combobox", { name: "To" }).focus();
      await page.keyboard.type("many-reasons-to");
      await dialog.getByRole("button", { name: "Move 3 dead letters" }).click();
      await until(async () => (await counts("many-reasons-to")).active === 3, "three are there");
      assert.equal((await counts("many-reasons")).dead_letters, 21);
      await until(
        async () => (await rows.locator("> .group .group-count").allTextContents()).join() === "12,7,2",
        "the row counts what is left",
      );
      await page.getByRole("button", { name: "Send again: no reason given", exact: true }).waitFor();
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "one dead letter is moved to another entity",
    async (page) => {
      await entity(api, "bookings-odd");
      const {
        messages: [{ sequence_number: number }],
      } = await api("GET", `${at(`${FAILED}/$DeadLetterQueue`)}/messages`);
      await open(page, `#/entity/${encodeURIComponent(`${FAILED}/$DeadLetterQueue`)}/message/${number}`);
      await page.getByRole("button", { name: "Move" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("heading", { name: `Move dead letter ${number} of ${FAILED}` }).waitFor();
      // With few entities it is a list, with many a text with suggestions: both take what is typed.
      await dialog.getByRole("combobox", { name: "To" }).focus();
      await page.keyboard.type("bookings-odd");
      await dialog.getByRole("button", { name: "Move 1 dead letter" }).click();
      await page.locator("main").getByText(`Dead letter ${number} of ${FAILED} was moved.`).waitFor();
      const link = page.locator("main").getByRole("link", { name: "Open the messages" });
      assert.equal(await link.getAttribute("href"), "#/entity/bookings-odd?tab=messages");
      await until(async () => (await counts("bookings-odd")).active === 1, "it is there");
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "pages of an entity and of a message lead to what the others offer",
    async (page) => {
      await entity(api, "bookings-led");
      await send(
        api,
        "bookings-led",
        { body: "later", scheduled_for: new Date(Date.now() + 3_600_000).toISOString() },
        { body: "mine", session_id: "guest-1" },
      );
      const press = async (address, link, expected) => {
        await open(page, address);
        await page.locator("main").getByRole("link", { name: link, exact: true }).click();
        await heading(page, expected);
      };
      await press("#/entity/bookings", "New subscription", "New entity");
      assert.match(page.url(), /kind=subscription&topic=bookings$/);
      await press("#/entity/bookings", "Edit", /bookings/);
      assert.match(page.url(), /bookings\/edit$/);
      await press("#/entity/bookings", "Keys", "Settings");
      assert.match(page.url(), /tab=keys&entity=bookings$/);
      const rules = `#/entity/${encodeURIComponent(FAILED)}?tab=rules`;
      await press(rules, "Add a rule", /billing/);
      await page.getByRole("form", { name: "New rule" }).waitFor();
      await press(rules, "Edit rule $Default", /billing/);
      await page.getByRole("form", { name: /\$Default/ }).waitFor();
      await press("#/entity/bookings-led/message/2", "guest-1", "guest-1");
      await open(page, "#/entity/bookings-led/message/1");
      await page.getByRole("button", { name: "Reschedule" }).click();
      const dialog = page.getByRole("dialog");
      const input = dialog.getByLabel("Becomes active");
      const before = await input.inputValue();
      await dialog.getByRole("button", { name: "+1h" }).click();
      assert.notEqual(await input.inputValue(), before);
      await dialog.getByRole("button", { name: "Reschedule" }).click();
      await until(async () => {
        const [{ scheduled_for: due }] = (await api("GET", `${at("bookings-led")}/messages?state=scheduled`)).messages;
        return Date.now() + 3_600_000 + DEADLINE < Date.parse(due);
      }, "an hour later");
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "who may only listen is not led to what needs Manage",
    async (page) => {
      await signIn(page, LISTENER);
      await page.getByRole("link", { name: "Entities", exact: true }).click();
      await page.locator("tbody .entity-name a").first().click();
      await page.getByRole("link", { name: "Properties" }).waitFor();
      for (const name of ["Edit", "Keys", "New subscription"])
        assert.equal(await page.locator("main").getByRole("link", { name, exact: true }).count(), 0, name);
      for (const name of ["Move", "Delete"])
        assert.equal(await page.locator("main").getByRole("button", { name }).count(), 0, name);
    },
    { allow: [/401 \(Unauthorized\)/] },
  );
});
