// Figures that agree: what comes in and what is completed, and the counts of a topic wherever they are shown.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until, url } from "../harness.js";
import { entity, send } from "../seed.js";

/** The other namespace of the suite's broker, in which nothing else happens. */
const IN_OTHER = "namespace=other";
const other = (method, path, body) => api(method, `${path}${path.includes("?") ? "&" : "?"}${IN_OTHER}`, body);
/** History ends an interval each ten seconds. */
const INTERVALS = 40_000;

/** The name of a line, without its newest value. */
const nameOf = (legend) => legend.replace(/[\s\d.<,]*$/, "").trim();

inBrowser("figures", (test) => {
  before(async () => {
    await entity(api, "figured", "topic");
    for (const name of ["one", "two"]) await entity(api, `figured/Subscriptions/${name}`, "subscription");
    await send(api, "figured", ...Array.from({ length: 7 }, (_, number) => ({ body: `${number}` })));
  });

  test("the list of entities and the page of a topic show the same counts, and say what they are", async (page) => {
    await open(page, "#/entities?filter=figured");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "figured", exact: true }) });
    await row.getByText("14", { exact: true }).waitFor();
    await row.getByRole("link", { name: "figured", exact: true }).click();
    await heading(page, "figured");
    const figures = page.locator(".figures");
    await figures
      .locator("div")
      .filter({ has: page.getByText("Active", { exact: true }) })
      .getByText("14", { exact: true })
      .waitFor();
    await figures.getByText("Published", { exact: true }).waitFor();
    await figures.getByText("Copies completed", { exact: true }).waitFor();
    await page.getByText("Counts of a topic are those of its subscriptions together").waitFor();
    // Its charts have what it counts itself, and no zeros for what its subscriptions count.
    await page.locator(".chart-title").getByText("Scheduled messages", { exact: true }).waitFor();
    assert.deepEqual(
      await page
        .locator(".legend-item")
        .allTextContents()
        .then((all) => all.map(nameOf)),
      ["Published", "Scheduled"],
    );
    await isAccessible(page);
  });

  test("what comes in is what can be completed: copies count, and what was published is told apart", async (page) => {
    for (const [path, kind] of [
      ["published", "topic"],
      ["published/Subscriptions/a", "subscription"],
      ["published/Subscriptions/b", "subscription"],
    ])
      await entity(other, path, kind);
    // One interval begins before, so that counts are those of the intervals after it.
    await until(async () => (await other("GET", "/history")).points.length !== 0, "there is a first interval");
    await send(other, "published", ...Array.from({ length: 6 }, (_, number) => ({ body: `${number}` })));
    for (const name of ["a", "b"]) {
      const at = `/entities/${encodeURIComponent(`published/Subscriptions/${name}`)}`;
      const { messages } = await other("POST", `${at}/lock`, { sequence_numbers: [1, 2, 3, 4, 5, 6] });
      await other("POST", `${at}/settle`, {
        settlements: messages.map(({ lock_token: token }) => ({ lock_token: token, outcome: "complete" })),
      });
    }
    const sums = async () => {
      const { points } = await other("GET", "/history");
      return ["published", "incoming", "completed"].map((counter) =>
        points.reduce((sum, point) => sum + point[counter], 0),
      );
    };
    await until(async () => (await sums()).join() === "6,12,12", "each copy came in and was completed", INTERVALS);
    await page.goto(`${url}/?${IN_OTHER}#/`);
    await heading(page, "Overview");
    await page
      .locator(".figures")
      .getByText(/published to topics/)
      .waitFor();
  });

  test("a rate that is not zero is not shown as zero, and an axis tells its values apart", async (page) => {
    await open(page);
    const shown = await page.evaluate(async () => {
      const { rate, tick } = await import("/$console/lib/format.js");
      return {
        rates: [0, 0.0004, 0.0022, 0.03, 0.1, 7.25, 140, 12_345].map(rate),
        ticks: [
          [0, 0.025, 0.05].map((value) => tick(value, 0.025)),
          [0.1, 0.2, 3 * 0.1].map((value) => tick(value, 0.1)),
        ],
      };
    });
    assert.deepEqual(shown, {
      rates: ["0", "< 0.001", "0.002", "0.03", "0.1", "7.3", "140", "12.3K"],
      ticks: [
        ["0", "0.025", "0.05"],
        ["0.1", "0.2", "0.3"],
      ],
    });
  });
});
