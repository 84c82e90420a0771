// The modules that the console's first page needs before it can show anything: index.html names them, so that the
// browser asks for all of them at once, and not for each when it has read the one that imports it.
//
//     node modules.mjs            writes the list into index.html
//     node modules.mjs --check    fails if it differs

import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const SOURCES = join(dirname(fileURLToPath(import.meta.url)), "../../src/console");
const INDEX = join(SOURCES, "index.html");
// Vendored modules have several on a line. What is imported by a call comes later.
const IMPORTS = /(?:^|[;\s])(?:import|export)\b[^;'"()]*?["'](\.[^"']+)["']/g;
const LINK = /<link rel="modulepreload".*>\n/g;

/** @param {string} entry
 * @returns {Promise<string[]>} what a module imports, and what that imports */
async function importedBy(entry) {
  const found = new Set([entry]);
  for (const module of found) {
    const text = await readFile(join(SOURCES, module), "utf8");
    for (const [, path] of text.matchAll(IMPORTS)) found.add(join(dirname(module), path));
  }
  found.delete(entry);
  return [...found];
}

const old = await readFile(INDEX, "utf8");
const links = (await importedBy("app.js")).map((module) => `<link rel="modulepreload" href="/$console/${module}">\n`);
const text = old.replace(LINK, "").replace("</head>", () => `${links.join("")}</head>`);
if (process.argv[2] !== "--check") await writeFile(INDEX, text);
else if (text !== old) {
  console.error("index.html does not name the modules that app.js needs: node modules.mjs writes them");
  process.exitCode = 1;
}
