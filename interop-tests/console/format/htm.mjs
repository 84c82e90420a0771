// Lays out the templates of htm, html`<${Component} a=${b}>…<//>`, as a plugin of Prettier. Their expressions are laid
// out by Prettier.
//
// htm drops whitespace that has a newline at the beginning and the end of a text, and keeps all other. So a line ends
// where there is no whitespace, or after ${" "}, which is the same child as a space.

import * as babel from "prettier/plugins/babel";
import * as estree from "prettier/plugins/estree";
import { doc } from "prettier";

const { fill, group, ifBreak, indent, label, line, lineSuffixBoundary, softline } = doc.builders;
const { replaceEndOfLine } = doc.utils;

/** @param {any} node */
export const isTemplate = (node) =>
  node.type === "TaggedTemplateExpression" && node.tag.type === "Identifier" && node.tag.name === "html";

/** What htm keeps of a text.
 * @param {string} text */
export const kept = (text) => text.replace(/^\s*\n\s*|\s*\n\s*$/g, "");

/**
 * @typedef {string | number} Part A text, or the index of an expression.
 * @typedef {{ name: string, value: Part[] | null, isQuoted: boolean } | { spread: number }} Attribute
 * @typedef {{ tag: Part, attributes: Attribute[], isClosed: boolean, children: Child[] }} Element
 * @typedef {Element | { text: string } | { expression: number }} Child
 */

/** Parses the texts of a template: expression `i` is between texts `i` and `i + 1`.
 * @param {string[]} texts
 * @returns {Child[]} */
export function parsed(texts) {
  /** @type {Part[]} Characters, and indexes of expressions. */
  const input = texts.flatMap((text, at) => (at === 0 ? [...text] : [at - 1, ...text]));
  let at = 0;
  const isSpace = () => typeof input[at] === "string" && /\s/.test(/** @type {string} */ (input[at]));
  const isNext = (/** @type {string} */ word) => [...word].every((each, index) => input[at + index] === each);
  const wrong = (/** @type {string} */ what) =>
    new Error(`a template has ${what}: ${texts.join("${…}").slice(0, 200)}`);

  /** @type {(isEnd: () => boolean) => string} */
  const word = (isEnd) => {
    let found = "";
    while (typeof input[at] === "string" && !isEnd()) found += input[at++];
    return found;
  };

  /** @returns {Attribute} */
  const attribute = () => {
    if (isNext("...")) {
      at += 3;
      const spread = input[at++];
      if (typeof spread !== "number") throw wrong("`...` without an expression");
      return { spread };
    }
    const name = word(() => isSpace() || isNext("=") || isNext(">") || isNext("/>"));
    if (name === "") throw wrong("an attribute without a name");
    if (!isNext("=")) return { name, value: null, isQuoted: false };
    at++;
    const quote = isNext('"') || isNext("'") ? input[at++] : null;
    const isEnd = () => (quote === null ? isSpace() || isNext(">") || isNext("/>") : input[at] === quote);
    /** @type {Part[]} */
    const value = [];
    while (at < input.length && !isEnd()) value.push(typeof input[at] === "number" ? input[at++] : word(isEnd));
    if (quote !== null && input[at++] !== quote) throw wrong("an attribute without its end");
    return { name, value, isQuoted: quote !== null };
  };

  /** @returns {Element} */
  const element = () => {
    at++;
    const tag = typeof input[at] === "number" ? input[at++] : word(() => isSpace() || isNext(">") || isNext("/>"));
    if (tag === "" || tag.toString().startsWith("!--")) throw wrong("a fragment or a comment");
    const attributes = [];
    for (;;) {
      while (isSpace()) at++;
      if (at >= input.length) throw wrong("a tag without its end");
      if (isNext("/>")) {
        at += 2;
        return { tag, attributes, isClosed: true, children: [] };
      }
      if (isNext(">")) break;
      attributes.push(attribute());
    }
    at++;
    const children = childrenOf();
    if (!isNext("</")) throw wrong("an element without its end");
    word(() => isNext(">"));
    if (!isNext(">")) throw wrong("a closing tag with an expression");
    at++;
    return { tag, attributes, isClosed: false, children };
  };

  /** @returns {Child[]} */
  const childrenOf = () => {
    /** @type {Child[]} */
    const children = [];
    while (at < input.length && !isNext("</")) {
      const next = input[at];
      if (typeof next === "number") {
        children.push({ expression: next });
        at++;
      } else if (next === "<") children.push(element());
      else {
        const text = kept(word(() => isNext("<")));
        if (text !== "") children.push({ text });
      }
    }
    return children;
  };

  const children = childrenOf();
  if (at < input.length) throw wrong("a closing tag too many");
  return children;
}

/** Expressions that begin behind `${`, and end before `}`, when they have several lines. */
const HUGGED = new Set([
  "ArrayExpression",
  "ArrowFunctionExpression",
  "CallExpression",
  "FunctionExpression",
  "ObjectExpression",
  "OptionalCallExpression",
  "TaggedTemplateExpression",
  "TemplateLiteral",
]);
const HUGGED_CHILDREN = new Set([...HUGGED, "ConditionalExpression", "LogicalExpression"]);

/** @param {any} path
 * @param {(path: any) => any} print */
function printTemplate(path, print) {
  const { quasi } = path.node;
  const expression = (/** @type {number} */ index, /** @type {Set<string>} */ hugged) => {
    const node = quasi.expressions[index];
    const printed = path.call(print, "quasi", "expressions", index);
    return hugged.has(node.type) && node.comments === undefined
      ? group(["${", printed, lineSuffixBoundary, "}"])
      : group(["${", indent([softline, printed]), softline, lineSuffixBoundary, "}"]);
  };

  const attribute = (/** @type {Attribute} */ each) => {
    if ("spread" in each) return ["...", expression(each.spread, HUGGED)];
    if (each.value === null) return each.name;
    const text = each.value.filter((part) => typeof part === "string").join("");
    const quote = !each.isQuoted ? "" : text.includes('"') ? "'" : '"';
    const value = each.value.map((part) => (typeof part === "string" ? part : expression(part, HUGGED)));
    return [each.name, "=", quote, ...value, quote];
  };

  /** A space, or several, without anything else.
   * @param {Child} child
   * @returns {string | null} */
  const spaceOf = (child) => {
    if ("text" in child) return /^\s+$/.test(child.text) ? child.text : null;
    const node = "expression" in child ? quasi.expressions[child.expression] : null;
    return node?.type === "StringLiteral" && /^ +$/.test(node.value) && node.comments === undefined ? node.value : null;
  };

  const child = (/** @type {Child} */ each) =>
    "text" in each
      ? replaceEndOfLine(each.text)
      : "expression" in each
        ? expression(each.expression, HUGGED_CHILDREN)
        : element(each);

  /** Children in lines: those without a space or a text between them have a line each, if they do not fit one line.
   * @param {Child[]} all
   * @param {symbol} groupId of the group that has the children */
  const lines = (all, groupId) => {
    /** @type {any[][]} */
    const runs = [];
    /** @type {string | null} */
    let space = null;
    all.forEach((each, at) => {
      const isText = "text" in each;
      const blank = spaceOf(each);
      // A space beside a text would be one text with it.
      const isFree = [all[at - 1], all[at + 1]].every((other) => other === undefined || !("text" in other));
      if (blank !== null && isFree && space === null) {
        space = blank;
        return;
      }
      const last = runs.at(-1);
      const isBehindText = 0 < at && "text" in all[at - 1];
      if (space !== null) {
        const kept = `\${${JSON.stringify(space)}}`;
        if (last === undefined) runs.push([[ifBreak(kept, space, { groupId }), child(each)]]);
        else last.push(ifBreak([kept, softline], space), child(each));
        space = null;
      } else if (last !== undefined && (isText || isBehindText)) last.push("", child(each));
      else runs.push([child(each)]);
    });
    if (space !== null) {
      const kept = ifBreak(`\${${JSON.stringify(space)}}`, space, { groupId });
      const last = runs.at(-1);
      if (last === undefined) runs.push([space]);
      else last.push("", kept);
    }
    return runs.flatMap((run, at) => (at === 0 ? [fill(run)] : [softline, fill(run)]));
  };

  /** Children between an opening and a closing, on lines of their own if they do not fit. A text keeps the spaces at
   * its ends.
   * @param {any} opening
   * @param {Child[]} all
   * @param {any} closing
   * @returns {any} */
  const block = (opening, all, closing) => {
    const [first, last] = [all[0], all[all.length - 1]];
    const id = Symbol("children");
    const start = "text" in first && /^\s+\S/.test(first.text) ? "" : softline;
    const end = "text" in last && /\S\s+$/.test(last.text) ? "" : softline;
    return group([opening, indent([start, lines(all, id)]), end, lineSuffixBoundary, closing], { id });
  };

  /** @param {Element} each
   * @returns {any} */
  const element = ({ tag, attributes, isClosed, children }) => {
    const name = typeof tag === "number" ? ["${", path.call(print, "quasi", "expressions", tag), "}"] : tag;
    const opening = group([
      "<",
      name,
      indent(attributes.map((each) => [line, attribute(each)])),
      isClosed ? [line, "/>"] : attributes.length === 0 ? ">" : [softline, ">"],
    ]);
    if (isClosed) return opening;
    const closing = typeof tag === "number" ? "<//>" : `</${tag}>`;
    if (children.length === 0) return [opening, closing];
    return block(opening, children, closing);
  };

  const children = parsed(quasi.quasis.map((/** @type {any} */ each) => each.value.raw));
  if (children.length === 0) return "html``";
  return label({ embed: true, hug: true }, block("html`", children, "`"));
}

const { estree: printer } = /** @type {any} */ (estree).printers;

/** The plugin of Prettier: its language is JavaScript with templates. */
export const plugin = {
  parsers: { htm: { .../** @type {any} */ (babel).parsers.babel, astFormat: "htm" } },
  printers: {
    htm: {
      ...printer,
      /** @type {(path: any, options: any, print: (path: any) => any, rest: any) => any} */
      print(path, options, print, rest) {
        const { node } = path;
        if (isTemplate(node)) return printTemplate(path, print);
        // A template begins on the line of its condition.
        if (node.type === "LogicalExpression" && isTemplate(node.right) && node.right.comments === undefined) {
          return group([path.call(print, "left"), ` ${node.operator} `, path.call(print, "right")]);
        }
        return printer.print(path, options, print, rest);
      },
    },
  },
};
