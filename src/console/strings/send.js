// Texts of the page that sends messages.

export const S = {
  to: "To",
  choose: "Choose a queue or a topic",
  toNeeded: "A queue or a topic is needed.",
  notAllowed: "This key does not allow sending.",
  notAllowedText: "Sign in with a key that has the right Send.",

  body: "Body",
  as: "Write the body as",
  text: "Text",
  json: "JSON",
  hex: "Hex",
  file: "File",
  /** @param {string} size */
  size: (size) => size,
  layOut: "Format",
  hexHint: "Two digits a byte; spaces and lines do not count.",
  /** @param {string} name @param {string} size */
  fileChosen: (name, size) => `${name}, ${size}`,
  chooseFile: "Choose a file",
  noFile: "A file is needed.",
  /** @param {string} at */
  notHex: (at) => `“${at}” is not a hex digit.`,
  oddHex: "The last byte has one digit only.",
  /** @param {string} why */
  notJson: (why) => `Not valid JSON: ${why}.`,

  fields: {
    message_id: "Message id",
    correlation_id: "Correlation id",
    subject: "Subject",
    content_type: "Content type",
    session_id: "Session id",
    partition_key: "Partition key",
    reply_to: "Reply to",
    to: "To (address)",
  },
  idHint: "Empty: none.",
  sessionNeeded: "This queue has message sessions: each message needs one.",
  duplicates: "Duplicates are detected: a second message with this id is discarded.",
  jsonType: "application/json",
  system: "Properties",
  when: "Time",
  scheduled: "Becomes active",
  scheduledNow: "Empty: at once.",
  life: "Time to live",
  lifeHint: "90s, 10m, 1h, 2d or PT1H. Empty: as long as the queue keeps messages.",
  /** @param {string} iso */
  lifeIs: (iso) => `As the broker reads it: ${iso}.`,

  application: "Application properties",
  name: "Name",
  type: "Type",
  value: "Value",
  types: { text: "text", integer: "integer", decimal: "decimal", boolean: "boolean" },
  add: "Add a property",
  remove: "Remove",
  /** @param {string} at */
  nameOf: (at) => `Name of property ${at}`,
  /** @param {string} at */
  typeOf: (at) => `Type of property ${at}`,
  /** @param {string} at */
  valueOf: (at) => `Value of property ${at}`,
  /** @param {string} name */
  removeLabel: (name) => `Remove the property ${name}`,
  nameNeeded: "A name is needed.",
  nameTwice: "Another property has this name.",
  notInteger: "Not an integer.",
  notDecimal: "Not a number.",

  many: "How many",
  /** @param {string} most */
  manyWrong: (most) => `1 to ${most} is allowed.`,
  start: "Counter from",
  startWrong: "A whole number is needed.",
  manyHint:
    "{{n}} is the counter, {{n:4}} has four digits at least, {{n%3}} is its remainder: in the body, ids, session, subject and properties.",
  templates: "Templates",
  templatesHint:
    "{{uuid}} is a new id, {{uuid:a}} the same within a message; {{now}} is the time, {{now+10m}} a later one, {{now:unix}} in seconds; {{n}} counts when more than one message is sent.",
  fills: "Fill in {{…}}",
  singleBraces: "{{n}} stays as it is: it is the counter only when more than one message is sent.",
  preview: "What is sent",
  previewOf: "Message",
  noId: "no id",

  savedMessages: "Saved messages",
  savedHint: "This browser keeps them until they are deleted, also after you sign out.",
  savedNone: "None yet",
  savedChoose: "Choose a message",
  savedSave: "Save…",
  savedSaveTitle: "Save the message",
  savedSaveAction: "Save",
  savedReplace: "Replace",
  savedReplaces: "A message of this name is replaced.",
  savedName: "Name",
  savedDelete: "Delete",
  savedWrite: "Save all as a file",
  savedLoad: "Load a file",
  savedFile: "body",
  savedFull: "The limit is 200 messages with 1 MiB in total.",
  savedNoList: "The file has no list of messages.",
  /** @param {string} name */
  saved: (name) => `${name} was saved.`,
  /** @param {string} name */
  savedDeleteTitle: (name) => `Delete the saved message ${name}?`,
  savedDeleteText: "Messages that were sent stay. This cannot be undone.",
  /** @param {string} count */
  savedRead: (count) => (count === "1" ? "1 message was loaded." : `${count} messages were loaded.`),
  /** @param {string} why */
  savedNotJson: (why) => `The file is not valid JSON: ${why}`,
  /** @param {string} at */
  savedWrong: (at) => `Entry ${at} of the file has no name or no message.`,

  /** @param {string} count */
  submit: (count) => (count === "1" ? "Send" : `Send ${count} messages`),
  keys: "Ctrl + Enter sends from anywhere in the form.",
  clear: "Clear the form",
  /** @param {string} done @param {string} all */
  progress: (done, all) => `${done} of ${all} sent`,
  stop: "Stop",
  stopped: "Stopped.",

  /** @param {string} number @param {string} path */
  repeats: (number, path) => `A copy of message ${number} of ${path}. Edit it as needed, and send it.`,
  exact: "Send an exact copy",
  exactHint: "An exact copy keeps every AMQP type, and what this form does not show.",
  original: "The original",
  anew: "New message",

  /** @param {string} path @param {string} number */
  sentOne: (path, number) => `Sent to ${path}: message ${number}.`,
  /** @param {string} path */
  sentTopic: (path) => `Sent to ${path}.`,
  /** @param {string} path @param {string} count */
  sentMany: (path, count) => `${count} messages were sent to ${path}.`,
  /** @param {string} count */
  dropped: (count) => (count === "1" ? "One was discarded as a duplicate." : `${count} were discarded as duplicates.`),
  toMessage: "Open the message",
  toMessages: "Open the messages",
  /** @param {string} count @param {string} why */
  partly: (count, why) => `${count} were sent, then sending stopped: ${why}`,
  sentHere: "Sent from here",
  again: "Clear the list",
  /** @param {string} count */
  messages: (count) => (count === "1" ? "1 message" : `${count} messages`),
  /** @param {string} first @param {string} last */
  numbers: (first, last) => (first === last ? `number ${first}` : `numbers ${first} to ${last}`),
};
