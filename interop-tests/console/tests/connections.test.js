// Which consumer is stuck: connections and links, why one stands out, and its end.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, securedUrl, until, url } from "../harness.js";
import { connect, receive, sender } from "../client.js";
import { HOSTILE, entity, send } from "../seed.js";
import { LISTENER, countClicks, signIn, tabTo } from "../journey.js";

/** A receiver is stuck after ten seconds. */
const STUCK = { timeout: 40_000 };

const connections = async () => (await api("GET", "/connections")).connections;
const named = async (name) => (await connections()).find(({ container_id: client }) => client === name);

inBrowser("connections", (test) => {
  const clients = [];
  const client = async (name, options) => {
    const connection = await connect(name, options);
    clients.push(connection);
    return connection;
  };
  after(() => clients.forEach((connection) => connection.close()));

  before(async () => {
    for (const path of ["stuck", "flowing"]) await entity(api, path);
    await send(api, "stuck", ...Array.from({ length: 8 }, (_, number) => ({ body: `${number}` })));
    await receive(await client("stuck-worker"), "stuck", { credit: 5 });
    await receive(await client("flowing-worker"), "flowing", { credit: 20 });
    await sender(await client("producer"), "stuck");
  });

  const row = (page, text) => page.getByRole("row").filter({ hasText: text });

  test("in three clicks: the receiver that is stuck says why, and is closed", async (page) => {
    const clicks = await countClicks(page);
    await open(page);
    await page.getByRole("link", { name: "Connections" }).click();
    await heading(page, "Connections");
    const stuck = page.getByRole("region", { name: "Stuck" }).getByRole("listitem").filter({ hasText: "stuck-worker" });
    await stuck
      .getByText(/holds 5 unsettled, the oldest for \d+s, and nothing has happened for \d+s, while 3 wait for it/)
      .waitFor(STUCK);
    assert.equal(
      await page
        .getByRole("region", { name: "Stuck" })
        .getByRole("listitem")
        .filter({ hasText: "flowing-worker" })
        .count(),
      0,
    );
    await row(page, "receives from stuck").getByText("holds 5 unsettled").waitFor();
    await isAccessible(page);
    await stuck.getByRole("button", { name: "Close the connection" }).click();
    await page
      .getByRole("dialog")
      .getByText("Its 5 locked messages return to the queue at once, and the delivery counts as failed.")
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close the connection" }).click();
    assert.equal(clicks(), 3);
    await page.getByText("The connection was closed.").first().waitFor();
    await page.getByRole("status").getByText("The connection was closed.").waitFor();
    await until(async () => (await named("stuck-worker")) === undefined, "the broker has closed it");
    await row(page, "stuck-worker").waitFor({ state: "detached" });
    await row(page, "flowing-worker").waitFor();
    const { messages } = await api("GET", "/entities/stuck/messages");
    assert.deepEqual(
      messages.map(({ lock, delivery_count: count }) => [lock === undefined, count]),
      [...Array(5).fill([true, 1]), ...Array(3).fill([true, 0])],
    );
  });

  test("a page that is opened later says at once which receiver is stuck, and for how long", async (page) => {
    await entity(api, "deep", "queue", { lock_duration: "PT5M" });
    await send(api, "deep", ...Array.from({ length: 4 }, (_, number) => ({ body: `${number}` })));
    await receive(await client("deep-worker"), "deep", { credit: 2 });
    const stuck = async () => (await named("deep-worker"))?.links.find(({ role }) => role === "receiver");
    await until(async () => (await stuck())?.stuck === "holding", "it is stuck", STUCK.timeout);
    const { waiting, locked, oldest_lock_at: since } = await stuck();
    assert.deepEqual([waiting, locked], [2, 2]);
    await page.addInitScript(() => {
      // What was on the page at any time.
      window.seen = new Set();
      new MutationObserver(() => window.seen.add(document.body?.innerText ?? "")).observe(document, {
        childList: true,
        subtree: true,
        characterData: true,
      });
    });
    await open(page, "#/connections?show=stuck");
    const shown = row(page, "receives from deep");
    await shown.getByText(/holds 2 unsettled, the oldest for \d+s/).waitFor();
    const seconds = Number(/the oldest for (\d+)s/.exec(await shown.textContent())[1]);
    assert(10 <= seconds && seconds <= (Date.now() - Date.parse(since)) / 1000 + 1, `${seconds} s`);
    assert.deepEqual(
      await page.evaluate(() => [...window.seen].filter((text) => text.includes("No receiver is stuck"))),
      [],
    );
    await open(page, "#/");
    await page
      .getByRole("listitem")
      .filter({ hasText: "deep-worker" })
      .getByText(/has 2 messages locked and settles none; 2 messages wait for it/)
      .waitFor();
  });

  test("messages of other sessions do not wait for the receiver of a session", async (page) => {
    await entity(api, "by-session", "queue", { requires_session: true, lock_duration: "PT5M" });
    await send(
      api,
      "by-session",
      { body: "1", session_id: "mine" },
      ...Array.from({ length: 5 }, (_, number) => ({ body: `${number}`, session_id: "of-others" })),
    );
    const { messages } = await receive(await client("session-worker"), "by-session", { credit: 1, session: "mine" });
    await until(() => messages.length === 1, "it has its message");
    const link = async () => (await named("session-worker")).links.find(({ role }) => role === "receiver");
    await until(
      async () => 12_000 < Date.now() - Date.parse((await link()).idle_since),
      "it is idle for longer than one that is stuck",
      STUCK.timeout,
    );
    const { waiting, stuck, session_id: session } = await link();
    assert.deepEqual([waiting, stuck, session], [0, undefined, "mine"]);
    await open(page, "#/connections?filter=session-worker");
    await row(page, "receives from by-session").getByText("mine").waitFor();
    assert.equal(await page.locator("tr.stuck").filter({ hasText: "by-session" }).count(), 0);
    // Another message of its own session does.
    await send(api, "by-session", { body: "2", session_id: "mine" });
    await page
      .locator("tr.stuck")
      .filter({ hasText: "by-session" })
      .getByText(/while 1 waits for it/)
      .waitFor();
    await page.getByRole("button", { name: "Detach the link to by-session" }).click();
    await page
      .getByRole("dialog")
      .getByText("Its message session is free at once; their messages return, and no delivery counts.")
      .waitFor();
  });

  test("clients are told apart, and links for requests are folded away", async (page) => {
    await entity(api, "told-apart");
    const twins = [];
    for (const version of ["7.1.0", "7.2.0"])
      twins.push(await client("2f1c0b4e", { properties: { product: "azsdk-net-servicebus", version } }));
    for (const twin of twins) await receive(twin, "told-apart");
    await sender(twins[0], "told-apart/$management");
    await client("long-product", { properties: { product: "<b>x</b>".repeat(100), version: 7 } });
    await open(page, "#/connections?filter=2f1c0b4e");
    for (const version of ["7.1.0", "7.2.0"])
      await page
        .locator("tr.connection")
        .filter({ hasText: `azsdk-net-servicebus ${version}` })
        .getByText(/127\.0\.0\.1:\d+, no TLS/)
        .waitFor();
    const first = page.locator("tr.connection").filter({ hasText: "7.1.0" });
    await first.getByText("1 link for requests").waitFor();
    assert.equal(await row(page, "requests to").count(), 0);
    await isAccessible(page);
    await page.getByText("Requests", { exact: true }).click();
    await row(page, "requests to told-apart/$management").waitFor();
    await page.goto(page.url().replace(/#.*/, "#/connections?filter=2f1c0b4e"));
    await first.getByRole("link", { name: "2f1c0b4e" }).click();
    await heading(page, /^Connection/);
    await page.getByRole("definition").getByText("azsdk-net-servicebus 7.1.0").waitFor();
    await page
      .getByRole("definition")
      .getByText(/^127\.0\.0\.1:\d+$/)
      .waitFor();
    await page.getByRole("definition").getByText("none were verified").waitFor();
    await page.getByText("1 link for requests").click();
    await page.getByText("told-apart/$management").waitFor();
    await isAccessible(page);
    const { product, version } = await named("long-product");
    assert.deepEqual([product.length, version], [128, undefined]);
    await open(page, "#/connections?filter=long-product");
    await page.locator("tr.connection").getByText("<b>x</b><b>x</b>").waitFor();
    assert.equal(await page.locator("main b").count(), 0);
  });

  test("a link that is detached gives its messages back", async (page) => {
    await entity(api, "given-back", "queue", { lock_duration: "PT5M" });
    await send(api, "given-back", { body: "a" }, { body: "b" });
    const { messages } = await receive(await client("holder"), "given-back", { credit: 2 });
    await until(() => messages.length === 2, "it has both");
    await open(page, "#/entity/given-back?tab=consumers");
    await page.getByRole("button", { name: "Detach the link to given-back" }).click();
    await page.getByRole("dialog").getByText("Its 2 locked messages return to the queue at once").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Detach the link" }).click();
    await until(async () => (await api("GET", "/entities/given-back")).counts.locked === 0, "nothing is locked");
    const { messages: again } = await receive(await client("next"), "given-back", { credit: 2 });
    await until(() => again.length === 2, "another receiver has both");
  });

  test("by keyboard: a filter finds a client, Enter opens its connection, one link is detached", async (page) => {
    const connection = await client("keyboard-worker");
    await entity(api, "keyboard/a");
    await entity(api, "keyboard/b");
    await receive(connection, "keyboard/a");
    await receive(connection, "keyboard/b");
    await open(page);
    await tabTo(page, /^Connections$/);
    await page.keyboard.press("Enter");
    await heading(page, "Connections");
    await tabTo(page, /^Filter by client/);
    await page.keyboard.type("keyboard-w");
    await until(async () => (await page.locator("tbody tr.connection").count()) === 1, "one client matches");
    await tabTo(page, /^Connections$/, "group");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await heading(page, /^Connection \d+$/);
    await page.getByRole("region", { name: "Links" }).getByText("keyboard/a").waitFor();
    await tabTo(page, /^Detach the link to keyboard\/a/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Detach the link$/);
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("The link was detached.").waitFor();
    await until(
      async () => (await named("keyboard-worker"))?.links.map(({ entity: path }) => path).join() === "keyboard/b",
      "the other link stays",
    );
    await page.getByRole("region", { name: "Links" }).getByText("keyboard/a").waitFor({ state: "detached" });
  });

  test("one connection has an address, its messages, and says when it is closed", async (page) => {
    const connection = await client("shared-worker");
    await entity(api, "shared-address");
    await send(api, "shared-address", { body: "a" }, { body: "b" });
    await receive(connection, "shared-address", { credit: 10 });
    await until(async () => (await named("shared-worker"))?.links[0]?.locked === 2, "two are locked");
    const { id } = await named("shared-worker");
    await open(page, `#/connections?id=${id}`);
    await heading(page, `Connection ${id}`);
    assert.equal(new URL(page.url()).hash, `#/connections/${id}`);
    await page.reload();
    await heading(page, `Connection ${id}`);
    await page.getByText("shared-worker").first().waitFor();
    await page.getByRole("region", { name: "Links" }).getByText("Unsettled 2").waitFor();
    await page
      .getByRole("region", { name: "Messages that it holds" })
      .getByRole("link", { name: "2", exact: true })
      .click();
    await heading(page, "Message 2");
    await page.goBack();
    await heading(page, `Connection ${id}`);
    await isAccessible(page);
    connection.close();
    await page.getByText("This connection is closed.").waitFor();
    await page.getByRole("link", { name: "All connections" }).click();
    await heading(page, "Connections");
  });

  test("what a connection holds is found however far back it is in the queue", async (page) => {
    await entity(api, "far");
    await send(api, "far", ...Array.from({ length: 130 }, (_, number) => ({ body: `${number}` })));
    const { messages: before } = await receive(await client("first-worker"), "far", { credit: 120 });
    await until(() => before.length === 120, "the first has most of them");
    const { messages: after } = await receive(await client("far-worker"), "far", { credit: 3 });
    await until(() => after.length === 3, "the second has some of the rest");
    await open(page, `#/connections/${(await named("far-worker")).id}`);
    const held = page.getByRole("region", { name: "Messages that it holds" });
    for (const number of [121, 122, 123]) await held.getByRole("link", { name: `${number}`, exact: true }).waitFor();
    assert.equal(await held.getByRole("link").count(), 3);
  });

  test("filters are kept in the address, and sort by numbers", async (page) => {
    await open(page, "#/connections?show=senders");
    await row(page, "sends to stuck").waitFor();
    assert.equal(await row(page, "flowing-worker").count(), 0);
    await page.getByText("Receivers", { exact: true }).click();
    await row(page, "flowing-worker").waitFor();
    assert.match(page.url(), /show=receivers/);
    await page.getByRole("button", { name: "Credit" }).click();
    await until(
      async () => /flowing-worker/.test(await page.locator("tbody tr").first().textContent()),
      "the most credit is first",
    );
    await page.getByRole("searchbox").fill("nothing like it");
    await page.getByText("No link matches.").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await row(page, "producer").waitFor();
    await page
      .locator(".choice")
      .getByText(/^Stuck/)
      .click();
    await until(async () => (await row(page, "producer").count()) === 0, "no sender is stuck");
  });

  test("a receive over HTTP that waits is shown, and ended", async (page) => {
    await entity(api, "over-http");
    const answer = fetch(`${url}/over-http/messages/head?timeout=60`, { method: "DELETE" });
    await until(async () => (await api("GET", "/receives")).receives.length === 1, "it waits");
    await open(page, "#/connections");
    const receives = page.getByRole("region", { name: "Receives over HTTP that wait" });
    await receives.getByText("over-http").waitFor();
    await isAccessible(page);
    await receives.getByRole("button", { name: "End the receive from over-http" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "End the receive" }).click();
    await page.getByRole("status").getByText("The receive was ended.").waitFor();
    assert.equal((await answer).status, 503);
    await receives.waitFor({ state: "detached" });
  });

  test("names of clients are text", async (page) => {
    await entity(api, "named");
    for (const text of HOSTILE.filter((each) => !each.includes("\u0000"))) await receive(await client(text), "named");
    await open(page, "#/connections?filter=named");
    await page.getByText("<img src=x onerror=alert(1)>").waitFor();
    await page.locator(".escape").getByText("\\u{202e}").waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await isAccessible(page);
    await page.getByRole("link", { name: "<script>alert(1)</script>" }).click();
    await heading(page, /^Connection/);
    await page.getByText("<script>alert(1)</script>").waitFor();
  });

  test(
    "who may only listen is not offered to close",
    async (page) => {
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/connections`);
      await heading(page, "Connections");
      await live(page);
      await page.getByText("No client is connected.").waitFor();
      await page.getByRole("button", { name: "Copy" }).waitFor();
      assert.equal(await page.getByRole("button", { name: /Close|Detach/ }).count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );

  test("at 360 pixels nothing is wider than the page", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/connections");
    await row(page, "flowing-worker").waitFor();
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= 360));
    await isAccessible(page);
  });
});
