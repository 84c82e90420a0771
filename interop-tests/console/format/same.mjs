// Says whether two sources mean the same: their syntax trees are equal but for parentheses, the templates are equal as
// htm reads them, and so are the words of the comments.

import htm from "htm";
import ts from "typescript";

const { SyntaxKind } = ts;

/** The value of an expression in a template. */
class Value {
  #node;

  /** @param {ts.Expression} node */
  constructor(node) {
    this.#node = node;
  }

  get node() {
    return this.#node;
  }

  /** What it is within a text. */
  toString() {
    return meaningOf(this.#node).join(" ");
  }
}

const read = htm.bind((/** @type {any} */ tag, /** @type {any} */ properties, /** @type {any[]} */ ...children) => ({
  tag,
  properties,
  children,
}));

/** @param {ts.TaggedTemplateExpression} node */
function treeOf({ template }) {
  const isPlain = ts.isNoSubstitutionTemplateLiteral(template);
  const texts = isPlain
    ? [template.text]
    : [template.head.text, ...template.templateSpans.map(({ literal }) => literal.text)];
  /** @type {(string | Value)[]} */
  const values = [];
  for (const { expression } of isPlain ? [] : template.templateSpans) {
    if (ts.isStringLiteral(expression)) values.push(expression.text);
    else {
      const count = values.filter((each) => each instanceof Value).length;
      // htm copies what a spread has: its place among the properties shows.
      values.push(Object.assign(new Value(expression), { [`...${count}`]: new Value(expression) }));
    }
  }
  return read(/** @type {any} */ (Object.assign(texts, { raw: texts })), ...values);
}

/** What a tree has, in its order: names of kinds, texts, and the parts of the templates.
 * @param {ts.Node} root
 * @returns {string[]} */
function meaningOf(root) {
  /** @type {string[]} */
  const found = [];
  /** @param {any} value */
  const part = (value) => {
    if (value instanceof Value) node(value.node);
    else if (Array.isArray(value)) {
      found.push("[");
      for (const each of value) part(each);
      found.push("]");
    } else if (value !== null && typeof value === "object") {
      found.push("{");
      for (const [key, each] of Object.entries(value)) {
        found.push(`${key}:`);
        part(each);
      }
      found.push("}");
    } else found.push(`${typeof value} ${value}`);
  };
  /** @param {ts.Node} each */
  const node = (each) => {
    if (ts.isParenthesizedExpression(each)) return node(each.expression);
    if (ts.isTaggedTemplateExpression(each) && each.tag.getText() === "html") {
      found.push("html`");
      part(treeOf(each));
      found.push("`");
      return;
    }
    if (each.kind === SyntaxKind.EmptyStatement) return;
    found.push(SyntaxKind[each.kind]);
    // The name of a property, with quotes or without.
    if (ts.isStringLiteral(each) || ts.isIdentifier(each))
      found[found.length - 1] = `${
        ts.isPropertyAssignment(each.parent) && each.parent.name === each ? "name" : found.at(-1)
      } ${each.text}`;
    else if (ts.isLiteralExpression(each) || ts.isTemplateMiddleOrTemplateTail(each) || ts.isTemplateHead(each))
      found.push(each.getText());
    else if (ts.isVariableDeclarationList(each)) found.push(String(each.flags & ts.NodeFlags.BlockScoped));
    else if (ts.isPrefixUnaryExpression(each) || ts.isPostfixUnaryExpression(each))
      found.push(SyntaxKind[each.operator]);
    const before = found.length;
    ts.forEachChild(each, node);
    if (found.length !== before) found.push("end");
  };
  node(root);
  return found;
}

/** @param {string} text */
const parse = (text) => ts.createSourceFile("source.mjs", text, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);

/** The words of comments, in their order.
 * @param {{ value: string, type: string }[]} comments */
const wordsOf = (comments) =>
  comments.flatMap(({ value, type }) =>
    value
      .replace(type === "CommentBlock" ? /^\s*\*/gm : /^/, " ")
      .split(/\s+/)
      .filter((word) => word !== ""),
  );

/** Fails unless two sources mean the same.
 * @param {{ text: string, comments: any[] }} before
 * @param {{ text: string, comments: any[] }} after */
export function assertSame(before, after) {
  for (const [what, of] of /** @type {const} */ ([
    ["the syntax tree", (/** @type {any} */ { text }) => meaningOf(parse(text))],
    ["a comment", (/** @type {any} */ { comments }) => wordsOf(comments)],
  ])) {
    const [was, is] = [of(before), of(after)];
    const at = was.findIndex((each, index) => each !== is[index]);
    if (at !== -1 || was.length !== is.length) {
      const near = (/** @type {string[]} */ all) => all.slice(Math.max(0, at - 10), at + 10).join(" ");
      throw new Error(`${what} has changed:\n  was ${near(was)}\n  is  ${near(is)}`);
    }
  }
}
