// Messages that are sent by hand: of every kind of body, of a template, and like another.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { HOSTILE, entity, job, send } from "../seed.js";

const messages = async (path, query = "") =>
  (await api("GET", `/entities/${encodeURIComponent(path)}/messages?body=full&${query}`)).messages;
const one = async (path, number) => api("GET", `/entities/${encodeURIComponent(path)}/messages/${number}`);
const body = (page) => page.getByLabel("Body", { exact: true });
const submit = (page) => page.getByRole("button", { name: /^Send( |$)/ }).last();
const sent = (page, text) => page.locator(".toast", { hasText: text }).first().waitFor();

inBrowser("send", (test) => {
  before(async () => {
    await entity(api, "letters");
    await entity(api, "talks", "queue", { requires_session: true });
    await entity(api, "posts", "topic");
  });

  test("the journey by mouse: four clicks to a message in a queue", async (page) => {
    await entity(api, "aaa-first");
    const clicks = await countClicks(page);
    await open(page);
    await page
      .getByRole("link", { name: /^Entities/ })
      .first()
      .click();
    await page.getByRole("link", { name: "aaa-first" }).click();
    await page.locator("main").getByRole("link", { name: "Send" }).click();
    await heading(page, "Send");
    await until(() => page.evaluate(() => document.activeElement?.tagName === "TEXTAREA"), "the body has the cursor");
    await page.keyboard.type("hello");
    await submit(page).click();
    await sent(page, "Sent to aaa-first: message 1.");
    assert.equal(clicks(), 4);
    const [message] = await messages("aaa-first");
    assert.equal(message.body.text, "hello");
    await page.getByRole("link", { name: "Open the message" }).first().click();
    await heading(page, "Message 1");
  });

  test("in four clicks: a hundred of a template", async (page) => {
    await entity(api, "aab-many");
    const clicks = await countClicks(page);
    await open(page);
    await page
      .getByRole("link", { name: /^Entities/ })
      .first()
      .click();
    await page.getByRole("link", { name: "aab-many" }).click();
    await page.locator("main").getByRole("link", { name: "Send" }).click();
    await until(() => page.evaluate(() => document.activeElement?.tagName === "TEXTAREA"), "the body has the cursor");
    await page.keyboard.type("order {{n:4}} of {{n}} {{constructor}}");
    await page.getByLabel("How many").click();
    await page.keyboard.press("Control+A");
    await page.keyboard.type("100");
    for (const [field, text] of [
      ["Message id", "order-{{n}}"],
      ["Session id", "customer-{{n%3}}"],
      ["Subject", "no {{n}}"],
    ]) {
      await tabTo(page, new RegExp(`^${field}$`));
      await page.keyboard.type(text);
    }
    await page.getByText("order 0100 of 100").waitFor();
    await page.keyboard.press("Control+Enter");
    await sent(page, "100 messages were sent to aab-many.");
    assert.equal(clicks(), 4);
    const all = await messages("aab-many", "limit=100");
    assert.deepEqual(
      all.map(({ message_id: id }) => id),
      Array.from({ length: 100 }, (_, at) => `order-${at + 1}`),
    );
    assert.deepEqual([...new Set(all.map(({ session_id: id }) => id))].sort(), [
      "customer-0",
      "customer-1",
      "customer-2",
    ]);
    assert.equal(all[6].body.text, "order 0007 of 7 {{constructor}}");
    assert.equal(all[6].subject, "no 7");
  });

  test("templates have ids and times, each message its own; a copy has none filled in", async (page) => {
    await entity(api, "templated");
    await open(page, "#/send?entity=templated");
    const text =
      '{"id":"{{uuid:a}}","same":"{{uuid:a}}","other":"{{ uuid }}","at":"{{now}}","later":"{{now+10m}}","unix":{{now:unix}},"n":"{{n}}","not":"{{now+10}} {{uuid%1}} {{uuidx}}"}';
    await page.getByText("JSON", { exact: true }).click();
    await body(page).fill(text);
    await page.getByLabel("Message id").fill("{{uuid:a}}");
    await page
      .getByRole("region", { name: "What is sent" })
      .getByText(/"at":"20/)
      .waitFor();
    const from = Math.floor(Date.now() / 1000);
    await submit(page).click();
    await sent(page, "Sent to templated: message 1.");
    const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    const [first] = await messages("templated");
    const read = JSON.parse(first.body.text);
    assert.match(read.id, UUID);
    assert.match(read.other, UUID);
    assert.equal(read.same, read.id);
    assert.equal(first.message_id, read.id);
    assert.notEqual(read.other, read.id);
    assert.equal(Date.parse(read.later) - Date.parse(read.at), 600_000);
    assert.equal(read.unix, Math.floor(Date.parse(read.at) / 1000));
    assert(from <= read.unix && read.unix <= Date.now() / 1000);
    assert.deepEqual([read.n, read.not], ["{{n}}", "{{now+10}} {{uuid%1}} {{uuidx}}"]);
    await page.getByLabel("How many").fill("2");
    await submit(page).click();
    await sent(page, "2 messages were sent to templated.");
    const all = (await messages("templated")).map((message) => JSON.parse(message.body.text));
    assert.deepEqual(
      all.map(({ n }) => n),
      ["{{n}}", "1", "2"],
    );
    assert.equal(new Set(all.flatMap(({ id, other }) => [id, other])).size, 6);
    // What a message has is text, unless the reader says otherwise.
    await send(api, "templated", { body: "id {{uuid}}", message_id: "literal" });
    await open(page, "#/send?entity=templated&number=4");
    await until(async () => (await body(page).inputValue()) === "id {{uuid}}", "the message is in the form");
    assert.equal(await page.getByLabel("Fill in {{…}}").isChecked(), false);
    await submit(page).click();
    await sent(page, "Sent to templated: message 5.");
    assert.equal((await one("templated", 5)).body.text, "id {{uuid}}");
    await page.getByLabel("Fill in {{…}}").check();
    await submit(page).click();
    await sent(page, "Sent to templated: message 6.");
    assert.match((await one("templated", 6)).body.text.slice(3), UUID);
  });

  test("messages are saved, sent from another tab, written as a file that the API takes, and read from it", async (page, context) => {
    await entity(api, "canned");
    await open(page, "#/send?entity=canned");
    await page.getByText("JSON", { exact: true }).click();
    await body(page).fill('{"order": "{{uuid}}"}');
    await page.getByLabel("Subject").fill("placed");
    await page.getByLabel("Partition key").fill("p");
    await page.getByLabel("Time to live").fill("10m");
    await page.getByRole("button", { name: "Add a property" }).click();
    await page.getByLabel("Name of property 1").fill("price");
    await page.getByLabel("Type of property 1").selectOption("decimal");
    await page.getByLabel("Value of property 1").fill("5");
    const save = async (name, action) => {
      await page.getByRole("button", { name: "Save…" }).click();
      await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill(name);
      await isAccessible(page);
      await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
      await page.getByText(`${name} was saved.`).first().waitFor();
    };
    await save("an order", "Save");
    await save("an order", "Replace");
    const other = await context.newPage();
    await open(other, "#/send");
    const saved = other.getByLabel("Saved messages");
    await saved.selectOption("an order");
    const to = other.getByLabel("To", { exact: true });
    await until(async () => (await to.inputValue()) === "canned", "the saved message is in the form");
    assert.equal(await body(other).inputValue(), '{"order": "{{uuid}}"}');
    await submit(other).click();
    await sent(other, "Sent to canned: message 1.");
    const [download] = await Promise.all([
      other.waitForEvent("download"),
      other.getByRole("button", { name: "Save all as a file" }).click(),
    ]);
    const text = await readFile(await download.path(), "utf8");
    assert.match(text, /"price": 5\.0/);
    await send(api, "canned", ...JSON.parse(text).map(({ message }) => message));
    const has = ({ subject, partition_key: key, properties }) => [subject, key, properties.price];
    assert.deepEqual((await messages("canned")).map(has), [
      ["placed", "p", 5],
      ["placed", "p", 5],
    ]);
    await other.getByRole("button", { name: "Delete", exact: true }).click();
    await other.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await saved.getByText("None yet").waitFor({ state: "attached" });
    // The first tab knows it too.
    await page.getByLabel("Saved messages").getByText("None yet").waitFor({ state: "attached" });
    const load = (content) =>
      other
        .locator("input[type=file]")
        .first()
        .setInputFiles({ name: "messages.json", mimeType: "application/json", buffer: Buffer.from(content) });
    await load("[{]");
    await other
      .getByText(/The file is not valid JSON/)
      .first()
      .waitFor();
    await load('[{"name": "x"}]');
    await other.getByText("Entry 1 of the file has no name or no message.").first().waitFor();
    await load(text);
    await other.getByText("1 message was loaded.").first().waitFor();
    await other.getByRole("button", { name: "Clear the form" }).click();
    await saved.selectOption("an order");
    assert.equal(await other.getByLabel("Type of property 1").inputValue(), "decimal");
    await submit(other).click();
    await sent(other, "Sent to canned: message 3.");
    const third = await one("canned", 3);
    assert.deepEqual([...has(third), third.content_type], ["placed", "p", 5, "application/json"]);
    assert.match(third.body.text, /^\{"order": "[0-9a-f-]{36}"\}$/);
    assert.equal(Math.round((Date.parse(third.expires_at) - Date.parse(third.enqueued_at)) / 1000), 600);
  });

  test("the journey by keyboard alone: typed properties, a time, and a life", async (page) => {
    await open(page);
    await tabTo(page, /^Send$/);
    await page.keyboard.press("Enter");
    await heading(page, "Send");
    await tabTo(page, /^To$/);
    await page.keyboard.type("letters");
    await tabTo(page, /^Text$/);
    await page.keyboard.press("ArrowRight");
    await tabTo(page, /^Body$/);
    await page.keyboard.type('{"order": 1');
    const add = async (name, type, value) => {
      await tabTo(page, /^Add a property$/);
      await page.keyboard.press("Enter");
      // The name of the new one has the focus.
      await page.locator(":focus[aria-label^='Name of property']").waitFor();
      await page.keyboard.type(name);
      await page.keyboard.press("Tab");
      await page.keyboard.type(type);
      await page.keyboard.press("Tab");
      await page.keyboard.type(value);
    };
    await add("attempts", "integer", "12345678901234567");
    await add("price", "decimal", "5");
    await add("vip", "boolean", "false");
    for (const [name, text] of [
      ["Message id", "id-1"],
      ["Correlation id", "cart"],
      ["Subject", "order"],
      ["Session id", "s"],
      ["Reply to", "answers"],
      ["To (address)", "somewhere"],
      ["Time to live", "10m"],
    ]) {
      await tabTo(page, new RegExp(`^${name.replace(/[()]/g, "\\$&")}$`));
      await page.keyboard.type(text);
    }
    await page.keyboard.press("Control+Enter");
    await page.getByRole("alert").getByText("Not valid JSON").waitFor();
    await until(
      () => page.evaluate(() => document.activeElement?.tagName === "TEXTAREA"),
      "the field with the mistake has the cursor",
    );
    await page.keyboard.press("Control+End");
    await page.keyboard.type("}");
    await page.keyboard.press("Control+Enter");
    await sent(page, "Sent to letters: message");
    const [message] = await messages("letters", "message_id=id-1");
    assert.equal(message.body.text, '{"order": 1}');
    const {
      message_id: id,
      correlation_id: correlation,
      subject,
      session_id: session,
      reply_to: reply,
      to,
      content_type: type,
    } = message;
    assert.deepEqual(
      [id, correlation, subject, session, reply, to, type],
      ["id-1", "cart", "order", "s", "answers", "somewhere", "application/json"],
    );
    assert.equal(Math.round((Date.parse(message.expires_at) - Date.parse(message.enqueued_at)) / 1000), 600);
    const raw = await (
      await fetch(`${new URL(page.url()).origin}/api/v1/entities/letters/messages?message_id=id-1`)
    ).text();
    assert.match(raw, /"attempts":12345678901234567,"price":5\.0,"vip":false/);
  });

  test("hex, and a file, are sent as bytes; a time makes it scheduled", async (page) => {
    await open(page, "#/send?entity=letters");
    await page.getByText("Hex", { exact: true }).click();
    await body(page).fill("00 ff 1b5z");
    await page.getByLabel("Message id").fill("bytes");
    await submit(page).click();
    await page.getByRole("alert").getByText("“z” is not a hex digit.").waitFor();
    await body(page).fill("00 ff\n1b 5b");
    await page.getByLabel("Becomes active").fill("2031-01-02T03:04:05");
    await page.getByText("2031-01-02 02:04:05 UTC").waitFor();
    await submit(page).click();
    await sent(page, "Sent to letters");
    const [hex] = await messages("letters", "message_id=bytes");
    assert.deepEqual(
      [hex.body.base64, hex.state, hex.scheduled_for],
      ["AP8bWw==", "scheduled", "2031-01-02T02:04:05Z"],
    );
    await page.getByText("File", { exact: true }).click();
    await body(page).setInputFiles({
      name: "<b>.bin",
      mimeType: "application/octet-stream",
      buffer: Buffer.from([1, 2, 255]),
    });
    await page.getByText("<b>.bin, 3 B").waitFor();
    await page.getByLabel("Message id").fill("filed");
    await submit(page).click();
    await sent(page, "Sent to letters");
    await until(async () => (await messages("letters", "message_id=filed")).length === 1, "the file is there");
    assert.equal((await messages("letters", "message_id=filed"))[0].body.base64, "AQL/");
  });

  /** Labels of the fields that are shown as wrong. */
  const wrong = (page) =>
    page
      .locator("main [aria-invalid='true']")
      .evaluateAll((inputs) => inputs.map((input) => input.labels[0]?.textContent || input.getAttribute("aria-label")));

  /** Sends, waits for a refusal, and checks that it stands at a field, and at no other. */
  async function isRefused(page, text, label) {
    await submit(page).click();
    await page.getByRole("alert").getByText(text).waitFor();
    assert.deepEqual(await wrong(page), label === undefined ? [] : [label]);
  }

  test(
    "what the broker refuses stands at its field, in its words",
    async (page) => {
      await open(page, "#/send?entity=letters");
      await page.getByLabel("Time to live").fill("soon");
      await isRefused(page, "messages[0].time_to_live is 'soon'", "Time to live");
      await page.getByLabel("Time to live").fill("");
      await open(page, "#/send?entity=nowhere");
      await isRefused(page, "The messaging entity 'sb://127.0.0.1/nowhere' could not be found.", "To");
    },
    { allow: [/400 \(Bad Request\)/, /404 \(Not Found\)/] },
  );

  test(
    "what the entity refuses stands at its field, in its words",
    async (page) => {
      await open(page, "#/send?entity=talks");
      await page.getByText("This queue has message sessions").waitFor();
      await body(page).fill("a");
      await isRefused(page, "The SessionId was not set on a message", "Session id");
      await page.getByLabel("Session id").fill("one");
      await page.getByLabel("Message id").fill("x".repeat(129));
      await isRefused(page, "The message-id has 129 characters", "Message id");
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test(
    "a refusal stands at the field that it names, whatever its words are",
    async (page) => {
      let field;
      await page.route("**/api/v1/entities/letters/send*", (route) =>
        route.fulfill({
          status: 400,
          contentType: "application/problem+json",
          // Its words are about another field.
          body: JSON.stringify({
            status: 400,
            title: "Bad Request",
            detail: `messages[0].subject: the message-id is not ${field}.`,
            reason: "argument",
            field,
          }),
        }),
      );
      await open(page, "#/send?entity=letters");
      for (const name of ["a.b", "price"]) {
        await page.getByRole("button", { name: "Add a property" }).click();
        await page
          .getByLabel(/^Name of property/)
          .last()
          .fill(name);
      }
      for (const [named, label] of [
        ["messages[0].body", "Body"],
        ["messages[0].body_base64", "Body"],
        ["messages[0].message_id", "Message id"],
        ["messages[12].session_id", "Session id"],
        ["message_id", "Message id"],
        ["session_id", "Session id"],
        ["messages[0].correlation_id", "Correlation id"],
        ["messages[0].scheduled_for", "Becomes active"],
        ["messages[0].properties.a.b", "Value of property 1"],
        ["messages[0].properties.price", "Value of property 2"],
        ["messages[0].properties", undefined],
        ["messages[0].properties.c", undefined],
        ["messages[0].encoded", undefined],
        ["messages", undefined],
        [undefined, undefined],
      ]) {
        field = named;
        await isRefused(page, `the message-id is not ${named}`, label);
      }
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("a reload loses nothing, and the form can be cleared", async (page) => {
    await open(page, "#/send?entity=letters");
    await body(page).fill("kept");
    await page.getByRole("button", { name: "Add a property" }).click();
    await page.getByLabel("Name of property 1").fill("region");
    await page.getByLabel("Value of property 1").fill("EU");
    await page.reload();
    await live(page);
    assert.equal(await body(page).inputValue(), "kept");
    assert.equal(await page.getByLabel("Value of property 1").inputValue(), "EU");
    await page.getByRole("button", { name: "Clear the form" }).click();
    await until(async () => (await body(page).inputValue()) === "", "the form is empty");
  });

  test("a message is repeated from its page, with another body, or exactly", async (page) => {
    await entity(api, "repeated");
    await send(api, "repeated", {
      body: '{"amount": 1}',
      content_type: "application/json",
      message_id: "first",
      properties: { region: "EU", attempts: 3 },
    });
    await job(api, "repeated", { kind: "dead_letter", reason: "BadAmount" });
    await open(page, `#/entity/${encodeURIComponent("repeated/$DeadLetterQueue")}/message/1`);
    await page.getByRole("link", { name: "Send a copy" }).click();
    await page.getByText("A copy of message 1 of repeated/$DeadLetterQueue").waitFor();
    assert.equal(await page.getByLabel("To", { exact: true }).inputValue(), "repeated");
    assert.equal(await page.getByLabel("Message id").inputValue(), "first");
    assert.equal(await page.getByLabel("Type of property 1").inputValue(), "integer");
    await body(page).fill('{"amount": 5}');
    await submit(page).click();
    await sent(page, "Sent to repeated");
    const [copy] = await messages("repeated");
    assert.equal(copy.body.text, '{"amount": 5}');
    assert.deepEqual(copy.properties, { region: "EU", attempts: 3 });
    await page.getByRole("button", { name: "Send an exact copy" }).click();
    await until(async () => (await messages("repeated")).length === 2, "the copy is there");
    assert.equal((await messages("repeated"))[1].body.text, '{"amount": 1}');
  });

  test("hostile texts are sent as they are, and stay texts", async (page) => {
    await entity(api, "odd");
    await open(page, "#/send?entity=odd");
    for (const [at, text] of HOSTILE.entries()) {
      await body(page).fill(text);
      await page.getByLabel("Message id").fill(`odd-${at}`);
      await submit(page).click();
      await until(async () => (await messages("odd", `message_id=odd-${at}`)).length === 1, text);
      const [message] = await messages("odd", `message_id=odd-${at}`);
      // A text area has no other line ends.
      assert.equal(message.body.text, text.replace(/\r\n?/g, "\n"));
    }
    assert.equal(await page.locator("main img, main script").count(), 0);
    await send(api, "odd", {
      body: HOSTILE[0],
      message_id: HOSTILE[1],
      subject: HOSTILE[2],
      properties: { [HOSTILE[0]]: HOSTILE[3], __proto__x: 1 },
    });
    await open(page, `#/send?entity=odd&number=${HOSTILE.length + 1}`);
    await until(async () => (await body(page).inputValue()) === HOSTILE[0], "the message is in the form");
    await submit(page).click();
    await sent(page, "Sent to odd");
    await until(async () => (await messages("odd", "limit=100")).length === HOSTILE.length + 2, "the copy is there");
    const copy = await one("odd", HOSTILE.length + 2);
    assert.equal(copy.properties[HOSTILE[0]], HOSTILE[3]);
    assert.equal(copy.subject, HOSTILE[2]);
  });

  test("axe finds nothing", async (page) => {
    await open(page, "#/send");
    await isAccessible(page);
    await open(page, "#/send?entity=posts");
    await page.getByLabel("How many").fill("20");
    await page.getByRole("button", { name: "Add a property" }).click();
    await submit(page).click();
    await page.getByRole("alert").getByText("A name is needed.").waitFor();
    await isAccessible(page);
    await page.getByLabel("Name of property 1").fill("n");
    await submit(page).click();
    await sent(page, "20 messages were sent to posts.");
    await page.setViewportSize({ width: 360, height: 740 });
    await isAccessible(page);
  });
});
