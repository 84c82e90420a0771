// The namespace is in the header and in every address: who opens a link sees the same namespace's entity.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, heading, inBrowser, isAccessible, live, open, securedUrl, url } from "../harness.js";
import { LISTENER } from "../journey.js";
import { entity, send } from "../seed.js";

const other = (method, path, body) => api(method, `${path}?namespace=other`, body);

inBrowser("namespaces", (test) => {
  before(async () => {
    await entity(api, "namesake");
    await entity(other, "namesake");
    await send(other, "namesake", { body: "one" }, { body: "two" }, { body: "three" });
  });

  // The count alone: how it has changed is beside it once there is some history.
  const active = (page, count) =>
    page
      .locator("dl.figures > div")
      .filter({ has: page.getByText("Active", { exact: true }) })
      .getByText(count, { exact: true });

  test("the address that is copied opens the same namespace's entity", async (page, context) => {
    await open(page, "#/entity/namesake");
    await page.locator(".top-namespace").filter({ hasText: "sbemulatorns" }).waitFor();
    await active(page, "0").waitFor();
    assert.equal(new URL(page.url()).searchParams.get("namespace"), "sbemulatorns");
    await open(page, "#/settings");
    await page.getByLabel("Name", { exact: true }).fill("other");
    await page.keyboard.press("Enter");
    await page.locator(".top-namespace").filter({ hasText: "other" }).waitFor();
    await page.getByRole("link", { name: "Entities", exact: true }).click();
    await page.getByRole("link", { name: "namesake", exact: true }).click();
    await heading(page, "namesake");
    await active(page, "3").waitFor();
    const address = page.url();
    assert.match(address, /\?namespace=other#\/entity\/namesake$/);
    const colleague = await context.newPage();
    await colleague.goto(address);
    await heading(colleague, "namesake");
    await live(colleague);
    await colleague.locator(".top-namespace").filter({ hasText: "other" }).waitFor();
    await active(colleague, "3").waitFor();
    await isAccessible(colleague);
    await colleague.reload();
    await live(colleague);
    assert.equal(colleague.url(), address);
    // Links on the page are of the same namespace.
    const link = await colleague.getByRole("link", { name: "Overview" }).evaluate((element) => element.href);
    assert.match(link, /\?namespace=other#/);
  });

  test(
    "an address of a namespace that there is none of opens no other, and says so",
    async (page) => {
      await page.goto(`${url}/?namespace=nowhere#/entity/namesake`);
      await page.getByText("There is no namespace 'nowhere'.").waitFor();
      assert.equal(await page.getByRole("heading", { name: "namesake" }).count(), 0);
    },
    { allow: [/40[134] \(/] },
  );

  test(
    "a key of another namespace does not open the entity of this one",
    async (page) => {
      await page.goto(`${securedUrl}/?namespace=elsewhere#/entities`);
      await page.getByLabel("Namespace").waitFor();
      assert.equal(await page.getByLabel("Namespace").inputValue(), "elsewhere");
      await page.getByLabel("Connection string", { exact: true }).last().fill(LISTENER);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").waitFor();
      assert.equal(await page.getByRole("heading", { name: "Entities" }).count(), 0);
    },
    { allow: [/401 \(Unauthorized\)/, /403 \(Forbidden\)/] },
  );

  test("at 360 pixels the namespace is there, and nothing is wider than the page", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/");
    assert(await page.locator("header .top-namespace").isVisible());
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= 360));
  });
});
