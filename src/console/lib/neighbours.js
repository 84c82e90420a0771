// The list that the reader came from: from one message to the next without it.

/** Rows of the last table of messages, and their addresses. It is of this tab, and gone with it.
 * @type {{ rows: any[], hrefOf: (row: any) => string }} */
let last = { rows: [], hrefOf: () => "" };

/** Remembers the rows of a table.
 * @template R
 * @param {R[]} rows
 * @param {(row: R) => string} hrefOf */
export function rememberRows(rows, hrefOf) {
  if (rows.length !== 0 && hrefOf(rows[0]).includes("/message/")) last = { rows, hrefOf };
}

/** What stands beside a page in the list that it was opened from; null if it is in none.
 * @param {string} address
 * @returns {{ at: number, count: number, previous: string | null, next: string | null } | null} */
export function neighboursOf(address) {
  const { rows, hrefOf } = last;
  const at = rows.findIndex((row) => hrefOf(row) === address);
  if (at === -1) return null;
  const of = (/** @type {number} */ place) => (rows[place] === undefined ? null : hrefOf(rows[place]));
  return { at, count: rows.length, previous: of(at - 1), next: of(at + 1) };
}
