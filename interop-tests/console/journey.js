// Journeys: clicks that are counted, the Tab key, a key that may not do everything.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { live, securedUrl } from "./harness.js";

/** A key that may listen, and nothing else: secured.py has it. */
export const LISTENER =
  "Endpoint=sb://localhost/;SharedAccessKeyName=listener;SharedAccessKey=bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";

/** A token of the secured broker's root key (secured.py). */
export function rootToken() {
  const resource = encodeURIComponent(`${securedUrl}/`);
  const until = Math.floor(Date.now() / 1000) + 600;
  const key = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";
  const signature = createHmac("sha256", key).update(`${resource}\n${until}`).digest("base64");
  return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${until}&skn=RootManageSharedAccessKey`;
}

/** Counts the clicks of the pointer from now on; call it before the page is opened. Returns a function that tells how
 * many there were. */
export async function countClicks(page) {
  let clicks = 0;
  await page.exposeFunction("countClick", () => {
    clicks += 1;
  });
  await page.addInitScript(() =>
    addEventListener("pointerdown", (event) => event.isTrusted && window.countClick(), true),
  );
  return () => clicks;
}

/** Moves on with the Tab key until what has the focus is named so. `role` is that of the attribute, or the name of the
 * element. */
export async function tabTo(page, name, role) {
  for (let steps = 0; steps < 120; steps += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      const labels = [...(element?.labels ?? [])].map((label) => label.textContent.trim());
      const texts = [
        element?.getAttribute("aria-label"),
        ...labels,
        element?.matches("input, select, textarea") ? undefined : element?.textContent?.trim(),
      ];
      return { texts: texts.filter(Boolean), role: element?.getAttribute("role") ?? element?.tagName.toLowerCase() };
    });
    if (focused.texts.some((text) => name.test(text)) && (role === undefined || role === focused.role)) return;
  }
  assert.fail(`the Tab key does not come to ${name}`);
}

/** Signs in to the broker that verifies keys. */
export async function signIn(page, connectionString) {
  await page.goto(securedUrl);
  await page.getByLabel("Connection string", { exact: true }).last().fill(connectionString);
  await page.getByRole("button", { name: "Sign in" }).click();
  await live(page);
}
