// Texts of others, made visible: control characters, marks that change the direction of text, and what has no width are
// shown as escapes, so that a name or a body cannot pretend to be another.

// C0 (but tab and line feed), DEL, C1, soft hyphen, marks of direction, characters without width, separators of lines,
// unpaired surrogates, interlinear annotations, tags.
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b-\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}\\ud800-\\udfff]",
  "gu",
);

/** @param {string} character */
export function escapeOf(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x0d) return "\\r";
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

/** Returns a text with escapes, for titles and labels; elements use the component Text.
 * @param {string} text */
export const visible = (text) => text.replace(HIDDEN, escapeOf);

/** Splits a text into parts that are shown as they are and parts that are escapes.
 * @param {string} text
 * @returns {{ text: string, isEscape: boolean }[]} */
export function parts(text) {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (from < match.index) found.push({ text: text.slice(from, match.index), isEscape: false });
    const last = found.at(-1);
    if (last?.isEscape) last.text += escapeOf(match[0]);
    else found.push({ text: escapeOf(match[0]), isEscape: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), isEscape: false });
  return found;
}
