// Texts of the page that tests a message against rules.

export const S = {
  topic: "Topic or subscription",
  choose: "Choose a topic or a subscription",
  noTopics: "No topic yet.",
  noTopicsText: "Rules belong to the subscriptions of topics. Create a topic and a subscription first.",
  command: "jitney topics create news",
  create: "Create a topic here",

  message: "Message",
  by: "Which message",
  paste: "Paste a message",
  keep: "A message in a queue",
  pasteLabel: "The message as JSON",
  pasteHint:
    "As the API sends and shows messages, as an SDK prints them, or only its application properties. It is tested as you type.",
  example: '{\n  "subject": "order placed",\n  "properties": { "region": "EU", "priority": 7 }\n}',
  /** @param {string} why */
  notJson: (why) => `Not valid JSON: ${why}.`,
  notObject: "A JSON object is needed.",
  asProperties: "Read as application properties, because it has no property of a message.",
  firstOf: "The first message of the list is tested.",
  asEncoded: "Tested as AMQP encodes it: the property “encoded” has the whole message.",
  sendIt: "Nothing is sent.",

  queue: "Where it is",
  chooseQueue: "Choose a queue",
  number: "Number",
  look: "Open the message",
  pick: "Messages to pick from",
  noMessages: "No messages there now.",
  messageId: "Message id",
  subject: "Subject",
  body: "Body",
  test: "Test",
  /** @param {string} number */
  testLabel: (number) => `Test message ${number}`,
  another: "Pick another",

  again: "Test again",
  /** @param {string} takes @param {string} all */
  summary: (takes, all) =>
    takes === "0"
      ? `None of ${all} subscriptions takes it.`
      : `${takes} of ${all} subscriptions ${takes === "1" ? "takes" : "take"} it.`,
  dropped: "The topic discards it: no subscription gets it.",
  show: "Subscriptions shown",
  all: "All",
  taking: "Take it",
  notTaking: "Do not",
  takes: "takes it",
  takesNot: "does not take it",
  noRules: "No rule: this subscription takes no message.",
  noSubscriptions: "This topic has no subscriptions.",
  incomplete: "It has more rules than one request tests.",
  more: "Test more subscriptions",
  showMore: "Show more",
  noneShown: "No such subscription.",
  results: { true: "true", false: "false", unknown: "unknown", failed: "failed" },
  decided: "Decided by",
  whole: "The whole expression",
  rules: "Rules",
  /** @param {string} name */
  absent: (name) => `${name} is absent`,
  unlike: "these do not compare",
  ready: "Paste a message, or pick one that is in a queue, and see which subscriptions take it and why.",
  readyTitle: "No message yet.",
};
