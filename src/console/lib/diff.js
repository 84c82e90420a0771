// The difference of two texts, line by line.

/** Lines that are compared each with each; longer texts are shown as removed and added. */
const COMPARED_MAX = 1_000;

/** @typedef {{ sign: " " | "-" | "+", text: string }} Line */

/** @param {string} before
 * @param {string} after
 * @returns {Line[]} */
export function difference(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const same = (/** @type {string} */ text) => /** @type {Line} */ ({ sign: " ", text });
  return [
    ...a.slice(0, start).map(same),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

/** @param {string[]} a
 * @param {string[]} b
 * @returns {Line[]} */
function middle(a, b) {
  if (COMPARED_MAX < a.length || COMPARED_MAX < b.length) {
    return [
      ...a.map((text) => ({ sign: /** @type {const} */ ("-"), text })),
      ...b.map((text) => ({ sign: /** @type {const} */ ("+"), text })),
    ];
  }
  // The longest common subsequence, from the end.
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; 0 <= i; i -= 1) {
    for (let j = b.length - 1; 0 <= j; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  /** @type {Line[]} */
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i] });
      i += 1;
      j += 1;
    } else if (j === b.length || (i < a.length && lengths[i][j + 1] <= lengths[i + 1][j])) {
      lines.push({ sign: "-", text: a[i] });
      i += 1;
    } else {
      lines.push({ sign: "+", text: b[j] });
      j += 1;
    }
  }
  return lines;
}
