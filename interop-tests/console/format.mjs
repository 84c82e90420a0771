// Lays out the JavaScript of the console and of its tests, in lines of 120 characters: by Prettier, the templates of
// htm by format/htm.mjs, comments by format/comments.mjs.
//
//     node format.mjs [FILE…]            writes the files that differ
//     node format.mjs --check [FILE…]    names them, and lines that stay too long, and fails if there are any
//
// Nothing is written that means something else than before (format/same.mjs).

import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { format } from "prettier";
import { rewrapped } from "./format/comments.mjs";
import { plugin } from "./format/htm.mjs";
import { assertSame } from "./format/same.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "../..");
const DIRECTORIES = [join(ROOT, "src/console"), HERE];
const OTHERS = new Set(["vendor", "node_modules"]);
/** Characters of a line. */
const WIDTH = 120;
/** A layout is repeated until nothing changes any more. */
const PASSES_MAX = 5;
const OPTIONS = { parser: "htm", plugins: [plugin], printWidth: WIDTH, embeddedLanguageFormatting: "off" };
/** Texts that no line ends in. */
const UNBREAKABLE = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`.*`|`.*$|\/(?![/* ])(?:[^/\\]|\\.)+\/[a-z]*/g;

/** @param {string} directory
 * @returns {Promise<string[]>} */
async function sourcesIn(directory) {
  const entries = await readdir(directory, { withFileTypes: true });
  const found = entries.map((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return OTHERS.has(entry.name) ? [] : sourcesIn(path);
    return /\.m?js$/.test(entry.name) ? [path] : [];
  });
  return (await Promise.all(found)).flat();
}

/** @param {string} text
 * @returns {any[]} */
const commentsOf = (text) => plugin.parsers.htm.parse(text, OPTIONS).comments;

/** @param {string} each */
const isLong = (each) => WIDTH < each.length;

/** Lays a source out. Fails if it would mean something else, or be laid out differently each time.
 * @param {string} text
 * @returns {Promise<string>} */
async function laidOut(text) {
  let last = text;
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    let next = await format(last, /** @type {any} */ (OPTIONS));
    if (next.split("\n").some(isLong)) next = rewrapped(next, commentsOf(next), WIDTH);
    if (next !== last) {
      last = next;
      continue;
    }
    if (next !== text) {
      assertSame({ text, comments: commentsOf(text) }, { text: next, comments: commentsOf(next) });
    }
    return next;
  }
  throw new Error(`its layout is another one after each of ${PASSES_MAX} passes`);
}

/** Whether most of a line is one text, or it is part of a type or a name in a comment.
 * @param {string} each */
function isUnbreakable(each) {
  const comment = /^\s*(?:\/\/|\/?\*+)(.*)$/.exec(each);
  if (comment !== null) return comment[1].includes("{") || comment[1].trim().split(/\s+/).length <= 2;
  return (each.match(UNBREAKABLE) ?? []).some((text) => WIDTH / 2 < text.length);
}

const isCheck = process.argv.includes("--check");
const named = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const files = named.length === 0 ? await Promise.all(DIRECTORIES.map(sourcesIn)) : [named.map((name) => resolve(name))];
const wrong = [];
let written = 0;
for (const file of files.flat().sort()) {
  const name = relative(ROOT, file);
  try {
    const text = await readFile(file, "utf8");
    const next = await laidOut(text);
    if (isCheck && next !== text) wrong.push(`${name}: node format.mjs lays it out differently`);
    else if (next !== text) {
      await writeFile(file, next);
      written++;
    }
    next.split("\n").forEach((each, at) => {
      if (isLong(each) && !isUnbreakable(each))
        wrong.push(`${name}:${at + 1}: ${each.length} characters: ${each.trim()}`);
    });
  } catch (error) {
    wrong.push(`${name}: ${/** @type {Error} */ (error).message}`);
  }
}
if (wrong.length === 0) console.log(isCheck ? "all files are laid out" : `${written} files written`);
else {
  console.error(wrong.join("\n"));
  process.exitCode = 1;
}
