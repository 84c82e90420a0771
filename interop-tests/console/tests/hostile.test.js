// Names, properties and bodies that want to be more than text.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import rhea from "rhea";
import { connect, event, sender } from "../client.js";
import { api, heading, inBrowser, open, until } from "../harness.js";
import { HOSTILE, entity, hostile, job, send } from "../seed.js";

/** Milliseconds in which a page must answer, on two busy cores. */
const FROZEN = 1_500;

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
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    assert.equal(await readFile(await download.path(), "utf8"), text);
  });

  test("a body of 10 MB in one line does not freeze the page", async (page) => {
    await entity(api, "longer", "queue", { max_message_kilobytes: 20_480 });
    // Long digits, quotation marks and backslashes: what reads the answer looks at each.
    const text = '12345678901234567 "\\" '.repeat(480_000);
    assert(10 * 1024 * 1024 < text.length);
    // The JSON API takes less in one request.
    const connection = await connect("long");
    const link = await sender(connection, "longer");
    link.send({ body: rhea.message.data_section(Buffer.from(text)) });
    await event(link, "accepted");
    connection.close();
    await page.addInitScript(() => {
      window.longest = 0;
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
      }).observe({ type: "longtask", buffered: true });
    });
    await open(page, "#/entity/longer?tab=messages");
    await page.getByRole("link", { name: "1", exact: true }).click();
    await page.getByText(/The first 64 KiB of .* are shown/).waitFor();
    for (const kind of ["Hex", "Text"]) await page.getByText(kind, { exact: true }).click();
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText(/The first 256 KiB of .* are shown/).waitFor();
    const longest = await page.evaluate(() => window.longest);
    console.log(`10 MB in one line: the longest task took ${Math.round(longest)} ms`);
    assert(longest < FROZEN, `${longest} ms`);
  });

  test("a body of brackets alone does not use up the memory, and the page of its message works", async (page) => {
    await entity(api, "brackets");
    const text = "[".repeat(20_000) + "]".repeat(20_000);
    await send(api, "brackets", { body: text, content_type: "application/json", message_id: "nested" });
    await send(api, "brackets", { body: `[${"[1],".repeat(150_000)}2]` });
    await job(api, "brackets", { kind: "dead_letter", reason: "Nested" });
    await open(page, `#/entity/${encodeURIComponent("brackets/$DeadLetterQueue")}/message/1`);
    await heading(page, "Message 1");
    await page.locator("pre.body").getByText("[", { exact: false }).first().waitFor();
    await page.getByRole("button", { name: "Repair" }).click();
    await until(
      async () => (await page.getByRole("textbox", { name: "Body" }).inputValue()).length !== 0,
      "the body can be repaired",
    );
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Send a copy" }).click();
    await heading(page, "Send");
    await page.getByRole("button", { name: "Format" }).click();
    await heading(page, "Send");
    await open(page, `#/entity/${encodeURIComponent("brackets/$DeadLetterQueue")}/message/2`);
    await page.locator("pre.body").getByText("[", { exact: false }).first().waitFor();
  });

  test("compressed bodies are decompressed, up to a bound", async (page) => {
    await entity(api, "packed");
    const packed = (text) => ({ body_base64: gzipSync(text).toString("base64") });
    await send(
      api,
      "packed",
      packed('{"order": 7, "note": "<img src=x onerror=alert(1)>"}'),
      packed("plain text"),
      packed("0".repeat(64 * 1024 * 1024)),
      { body_base64: Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]).toString("base64") },
      {
        body_base64: brotliCompressSync("read by the broker <b>").toString("base64"),
        properties: { "content-encoding": "br" },
      },
    );
    await open(page, "#/entity/packed/message/1");
    await page.locator("pre.body").getByText('"order": 7').waitFor();
    await page.locator("pre.body").getByText("<img src=x").waitFor();
    await page.getByText("gzip, 52 B").waitFor();
    await page.getByText("Hex", { exact: true }).click();
    await page.locator("pre.body").getByText("1f 8b").waitFor();
    await open(page, "#/entity/packed/message/2");
    await page.locator("pre.body").getByText("plain text").waitFor();
    await open(page, "#/entity/packed/message/3");
    await page.getByText("gzip, 4.0 MiB…").or(page.getByText("gzip, 4 MiB…")).waitFor();
    await open(page, "#/entity/packed/message/4");
    await page.getByText("Cannot decompress it.").waitFor();
    await page.locator("pre.body").getByText("1f 8b 08").waitFor();
    await open(page, "#/entity/packed/message/5");
    await page.locator("pre.body").getByText("read by the broker <b>").waitFor();
    await page.getByText("brotli, 22 B").waitFor();
  });

  test("an address that is no address is a page that says so", async (page) => {
    for (const address of [
      "#/<img src=x onerror=alert(1)>",
      "#/entity/%E0%A4%A",
      "#//evil.example",
      "#/entity/a/b/c/d",
    ]) {
      await open(page, address);
      await heading(page, "There is no such page.");
    }
  });
});
