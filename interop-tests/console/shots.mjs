// Pictures of every page: three widths, both colours.
//
//     node shots.mjs URL DIRECTORY                       every page of a namespace as it is
//     node shots.mjs URL DIRECTORY NAME=ADDRESS …        these pages, e.g. orders=#/entity/orders
//     node shots.mjs URL DIRECTORY --fill AMQP_PORT …    fills the namespace first; clients send and receive meanwhile
//     node shots.mjs URL DIRECTORY --docs AMQP_PORT      fills it, and makes the pictures of docs/console
//     node shots.mjs fleet DIRECTORY [--docs] the page of servers that share namespaces, one of which is lost;
//     JITNEY_BINARY

import { mkdir } from "node:fs/promises";
import { launch } from "./browser.js";
import { startFleet } from "./fleet.js";
import { fill, work } from "./fill.js";
import { client } from "./seed.js";

const at = (path) => encodeURIComponent(path);
const PAGES = [
  ["overview", "#/"],
  ["entities", "#/entities"],
  ["queue", "#/entity/orders"],
  ["queue-messages", "#/entity/orders?tab=messages"],
  ["queue-dead-letters", "#/entity/orders?tab=dead-letters"],
  ["queue-live", "#/entity/orders?tab=live"],
  ["queue-consumers", "#/entity/orders?tab=consumers"],
  ["queue-properties", "#/entity/orders?tab=properties"],
  ["topic", "#/entity/news"],
  ["subscriptions", "#/entity/news?tab=subscriptions"],
  ["subscription", `#/entity/${at("news/Subscriptions/urgent")}?tab=rules`],
  ["edit", "#/entity/orders/edit"],
  ["new-queue", "#/new-entity"],
  ["new-topic", "#/new-entity?kind=topic"],
  ["message", "#/entity/orders/message/20"],
  ["dead-letter", `#/entity/${at("orders/$DeadLetterQueue")}/message/1`],
  ["hostile", "#/entity/hostile?tab=messages"],
  ["messages", "#/messages?message_id=order-20"],
  ["sessions", "#/sessions/invoices"],
  ["session", "#/sessions/invoices/customer-1"],
  ["connections", "#/connections"],
  ["schedule", "#/schedule"],
  ["deferred", `#/deferred?entity=${at("shop/deferred")}`],
  ["jobs", "#/jobs"],
  ["job", "#/jobs/1"],
  ["send", "#/send?entity=orders"],
  ["rule-test", "#/rule-test?entity=news"],
  ["audit", "#/audit"],
  ["settings", "#/settings"],
  ["settings-keys", "#/settings?tab=keys&entity=orders"],
  ["settings-file", "#/settings?tab=file"],
  ["none", "#/entity/none"],
  ["nowhere", "#/nowhere"],
];
/** Rates are those of the last ten seconds. */
function steady() {
  return new Promise((done) => setTimeout(done, 11_000));
}
/** Those that the documentation shows: name, address, what is done first. */
const DOCS = [
  [
    "overview",
    "#/",
    async (page) => {
      await page.getByRole("table", { name: "Busiest entities" }).getByRole("row").nth(3).waitFor();
      await steady();
    },
  ],
  ["entities", "#/entities?sort=-active", steady],
  [
    "dead-letters",
    "#/entity/orders?tab=dead-letters",
    (page) => page.getByRole("button", { name: "UnknownCustomer", exact: true }).click(),
  ],
  ["schedule", "#/schedule"],
  ["queue", `#/entity/${at("shop/checkout")}`, steady],
];
/** Seconds for which clients work before the documentation's pictures, so that charts have lines. */
const DOCS_SECONDS = 150;

const [first, directory, ...words] = process.argv.slice(2);
const isDocs = words[0] === "--docs";
const fleet = first === "fleet" ? await startFleet(3) : null;
const url = fleet === null ? first : fleet.servers["server-1"];
const port = fleet === null && words[0]?.startsWith("--") ? Number(words.splice(0, 2)[1]) : undefined;
const named =
  fleet === null
    ? words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)])
    : [["servers", "#/servers"]];
await mkdir(directory, { recursive: true });
let rest = () => {};
if (fleet !== null) {
  await loseOne(fleet);
  rest = fleet.end;
}
if (port !== undefined) {
  await fill(client(url), port);
  rest = await work(port);
}
const browser = await launch();

async function picture(page, name, address, first) {
  await page.goto("about:blank");
  await page.goto(`${url}/${address}`);
  await page.locator("main h1").waitFor();
  await page.locator(".status.live").waitFor();
  await page.waitForFunction(() => document.querySelector("main .loading") === null);
  await first?.(page);
  await page.waitForLoadState("networkidle", { timeout: 500 }).catch(() => {});
  await page.screenshot({ path: `${directory}/${name}.png` });
}

async function inContext(options, act) {
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "Europe/Amsterdam", ...options });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && console.error(page.url(), message.text()));
  page.on("pageerror", (error) => console.error(page.url(), error));
  await act(page);
  await context.close();
}

/** One server is lost, and one of its namespaces is in quarantine. */
async function loseOne({ servers, query, kill }) {
  const see = () => client(servers["server-1"])("GET", "/fleet");
  const { name } = (await see()).namespaces.find(({ server }) => server === "server-2");
  await query(
    `insert into jitney.namespace_state (namespace, quarantined) select id, 'its log ends with group 41872, and its checkpoint is of group ` +
      `41880: rows are missing' from jitney.namespace where name = '${name}' on conflict (namespace) do update set quarantined = excluded.quarantined`,
  );
  await kill("server-2");
  while (!(await see()).namespaces.every((each) => each.name === name || (each.server ?? "server-2") !== "server-2"))
    await new Promise((done) => setTimeout(done, 200));
}

if (isDocs && fleet !== null) {
  await inContext({ colorScheme: "light", viewport: { width: 1200, height: 860 } }, (page) =>
    picture(page, "servers", "#/servers"),
  );
} else if (isDocs) {
  await new Promise((done) => setTimeout(done, DOCS_SECONDS * 1_000));
  await inContext({ colorScheme: "light", viewport: { width: 1200, height: 860 } }, async (page) => {
    for (const [name, address, first] of DOCS) await picture(page, name, address, first);
  });
} else {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [360, 900, 1440]) {
      await inContext({ colorScheme, viewport: { width, height: width === 360 ? 740 : 900 } }, async (page) => {
        for (const [name, address] of named.length === 0 ? PAGES : named)
          await picture(page, `${name}-${width}-${colorScheme}`, address);
      });
    }
  }
}
await browser.close();
await rest();
process.exit();
