// Texts of jobs, and of the dialog that begins one.

/** @param {string} count */
const messages = (count) => (count === "1" ? "1 message" : `${count} messages`);

export const S = {
  messages,
  table: "Jobs",
  show: "Jobs that are shown",
  all: "All",
  running: "Running",
  problems: "With problems",
  filter: "Filter by entity",
  job: "Job",
  what: "What",
  entity: "Entity",
  selection: "Messages",
  state: "State",
  progress: "Progress",
  changed: "Changed",
  skipped: "Skipped",
  matched: "Matched",
  began: "Started",
  took: "Took",
  rate: "Rate",
  limit: "Limit",
  states: { running: "running", completed: "completed", cancelled: "cancelled", failed: "failed" },
  kinds: {
    delete: "Delete",
    move: "Move",
    redrive: "Send again",
    dead_letter: "Dead-letter",
    activate: "Make active",
    reschedule: "Reschedule",
  },
  done: {
    delete: "deleted",
    move: "moved",
    redrive: "sent again",
    dead_letter: "dead-lettered",
    activate: "made active",
    reschedule: "rescheduled",
  },
  emptyTitle: "No job has run since the broker started.",
  emptyText:
    "A job changes many messages in bounded steps, while others send and receive. Start one below, or by the command line:",
  emptyCommand: "jitney purge orders --state deferred --yes",
  noneTitle: "No job matches.",
  clear: "Show all",
  cancel: "Cancel",
  /** @param {string} id */
  cancelLabel: (id) => `Cancel job ${id}`,
  /** @param {string} id */
  cancelled: (id) => `Job ${id} was cancelled. What it has done stays.`,
  /** @param {string} id */
  title: (id) => `Job ${id}`,
  gone: "There is no such job now.",
  goneText: "The broker remembers the last hundred.",
  toAll: "All jobs",
  again: "Run again",
  details: "What it does",
  /** @param {string} done @param {string} total @param {string} percent */
  ofTotal: (done, total, percent) => `${done} of about ${total} (${percent})`,
  /** @param {string} done */
  ofUnknown: (done) => `${done} so far`,
  /** @param {string} span */
  left: (span) => `about ${span} left`,
  others:
    "Clients send and receive meanwhile. Messages that arrived after the start of the job, and those that a receiver has " +
    "locked, are not changed.",
  result: {
    /** @param {string} count @param {string} done */
    completed: (count, done) => `Completed: ${messages(count)} ${done}.`,
    /** @param {string} count @param {string} done */
    cancelled: (count, done) => `Cancelled: ${messages(count)} ${done} before that; these changes stay.`,
    /** @param {string} count @param {string} done */
    failed: (count, done) => `Failed: ${messages(count)} ${done} before that.`,
    /** @param {string} count */
    skipped: (count) => `${messages(count)} left as ${count === "1" ? "it is" : "they are"}, the last because:`,
  },
  words: {
    all: "all",
    /** @param {string} text @param {boolean} isOne */
    numbers: (text, isOne) => (isOne ? `number ${text}` : `${text} numbers`),
  },

  begin: "Start a job",
  beginText: "Click a number to choose those messages, and then what is done to them.",
  beginFilter: "Filter by name",
  /** @param {string} count @param {string} state @param {string} path */
  beginLabel: (count, state, path) => `Start a job about ${count} ${state} of ${path}`,
  live: "Messages",
  liveOne: "Message",
  active: "Active",
  scheduled: "Scheduled",
  deferred: "Deferred",
  dead: "Dead letters",
  nothing: "No entity has messages.",

  nouns: { message: { one: "message", many: "messages" }, dead: { one: "dead letter", many: "dead letters" } },
  /** @param {string} place */
  ofPlace: (place) => `of ${place}`,
  /** @param {string} id @param {string} path */
  inSession: (id, path) => `session ${id} of ${path}`,
  /** @param {string} reason */
  withReason: (reason) => `with reason ${reason}`,
  withoutReason: "without a reason",
  withDescription: "with this description",
  withoutDescription: "without a description",
  andDescription: "and this description",
  andNoDescription: "and no description",
  thatMatch: "that match the conditions",
  /** @param {string} count @param {string} noun */
  allOf: (count, noun) => `all ${count} ${noun}`,
  /** @param {string} count */
  atLeast: (count) => `at least ${count}`,
  titles: {
    /** @param {string} what */
    delete: (what) => `Delete ${what}`,
    /** @param {string} what */
    move: (what) => `Move ${what}`,
    /** @param {string} what */
    redrive: (what) => `Send again ${what}`,
    /** @param {string} what */
    dead_letter: (what) => `Dead-letter ${what}`,
    /** @param {string} what */
    activate: (what) => `Make active ${what}`,
    /** @param {string} what */
    reschedule: (what) => `Reschedule ${what}`,
  },
  action: "Action",
  statesLabel: "States",
  stateMissing: "Choose at least one state.",
  conditions: "Which messages",
  chosen: "Conditions:",
  changes: "Edit them on the way",
  fields: {
    session_id: "Session id",
    reason: "Dead-letter reason",
    description: "Dead-letter description",
    without_reason: "No reason given",
    without_description: "No description given",
    filter: "SQL filter",
    text: "Text in the body",
    json_path: "JSONPath in the body",
    message_id: "Message id",
    correlation_id: "Correlation id",
    numbers: "Sequence numbers",
    enqueued_from: "Enqueued from",
    enqueued_before: "Enqueued before",
  },
  hints: {
    filter: "color = 'red' AND sys.EnqueuedTimeUtc < '2026-01-01T00:00:00Z'",
    json_path: "$.order[?@.total > 100]",
    numbers: "17, 18, 19",
  },
  /** @param {string} word */
  notNumber: (word) => `'${word}' is not a sequence number.`,
  to: "To",
  toNone: "choose an entity",
  toMissing: "Choose the entity that gets them.",
  statements: "Statements that edit properties first",
  statementsHint: "SET color = 'red'; REMOVE attempts",
  body: "Template of a new body",
  bodyHint:
    "{{body}} is the body, {{body:/a/0}} a value of it, {{property:NAME}} a property; empty leaves it as it is.",
  newReason: "Reason",
  newDescription: "Description",
  scheduledFor: "New time",
  scheduledMissing: "Enter a time.",
  limitHint: "The largest number of messages that are changed; empty means no limit.",
  limitWrong: "Enter a whole number from 1 on.",

  counting: "Counting",
  partlyCounted: "Not all messages were counted yet.",
  countOn: "Count more",
  /** @param {string} count */
  lockedStay: (count) =>
    `${messages(count)} more ${count === "1" ? "is" : "are"} locked by a receiver, and ${count === "1" ? "stays as it is" : "stay as they are"}.`,
  /** @param {string} count */
  undecidedStay: (count) =>
    `The JSONPath takes too many steps in ${messages(count)}: ${count === "1" ? "it stays as it is" : "they stay as they are"}.`,
  cancels: "Scheduled messages are cancelled.",
  does: {
    delete: "This cannot be undone.",
    move: "They become new messages there; dead-letter properties, delivery counts and numbers stay behind.",
    redrive:
      "They return to where they were dead-lettered as new messages. Of a topic, only the one subscription gets them.",
    dead_letter: "Receivers do not get them any more. They can be sent again from the dead letters.",
    activate: "The next receiver that asks gets them. This cannot be undone.",
    reschedule: "They become active at another time.",
  },
  submit: {
    /** @param {string} what */
    delete: (what) => `Delete ${what}`,
    /** @param {string} what */
    move: (what) => `Move ${what}`,
    /** @param {string} what */
    redrive: (what) => `Send again ${what}`,
    /** @param {string} what */
    dead_letter: (what) => `Dead-letter ${what}`,
    /** @param {string} what */
    activate: (what) => `Make active ${what}`,
    /** @param {string} what */
    reschedule: (what) => `Reschedule ${what}`,
  },

  /** @param {string} done @param {boolean} isOne */
  wasDone: (done, isOne) => `${isOne ? "was" : "were"} ${done}`,
  /** @param {string} done @param {string} took @param {string} skipped @param {string} why */
  outcome: (done, took, skipped, why) =>
    `${done}${took === "" ? "" : ` in ${took}`}${skipped === "0" ? "" : `; ${skipped} stayed as ${skipped === "1" ? "it is" : "they are"}: ${why}`}.`,
  /** @param {string} done @param {string} why */
  nothingDone: (done, why) => `No message was ${done}: ${why || "none is there any more"}.`,
  /** @param {string} id @param {string} done */
  runs: (id, done) => `Job ${id} is running: ${done} so far.`,
  endedEarly: {
    /** @param {string} id @param {string} done @param {string} error */
    failed: (id, done, error) => `Job ${id} failed: ${error} ${done} before that.`,
    /** @param {string} id @param {string} done */
    cancelled: (id, done) => `Job ${id} was cancelled: ${done} before that.`,
  },
  /** @param {string} count @param {boolean} isOne @param {string} path */
  undone: (count, isOne, path) =>
    `${count} ${isOne ? "message is" : "messages are"} active in ${path} again, with ${isOne ? "a new number" : "new numbers"}.`,
  undoneNot: "It cannot be undone any more: the dead letters are not there.",
  toJob: "Open the job",
  toMessages: "Open the messages",
  toDead: "Open the dead letters",
  toSchedule: "Open the schedule",
};
