// Dead letters by reason, with the descriptions of each reason below it.

/** @typedef {Schemas["DeadLetterGroup"]} Group */

/** A reason; `reason` is null where none was given. `descriptions` are its groups, the largest first.
 * @typedef {{ reason: string | null, messages: number, first: number | bigint, last: number | bigint,
 *   descriptions: Group[] }} Reason */

/** Puts groups of one reason together, the largest first.
 * @param {Group[]} groups
 * @returns {Reason[]} */
export function reasonsOf(groups) {
  /** @type {Map<string | null, Reason>} */
  const found = new Map();
  for (const group of groups) {
    const { messages, first_number: first, last_number: last } = group;
    const reason = group.reason ?? null;
    const known = found.get(reason);
    if (known === undefined) {
      found.set(reason, { reason, messages, first, last, descriptions: [group] });
      continue;
    }
    known.messages += messages;
    if (first < known.first) known.first = first;
    if (known.last < last) known.last = last;
    known.descriptions.push(group);
  }
  for (const { descriptions } of found.values()) descriptions.sort((a, b) => b.messages - a.messages);
  return [...found.values()].sort((a, b) => b.messages - a.messages);
}

/** What a row selects: the messages that it counts. Without a group it is the row of a reason with several
 * descriptions.
 * @param {string | null} reason
 * @param {Group} [group]
 * @returns {import("./selection.js").Selection} */
export function selectionOfRow(reason, group) {
  const ofReason = reason === null ? { without_reason: true } : { reason };
  if (group === undefined) return ofReason;
  return group.description == null
    ? { ...ofReason, without_description: true }
    : { ...ofReason, description: group.description };
}
