// Jobs: the dialog that starts them, with the number and the name; progress, cancel, result.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import rhea from "rhea";
import { DEADLINE, api, heading, inBrowser, isAccessible, live, open, securedUrl, until } from "../harness.js";
import { connect, event, receive } from "../client.js";
import { HOSTILE, entity, send } from "../seed.js";
import { LISTENER, countClicks, signIn, tabTo } from "../journey.js";

const DEFERRED = 90;

/** Messages of a state, a hundred at most. */
const count = async (path, state) =>
  (await api("GET", `/entities/${encodeURIComponent(path)}/messages?body=none&state=${state}`)).messages.length;
const messages = (length, of = () => ({})) =>
  Array.from({ length }, (_, number) => ({ body: `${number}`, ...of(number) }));

/** Defers every message of a queue. */
async function defer(connection, path, length) {
  const { receiver, messages: deliveries } = await receive(connection, path, { credit: length });
  await until(() => deliveries.length === length, "all are received");
  for (const delivery of deliveries)
    delivery.update(false, rhea.message.modified({ undeliverable_here: true }).described());
  await until(async () => (await count(path, "deferred")) === length, "all are deferred");
  receiver.close();
  await event(receiver, "receiver_close");
}

inBrowser("jobs", (test) => {
  let connection;
  after(() => connection?.close());

  before(
    async () => {
      connection = await connect("deferrer");
      for (const path of ["emptied-deferred", "cancelled", "conditions", "reschedules", "refused"])
        await entity(api, path);
      await send(api, "emptied-deferred", ...messages(DEFERRED));
      await defer(connection, "emptied-deferred", DEFERRED);
      await send(api, "emptied-deferred", ...messages(5));
      await send(api, "cancelled", ...messages(4));
      await send(api, "refused", ...messages(5));
      await send(
        api,
        "conditions",
        ...messages(250, (number) => ({
          properties: { color: number % 25 === 0 ? "red" : "blue" },
          session_id: number % 2 ? "a" : "b",
        })),
      );
      await send(
        api,
        "reschedules",
        ...messages(3, () => ({ scheduled_for: new Date(Date.now() + 3_600_000).toISOString() })),
      );
    },
    { timeout: 60_000 },
  );

  const begin = (page, count, state, path) =>
    page.getByRole("button", { name: `Start a job about ${count} ${state} of ${path}`, exact: true });

  test("in three clicks: deferred messages are counted, named, purged, and the others stay", async (page) => {
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Jobs" }).click();
    await heading(page, "Jobs");
    await begin(page, DEFERRED, "deferred", "emptied-deferred").click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByRole("heading", { name: `Delete all ${DEFERRED} deferred messages of emptied-deferred` })
      .waitFor();
    assert.equal(
      await dialog.getByText("Scheduled messages are cancelled").count(),
      0,
      "there are none in the selection",
    );
    const purge = dialog.getByRole("button", { name: `Delete ${DEFERRED} deferred messages` });
    assert(await purge.isDisabled(), "the name is asked for");
    await isAccessible(page);
    await dialog.getByLabel("To confirm, type emptied-deferred").fill("emptied-deferred");
    await purge.click();
    assert.equal(clicks(), 3);
    await heading(page, /^Job \d+$/);
    await page.getByText(`Completed: ${DEFERRED} messages deleted.`).first().waitFor();
    await page.getByText("deferred", { exact: true }).waitFor();
    await isAccessible(page);
    assert.deepEqual(
      [await count("emptied-deferred", "active"), await count("emptied-deferred", "deferred")],
      [5, 0],
      "the others stay",
    );
    await page.reload();
    await page.getByText(`Completed: ${DEFERRED} messages deleted.`).first().waitFor();
  });

  test("on a narrow page the messages of all states are one number, and the dialog tells them apart", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    // The list shows the fullest entities first, and the suite has many.
    await open(page, "#/jobs?entity=reschedules");
    const list = page.getByRole("group", { name: "Start a job" });
    await begin(page, 3, "messages", "reschedules").waitFor();
    assert.deepEqual(await list.getByRole("columnheader").allTextContents(), ["Entity", "Messages", "Dead letters"]);
    assert(await list.evaluate((box) => box.scrollWidth <= box.clientWidth), "nothing is to the side");
    await begin(page, 3, "messages", "reschedules").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Delete all 3 scheduled messages of reschedules" }).waitFor();
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 1000, height: 740 });
    await begin(page, 3, "scheduled", "reschedules").waitFor();
    assert.equal(await list.getByRole("columnheader", { name: "Messages", exact: true }).count(), 0);
  });

  test("the fourth click cancels: progress is shown before, and the result after", async (page) => {
    // A job of a real million is over before a test could see it: this one stands still at the half.
    const job = {
      id: 9_000_001,
      entity: "cancelled",
      selection: { states: ["active"] },
      action: { kind: "delete" },
      state: "running",
      created_at: new Date().toISOString(),
      matched: 2,
      changed: 2,
      skipped: 0,
    };
    const answer = (route, status) =>
      route.fulfill({ status, contentType: "application/json", body: JSON.stringify(job) });
    await page.route(/\/api\/v1\/jobs(\?|$)/, (route) =>
      route.request().method() === "POST" ? answer(route, 202) : route.continue(),
    );
    await page.route(`**/api/v1/jobs/${job.id}`, (route) => {
      if (route.request().method() === "DELETE")
        Object.assign(job, { state: "cancelled", ended_at: new Date().toISOString() });
      return answer(route, 200);
    });
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Jobs" }).click();
    await begin(page, 4, "active", "cancelled").click();
    await page.getByRole("dialog").getByLabel("To confirm, type cancelled").fill("cancelled");
    await page.getByRole("dialog").getByRole("button", { name: "Delete 4 active messages" }).click();
    await page.getByText("2 of about 4 (50 %)").waitFor();
    assert.equal(await page.getByRole("progressbar").getAttribute("aria-valuenow"), "50");
    await page.getByText("Clients send and receive meanwhile.").waitFor();
    await isAccessible(page);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    assert.equal(clicks(), 4);
    await page.getByText("Cancelled: 2 messages deleted before that; these changes stay.").first().waitFor();
    await page
      .getByRole("status")
      .getByText("Job 9000001 was cancelled.")
      .or(page.getByRole("status").getByText("Cancelled: 2 messages"))
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Run again" }).waitFor();
  });

  test("by keyboard: red ones are counted by a filter, and dead-lettered with a reason", async (page) => {
    await open(page, "#/jobs?entity=conditions");
    await begin(page, 250, "active", "conditions").waitFor();
    await tabTo(page, /about 250 active of conditions/);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Delete all 250 active messages of conditions" }).waitFor();
    await tabTo(page, /^Which messages$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^SQL filter$/);
    await page.keyboard.type("color = 'red'");
    await dialog
      .getByRole("heading", { name: "Delete 10 active messages of conditions that match the conditions" })
      .waitFor();
    await dialog.getByLabel("Action").focus();
    for (
      let presses = 0;
      presses < 3 && (await dialog.getByLabel("Action").inputValue()) !== "dead_letter";
      presses += 1
    )
      await page.keyboard.press("d");
    await until(async () => (await dialog.getByLabel("Action").inputValue()) === "dead_letter", "the action is chosen");
    await tabTo(page, /^Reason$/);
    await page.keyboard.type("IsRed");
    await page.keyboard.press("Enter");
    await heading(page, /^Job \d+$/);
    await page.getByText("Completed: 10 messages dead-lettered.").first().waitFor();
    await page.getByText("color = 'red'").waitFor();
    await page.getByText("IsRed").waitFor();
    const { groups } = await api("GET", "/entities/conditions/dead-letters");
    assert.deepEqual(
      groups.map(({ reason, messages: found }) => [reason, found]),
      [["IsRed", 10]],
    );
  });

  /** Labels of the fields that are shown as wrong. */
  const wrong = (dialog) =>
    dialog.locator("[aria-invalid='true']").evaluateAll((inputs) => inputs.map((input) => input.labels[0].textContent));

  /** Waits for a refusal, and checks that it stands at a field, and at no other. */
  async function isRefused(dialog, label, text) {
    await dialog.getByRole("alert").getByText(text).waitFor();
    assert.deepEqual(await wrong(dialog), [label]);
    const [described, alert] = [
      await dialog.getByLabel(label, { exact: true }).getAttribute("aria-describedby"),
      await dialog.getByRole("alert").getAttribute("id"),
    ];
    assert(described.split(" ").includes(alert), `${described} names ${alert}`);
  }

  test(
    "what the broker refuses stands at the field, in its words",
    async (page) => {
      await open(page, "#/jobs");
      await begin(page, 5, "active", "refused").click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Which messages").click();
      await dialog.getByLabel("SQL filter").fill("color == 1");
      await isRefused(dialog, "SQL filter", "filter: expected");
      await isAccessible(page);
      await dialog.getByLabel("SQL filter").fill("");
      const long = "x".repeat(1_025);
      for (const [label, value, text] of [
        ["JSONPath in the body", "$[", "json_path: "],
        ["Text in the body", long, "text has 1025 characters"],
        ["Session id", long, "session_id has 1025 characters"],
        ["Message id", long, "message_id has 1025 characters"],
        ["Correlation id", long, "correlation_id has 1025 characters"],
        ["Sequence numbers", "1, x", "'x' is not a sequence number."],
      ]) {
        await dialog.getByLabel(label, { exact: true }).fill(value);
        await isRefused(dialog, label, text);
        await dialog.getByLabel(label, { exact: true }).fill("");
      }
      await dialog.getByLabel("Sequence numbers").fill("1, 2");
      const [action, submit] = [
        dialog.getByLabel("Action", { exact: true }),
        dialog.getByRole("button", { name: "Move 2 active messages" }),
      ];
      await action.selectOption("move");
      await submit.click();
      await isRefused(dialog, "To", "Choose the entity that gets them.");
      await dialog.getByLabel("To", { exact: true }).fill("reschedules");
      for (const [label, value, text] of [
        ["Sequence numbers", "9223372036854775808", "selection.numbers has 9223372036854775808"],
        ["Sequence numbers", "7, 99999999999999999999", "selection.numbers[1]"],
      ]) {
        await dialog.getByLabel(label, { exact: true }).fill(value);
        await isRefused(dialog, label, text);
        assert(await dialog.locator("button[type='submit']").isDisabled(), "what cannot be counted is not done");
        await dialog.getByLabel(label, { exact: true }).fill("1, 2");
      }
      await dialog.getByText("Edit them on the way").click();
      for (const [label, value, text] of [
        ["Statements that edit properties first", "SET", "action.action: expected"],
        ["Template of a new body", "{{nothing}}", "action.body: '{{nothing}}'"],
        ["Limit", "-1", "Enter a whole number"],
      ]) {
        const before = await dialog.getByLabel(label, { exact: true }).inputValue();
        await dialog.getByLabel(label, { exact: true }).fill(value);
        await submit.click();
        await isRefused(dialog, label, text);
        await dialog.getByLabel(label, { exact: true }).fill(before);
      }
      assert.deepEqual(await wrong(dialog), []);
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test(
    "a refusal stands at the field that it names, whatever its words are",
    async (page) => {
      let field;
      await page.route(/\/api\/v1\/jobs(\?|$)/, (route) =>
        route.request().method() !== "POST"
          ? route.continue()
          : route.fulfill({
              status: 400,
              contentType: "application/problem+json",
              // Its words are about another field.
              body: JSON.stringify({
                status: 400,
                title: "Bad Request",
                detail: "limit: it is not this one.",
                reason: "argument",
                field,
              }),
            }),
      );
      await open(page, "#/jobs");
      await begin(page, 5, "active", "refused").click();
      const dialog = page.getByRole("dialog");
      const conditions = dialog.getByText("Which messages");
      const refuse = async (kind, named, label) => {
        field = named;
        await dialog.getByLabel("Action", { exact: true }).selectOption(kind);
        if (kind === "move") await dialog.getByLabel("To", { exact: true }).fill("reschedules");
        if (kind === "reschedule") await dialog.getByLabel("New time").fill("2031-01-02T03:04:05");
        // The refusal before is gone with the change of the form.
        await until(async () => (await dialog.getByRole("alert").count()) === 0, "nothing is refused");
        await dialog.locator("button[type='submit']").click();
        if (label !== undefined) return isRefused(dialog, label, "it is not this one");
        await dialog.getByRole("alert").getByText("it is not this one").waitFor();
        return assert.deepEqual(await wrong(dialog), [], `${named} has no field`);
      };
      // A field among the conditions is shown with them.
      assert.equal(await dialog.getByLabel("SQL filter").isVisible(), false);
      await refuse("dead_letter", "selection.filter", "SQL filter");
      for (const [named, label] of [
        ["selection.session_id", "Session id"],
        ["selection.text", "Text in the body"],
        ["selection.json_path", "JSONPath in the body"],
        ["selection.message_id", "Message id"],
        ["selection.correlation_id", "Correlation id"],
        ["selection.numbers", "Sequence numbers"],
        ["selection.numbers[3]", "Sequence numbers"],
        ["selection.enqueued_from", "Enqueued from"],
        ["selection.enqueued_before", "Enqueued before"],
        ["limit", "Limit"],
        ["action.reason", "Reason"],
        ["action.description", "Description"],
      ])
        await refuse("dead_letter", named, label);
      for (const [named, label] of [
        ["action.to", "To"],
        ["action.action", "Statements that edit properties first"],
        ["action.body", "Template of a new body"],
      ]) {
        await refuse("move", named, label);
      }
      for (const named of [
        "action",
        "action.to",
        "action.kind",
        "action.body",
        "entity",
        "selection.reason",
        undefined,
      ])
        await refuse("dead_letter", named);
      await conditions.click();
      await refuse("dead_letter", "limit", "Limit");
      assert(await dialog.getByLabel("Limit").isVisible(), "the conditions are shown again");
    },
    { allow: [/400 \(Bad Request\)/] },
  );

  test("messages are moved, and the job says why it has skipped some", async (page) => {
    await entity(api, "moved-to", "queue", { requires_session: true });
    await entity(api, "moved-from");
    await send(api, "moved-from", { body: "a", session_id: "s" }, { body: "b" });
    await open(page, "#/jobs?entity=moved-from");
    await begin(page, 2, "active", "moved-from").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Action").selectOption("move");
    await dialog.getByLabel("To", { exact: true }).fill("moved-to");
    await dialog.getByRole("button", { name: "Move 2 active messages" }).click();
    await page
      .getByRole("status")
      .getByText(/^1 active message of moved-from was moved; 1 stayed as it is: /)
      .waitFor();
    await page.getByText("Completed: 1 message moved.").first().waitFor();
    await page.getByText("1 message left as it is, the last because:").waitFor();
    const [{ last_skipped: why }] = (await api("GET", "/jobs")).jobs;
    await page.locator("main").getByText(why).waitFor();
    await page.getByRole("link", { name: "Jobs" }).first().click();
    await page.getByText("With problems").click();
    await page
      .getByRole("table", { name: "Jobs", exact: true })
      .getByRole("row")
      .filter({ hasText: "moved-from" })
      .waitFor();
    await page.reload();
    await page
      .getByRole("table", { name: "Jobs", exact: true })
      .getByRole("row")
      .filter({ hasText: "moved-from" })
      .getByRole("link", { name: /^\d+$/ })
      .click();
    await page.getByText("Completed: 1 message moved.").first().waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("dialog").getByRole("heading", { name: "Move 1 active message of moved-from" }).waitFor();
    await page.keyboard.press("Escape");
    await page.goBack();
    await heading(page, "Jobs");
  });

  test("scheduled messages get another time; dead letters are sent again", async (page) => {
    await open(page, "#/jobs?entity=reschedules");
    await begin(page, 3, "scheduled", "reschedules").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Action").selectOption("reschedule");
    await dialog.getByRole("button", { name: "Reschedule 3 scheduled messages" }).click();
    await dialog.getByRole("alert").getByText("Enter a time.").waitFor();
    await dialog.getByLabel("New time").fill("2031-01-02T03:04:05");
    await dialog.getByRole("button", { name: "Reschedule 3 scheduled messages" }).click();
    await page.getByText("Completed: 3 messages rescheduled.").first().waitFor();
    const { messages: found } = await api("GET", "/entities/reschedules/messages");
    assert.deepEqual(
      [...new Set(found.map(({ scheduled_for: at }) => Date.parse(at)))],
      [Date.parse("2031-01-02T03:04:05+01:00")],
      "in the reader's zone",
    );
    await send(api, "reschedules", { body: "dead" });
    await api("POST", "/jobs?wait=10", {
      entity: "reschedules",
      selection: { states: ["active"] },
      action: { kind: "dead_letter", reason: "Test" },
    });
    await page.goto(`${new URL(page.url()).origin}/#/jobs?entity=reschedules`);
    await begin(page, 1, "dead letters", "reschedules").click();
    await dialog.getByRole("button", { name: "Send again 1 dead letter" }).click();
    await page.getByText("Completed: 1 message sent again.").first().waitFor();
    await until(async () => (await count("reschedules", "active")) === 1, "it is back");
  });

  test("selections and reasons that want to be more are text", async (page) => {
    await entity(api, "hostile-jobs");
    for (const text of HOSTILE)
      await api("POST", "/jobs?wait=10", {
        entity: "hostile-jobs",
        selection: { message_id: text, reason: text },
        action: { kind: "dead_letter", reason: text, description: text },
      });
    await open(page, "#/jobs?filter=hostile-jobs");
    await page.getByRole("cell", { name: /<img src=x onerror=alert\(1\)>/ }).waitFor();
    const { jobs } = await api("GET", "/jobs");
    for (const { id } of jobs.filter(({ entity: path }) => path === "hostile-jobs").slice(0, 4)) {
      await page.goto(`${new URL(page.url()).origin}/#/jobs/${id}`);
      await heading(page, `Job ${id}`);
      await page.getByText("Completed: 0 messages dead-lettered.").first().waitFor();
      assert.equal(await page.locator("main img, main script").count(), 0);
    }
  });

  test(
    "who may only listen sees jobs, and is not offered to start one",
    async (page) => {
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/jobs`);
      await page.getByText("No job has run since the broker started.").waitFor();
      assert.equal(await page.getByRole("heading", { name: "Start a job" }).count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );

  test("one dialog a verb: the sentence first, the rest folded; a state at least; the result leads on; undo", async (page) => {
    await entity(api, "carts", "queue", { requires_session: true });
    await send(
      api,
      "carts",
      ...messages(6, () => ({ session_id: "cart-018" })),
      ...messages(2, () => ({ session_id: "cart-019" })),
    );
    await open(page, "#/sessions/carts/cart-018");
    await page.getByRole("button", { name: "Dead-letter the rest" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByRole("heading", { name: "Dead-letter 6 messages of session cart-018 of carts", exact: true })
      .waitFor();
    assert.equal(
      await dialog.locator("input:visible, select:visible, textarea:visible").count(),
      2,
      "reason and description",
    );
    await isAccessible(page);
    await dialog.getByText("Which messages").click();
    for (const state of ["active", "scheduled", "deferred"]) await dialog.getByLabel(state).uncheck();
    await dialog.getByRole("alert").getByText("Choose at least one state.").waitFor();
    assert(await dialog.locator("button[type='submit']").isDisabled(), "nothing chosen is nothing");
    await dialog.getByLabel("active").check();
    await dialog.getByLabel("Reason", { exact: true }).fill("Abandoned");
    await dialog.getByRole("button", { name: "Dead-letter 6 active messages", exact: true }).click();
    const toast = page
      .locator(".toast")
      .filter({ hasText: "6 active messages of session cart-018 of carts were dead-lettered" });
    assert.equal(
      await toast.getByRole("link").getAttribute("href"),
      "#/entity/carts?tab=dead-letters&by=reason&value=Abandoned",
    );
    assert.equal((await api("GET", "/entities/carts")).counts.dead_letters, 6);
    await toast.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("status").getByText("6 messages are active in carts again, with new numbers.").waitFor();
    const { counts } = await api("GET", "/entities/carts");
    assert.deepEqual([counts.active, counts.dead_letters], [8, 0]);
  });

  test("what a receiver has locked is not counted, and what takes many asks for the name", async (page) => {
    for (const path of ["many-moved", "many-moved-to"]) await entity(api, path);
    await send(api, "many-moved", ...messages(103));
    await receive(connection, "many-moved", { credit: 2 });
    await open(page, "#/entity/many-moved");
    await page.getByRole("button", { name: "Move", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Move all 101 messages of many-moved" }).waitFor();
    await dialog.getByText("2 messages more are locked by a receiver, and stay as they are.").waitFor();
    await dialog.getByRole("combobox", { name: "To" }).focus();
    await page.keyboard.type("many-moved-to");
    const submit = dialog.getByRole("button", { name: "Move 101 messages" });
    assert(await submit.isDisabled(), "the name is asked for");
    await dialog.getByLabel("To confirm, type many-moved").fill("many-moved");
    await submit.click();
    await page
      .getByRole("status")
      .getByText(/^101 messages of many-moved were moved in .*; 2 stayed as they are: /)
      .waitFor();
    assert.equal((await api("GET", "/entities/many-moved-to")).counts.active, 101);
    await heading(page, "many-moved");
  });

  test(
    "a job that is not there says so; axe finds nothing; nothing is wider than 360 pixels",
    async (page) => {
      await open(page, "#/jobs/123456789");
      await page.getByText("There is no such job now.").waitFor({ timeout: DEADLINE });
      await isAccessible(page);
      await page.setViewportSize({ width: 360, height: 740 });
      await open(page, "#/jobs");
      await page.getByRole("table", { name: "Jobs" }).waitFor();
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await isAccessible(page);
      await live(page);
    },
    { allow: [/404 \(Not Found\)/] },
  );
});
