// Names, properties and bodies that want to be more than text.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before } from "node:test";
import { api, heading, inBrowser, open } from "../harness.js";
import { HOSTILE, entity, hostile, send } from "../seed.js";

inBrowser("hostile", (test) => {
  before(() => hostile(api));

  test("markup and code in messages are text, and what hides is shown", async (page) => {
    await open(page, "#/entity/hostile?tab=messages");
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    for (const [at] of HOSTILE.entries()) {
      await page.goto(`${new URL(page.url()).origin}/#/entity/hostile/message/${at + 1}`);
      await heading(page, `Message ${at + 1}`);
      await page.locator("pre.body").waitFor();
      assert.equal(await page.locator("main img, main script, main iframe").count(), 0);
    }
    await page.goto(`${new URL(page.url()).origin}/#/entity/hostile/message/3`);
    await page.locator("pre.body").getByText("\\x1b").first().waitFor();
    await page.goto(`${new URL(page.url()).origin}/#/entity/hostile/message/4`);
    await page.locator("pre.body").getByText("\\u{202e}").waitFor();
  });

  test("bytes that are no text are shown as bytes, and as a text with escapes", async (page) => {
    await open(page, `#/entity/hostile/message/${HOSTILE.length + 1}`);
    await page.locator("pre.body").getByText("68 69 ff fe").waitFor();
    await page.getByText("Text", { exact: true }).click();
    await page.locator("pre.body .escape").getByText("\\xff\\xfe\\xc3").waitFor();
  });

  test("a body of a megabyte in one line is cut, and is downloaded whole", async (page) => {
    await entity(api, "long", "queue", { max_message_kilobytes: 4096 });
    const text = `${"long line ".repeat(120_000)}end`;
    await send(api, "long", { body: text });
    await open(page, "#/entity/long/message/1");
    await page.getByText(/The first 64 KiB of .* are shown/).waitFor();
    assert((await page.locator("pre.body").textContent()).length <= 64 * 1024);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
    assert.equal(await readFile(await download.path(), "utf8"), text);
  });

  test("an address that is no address is a page that says so", async (page) => {
    for (const address of ["#/<img src=x onerror=alert(1)>", "#/entity/%E0%A4%A", "#//evil.example", "#/entity/a/b/c/d"]) {
      await open(page, address);
      await heading(page, "There is no such page.");
    }
  });
});
