// The browser of the tests: pinned, and without a connection to anything but the brokers.

import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--disable-dev-shm-usage", "--font-render-hinting=none",
];

/** Starts the browser. JITNEY_CHROMIUM names another one. */
export async function launch() {
  const executablePath = process.env.JITNEY_CHROMIUM ?? await chromium.executablePath();
  return playwright.launch({ executablePath, args: ARGUMENTS, headless: true, chromiumSandbox: false });
}
