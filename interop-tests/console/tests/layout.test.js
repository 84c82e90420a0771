// What is where, at each width: nothing is cut off, and what stays in sight stays where it is.

import assert from "node:assert/strict";
import { before } from "node:test";
import { api, inBrowser, isAccessible, open, until } from "../harness.js";
import { tabTo } from "../journey.js";
import { entity, job, send } from "../seed.js";

const WIDTHS = [360, 600, 720, 820, 900, 1000, 1100, 1440];
const later = (hours) => new Date(Date.now() + hours * 3_600_000).toISOString();
/** Names as long as they may be. */
const LONG = "a-queue/with.a-long_name/of/several.parts/that-take/more-than/a-line";

/** Labels of buttons and links that are partly or wholly outside of what they are in. */
const cutOff = (page, inside) =>
  page
    .locator(inside)
    .first()
    .evaluate((box) => {
      const { left, right } = box.getBoundingClientRect();
      const isShown = (element) =>
        element.getClientRects().length !== 0 && getComputedStyle(element).visibility !== "hidden";
      const isOut = (element) => {
        const own = element.getBoundingClientRect();
        return own.right > right + 1 || own.left < left - 1;
      };
      return [...box.querySelectorAll("button")]
        .filter((element) => isShown(element) && isOut(element))
        .map((element) => element.getAttribute("aria-label") ?? element.textContent);
    });

/** A word that has no room in a list. */
const LAST = "a-word-that-is-long-".repeat(6);
/** Names of subscriptions keep their capitals. */
const BROKEN = "the-shop.of-everyCountry_and-region-with-customer";

inBrowser("layout", (test) => {
  before(async () => {
    await entity(api, LONG);
    await entity(api, "laid-out");
    for (const path of [LONG, "laid-out"]) {
      await send(
        api,
        path,
        ...Array.from({ length: 4 }, (_, number) => ({
          body: "a body that is as long as a line ".repeat(4),
          message_id: `a-message-id-that-is-long-${number}-${"0".repeat(60)}`,
          scheduled_for: later(number + 1),
        })),
      );
    }
    await send(api, "laid-out", {
      body: "now",
      message_id: "now",
      properties: { [`a-property-${"with-a-long-name-".repeat(6)}`]: "a value", short: 1 },
    });
  });

  test("back leads to the row that was left, and to the place on the page", async (page) => {
    await entity(api, "long-list");
    for (let at = 0; at < 250; at += 125)
      await send(api, "long-list", ...Array.from({ length: 125 }, (_, number) => ({ body: `${at + number}` })));
    await open(page, "#/entity/long-list?tab=messages");
    const box = page.locator(".table-box");
    // Further messages are read as one scrolls.
    await until(async () => {
      await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return (await page.getByRole("link", { name: "250", exact: true }).count()) === 1;
    }, "the last message is listed");
    const place = (name) =>
      page.getByRole("link", { name, exact: true }).evaluate((link) => link.getBoundingClientRect().top);
    await box.evaluate((element) => element.scrollBy(0, -900));
    await page.getByRole("link", { name: "215", exact: true }).waitFor();
    const before = await place("215");
    await page.getByRole("link", { name: "215", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Message 215" }).waitFor();
    await page.goBack();
    await until(
      async () => (await page.locator("tr.cursor").getByRole("link", { name: "215", exact: true }).count()) === 1,
      "the row has the cursor",
    );
    assert.equal(await place("215"), before);
    // A page that is longer than the window, and is no table.
    await page.setViewportSize({ width: 900, height: 400 });
    await open(page, "#/entity/laid-out");
    const main = page.locator("main");
    await until(
      () =>
        main.evaluate((element) => {
          element.scrollTop = 150;
          return element.scrollTop === 150;
        }),
      "the page is long enough",
    );
    // What is scrolled is told in the next frame. Parts above it that are loaded now move what is in sight.
    const left = await main.evaluate(async (element) => {
      for (const _ of [1, 2]) await new Promise((resolve) => requestAnimationFrame(resolve));
      location.hash = "#/jobs";
      return element.scrollTop;
    });
    assert.ok(0 < left, "the page stayed where it was scrolled to");
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    assert.equal(await main.evaluate((element) => element.scrollTop), 0);
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "laid-out" }).waitFor();
    await until(async () => (await main.evaluate((element) => element.scrollTop)) === left, "the page is where it was");
  });

  test("the actions of rows are in sight at every width", async (page) => {
    await open(page, "#/schedule");
    await page.locator("tbody .row-actions").first().waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      await page.locator(".table-box").evaluate((box) => {
        box.scrollLeft = 0;
      });
      assert.deepEqual(await cutOff(page, ".table-box"), [], `${width}`);
    }
  });

  test("the actions of rows are icons that say what they do, and can be hit", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/schedule?entity=laid-out");
    const actions = page.locator("tbody .row-actions").first().getByRole("button");
    await actions.first().waitFor();
    assert.equal(await actions.count(), 3);
    for (const action of await actions.all()) {
      const label = await action.getAttribute("aria-label");
      assert.match(label, /message \d+$/);
      assert.equal(await action.getAttribute("title"), label);
      const { width, height } = await action.boundingBox();
      assert(24 <= width && 24 <= height, `${width} x ${height}`);
    }
    await tabTo(page, /^Cancel message \d+$/, "button");
    await isAccessible(page);
  });

  test("names of entities are broken between words", async (page) => {
    await entity(api, "worded", "topic");
    await entity(api, `worded/Subscriptions/${BROKEN}`, "subscription");
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, `#/entity/${encodeURIComponent(`worded/Subscriptions/${BROKEN}`)}`);
    await page.getByRole("link", { name: "Rules", exact: true }).waitFor();
    const words = await page.getByRole("heading", { level: 1 }).evaluate((head) => {
      const walker = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
      const found = [];
      while (walker.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(walker.currentNode);
        const tops = new Set([...range.getClientRects()].map(({ top }) => top));
        found.push({ text: walker.currentNode.data, lines: tops.size, top: Math.min(...tops) });
      }
      return found;
    });
    assert.deepEqual(
      words.map(({ text }) => text),
      ["the-", "shop.", "of-", "every", "Country_", "and-", "region-", "with-", "customer"],
    );
    assert(
      words.every(({ lines }) => lines === 1),
      JSON.stringify(words),
    );
    assert(1 < new Set(words.map(({ top }) => top)).size, "the name has several lines");
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), BROKEN);
  });

  test("no dialog cuts off a button", async (page) => {
    await open(page, "#/schedule?entity=laid-out");
    await page
      .getByRole("button", { name: /^Reschedule message/ })
      .first()
      .click();
    await page.getByLabel("Becomes active").waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      assert.deepEqual(await cutOff(page, "dialog .dialog"), [], `${width}`);
      assert(await page.locator("dialog").evaluate((dialog) => dialog.scrollWidth <= dialog.clientWidth), `${width}`);
    }
  });

  test("a long name of a property leaves room for values", async (page) => {
    const { messages } = await api("GET", "/entities/laid-out/messages?state=active");
    await open(page, `#/entity/laid-out/message/${messages[0].sequence_number}`);
    const value = page.getByRole("definition").filter({ hasText: "a value" });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      const [own, all] = await value.evaluate((element) => [element.clientWidth, element.parentElement.clientWidth]);
      assert(all * 0.55 < own, `${width}: ${own} of ${all}`);
    }
  });

  test("tabs have no bar to scroll with, and the current one is in sight", async (page) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/entity/laid-out?tab=properties");
    const tabs = page.locator(".tabs");
    await until(
      () =>
        tabs.evaluate(
          (bar) =>
            bar.querySelector("[aria-current]").getBoundingClientRect().right <= bar.getBoundingClientRect().right + 1,
        ),
      "the tab is in sight",
    );
    assert.equal(await tabs.evaluate((bar) => getComputedStyle(bar).scrollbarWidth), "none");
  });

  test("paths that differ in their last word are told apart where there is no room", async (page) => {
    const paths = ["one", "two"].map((name) => `shops-of/every-region-and-country/${name}`);
    for (const path of [...paths, `shops-of/${LAST}`]) await entity(api, path);
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/entities?filter=every-region-and");
    const placeOf = async (link) => {
      await link.waitFor();
      return link.evaluate((element) => {
        const [own, text] = [element, element.firstElementChild].map((each) => each.getBoundingClientRect());
        return { isCut: text.left < own.left - 1, endsInside: text.right <= own.right + 1 };
      });
    };
    for (const path of paths) {
      const link = page.getByRole("link", { name: path, exact: true });
      await link.waitFor();
      assert.equal(await link.getAttribute("title"), path);
      assert.deepEqual(await placeOf(link), { isCut: true, endsInside: true });
    }
    // So is one whose last word has no room either, and one that has room is not moved.
    await open(page, "#/entities?filter=laid-out");
    assert.deepEqual(await placeOf(page.getByRole("link", { name: "laid-out", exact: true })), {
      isCut: false,
      endsInside: true,
    });
    await page.setViewportSize({ width: 1000, height: 740 });
    await open(page, `#/entities?filter=${LAST}`);
    assert.deepEqual(await placeOf(page.getByRole("link", { name: `shops-of/${LAST}`, exact: true })), {
      isCut: true,
      endsInside: true,
    });
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/entities?filter=every-region-and");
    assert(await page.locator(".table-box").evaluate((box) => box.scrollWidth <= box.clientWidth));
    await isAccessible(page);
    // Columns of numbers leave room for names.
    for (const width of [1000, 1200, 1300]) {
      await page.setViewportSize({ width, height: 740 });
      const name = await page.getByRole("columnheader", { name: "Name" }).boundingBox();
      assert(200 <= name.width, `${name.width} at ${width}`);
    }
  });

  test("what needs attention is in one column: the name, the sentence, and since when", async (page) => {
    await open(page, "#/entity/laid-out");
    const item = page.getByRole("region", { name: "Needs attention" }).getByRole("listitem").first();
    await item.waitFor();
    for (const width of [360, 1440]) {
      await page.setViewportSize({ width, height: 740 });
      const parts = await item.evaluate((row) =>
        [...row.children].map((part) => {
          const range = document.createRange();
          range.selectNodeContents(part);
          const { left, top, bottom } = range.getBoundingClientRect();
          return { left, top, bottom };
        }),
      );
      assert.equal(parts.length, 3);
      for (const [at, part] of parts.entries()) {
        assert(Math.abs(part.left - parts[0].left) <= 1, `${width}: ${JSON.stringify(parts)}`);
        assert(at === 0 || parts[at - 1].bottom <= part.top + 1, `${width}: ${JSON.stringify(parts)}`);
      }
    }
  });

  test("a key that is shown is beside its name, and not upon it", async (page) => {
    await api("PUT", "/entities/laid-out/authorization-rules/shown", { rights: ["send"] });
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/settings?tab=keys&entity=laid-out");
    await page.getByRole("button", { name: "Show the primary key of shown" }).click();
    const [label, key] = await page
      .locator(".key-line")
      .first()
      .evaluate((line) =>
        [...line.children].slice(0, 2).map((part) => {
          const range = document.createRange();
          range.selectNodeContents(part);
          const { left, right } = range.getBoundingClientRect();
          return { left, right };
        }),
      );
    assert(label.right <= key.left, `${label.right} ${key.left}`);
    assert(key.right <= 360, `${key.right}`);
  });

  test("the list of dead letters needs no scrolling to the side, and its search says by what", async (page) => {
    await job(api, "laid-out", { kind: "dead_letter", reason: "MaxDeliveryCountExceeded" }, { states: ["active"] });
    await page.setViewportSize({ width: 360, height: 740 });
    await open(page, "#/entity/laid-out?tab=dead-letters");
    await page.locator("td", { hasText: "MaxDelivery" }).waitFor();
    assert(await page.locator(".table-box").evaluate((box) => box.scrollWidth <= box.clientWidth));
    const tops = await page
      .locator("form.tools > select, form.tools > input")
      .evaluateAll((fields) => fields.map((field) => field.getBoundingClientRect().top));
    assert.equal(new Set(tops).size, 1, "the choice and the value are in one line");
  });

  test("the bar at the end of a form stays where it is while toasts are shown, and they do not cover it", async (page) => {
    await page.setViewportSize({ width: 1280, height: 560 });
    await open(page, "#/send?entity=laid-out");
    const foot = page.locator(".send-foot");
    await page.getByLabel("Body", { exact: true }).fill("one");
    await page.locator("main").evaluate((main) => main.scrollTo(0, main.scrollHeight));
    const { y } = await foot.boundingBox();
    for (const count of [1, 2]) {
      await page.keyboard.press("Control+Enter");
      await until(async () => (await page.locator(".toast").count()) === count, `${count} toasts`);
      const box = await foot.boundingBox();
      assert.equal(box.y, y);
      const toasts = await page.locator(".toasts").boundingBox();
      assert(toasts.y + toasts.height <= box.y + 1, "no toast covers the bar");
    }
  });
});
