// Journeys: clicks that are counted, the Tab key, a key that may not do everything.

import assert from "node:assert/strict";
import { securedUrl } from "./harness.js";

/** A key that may listen, and nothing else: secured.py has it. */
export const LISTENER = "Endpoint=sb://localhost/;SharedAccessKeyName=listener;SharedAccessKey=bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";

/** Returns a function that clicks, and counts. */
export function clicks() {
  let made = 0;
  const click = async (locator) => {
    await locator.click();
    made += 1;
  };
  click.count = () => made;
  return click;
}

/** Moves on with the Tab key until what has the focus is named so. */
export async function tabTo(page, name, role) {
  for (let steps = 0; steps < 120; steps += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      return { text: element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent?.trim() ?? element?.textContent?.trim() ?? "", role: element?.getAttribute("role") };
    });
    if (name.test(focused.text) && (role === undefined || role === focused.role)) return;
  }
  assert.fail(`the Tab key does not come to ${name}`);
}

/** Signs in to the broker that verifies keys. */
export async function signIn(page, connectionString) {
  await page.goto(securedUrl);
  await page.getByLabel("Connection string", { exact: true }).last().fill(connectionString);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".status.live").waitFor();
}
