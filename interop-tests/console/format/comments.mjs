// Lays out comments with lines that are too long. A paragraph of a comment stays as it is if all its lines fit.

/** Words: what is quoted, or is code, stays together. */
const WORD = /(?:"[^"\n]*"|`[^`\n]*`|\S)+/g;
/** Tags whose type is followed by a name. */
const NAMED = /^@(?:param|property|typedef|template)$/;

/** The end of a comment while it is laid out: it stays with the last word, and is as long as a space and the two
 * characters. */
const END = "\u0001*/";

/** The words of a paragraph, where a tag stays with its type, and the end of its type with the name behind it.
 * @param {string} text
 * @returns {string[]} */
function wordsOf(text) {
  const words = text.match(WORD) ?? [];
  const isTag = words[0]?.startsWith("@") ?? false;
  if (!isTag || words.length === 1) return words;
  const isNamed = NAMED.test(words[0]);
  const found = [`${words[0]} ${words[1]}`];
  const depthOf = (/** @type {string} */ word) => word.split("{").length - word.split("}").length;
  let depth = depthOf(words[1]);
  let isBehindType = isNamed && depth === 0 && words[1].endsWith("}");
  for (const word of words.slice(2)) {
    const last = found.length - 1;
    // In a type, a name stays with what is behind it, and a closing brace or an arrow with what is before.
    const isBound = depth !== 0 && (found[last].endsWith(":") || /^(?:[})\]]|=>)/.test(word));
    if (isBehindType || isBound) found[last] += ` ${word}`;
    else found.push(word);
    const before = depth;
    depth += depthOf(word);
    isBehindType = isNamed && before !== 0 && depth === 0;
  }
  return found;
}

/** Lines of paragraphs: those of a paragraph with a line that is too long are made anew.
 * @param {string[]} lines without what every line of the comment begins with
 * @param {(index: number) => number} widthOf the characters that the comment's line of an index may have
 * @returns {string[]} */
function reflowed(lines, widthOf) {
  /** @type {string[][]} */
  const paragraphs = [];
  let isFree = true;
  for (const text of lines) {
    const isCode = /^ {4}/.test(text) || text.trim() === "";
    if (isFree || isCode || /^\s*(@|- |\* |\d+\. )/.test(text)) paragraphs.push([text]);
    else paragraphs.at(-1)?.push(text);
    isFree = isCode;
  }
  /** @type {string[]} */
  const found = [];
  for (const paragraph of paragraphs) {
    if (paragraph.every((text, index) => text.length <= widthOf(found.length + index))) {
      found.push(...paragraph);
      continue;
    }
    const [lead] = /** @type {RegExpExecArray} */ (/^\s*/.exec(paragraph[0]));
    const hanging = lead + (/^\s*(@|- |\* )/.test(paragraph[0]) ? "  " : "");
    let current = "";
    for (const word of wordsOf(paragraph.join(" "))) {
      if (current === "") current = lead + word;
      else if (current.length + 1 + word.length <= widthOf(found.length)) current += ` ${word}`;
      else {
        found.push(current);
        current = hanging + word;
      }
    }
    found.push(current);
  }
  return found;
}

/** Comments with a line of their own, whose lines are too long, in several lines.
 * @param {string} text
 * @param {{ type: string, value: string, start: number, end: number }[]} comments
 * @param {number} max characters of a line
 * @returns {string} */
export function rewrapped(text, comments, max) {
  /** @type {{ start: number, end: number, text: string }[]} */
  const changes = [];
  /** @type {{ start: number, end: number, column: number, values: string[] } | null} */
  let block = null;
  const close = () => {
    if (block === null) return;
    const { start, end, column, values } = block;
    const width = max - column - 2;
    if (values.some((value) => width < value.length)) {
      const lines = reflowed(
        values.map((value) => value.replace(/^ /, "")),
        () => width - 1,
      );
      const lead = `\n${" ".repeat(column)}`;
      changes.push({ start, end, text: lines.map((each) => `// ${each}`.trimEnd()).join(lead) });
    }
    block = null;
  };
  for (const { type, value, start, end } of comments) {
    const column = start - (text.lastIndexOf("\n", start - 1) + 1);
    const isAlone = text.slice(start - column, start).trim() === "" && /^[ \t]*(\n|$)/.test(text.slice(end, end + 200));
    if (
      type !== "CommentLine" ||
      !isAlone ||
      block?.column !== column ||
      text.slice(block.end, start).trim() !== "" ||
      text.slice(block.end, start).split("\n").length !== 2
    )
      close();
    if (!isAlone) continue;
    if (type === "CommentLine") {
      block ??= { start, end, column, values: [] };
      block.end = end;
      block.values.push(value);
    } else if (
      text
        .slice(start - column, end)
        .split("\n")
        .some((each) => max < each.length)
    ) {
      const open = value.startsWith("*") ? "/**" : "/*";
      const lines = value
        .slice(open.length - 2)
        .split("\n")
        .map((each, at) => each.replace(at === 0 ? /^ / : /^\s*\* ?/, "").trimEnd());
      const hasEnd = 1 < lines.length && lines.at(-1) === "";
      if (hasEnd) lines.pop();
      else lines[lines.length - 1] += END;
      const wrapped = reflowed(lines, (index) => max - column - (index === 0 ? open.length + 1 : 3));
      const lead = `\n${" ".repeat(column)} *`;
      const body = wrapped
        .map((each) => (each === "" ? "" : ` ${each}`))
        .join(lead)
        .replace(END, " */");
      changes.push({ start, end, text: open + body + (hasEnd ? `\n${" ".repeat(column)} */` : "") });
    }
  }
  close();
  return changes
    .reverse()
    .reduce((whole, change) => whole.slice(0, change.start) + change.text + whole.slice(change.end), text);
}
