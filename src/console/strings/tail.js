// Texts of messages as they arrive.

export const S = {
  live: "Live",
  table: "Messages as they arrive",
  pause: "Pause",
  resume: "Continue",
  clear: "Clear",
  paused: "Paused",
  following: "Following",
  /** @param {string} time */
  none: (time) => `No message has arrived since ${time}.`,
  noneText: "Messages that arrive from now on are shown here. They are not locked, and receivers get them as before.",
  noneShown: "No message is shown of those that have arrived.",
  noneShownText:
    "A message is shown if it is still in the queue after a second. Receivers were faster, or the filter does not match.",
  /** @param {string} time @param {string} shown */
  since: (time, shown) => `Since ${time}: ${shown} shown`,
  /** @param {string} kept */
  newest: (kept) => `the newest ${kept} are here`,
  /** @param {string} count @param {string} limit */
  passed: (count, limit) => `${count} not read: more than ${limit} arrived at once`,
  /** @param {string} count */
  missing: (count) => `${count} had left the queue before they could be shown`,
  /** @param {string} count */
  unmatched: (count) => `${count} did not match, or had left the queue`,
  partitioned: "A partitioned entity has no live list.",
  partitionedText: "Each partition numbers its messages by itself: there is no one order in which they arrive.",
};
