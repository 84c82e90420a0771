// Texts of what is done to messages that are ticked in a list, and of the columns of lists.

export const S = {
  /** @param {string} number */
  tickLabel: (number) => `Select message ${number}`,
  bar: "Selected messages",
  /** @param {string} count */
  selected: (count) => `${count} selected`,
  everyMatch: "All that match are selected",
  every: "All are selected",
  selectMatch: "Select all that match",
  selectEvery: "Select all of the queue",
  /** @param {string} most */
  tooMany: (most) => `The limit is ${most} messages that are selected one by one.`,
  columns: "Columns",
  ofMessages: "Of messages",
  properties: "Application properties",
  noProperties: "The messages that are shown have none.",
  another: "Another property",
  add: "Add",
  reset: "Reset",
  correlationId: "Correlation id",
  contentType: "Content type",
  expires: "Expires",
  resend: "Send again",
  move: "Move",
  deadLetter: "Dead-letter",
  remove: "Delete",
  download: "Download",
  /** @param {string} count */
  downloaded: (count) =>
    `${count} ${count === "1" ? "message was" : "messages were"} downloaded. jitney import messages reads the file.`,
  /** @param {string} count @param {string} size */
  downloadedPart: (count, size) =>
    `The first ${count} messages were downloaded: the limit of a file is ${size}. jitney export messages has no limit.`,
};
