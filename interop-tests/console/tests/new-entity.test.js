// Entities and their rules are created, edited and deleted.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, securedUrl, until } from "../harness.js";
import { countClicks, tabTo } from "../journey.js";
import { HOSTILE, entity, rule } from "../seed.js";

const LISTENER =
  "Endpoint=sb://localhost/;SharedAccessKeyName=listener;SharedAccessKey=bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";
const refused = { allow: [/40[0-9] \(/, /412 \(/] };
const get = (path) => api("GET", `/entities/${encodeURIComponent(path)}`);
const rulesOf = async (path) => (await api("GET", `/entities/${encodeURIComponent(path)}/rules`)).rules;
const button = (page, name) => page.getByRole("button", { name, exact: true });
const edit = (path, query = "") => `#/entity/${encodeURIComponent(path)}/edit${query}`;

/** Types into the field that has the focus, and goes on. */
async function type(page, ...texts) {
  for (const [at, text] of texts.entries()) {
    if (at !== 0) await page.keyboard.press("Tab");
    await page.keyboard.type(text);
  }
}

async function makesAll(page, prefix) {
  const queue = await get(`${prefix}-orders`);
  assert.equal(queue.properties.forward_dead_letters_to, `${prefix}-failed`);
  const filters = await Promise.all(
    ["eu", "us", "urgent"].map((name) => rulesOf(`${prefix}-news/Subscriptions/${name}`)),
  );
  assert.deepEqual(
    filters.map((rules) => rules.map(({ filter }) => filter.expression)),
    [["region = 'EU'"], ["region = 'US'"], ["priority > 5"]],
  );
}

async function exported(page, press) {
  const [download] = await Promise.all([page.waitForEvent("download"), press()]);
  assert.equal(download.suggestedFilename(), "Config.json");
  return JSON.parse(await readFile(await download.path(), "utf8")).UserConfig.Namespaces[0];
}

inBrowser("new entity", (test) => {
  before(() => entity(api, "failed"));

  test("after a change by keyboard the focus is on the page, and not nowhere", async (page) => {
    await entity(api, "by-keys");
    await open(page, "#/entity/by-keys/edit");
    await tabTo(page, /^Max delivery count$/);
    await page.keyboard.type("7");
    await tabTo(page, /^Save$/);
    await page.keyboard.press("Enter");
    await page.locator(".toast", { hasText: "by-keys was updated." }).waitFor();
    await page.locator("main h1:focus").waitFor();
  });

  test("a name with capitals leads to the entity, however the broker spells it", async (page) => {
    await open(page, "#/new-entity?kind=topic");
    await page.getByLabel("Name", { exact: true }).fill("CamelNews");
    await page.getByRole("textbox", { name: "Subscription" }).first().fill("All-News");
    await button(page, "Create topic and 1 subscription").click();
    await page.locator(".toast").getByRole("link", { name: "Open" }).click();
    await heading(page, "camelnews");
    await page.getByRole("link", { name: "Subscriptions", exact: true }).waitFor();
    await open(page, `#/entity/${encodeURIComponent("CAMELNEWS/subscriptions/all-news")}?tab=rules`);
    await heading(page, "All-News");
    await page.getByText("$Default").first().waitFor();
    // The address of a page that names one in its query.
    await open(page, "#/rule-test?entity=CamelNews");
    await until(
      async () => (await page.getByLabel("Topic or subscription").inputValue()) === "camelnews",
      "the topic is chosen",
    );
  });

  test("the journey by mouse: a queue with a dead-letter forward, a topic with three filtered subscriptions, and Config.json, in eight clicks", async (page) => {
    await entity(api, "mouse-failed");
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Entities", exact: false }).first().click();
    await page.getByRole("link", { name: "New entity" }).click();
    await heading(page, "New entity");
    await page.getByLabel("Name", { exact: true }).click();
    await type(page, "mouse-orders", "mouse-failed");
    await button(page, "Create queue").click();
    await page.getByRole("link", { name: "mouse-orders" }).first().waitFor();
    await page.getByText("Topic", { exact: true }).click();
    await page.getByLabel("Name", { exact: true }).click();
    await type(page, "mouse-news", "eu", "region = 'EU'");
    for (const [at, [name, expression]] of [
      ["us", "region = 'US'"],
      ["urgent", "priority > 5"],
    ].entries()) {
      await tabTo(page, new RegExp(`^Subscription\\s*${at + 2}$`));
      await type(page, name, expression);
    }
    await button(page, "Create topic and 3 subscriptions").click();
    await page.getByRole("link", { name: "mouse-news/Subscriptions/urgent" }).waitFor();
    const namespace = await exported(page, () => button(page, "Export as Config.json").click());
    assert.equal(clicks(), 8);
    await makesAll(page, "mouse");
    assert.equal(
      namespace.Queues.find(({ Name }) => Name === "mouse-orders").Properties.ForwardDeadLetteredMessagesTo,
      "mouse-failed",
    );
    const topic = namespace.Topics.find(({ Name }) => Name === "mouse-news");
    assert.deepEqual(
      topic.Subscriptions.map(({ Name, Rules }) => [Name, Rules[0].Properties.SqlFilter.SqlExpression]),
      [
        ["eu", "region = 'EU'"],
        ["urgent", "priority > 5"],
        ["us", "region = 'US'"],
      ],
    );
  });

  test("the journey by keyboard alone", async (page) => {
    await open(page, "#/entities");
    await tabTo(page, /^New entity$/);
    await page.keyboard.press("Enter");
    await heading(page, "New entity");
    const made = (path) => page.locator(".made").getByRole("link", { name: path, exact: true }).waitFor();
    await tabTo(page, /^Name$/);
    await page.keyboard.type("keys-failed");
    await page.keyboard.press("Enter");
    await made("keys-failed");
    await until(() => page.evaluate(() => document.activeElement?.value === ""), "the name has the focus again");
    await type(page, "keys-orders", "keys-failed");
    await page.keyboard.press("Enter");
    await made("keys-orders");
    await page.getByRole("radio", { name: "Queue" }).focus();
    await page.keyboard.press("ArrowRight");
    await tabTo(page, /^Name$/);
    await type(page, "keys-news", "eu", "region = 'EU'");
    for (const [at, [name, expression]] of [
      ["us", "region = 'US'"],
      ["urgent", "priority > 5"],
    ].entries()) {
      await tabTo(page, new RegExp(`^Subscription\\s*${at + 2}$`));
      await type(page, name, expression);
    }
    await page.keyboard.press("Enter");
    await made("keys-news/Subscriptions/urgent");
    await makesAll(page, "keys");
    await page.locator(".announcements", { hasText: "keys-news was created." }).waitFor({ state: "attached" });
    await page.getByRole("heading", { name: "New entity" }).focus();
    await tabTo(page, /^Export as Config\.json$/);
    await exported(page, () => page.keyboard.press("Enter"));
  });

  test(
    "errors stand at the field, in the broker's words",
    async (page) => {
      await open(page, "#/new-entity");
      const cases = [
        ["Lock duration", "10 min", /properties.lock_duration: found "PT10M"; allowed: PT1S to PT5M/],
        ["Lock duration", "soon", /lock_duration is 'soon'/],
        ["Max delivery count", "many", /max_delivery_count/],
        ["Forward dead letters to", "nowhere", /forwards to 'nowhere', and there is no such/],
        ["Forward to", "nowhere", /forwards to 'nowhere', and there is no such/],
        ["Delete when idle for", "1 min", /auto_delete_on_idle/],
        ["Message size limit (KiB)", "99999999", /max_message_kilobytes/],
        ["Duplicate detection window", "1 s", /duplicate_detection_window/],
      ];
      await page.getByLabel("Name", { exact: true }).fill("errors");
      for (const [name, value, text] of cases) {
        const field = page.getByLabel(name, { exact: true });
        await field.fill(value);
        await page.keyboard.press("Enter");
        await page.getByText(text).waitFor();
        assert.equal(await field.getAttribute("aria-invalid"), "true", name);
        assert.equal(await page.locator("[aria-invalid]").count(), 1);
        await until(() => field.evaluate((element) => element === document.activeElement), "the field has the focus");
        const described = await field.getAttribute("aria-describedby");
        assert(
          await page.evaluate(
            ([ids, source]) =>
              ids.split(" ").some((id) => new RegExp(source).test(document.getElementById(id)?.textContent ?? "")),
            [described, text.source],
          ),
        );
        await field.fill("");
      }
      await page.getByLabel("Name", { exact: true }).fill("no blanks");
      await page.keyboard.press("Enter");
      await page.getByText(/The name of the entity: found 'no blanks'/).waitFor();
      await isAccessible(page);
      await page.getByLabel("Name", { exact: true }).fill("failed");
      await page.keyboard.press("Enter");
      await page.getByText("The messaging entity 'failed' already exists.").waitFor();
      await page.reload();
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "failed", "a reload loses nothing");
    },
    refused,
  );

  test(
    "a filter that is refused leaves no subscription that takes everything, and the rest is created then",
    async (page) => {
      await open(page, "#/new-entity?kind=topic");
      await page.getByLabel("Name", { exact: true }).fill("partly");
      await page.getByLabel(/^Subscription\s*1$/).fill("good");
      await page.getByLabel(/^SQL filter\s*1$/).fill("a = 1");
      await page.getByLabel(/^Subscription\s*2$/).fill("bad");
      await page.getByLabel(/^SQL filter\s*2$/).fill("a =");
      await button(page, "Create topic and 2 subscriptions").click();
      await page.getByText(/filter\.expression: expected a property/).waitFor();
      assert.equal(await page.getByLabel(/^SQL filter\s*2$/).getAttribute("aria-invalid"), "true");
      await assert.rejects(get("partly/Subscriptions/bad"));
      assert.equal((await rulesOf("partly/Subscriptions/good"))[0].filter.expression, "a = 1");
      await isAccessible(page);
      await page.getByLabel(/^SQL filter\s*2$/).fill("a = 2");
      await button(page, "Create the rest").click();
      await page.locator(".made").getByRole("link", { name: "partly/Subscriptions/bad" }).waitFor();
      assert.equal((await rulesOf("partly/Subscriptions/bad"))[0].filter.expression, "a = 2");
    },
    refused,
  );

  test(
    "a subscription with a correlation filter and an action",
    async (page) => {
      await entity(api, "related", "topic");
      await open(page, edit("related"));
      await page.getByRole("link", { name: "New subscription" }).click();
      await heading(page, "New entity");
      assert.equal(await page.getByLabel("Topic", { exact: true }).last().inputValue(), "related");
      await page.getByLabel("Name", { exact: true }).fill("one");
      await page.getByText("Correlation", { exact: true }).click();
      await page.getByLabel("Property 1", { exact: true }).selectOption("subject");
      await page.getByLabel(/^Value\s*1$/).fill("paid");
      await button(page, "Add a property").click();
      await page.locator(":focus[aria-label='Property 2']").waitFor();
      await page.getByLabel("Name of the property 2").fill("amount");
      await page.getByLabel("Type 2").selectOption("number");
      await page.getByLabel(/^Value\s*2$/).fill("x");
      await page.getByLabel("Action").fill("SET");
      await button(page, "Create subscription").click();
      await page.getByText("x: Not a number.").waitFor();
      assert.equal(await page.getByLabel(/^Value\s*2$/).getAttribute("aria-invalid"), "true");
      assert.equal(await page.getByLabel(/^Value\s*1$/).getAttribute("aria-invalid"), null);
      await page.getByLabel(/^Value\s*2$/).fill("5");
      await button(page, "Create subscription").click();
      await page.getByText(/^action: expected the name of a property/).waitFor();
      assert.equal(await page.getByLabel("Action").getAttribute("aria-invalid"), "true");
      await assert.rejects(get("related/Subscriptions/one"), "a refused rule leaves no subscription");
      await page.getByLabel("Action").fill("SET color = 'red'");
      await page.getByLabel("Lock duration").fill("1m 30s");
      await page.getByLabel("Requires session").check();
      await isAccessible(page);
      await button(page, "Create subscription").click();
      await page.locator(".made").getByRole("link", { name: "related/Subscriptions/one" }).waitFor();
      const [{ filter, action }] = await rulesOf("related/Subscriptions/one");
      assert.deepEqual(filter, { kind: "correlation", subject: "paid", properties: { amount: 5 } });
      assert.equal(action, "SET color = 'red'");
      const { properties } = await get("related/Subscriptions/one");
      assert.deepEqual([properties.lock_duration, properties.requires_session], ["PT1M30S", true]);
    },
    refused,
  );

  test(
    "what is typed while a request is under way is kept when it is refused",
    async (page) => {
      await open(page, "#/new-entity?kind=topic");
      await page.getByLabel("Name", { exact: true }).fill("typed-on");
      await page.getByLabel(/^Subscription\s*1$/).fill("first");
      await page.getByLabel(/^SQL filter\s*1$/).fill("a =");
      let typed;
      const isTyped = new Promise((resolve) => {
        typed = resolve;
      });
      await page.route(/typed-on.*\/rules\//, async (request) => {
        await isTyped;
        await request.continue();
      });
      await button(page, "Create topic and 1 subscription").click();
      await button(page, "Creating").waitFor();
      await page.getByLabel(/^Subscription\s*2$/).fill("second");
      typed();
      await page.getByText(/filter\.expression: expected a property/).waitFor();
      assert.equal(await page.getByLabel(/^Subscription\s*2$/).inputValue(), "second");
    },
    refused,
  );

  test(
    "properties are changed, and a conflict is explained",
    async (page) => {
      await entity(api, "changed", "queue", { max_delivery_count: 5, user_metadata: "old" });
      await open(page, edit("changed"));
      await heading(page, "Edit changed");
      await page.getByLabel("Max delivery count").fill("7");
      await page.getByText("1 property is changed.").waitFor();
      await page.reload();
      assert.equal(await page.getByLabel("Max delivery count").inputValue(), "7", "a reload loses nothing");
      await button(page, "Save").click();
      await page.getByText("changed was updated.").first().waitFor();
      await page.getByText("Nothing is changed.").waitFor();
      assert.equal((await get("changed")).properties.max_delivery_count, 7);
      // Someone else is faster.
      await page.getByLabel("User metadata").fill("mine");
      const { kind, properties } = await get("changed");
      await fetch(`${new URL(page.url()).origin}/api/v1/entities/changed`, {
        method: "PUT",
        headers: { "If-Match": "*", "Content-Type": "application/json" },
        body: JSON.stringify({ kind, properties: { ...properties, lock_duration: "PT2M" } }),
      });
      await page.keyboard.press("Enter");
      const conflict = page.getByRole("alert").filter({ hasText: "It was changed by someone else meanwhile." });
      await conflict.getByRole("row", { name: /Lock duration 1m 2m 1m/ }).waitFor();
      assert.equal(await conflict.getByRole("row").count(), 2);
      await isAccessible(page);
      await button(page, "Keep my changes").click();
      assert.equal(await page.getByLabel("Lock duration").inputValue(), "2m");
      await button(page, "Save").click();
      await page.getByText("Nothing is changed.").waitFor();
      const after = (await get("changed")).properties;
      assert.deepEqual([after.lock_duration, after.user_metadata, after.max_delivery_count], ["PT2M", "mine", 7]);
      assert(await page.getByLabel("Requires session").isDisabled(), "what is fixed cannot be changed");
      await page.getByLabel("Lock duration").fill("1 h");
      await page.keyboard.press("Enter");
      await page.getByText(/properties.lock_duration: found/).waitFor();
      await button(page, "Revert").click();
      assert.equal(await page.getByLabel("Lock duration").inputValue(), "2m");
    },
    refused,
  );

  test(
    "by keyboard: properties are changed, and an entity is deleted by its name",
    async (page) => {
      await entity(api, "ended");
      await open(page, edit("ended"));
      await tabTo(page, /^Lock duration$/);
      await page.keyboard.press("Control+a");
      await page.keyboard.type("30 s");
      await page.keyboard.press("Enter");
      await page.locator(".announcements", { hasText: "ended was updated." }).waitFor({ state: "attached" });
      assert.equal((await get("ended")).properties.lock_duration, "PT30S");
      await page.getByRole("heading", { level: 1 }).focus();
      await tabTo(page, /^Delete$/, "button");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.type("ended");
      await page.keyboard.press("Enter");
      await heading(page, "Entities");
      await assert.rejects(get("ended"));
      await open(page, edit("ended"));
      await page.getByText("There is no such entity now.").waitFor();
    },
    refused,
  );

  test(
    "rules are created, edited and deleted; a change of another is seen",
    async (page) => {
      const path = "ruled/Subscriptions/one";
      await entity(api, "ruled", "topic");
      await entity(api, path, "subscription");
      await open(page, edit(path));
      await button(page, "Add a rule").click();
      await button(page, "Create the rule").click();
      await page.getByText("The rule needs a name.").waitFor();
      await page.getByLabel("Name of the rule").fill("wanted");
      await page.getByRole("textbox", { name: "SQL filter" }).fill("color =");
      await button(page, "Create the rule").click();
      await page.getByText(/filter\.expression: expected/).waitFor();
      await page.reload();
      assert.equal(
        await page.getByRole("textbox", { name: "SQL filter" }).inputValue(),
        "color =",
        "a reload loses nothing",
      );
      await page.getByRole("textbox", { name: "SQL filter" }).fill("color = 'red'");
      await page.getByLabel("Action").fill("SET seen = 1");
      await isAccessible(page);
      await button(page, "Create the rule").click();
      await page.getByText("The rule wanted was created.").first().waitFor();
      await button(page, "Edit the rule wanted").click();
      assert.match(page.url(), /rule=wanted/);
      await page.getByRole("textbox", { name: "SQL filter" }).fill("color = 'blue'");
      // Someone else is faster.
      await api("DELETE", `/entities/${encodeURIComponent(path)}/rules/wanted`);
      await rule(api, path, "wanted", { filter: { kind: "sql", expression: "color = 'green'" } });
      await button(page, "Save the rule").click();
      await page.getByRole("alert").getByText("color = 'green'").waitFor();
      await button(page, "Save the rule").click();
      await page.getByText("The rule wanted was updated.").first().waitFor();
      assert.deepEqual((await rulesOf(path)).find(({ name }) => name === "wanted").filter, {
        kind: "sql",
        expression: "color = 'blue'",
      });
      await button(page, "Delete the rule $Default").click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText("The rule $Default was deleted.").first().waitFor();
      assert.deepEqual(
        (await rulesOf(path)).map(({ name }) => name),
        ["wanted"],
      );
      await button(page, "Delete the rule $Default").waitFor({ state: "detached" });
      await button(page, "Delete the rule wanted").focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByText("It is the only rule").waitFor();
      await isAccessible(page);
      await page.keyboard.press("Escape");
    },
    refused,
  );

  test(
    "hostile names and rules stay text",
    async (page) => {
      const path = "hostile-rules/Subscriptions/one";
      await entity(api, "hostile-rules", "topic");
      await entity(api, path, "subscription", { user_metadata: HOSTILE[0] });
      for (const [at, text] of HOSTILE.filter((each) => !each.includes("\u0000")).entries()) {
        await rule(api, path, `hostile-${at}`, {
          filter: { kind: "correlation", subject: text, properties: { [`name <i> ${at}`]: text } },
        });
      }
      await open(page, edit(path));
      await page.getByRole("heading", { name: "hostile-0" }).waitFor();
      assert.equal(await page.locator("main img, main script, main b:not(.number), main i").count(), 0);
      await button(page, "Edit the rule hostile-3").click();
      assert.equal(await page.getByLabel(/^Value\s*1$/).inputValue(), HOSTILE[3]);
      await open(page, "#/new-entity");
      await page.getByLabel("Name", { exact: true }).fill(HOSTILE[0]);
      await page.keyboard.press("Enter");
      await page.getByText(`found '${HOSTILE[0]}'`).waitFor();
      await open(page, edit(HOSTILE[0]));
      await heading(page, `Edit ${HOSTILE[0]}`);
      assert.equal(await page.locator("main img").count(), 0);
    },
    refused,
  );

  test(
    "narrow, axe finds nothing",
    async (page) => {
      await entity(api, "looked", "topic");
      await entity(api, "looked/Subscriptions/one", "subscription");
      await page.setViewportSize({ width: 360, height: 800 });
      for (const address of [
        "#/new-entity",
        "#/new-entity?kind=topic",
        "#/new-entity?kind=subscription",
        edit("looked/Subscriptions/one", "?add=rule"),
        edit("looked"),
        edit("nowhere"),
      ]) {
        await open(page, address);
        await page.locator(".loading").first().waitFor({ state: "detached" });
        await isAccessible(page);
        assert(
          await page.evaluate(
            () => document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth,
          ),
          `${address} is as wide as the window`,
        );
      }
    },
    refused,
  );

  test(
    "without the right Manage it is not offered",
    async (page) => {
      await page.goto(securedUrl);
      await page.getByLabel("Connection string", { exact: true }).last().fill(LISTENER);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.locator(".status.live").waitFor();
      await page.goto(`${securedUrl}/#/entities`);
      await page.getByRole("link", { name: "guarded", exact: true }).waitFor();
      assert.equal(await page.getByRole("link", { name: "New entity" }).count(), 0);
      for (const address of ["#/new-entity", edit("guarded")]) {
        await page.goto(`${securedUrl}/${address}`);
        await page.getByText("needs the right Manage").waitFor();
        assert.equal(await page.locator("main form").count(), 0);
      }
    },
    refused,
  );
});
