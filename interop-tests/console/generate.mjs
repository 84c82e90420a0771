// Makes the console's table of operations, and the types of what they take and give, of the broker's OpenAPI document.
//
//     node generate.mjs URL            writes lib/operations.js and types/openapi.d.ts
//     node generate.mjs URL --check    fails if they differ from what the document gives

import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import openapi, { astToString } from "openapi-typescript";

const HERE = dirname(fileURLToPath(import.meta.url));
const [url, mode] = process.argv.slice(2);
const document = await (await fetch(`${url}/api/v1/openapi.json`)).json();

const rows = [];
for (const [path, methods] of Object.entries(document.paths)) {
  for (const [method, { operationId }] of Object.entries(methods)) {
    rows.push(`  ${operationId}: [${JSON.stringify(method.toUpperCase())}, ${JSON.stringify(path)}],`);
  }
}
const table = [
  "// The operations of the JSON API: method and path. Written by interop-tests/console/generate.mjs; do not edit.",
  "",
  "/** @type {Record<OperationName, [method: string, path: string]>} */",
  "export const OPERATIONS = {",
  ...rows.sort(),
  "};",
  "",
].join("\n");
const types = `// Written by generate.mjs; do not edit.\n\n${astToString(await openapi(document))}`;
const files = new Map([
  [join(HERE, "../../src/console/lib/operations.js"), table],
  [join(HERE, "types/openapi.d.ts"), types],
]);
for (const [path, text] of files) {
  if (mode !== "--check") await writeFile(path, text);
  else if ((await readFile(path, "utf8").catch(() => "")) !== text) {
    console.error(`${path} differs from the document of the broker: node generate.mjs URL writes it`);
    process.exitCode = 1;
  }
}
