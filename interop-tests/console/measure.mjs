// Time to the first useful paint, and frames a second while a thousand rows change.
//
//     node measure.mjs HTTP_URL AMQP_PORT      a broker of the release build, with an empty namespace
//
// Prints medians; docs/performance.md has those of a run.

import { cpus } from "node:os";
import { connect, sender } from "./client.js";
import { launch } from "./browser.js";
import { client, entity, send } from "./seed.js";

const PAINTS = 15;
const ROWS = 1_000;
/** Seconds of each measurement of frames, and how many there are. */
const SECONDS = 10;
const TAKES = 5;
/** Every row changes once in this time, milliseconds, in so many steps. */
const ROUND = 1_000;
const STEPS = 20;

const [url, port] = process.argv.slice(2);
const call = client(url);
const browser = await launch();
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const spread = (numbers) =>
  `${Math.round(median(numbers))} (${Math.round(Math.min(...numbers))} to ${Math.round(Math.max(...numbers))})`;
const names = Array.from({ length: ROWS }, (_, number) => `rows/queue-${number}`);

/** Opens a page as one who has not been here: without a cache. Returns milliseconds until the browser paints anything,
 * and until it paints figures of the broker. */
async function paint(address, selector) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript((useful) => {
    const look = () => {
      if (document.querySelector(useful) === null) requestAnimationFrame(look);
      // The frame after this one has it.
      else requestAnimationFrame(() => setTimeout(() => performance.mark("useful"), 0));
    };
    requestAnimationFrame(look);
  }, selector);
  await page.goto(`${url}/${address}`);
  const handle = await page.waitForFunction(() => {
    const [first, useful] = [
      performance.getEntriesByName("first-contentful-paint")[0],
      performance.getEntriesByName("useful")[0],
    ];
    return first && useful ? { first: first.startTime, useful: useful.startTime } : null;
  });
  const found = await handle.jsonValue();
  await context.close();
  return found;
}

async function paints(what, address, selector) {
  await paint(address, selector);
  const taken = [];
  for (let at = 0; at < PAINTS; at += 1) taken.push(await paint(address, selector));
  console.log(
    `${what}: first paint ${spread(taken.map(({ first }) => first))} ms, useful paint ${spread(taken.map(({ useful }) => useful))} ms`,
  );
}

/** Counts frames while the page is left alone. */
const frames = (page) =>
  page.evaluate(
    (milliseconds) =>
      new Promise((done) => {
        const times = [];
        const began = performance.now();
        const next = (now) => {
          times.push(now);
          if (now - began < milliseconds) return requestAnimationFrame(next);
          const gaps = times
            .slice(1)
            .map((time, at) => time - times[at])
            .sort((a, b) => a - b);
          const changed = window.changes;
          return done({
            rate: gaps.length / ((times.at(-1) - times[0]) / 1000),
            late: gaps.filter((gap) => 34 < gap).length / gaps.length,
            longest: gaps.at(-1),
            changed,
          });
        };
        requestAnimationFrame(next);
      }),
    SECONDS * 1_000,
  );

async function rates(what, address) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`${url}/${address}`);
  await page.locator(".status.live").waitFor();
  await page.evaluate(() => {
    window.changes = 0;
    new MutationObserver((records) => {
      window.changes += records.length;
    }).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true });
  });
  const taken = [];
  for (let at = 0; at < TAKES; at += 1) taken.push(await frames(page));
  console.log(
    `${what}: ${spread(taken.map(({ rate }) => rate))} frames/s, ${(100 * median(taken.map(({ late }) => late))).toFixed(1)} % of them late, the longest ${spread(
      taken.map(({ longest }) => longest),
    )} ms; ${Math.round(taken.at(-1).changed / TAKES / SECONDS)} changes of the document a second`,
  );
  await page.close();
}

console.log(`${cpus().length} cores, ${cpus()[0].model}; Chromium ${browser.version()}, headless, without a GPU`);
for (let at = 0; at < ROWS; at += 50) await Promise.all(names.slice(at, at + 50).map((name) => entity(call, name)));
await send(call, names[0], { body: "one" });
await paints("overview", "#/", "main .figures dd:not(:empty)");
await paints(`entities, ${ROWS} of them`, "#/entities", "main tbody tr:nth-child(10) a");

const connection = await connect("measure", { port });
const links = [];
for (const name of names) links.push(await sender(connection, name));
let step = 0;
const timer = setInterval(() => {
  const from = (step % STEPS) * (ROWS / STEPS);
  for (const link of links.slice(from, from + ROWS / STEPS)) if (link.sendable()) link.send({ body: "changes" });
  step += 1;
}, ROUND / STEPS);
await rates("entities, by name", "#/entities");
await rates("entities, by active messages", "#/entities?sort=-active");
await rates("overview", "#/");
clearInterval(timer);
connection.close();
await browser.close();
process.exit();
