// Makes src/console/vendor/ of the packages that package-lock.json pins.
//
//     node vendor.mjs            writes the files, and vendor.json with their checksums
//     node vendor.mjs --check    fails if a file differs from what the packages give
//
// Browsers know no names of packages without a script within the page, so imports of other packages become relative
// paths. Nothing else is changed.

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const VENDOR = join(HERE, "../../src/console/vendor");

/** The files: where each comes from. */
const FILES = [
  { file: "preact.js", package: "preact", source: "dist/preact.mjs" },
  { file: "hooks.js", package: "preact", source: "hooks/dist/hooks.mjs" },
  { file: "htm.js", package: "htm", source: "dist/htm.mjs" },
  { file: "signals-core.js", package: "@preact/signals-core", source: "dist/signals-core.mjs" },
  { file: "signals.js", package: "@preact/signals", source: "dist/signals.mjs" },
  // The module of uPlot is not minified, its script is: it becomes a module.
  { file: "uplot.js", package: "uplot", source: "dist/uPlot.iife.min.js", append: "export default uPlot;\n" },
  { file: "uplot.css", package: "uplot", source: "dist/uPlot.min.css" },
  { file: "oauth4webapi.js", package: "oauth4webapi", source: "build/index.js" },
  ...["sha2", "hmac", "_md", "_u64", "utils"].map((name) => ({
    file: `noble/${name}.js`,
    package: "@noble/hashes",
    source: `${name}.js`,
  })),
];

/** What packages call one another, and the files. */
const IMPORTS = {
  preact: "./preact.js",
  "preact/hooks": "./hooks.js",
  "@preact/signals-core": "./signals-core.js",
};

async function made({ package: name, source, append }) {
  const root = join(HERE, "node_modules", name);
  let text = await readFile(join(root, source), "utf8");
  // There are no source maps here for browsers to ask for.
  text = text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n");
  for (const [word, path] of Object.entries(IMPORTS)) {
    text = text.replaceAll(`from"${word}"`, `from"${path}"`).replaceAll(`import"${word}"`, `import"${path}"`);
  }
  const { version, license } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  return { text: text + (append ?? ""), version, license };
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

const isCheck = process.argv.includes("--check");
const listed = [];
const wrong = [];
for (const each of FILES) {
  const { text, version, license } = await made(each);
  const path = join(VENDOR, each.file);
  if (isCheck) {
    if ((await readFile(path, "utf8").catch(() => "")) !== text) wrong.push(each.file);
  } else {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  listed.push({ file: each.file, package: each.package, version, license, source: each.source, sha256: sha256(text) });
}
/** The licences of the packages, which are to be passed on with them. */
async function licences() {
  const parts = [];
  for (const name of [...new Set(FILES.map((each) => each.package))]) {
    const root = join(HERE, "node_modules", name);
    const file = (await readdir(root)).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no file with its licence`);
    parts.push(`${name}\n\n${(await readFile(join(root, file), "utf8")).trim()}\n`);
  }
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

/** What the files export, for tsc: as their packages declare it. */
const DECLARED = {
  preact: 'export * from "preact";\n',
  hooks: 'export * from "preact/hooks";\n',
  signals: 'export * from "@preact/signals";\n',
  htm: 'export { default } from "htm";\n',
  uplot: 'export { default } from "uplot";\n',
  oauth4webapi: 'export * from "oauth4webapi";\n',
  "noble/hmac": 'export * from "@noble/hashes/hmac.js";\n',
  "noble/sha2": 'export * from "@noble/hashes/sha2.js";\n',
};

const others = new Map([["LICENSES.txt", await licences()]]);
for (const [file, text] of Object.entries(DECLARED)) others.set(`${file}.d.ts`, text);
const list = `${JSON.stringify(listed, null, 2)}\n`;
others.set("vendor.json", list);
for (const [file, text] of others) {
  const path = join(VENDOR, file);
  if (!isCheck) await writeFile(path, text);
  else if ((await readFile(path, "utf8").catch(() => "")) !== text) wrong.push(file);
}
if (isCheck) {
  const known = new Set([...others.keys(), ...FILES.map(({ file }) => file)]);
  const found = (await readdir(VENDOR, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const names = found.map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(VENDOR.length + 1));
  wrong.push(...names.filter((name) => !known.has(name)).map((name) => `${name} (not listed)`));
}
if (wrong.length !== 0) {
  console.error(`differs from its package: ${wrong.join(", ")}`);
  process.exit(1);
}
console.log(`${FILES.length} files ${isCheck ? "are as their packages give them" : "written"}`);
