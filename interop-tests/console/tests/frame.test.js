// The frame of every page: the choice of the namespace, and the keys.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, open, until, url } from "../harness.js";
import { tabTo } from "../journey.js";
import { entity } from "../seed.js";

const other = (method, path, body) => api(method, `${path}?namespace=other`, body);
const namespace = (page, name) => page.getByRole("button", { name: `Namespace ${name}` });

inBrowser("frame", (test) => {
  before(async () => {
    await entity(api, "in-both");
    await entity(api, "in-one");
    await entity(other, "in-both");
  });

  test(
    "another namespace is chosen in the head by mouse, and the reader stays with the entity",
    async (page) => {
      await open(page, "#/entity/in-both");
      await namespace(page, "sbemulatorns").click();
      await isAccessible(page);
      await page.getByLabel("Another namespace").fill("nowhere-at-all");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("There is no namespace 'nowhere-at-all'.").waitFor();
      await page.getByLabel("Another namespace").fill("other");
      await page.keyboard.press("Enter");
      await namespace(page, "other").waitFor();
      await heading(page, "in-both");
      await until(() => page.url() === `${url}/?namespace=other#/entity/in-both`, "the address has the namespace");
      // It is remembered, and so is that of before; an entity that the other has not leads to the list.
      await namespace(page, "other").click();
      await page.getByRole("button", { name: "sbemulatorns", exact: true }).click();
      await namespace(page, "sbemulatorns").waitFor();
      await page.goto(`${url}/?namespace=sbemulatorns#/entity/in-one`);
      await heading(page, "in-one");
      await until(async () => (await page.title()) === "in-one · sbemulatorns · Jitney", "the title names it");
      await namespace(page, "sbemulatorns").click();
      await page.getByRole("button", { name: "other", exact: true }).click();
      await heading(page, "Entities");
      assert.equal(page.url(), `${url}/?namespace=other#/entities`);
    },
    { allow: [/404 \(Not Found\)/] },
  );

  test("by keyboard alone", async (page) => {
    await open(page, "#/jobs");
    await tabTo(page, /^Namespace sbemulatorns$/);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Another namespace$/);
    await page.keyboard.press("Escape");
    await until(
      () => page.evaluate(() => document.activeElement?.textContent?.includes("sbemulatorns")),
      "the button has the focus again",
    );
    assert.equal(await page.getByLabel("Another namespace").count(), 0);
    await page.keyboard.press("Enter");
    await tabTo(page, /^Another namespace$/);
    await page.keyboard.type("other");
    await page.keyboard.press("Enter");
    await namespace(page, "other").waitFor();
    await heading(page, "Jobs");
  });

  test("keys go to pages and tell what they do, and text that is typed is text", async (page) => {
    await open(page, "#/");
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await dialog.getByText("Go to Entities").waitFor();
    await isAccessible(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.press("g");
    await page.keyboard.press("e");
    await heading(page, "Entities");
    await page.keyboard.press("/");
    await page.keyboard.type("gj?");
    assert.equal(await page.getByRole("combobox").inputValue(), "gj?");
    await heading(page, "Entities");
    assert.equal(await dialog.count(), 0);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await dialog.waitFor();
  });

  test("the head has room for everything at every width", async (page) => {
    await open(page, "#/entities");
    for (const width of [360, 600, 720, 820, 1000, 1440]) {
      await page.setViewportSize({ width, height: 740 });
      const boxes = await page.locator("header > *").evaluateAll((all) =>
        all
          .map((each) => each.getBoundingClientRect())
          .filter((box) => box.width !== 0)
          .map(({ left, right }) => [left, right]),
      );
      for (const [at, [left, right]] of boxes.entries())
        assert(right <= width && (at === 0 || boxes[at - 1][1] <= left + 1), `${width}: ${JSON.stringify(boxes)}`);
    }
  });
});
