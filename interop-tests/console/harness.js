// What every test needs: a browser, a page that has no errors, a seeded broker.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { AxeBuilder } from "@axe-core/playwright";
import { launch } from "./browser.js";
import { client } from "./seed.js";

/** How long anything that is expected may take, milliseconds. */
export const DEADLINE = 15_000;

export const url = `http://127.0.0.1:${process.env.JITNEY_HTTP_PORT}`;
export const securedUrl = `http://127.0.0.1:${process.env.JITNEY_SECURED_HTTP_PORT}`;
/** The JSON API of the suite's broker. */
export const api = client(url);

const run = promisify(execFile);

/** Kills, stops or starts the suite's broker. */
export async function control(what) {
  const [command, ...words] = process.env.JITNEY_BROKER_CONTROL.split(" ");
  await run(command, [...words, what]);
}

/** Declares tests that share a browser; each has a page of its own, and no page may log an error or be refused anything
 * by its policy. `options` go to the browser's context; `allow` has patterns of errors that a test provokes; `isIdle`
 * lets the console load all its pages when it has nothing else to do: a hundred files for each test. */
export function inBrowser(name, declare) {
  describe(name, { timeout: 240_000 }, () => {
    let browser;
    before(async () => {
      browser = await launch();
    });
    after(() => browser?.close());
    declare((title, body, { allow = [], isIdle = false, ...options } = {}) =>
      it(title, async () => {
        const context = await browser.newContext({
          locale: "en-GB",
          timezoneId: "Europe/Amsterdam",
          viewport: { width: 1280, height: 800 },
          ...options,
        });
        const errors = [];
        context.on("page", (page) => watch(page, errors));
        if (!isIdle) await context.addInitScript(() => Object.assign(window, { requestIdleCallback: () => 0 }));
        const page = await context.newPage();
        page.setDefaultTimeout(DEADLINE);
        try {
          await body(page, context);
          const unexpected = errors.filter((error) => !allow.some((pattern) => pattern.test(error)));
          assert.deepEqual(unexpected, [], "errors of the page");
        } catch (error) {
          error.stack += `\n${await stateOf(page)}`;
          throw error;
        } finally {
          await context.close();
        }
      }),
    );
  });
}

function watch(page, errors) {
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    // What is new has no history yet.
    const isNew = /404/.test(message.text()) && /\/history(\?|$)/.test(message.location().url);
    if (message.type() === "error" && !isNew) errors.push(message.text());
  });
  // A dialog of the browser would be code of a message.
  page.on("dialog", (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
}

/** What a page shows, for the report of a failed test. */
async function stateOf(page) {
  try {
    const { address, focused, text } = await page.evaluate(() => ({
      address: location.href,
      focused: document.activeElement?.outerHTML.slice(0, 300),
      text: document.body.innerText.slice(0, 3000),
    }));
    return `The page ${address}, with the focus on ${focused}:\n${text}`;
  } catch (error) {
    return `The page cannot be read: ${error}`;
  }
}

/** Opens a page of the console, and waits until it follows the broker. */
export async function open(page, address = "#/", base = url) {
  await page.goto(`${base}/${address}`);
  await page.locator("main h1").waitFor();
  await live(page);
}

export const live = (page) => page.locator(".status.live").waitFor();
export const heading = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();

/** Checks the page by axe, in both colours. */
export async function isAccessible(page) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    // The console has no frames: without the legacy mode each pass opens another page to put the results of frames
    // together.
    const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
    const found = violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`,
    );
    assert.deepEqual(found, [], `${colorScheme}, ${page.url()}`);
  }
}

/** Waits until something holds. */
export async function until(condition, what, deadline = DEADLINE) {
  const end = Date.now() + deadline;
  while (!(await condition())) {
    assert(Date.now() < end, `not in time: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
