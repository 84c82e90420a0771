// Pictures of every page: three widths, both colours.
//
//     node shots.mjs URL DIRECTORY [NAME=ADDRESS ...]     e.g. orders=#/entity/orders

import { mkdir } from "node:fs/promises";
import { launch } from "./browser.js";

const [url, directory, ...wanted] = process.argv.slice(2);
const pages = wanted.length !== 0 ? wanted.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]) : [
  ["overview", "#/"], ["entities", "#/entities"], ["entity", "#/entity/orders"], ["messages", "#/entity/orders?tab=messages"],
  ["dead-letters", "#/entity/orders?tab=dead-letters"], ["message", "#/entity/orders/message/20"],
];
await mkdir(directory, { recursive: true });
const browser = await launch();
for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 900, 1440]) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: width === 360 ? 740 : 900 }, locale: "en-GB", timezoneId: "Europe/Amsterdam" });
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && console.error(message.text()));
    page.on("pageerror", (error) => console.error(error));
    for (const [name, address] of pages) {
      await page.goto(`${url}/${address}`);
      await page.locator("main h1").waitFor();
      await page.locator(".status.live").waitFor();
      await page.locator(".loading").waitFor({ state: "detached", timeout: 5000 }).catch(() => {});
      await page.screenshot({ path: `${directory}/${name}-${width}-${colorScheme}.png` });
    }
    await context.close();
  }
}
await browser.close();
