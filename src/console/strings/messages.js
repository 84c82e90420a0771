// Texts of the search over all queues of the namespace.

export const S = {
  lead: "Searches every queue, subscription and dead-letter queue of the namespace.",
  form: "What is searched for",
  by: "Search by",
  value: "Value",
  add: "Add a condition",
  /** @param {string} name */
  remove: (name) => `Remove: ${name}`,
  state: "State",
  anyState: "All",
  active: "Active",
  scheduled: "Scheduled",
  deferred: "Deferred",
  search: "Search",
  needed: "Type what is searched for, or choose a state.",

  conditions: {
    message_id: "Message id",
    correlation_id: "Correlation id",
    sequence_number: "Sequence number",
    session_id: "Session id",
    text: "Text in the body",
    filter: "SQL filter",
    json_path: "JSONPath in the body",
  },
  examples: {
    message_id: "order-4711",
    correlation_id: "cart-17",
    sequence_number: "4711",
    session_id: "customer-3",
    text: "Ghent",
    filter: "region = 'EU' AND sys.Label LIKE 'order%'",
    json_path: "$.lines[?@.sku == 'A-1']",
  },
  hints: {
    sequence_number: "Queues number their messages by themselves: several may have this number.",
    filter: "As in a rule: properties by name, and sys.MessageId, sys.Label, sys.CorrelationId and the like.",
    json_path: "Messages in whose JSON body the path finds something.",
    text: "Small and capital letters differ.",
  },

  results: "Messages found",
  queue: "Queue",
  number: "Number",
  messageId: "Message id",
  body: "Body",
  enqueued: "Enqueued",
  dead: "dead letter",
  transferDead: "transfer dead letter",
  /** @param {string} count */
  found: (count) => (count === "1" ? "1 message found" : `${count} messages found`),
  /** @param {string} queue */
  searching: (queue) => `searching ${queue}`,
  begins: "searching",
  progress: "Queues searched",
  stop: "Stop",
  /** @param {string} queue */
  stoppedAt: (queue) => `stopped at ${queue}`,
  /** @param {string} queue */
  pausedAt: (queue) => `paused at ${queue}: continue for more`,
  /** @param {string} queue */
  awayAt: (queue) => `continues at ${queue} when the broker answers`,
  further: "Continue the search",
  done: "all queues searched",
  again: "Search again",

  startTitle: "Where is my message?",
  startText:
    "Search by what its sender knows of it. A hit leads to the message: its state, who holds it and until when, what it waits for, and what may be done.",
  startCommand: "jitney search --message-id order-4711",
  noneTitle: "No queue has such a message now.",
  noneText:
    "A message that a receiver has completed is gone, and so is one that expired without dead-lettering. A message to a topic comes only to the subscriptions whose rules take it.",
  toRuleTest: "Test which subscriptions take it",
  toEntities: "All entities",
};
