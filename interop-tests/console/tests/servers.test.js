// The servers that share namespaces: which is lost, which namespace is left alone and why, and the end of that.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { startFleet } from "../fleet.js";
import { heading, inBrowser, isAccessible, live, open, securedUrl, until } from "../harness.js";
import { LISTENER, signIn, tabTo } from "../journey.js";
import { client } from "../seed.js";

/** A server is declared dead after three seconds, and its namespaces are taken over then. */
const LOST = { timeout: 30_000 };
const WHY = "its log is damaged, says a test";

inBrowser("servers", (test) => {
  let fleet;
  before(
    async () => {
      fleet = await startFleet(2);
    },
    { timeout: 90_000 },
  );
  after(() => fleet?.end());

  const row = (page, table, text) =>
    page.getByRole("table", { name: table }).getByRole("row").filter({ hasText: text });
  const seen = async () => client(fleet.servers["server-1"])("GET", "/fleet");

  test("by mouse: servers, their beats, the state of the database, who has which namespace", async (page) => {
    await open(page, "#/", fleet.servers["server-1"]);
    await page.getByRole("link", { name: "Servers" }).click();
    await heading(page, "Servers");
    await page.getByText("2 of 2 servers alive, 6 namespaces").waitFor();
    await row(page, "Servers", "server-1").getByText("answers").waitFor();
    await row(page, "Servers", "server-2").getByText("alive").waitFor();
    for (const { name, server } of (await seen()).namespaces)
      await row(page, "Namespaces", name).getByText(server).waitFor();
    const store = page.getByRole("region", { name: /^Store 127\.0\.0\.1/ });
    await store.locator("div", { hasText: "Standby lag" }).first().waitFor();
    await store.getByText((await seen()).stores[0].identity).waitFor();
    // Beats come without a reload.
    const beats = async () =>
      Number((await row(page, "Servers", "server-2").getByRole("cell").nth(3).textContent()).replace(/\D/g, ""));
    const first = await beats();
    await until(async () => first + 2 < (await beats()), "the beats go on");
    await page.getByRole("searchbox").fill("server-2");
    await until(
      async () => (await page.getByRole("table", { name: "Namespaces" }).locator("tbody tr").count()) === 3,
      "half of the namespaces are at server-2",
    );
    assert.match(page.url(), /filter=server-2/);
    await page.getByText("Problems").click();
    await page.getByText("No namespace matches.").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await row(page, "Namespaces", "alpha").waitFor();
    await isAccessible(page);
  });

  test(
    "a lost server and a namespace in quarantine stand out; by keyboard: it is let out",
    async (page) => {
      const { name } = (await seen()).namespaces.find(({ server }) => server === "server-2");
      await open(page, "#/servers", fleet.servers["server-1"]);
      await row(page, "Namespaces", name).getByText("served").waitFor();
      await fleet.query(
        `insert into jitney.namespace_state (namespace, quarantined) select id, '${WHY}' from jitney.namespace where name = '${name}' ` +
          "on conflict (namespace) do update set quarantined = excluded.quarantined",
      );
      await fleet.kill("server-2");
      await row(page, "Servers", "server-2").getByText("lost").waitFor(LOST);
      const alone = page.getByRole("region", { name: "Quarantine", exact: true });
      await alone.getByText(`No server takes the namespace ${name}`).waitFor();
      await alone.getByText(WHY).waitFor();
      await row(page, "Namespaces", name).getByText("quarantined").waitFor();
      // The others have moved.
      await until(
        async () =>
          (await seen()).namespaces.every((each) => each.server === (each.name === name ? undefined : "server-1")),
        "server-1 has the others",
      );
      await isAccessible(page);
      await page.setViewportSize({ width: 360, height: 740 });
      assert(await page.evaluate(() => document.documentElement.scrollWidth <= 360), "nothing is wider than the page");
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole("heading", { level: 1 }).focus();
      await tabTo(page, new RegExp(`^End the quarantine of ${name}$`));
      await page.keyboard.press("Enter");
      await tabTo(page, /^End the quarantine$/);
      await page.keyboard.press("Enter");
      await page.getByRole("status").getByText(`The quarantine of ${name} was ended`).waitFor();
      await alone.waitFor({ state: "detached" });
      await row(page, "Namespaces", name).getByText("server-1").waitFor(LOST);
      // Another try is refused, and says why.
      const refused = await fetch(`${fleet.servers["server-1"]}/api/v1/fleet/namespaces/${name}/release`, {
        method: "POST",
      });
      assert.equal(refused.status, 409);
      assert.match((await refused.json()).detail, /in no quarantine/);
      assert.equal(
        (await fetch(`${fleet.servers["server-1"]}/api/v1/fleet/namespaces/nothing/release`, { method: "POST" }))
          .status,
        404,
      );
      await fleet.start("server-2");
      await row(page, "Servers", "server-2").getByText("alive").waitFor(LOST);
      // The namespace that the console follows may have been at the lost server.
    },
    { allow: [/50[234] \(/, /net::ERR_/] },
  );

  test("of several stores the one that is away is named, and each namespace has its store", async (page) => {
    const store = (name, reached) => ({
      name,
      reached,
      lease_held: reached,
      place: `db-${name}.example:5432/jitney`,
      identity: reached ? `identity-${name}` : "",
      clock_offset_ms: 250,
      transaction_age: 1_600_000_000,
      inactive_slots: 2,
      standby_lag_bytes: 4096,
    });
    const namespace = (name, of, more) => ({ name, store: of, rate: 120, epoch: 3, ...more });
    await page.route("**/api/v1/fleet*", (route) =>
      route.fulfill({
        json: {
          server: "one",
          lease_held: false,
          looked_ms_ago: 9_000,
          configuration: { number: 4, hash: "abc" },
          stores: [store("a", true), store("b", false), store("c", false)],
          servers: [
            {
              name: "one",
              alive: true,
              leaving: false,
              beats: 7,
              beat_age_ms: 90,
              address: "10.0.0.1:5670",
              namespaces: 1,
            },
            {
              name: "two",
              alive: true,
              leaving: true,
              beats: 7,
              beat_age_ms: 90,
              address: "10.0.0.2:5670",
              namespaces: 1,
            },
            {
              name: "three",
              alive: true,
              leaving: false,
              beats: 7,
              beat_age_ms: 2_500,
              address: "10.0.0.3:5670",
              namespaces: 0,
            },
            {
              name: "five",
              alive: true,
              leaving: false,
              beats: 7,
              beat_age_ms: 90,
              takes_none: "its clock is off",
              address: "10.0.0.5:5670",
              namespaces: 0,
            },
            { name: "four", alive: false, leaving: true, beats: 7, address: "10.0.0.4:5670", namespaces: 0 },
          ],
          namespaces: [
            namespace("orders", "a", { server: "one" }),
            namespace("bills", "b", { server: "two", suspended: "<b>overdue</b>" }),
            namespace("mail", "b", {}),
          ],
        },
      }),
    );
    await open(page, "#/servers");
    await page.getByRole("alert").filter({ hasText: "does not reach these stores: b, c." }).waitFor();
    await page.getByRole("region", { name: "Store a, db-a.example:5432/jitney" }).getByText("identity-a").waitFor();
    assert.equal(await page.getByRole("region", { name: /^Store / }).count(), 3);
    assert.equal(
      await page
        .getByRole("region", { name: /^Store a/ })
        .locator("dd.alarm-text")
        .count(),
      3,
      "age, slots and clock need a person",
    );
    for (const [name, state] of [
      ["one", "alive"],
      ["two", "leaving"],
      ["three", "late"],
      ["four", "left"],
      ["five", "takes no namespaces"],
    ])
      await row(page, "Servers", name).getByText(state, { exact: true }).waitFor();
    await row(page, "Namespaces", "orders").getByText("120").waitFor();
    await row(page, "Namespaces", "bills").getByText("<b>overdue</b>").waitFor();
    await row(page, "Namespaces", "mail").getByText("waits for a server").waitFor();
    assert.deepEqual(
      await page.getByRole("table", { name: "Namespaces" }).locator("tbody tr td:nth-child(4)").allTextContents(),
      ["a", "b", "b"],
    );
    await isAccessible(page);
  });

  test(
    "a server with a data directory has no such page, and says how servers share namespaces",
    async (page) => {
      await open(page);
      assert.equal(await page.getByRole("link", { name: "Servers" }).count(), 0);
      await open(page, "#/servers");
      await heading(page, "Servers");
      await page.getByText("This server shares its namespaces with no other.").waitFor();
      await page.getByRole("button", { name: "Copy" }).waitFor();
      await isAccessible(page);
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test(
    "who is not the operator is not shown them",
    async (page) => {
      await signIn(page, LISTENER);
      await page.goto(`${securedUrl}/#/servers`);
      await heading(page, "Servers");
      await live(page);
      await page.getByText("Only the operator sees the servers.").waitFor();
      assert.equal(await page.getByRole("link", { name: "Servers" }).count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );
});
