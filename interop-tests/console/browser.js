// The browser of the tests: pinned, and without a connection to anything but the brokers.

import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";

/** The broker's address, but by a name that is not loopback's. */
export const OTHER = "jitney.test";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--font-render-hinting=none",
  // A name as another machine has it: no browser takes it for this one.
  `--host-resolver-rules=MAP ${OTHER} 127.0.0.1`,
];

/** Returns the browser's program, and unpacks it where it is not. JITNEY_CHROMIUM names another one. */
export const executable = async () => process.env.JITNEY_CHROMIUM ?? (await chromium.executablePath());

/** Starts the browser. */
export async function launch() {
  const executablePath = await executable();
  return playwright.launch({ executablePath, args: ARGUMENTS, headless: true, chromiumSandbox: false });
}
