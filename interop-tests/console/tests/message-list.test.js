// Lists of messages: several at once, columns by choice, and from one message to the next, and what a message shows.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, securedUrl, until } from "../harness.js";
import { client, entity, job, send } from "../seed.js";
import { LISTENER, rootToken, signIn, tabTo } from "../journey.js";

const counts = async (path) => (await api("GET", `/entities/${encodeURIComponent(path)}`)).counts;
const numbered = (length, of = () => ({})) =>
  Array.from({ length }, (_, number) => ({ body: `text ${number + 1}`, ...of(number + 1) }));

inBrowser("lists of messages", (test) => {
  before(
    async () => {
      for (const path of ["ticked", "ticked-to", "ticked-keys", "ticked-many", "ticked-saved", "ticked-dead"])
        await entity(api, path);
      await send(api, "ticked", ...numbered(20));
      await send(api, "ticked-keys", ...numbered(10));
      for (let batch = 0; batch < 3; batch += 1)
        await send(api, "ticked-many", ...numbered(100, (number) => ({ properties: { even: number % 2 === 0 } })));
      await send(
        api,
        "ticked-saved",
        ...numbered(6, (number) => ({ properties: { number }, message_id: `saved-${number}` })),
      );
      await send(api, "ticked-dead", ...numbered(4));
      await entity(api, "columned");
      const order =
        '{"id":9007199254740993,"price":1.0,"paid":true,"note":"<b>\\u202e</b>","customer":{"name":"A","country":"NL"},"lines":[1,2],"gone":null}';
      await send(
        api,
        "columned",
        { body: "1" },
        { body: "2", properties: { region: "EU", "rare, 1": 95 } },
        { body: order, content_type: "application/json", properties: { attempts: 95, limit: "95" } },
      );
      await job(api, "ticked-dead", { kind: "dead_letter", reason: "Test" });
    },
    { timeout: 60_000 },
  );

  const bar = (page) => page.getByRole("group", { name: "Selected messages" });
  const box = (page, number) => page.getByRole("checkbox", { name: `Select message ${number}`, exact: true });

  test("boxes are ticked one by one and from one to another, and what is ticked is deleted or moved", async (page) => {
    await open(page, "#/entity/ticked?tab=messages");
    await box(page, 2).check();
    await box(page, 5).check();
    await bar(page).getByText("2 selected").waitFor();
    await box(page, 9).click({ modifiers: ["Shift"] });
    await bar(page).getByText("6 selected").waitFor();
    await box(page, 7).uncheck();
    await bar(page).getByText("5 selected").waitFor();
    await isAccessible(page);
    await bar(page).getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Delete 5 messages of ticked", exact: true }).waitFor();
    await dialog.getByRole("button", { name: "Delete 5 messages" }).click();
    await page
      .getByRole("status")
      .getByText(/^5 messages of ticked were deleted in /)
      .waitFor();
    assert.equal((await counts("ticked")).active, 15);
    await until(
      async () => (await page.locator("tbody a.number").allTextContents()).slice(0, 5).join() === "1,3,4,7,10",
      "the list is read again",
    );
    assert.equal(await bar(page).count(), 0, "nothing is ticked");
    await box(page, 1).check();
    await bar(page).getByRole("button", { name: "Move" }).click();
    await dialog.getByRole("heading", { name: "Move message 1 of ticked", exact: true }).waitFor();
    await dialog.getByRole("combobox", { name: "To" }).focus();
    await page.keyboard.type("ticked-to");
    await dialog.getByRole("button", { name: "Move 1 message" }).click();
    await until(async () => (await counts("ticked-to")).active === 1, "it is there");
  });

  test("by keyboard: the space bar ticks, with Shift all between", async (page) => {
    await open(page, "#/entity/ticked-keys?tab=messages");
    await box(page, 10).waitFor();
    await tabTo(page, /^Messages$/, "group");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press(" ");
    for (let steps = 0; steps < 3; steps += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+ ");
    await bar(page).getByText("4 selected").waitFor();
    await bar(page).getByRole("button", { name: "Dead-letter" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("heading", { name: "Dead-letter 4 messages of ticked-keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Clear" }).click();
    await bar(page).waitFor({ state: "detached" });
  });

  test("all that match are more than those that are loaded", async (page) => {
    await open(page, "#/entity/ticked-many?tab=messages&by=filter&value=even%20%3D%20true");
    await page.getByRole("button", { name: "Continue the search" }).waitFor();
    await page.getByRole("checkbox", { name: "Select all that are shown" }).check();
    await bar(page).getByRole("button", { name: "Select all that match" }).click();
    await bar(page).getByText("All that match are selected").waitFor();
    await bar(page).getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByRole("heading", { name: "Delete 150 messages of ticked-many that match the conditions" })
      .waitFor();
    await dialog.getByText("Conditions: SQL filter: even = true").waitFor();
    await dialog.getByLabel("To confirm, type ticked-many").fill("ticked-many");
    await dialog.getByRole("button", { name: "Delete 150 messages" }).click();
    await page
      .getByRole("status")
      .getByText(/^150 messages of ticked-many that match the conditions were deleted in /)
      .waitFor();
    assert.equal((await counts("ticked-many")).active, 150);
  });

  test("dead letters are sent again from the list", async (page) => {
    await open(page, "#/entity/ticked-dead?tab=dead-letters");
    await box(page, 2).check();
    await box(page, 3).check();
    await bar(page).getByRole("button", { name: "Send again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Send again 2 dead letters" }).click();
    await page
      .getByRole("status")
      .getByText(/^2 dead letters of ticked-dead were sent again in /)
      .waitFor();
    assert.deepEqual([(await counts("ticked-dead")).active, (await counts("ticked-dead")).dead_letters], [2, 2]);
  });

  test("a download has the messages as they are imported", async (page) => {
    await open(page, "#/entity/ticked-saved?tab=messages");
    for (const number of [2, 4, 5]) await box(page, number).check();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      bar(page).getByRole("button", { name: "Download" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "ticked-saved.jsonl");
    const lines = (await readFile(await download.path(), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ message_id: id, properties }) => [id, properties.number]),
      [
        ["saved-2", 2],
        ["saved-4", 4],
        ["saved-5", 5],
      ],
    );
    await send(api, "ticked-saved", ...lines.map(({ encoded }) => ({ encoded })));
    const { messages } = await api("GET", "/entities/ticked-saved/messages?body=full&from=7");
    assert.deepEqual(
      messages.map(({ message_id: id, body }) => [id, body.text]),
      [
        ["saved-2", "text 2"],
        ["saved-4", "text 4"],
        ["saved-5", "text 5"],
      ],
    );
  });

  test("properties are columns by choice, in the address and for the next time", async (page) => {
    await open(page, "#/entity/columned?tab=messages");
    await page.getByRole("button", { name: "Columns" }).click();
    const dialog = page.getByRole("dialog");
    await isAccessible(page);
    await dialog.getByLabel("region").check();
    await dialog.getByLabel("Subject").uncheck();
    await dialog.getByLabel("Another property").fill("rare, 1");
    await dialog.getByRole("button", { name: "Add" }).click();
    await dialog.getByRole("button", { name: "Close" }).click();
    const table = page.getByRole("table", { name: "Messages" });
    const heads = async () => (await table.getByRole("columnheader").allTextContents()).filter(Boolean);
    const expected = ["Number", "State", "Message id", "Body", "Deliveries", "Size", "Enqueued", "region", "rare, 1"];
    assert.deepEqual(await heads(), expected);
    assert.deepEqual(await table.getByRole("row").nth(2).getByRole("cell").last().allTextContents(), ["95"]);
    const shared = page.url();
    await page.reload();
    await table.waitFor();
    assert.deepEqual(await heads(), expected);
    await open(page, "#/entity/ticked-keys?tab=messages");
    await table.waitFor();
    assert.deepEqual(await heads(), expected, "kept in the browser");
    // Another browser has nothing but the address.
    await page.evaluate(() => localStorage.clear());
    await page.goto("about:blank");
    await page.goto(shared);
    await table.waitFor();
    assert.deepEqual(await heads(), expected);
    await page.getByRole("button", { name: "Columns" }).click();
    await dialog.getByRole("button", { name: "Reset" }).click();
    await page.keyboard.press("Escape");
    await table.getByRole("columnheader", { name: "Subject" }).waitFor();
    assert.equal(new URL(page.url()).hash.includes("columns"), false);
  });

  test("from a message to the next of the list and back, by mouse and keys; back leads to the list", async (page) => {
    await open(page, "#/entity/columned?tab=messages&state=active");
    await page.locator("tbody a.number").nth(1).click();
    await heading(page, "Message 2");
    const place = page.getByRole("navigation", { name: "Messages of the list" });
    await place.getByText("2 of 3").waitFor();
    await place.getByRole("link", { name: "Next" }).click();
    await heading(page, "Message 3");
    assert.equal(await place.getByRole("link", { name: "Next" }).count(), 0, "it is the last");
    await page.keyboard.press("k");
    await heading(page, "Message 2");
    await page.keyboard.press("k");
    await heading(page, "Message 1");
    await page.keyboard.press("j");
    await heading(page, "Message 2");
    await page.locator("pre.body").waitFor();
    await isAccessible(page);
    await page.getByRole("button", { name: "Dead-letter" }).click();
    await page.getByRole("dialog").getByLabel("Reason", { exact: true }).pressSequentially("jk");
    assert.equal(
      await page.getByRole("dialog").getByLabel("Reason", { exact: true }).inputValue(),
      "jk",
      "keys that are typed go nowhere",
    );
    await page.keyboard.press("Escape");
    await page.goBack();
    await page.getByRole("table", { name: "Messages" }).waitFor();
    await page.goto("about:blank");
    await open(page, "#/entity/columned/message/2");
    await page.locator("pre.body").waitFor();
    assert.equal(await place.count(), 0, "a link from elsewhere is in no list");
  });

  test("JSON has colours and is folded; values keep their digits and show their types", async (page) => {
    await open(page, "#/entity/columned/message/3");
    const body = page.locator("pre.body");
    await body.getByText('"id": 9007199254740993,').waitFor();
    await body.getByText('"price": 1.0,').waitFor();
    await body.getByText('"note": "<b>\\u202e</b>",').waitFor();
    assert.equal(await body.locator("b").count(), 0);
    await body.getByText('"country": "NL"').waitFor();
    await isAccessible(page);
    await body.getByRole("button", { name: 'Contents of "customer"' }).click();
    await body.getByText('"customer": { 2 values },').waitFor();
    assert.equal(await body.getByText('"country"').count(), 0);
    await page.getByRole("button", { name: "Unfold all" }).click();
    await body.getByText('"country": "NL"').waitFor();
    await page.getByRole("button", { name: "Fold all", exact: true }).click();
    await body.getByText('"lines": [ 2 values ],').waitFor();
    assert.equal(await body.getByRole("button", { expanded: false }).count(), 2);
    const colors = await Promise.all(
      ["key", "string", "number", "boolean", "null"].map((kind) =>
        body
          .locator(`.json-${kind}`)
          .first()
          .evaluate((element) => getComputedStyle(element).color),
      ),
    );
    assert.equal(new Set(colors).size, 4, "words have one colour");
    const value = (name) => page.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]");
    assert.equal((await value("attempts").innerText()).replace(/\s+/g, " "), "95 long");
    assert.equal((await value("limit").innerText()).replace(/\s+/g, " "), '"95" string');
    await page.getByText("Text", { exact: true }).click();
    await body.getByText('{"id":9007199254740993').waitFor();
  });

  test(
    "who may only listen may download, and nothing else",
    async (page) => {
      const call = client(securedUrl, rootToken());
      await entity(call, "ticked-guarded");
      await send(call, "ticked-guarded", ...numbered(2));
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/entity/ticked-guarded?tab=messages`);
      await box(page, 1).check();
      assert.deepEqual(await bar(page).getByRole("button").allTextContents(), ["Download", "Clear"]);
      await live(page);
    },
    { allow: [/401 \(Unauthorized\)/] },
  );

  test("axe finds nothing, and at 360 pixels nothing is wider than the page", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/entity/ticked-keys?tab=messages");
    await box(page, 1).check();
    await isAccessible(page);
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
});
