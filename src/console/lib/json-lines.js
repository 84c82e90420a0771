// JSON as lines to be shown: each with what it has, and where the object or the list that it opens ends.

/** Lines and depth up to which JSON is shown so: what is larger is shown as text. */
const LINES_MAX = 50_000;
const DEPTH_MAX = 100;

/** @typedef {"string" | "number" | "boolean" | "null"} Kind */
/** `key` and `value` are the tokens as they were written. `closing` is the line that ends what this one opens, `count`
 * how many values that has.
 * @typedef {{ depth: number, key: string | null, value: string, kind: Kind | "bracket", hasComma: boolean,
 *   closing: number | null, count: number }} Line */

/** @param {string} token
 * @returns {Kind} */
const kindOf = (token) =>
  token.startsWith('"')
    ? "string"
    : token === "null"
      ? "null"
      : token === "true" || token === "false"
        ? "boolean"
        : "number";

/** Takes JSON apart. Its tokens stay as they are: `1.0` and long numbers too. Returns null for other texts, and for
 * what is too large.
 * @param {string} text
 * @returns {Line[] | null} */
export function linesOf(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  /** @type {Line[]} */
  const lines = [];
  /** @type {Line[]} */
  const open = [];
  /** @type {string | null} */
  let key = null;
  const tokens = text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  /** @type {string | null} */
  let held = null;
  const add = (/** @type {string} */ value, /** @type {Line["kind"]} */ kind) => {
    const parent = open.at(-1);
    if (parent !== undefined) parent.count += 1;
    /** @type {Line} */
    const line = { depth: open.length, key, value, kind, hasComma: false, closing: null, count: 0 };
    lines.push(line);
    key = null;
    return line;
  };
  const flush = () => {
    if (held !== null) add(held, kindOf(held));
    held = null;
  };
  for (const [token] of tokens) {
    if (LINES_MAX < lines.length || DEPTH_MAX < open.length) return null;
    if (token === ":") {
      key = held;
      held = null;
    } else if (token === "{" || token === "[") open.push(add(token, "bracket"));
    else if (token === "}" || token === "]") {
      flush();
      const opened = open.pop();
      if (opened === undefined) return null;
      if (opened.count === 0) opened.value += token;
      else {
        opened.closing = lines.length;
        lines.push({
          depth: open.length,
          key: null,
          value: token,
          kind: "bracket",
          hasComma: false,
          closing: null,
          count: 0,
        });
      }
    } else if (token === ",") {
      flush();
      const line = lines.at(-1);
      if (line !== undefined) line.hasComma = true;
    } else held = token;
  }
  flush();
  return lines;
}

/** The lines that are in sight, as places, with those left out that are folded.
 * @param {Line[]} lines
 * @param {Set<number>} folded places of opening lines
 * @param {number} most
 * @returns {{ shown: number[], isWhole: boolean }} */
export function unfolded(lines, folded, most) {
  const shown = [];
  for (let at = 0; at < lines.length; at += 1) {
    if (shown.length === most) return { shown, isWhole: false };
    shown.push(at);
    const { closing } = lines[at];
    // The end of what is folded is in its line.
    if (closing !== null && folded.has(at)) at = closing;
  }
  return { shown, isWhole: true };
}
