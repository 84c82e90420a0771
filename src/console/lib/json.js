// JSON in which integers keep all digits: sequence numbers of partitioned entities are larger than 2^53.
//
// An integer that a number cannot hold is a BigInt. It may be shown (`${n}`), put into an address and sent again; for
// arithmetic it must not be mixed with numbers.

const INTEGER = /^-?\d+$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const DIGITS = /-?\d[\d.eE+-]*/g;
// It differs from load to load, so that no text of others can pretend to be a number.
const SECRET = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
const MARK = `\u0000${SECRET}:`;
const MARKED = new RegExp(`"\\\\u0000${SECRET}:(-?\\d[\\d.eE+-]*)"`, "g");

/** @param {string} digits */
const isUnsafe = (digits) => INTEGER.test(digits) && !Number.isSafeInteger(Number(digits));

/** Reads JSON.
 * @param {string} text */
export function parseJson(text) {
  // Long digits are rare: without them the browser's own reader does it.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(marked(text), (_, value) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** Marks the integers that a number cannot hold; what looks like one in a text stays. An expression that matches texts
 * would need more memory than it has for one of 10 MB.
 * @param {string} json */
function marked(json) {
  let out = "";
  let at = 0;
  for (;;) {
    const begin = json.indexOf('"', at);
    const between = json.slice(at, begin === -1 ? undefined : begin);
    out += between.replace(DIGITS, (digits) => (isUnsafe(digits) ? JSON.stringify(MARK + digits) : digits));
    if (begin === -1) return out;
    at = endOfText(json, begin);
    out += json.slice(begin, at);
  }
}

/** @param {string} json
 * @param {number} begin of a text: its quotation mark
 * @returns {number} the place after its end */
function endOfText(json, begin) {
  let end = begin;
  for (;;) {
    end = json.indexOf('"', end + 1);
    if (end === -1) return json.length;
    let backslashes = 0;
    while (json[end - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
  }
}

/** A number that is written as it is spelled: 1.0 is no integer. */
export class Spelled {
  /** @param {string} text */
  constructor(text) {
    if (!NUMBER.test(text)) throw new SyntaxError(`${text} is no number.`);
    this.text = text;
  }
}

/** Writes JSON.
 * @param {unknown} value
 * @param {number} [indent] */
export function writeJson(value, indent) {
  const written = JSON.stringify(
    value,
    (_, each) => (typeof each === "bigint" ? MARK + each : each instanceof Spelled ? MARK + each.text : each),
    indent,
  );
  return written.replace(MARKED, "$1");
}

/** Levels that are indented, and the characters that all indentation may have: what is nested deeper stands below one
 * another. */
const INDENTED_MAX = 64;
const INDENTATION_MAX = 8 * 1024 * 1024;

/** Lays JSON out with one value a line. Its tokens stay as they are: `1.0` and long numbers too. Returns null for other
 * texts.
 * @param {string} text */
export function laidOut(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let depth = 0;
  let out = "";
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const deepest = Math.min(INDENTED_MAX, Math.floor(INDENTATION_MAX / 2 / tokens.length));
  const line = () => `\n${"  ".repeat(Math.min(depth, deepest))}`;
  tokens.forEach((token, at) => {
    if (token === "{" || token === "[") {
      const isEmpty = tokens[at + 1] === "}" || tokens[at + 1] === "]";
      depth += 1;
      out += isEmpty ? token : token + line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const isEmpty = tokens[at - 1] === "{" || tokens[at - 1] === "[";
      out += isEmpty ? token : line() + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  });
  return out;
}
