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
  matched: "Looked at",
  began: "Began",
  took: "Took",
  rate: "Rate",
  perSecond: "/s",
  limit: "At most",
  states: { running: "running", completed: "completed", cancelled: "cancelled", failed: "failed" },
  kinds: { delete: "Purge", move: "Move", redrive: "Send again", dead_letter: "Dead-letter", activate: "Activate", reschedule: "Reschedule" },
  done: { delete: "deleted", move: "moved", redrive: "sent again", dead_letter: "dead-lettered", activate: "made active", reschedule: "rescheduled" },
  emptyTitle: "No job has run since the broker began.",
  emptyText: "A job changes many messages in bounded steps, while others send and receive. Begin one below, or by the command line:",
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
  again: "Begin again",
  details: "What it does",
  /** @param {string} done @param {string} total @param {string} percent */
  ofTotal: (done, total, percent) => `${done} of about ${total} (${percent})`,
  /** @param {string} done */
  ofUnknown: (done) => `${done} so far`,
  /** @param {string} span */
  left: (span) => `about ${span} left`,
  others: "Others send and receive meanwhile. Messages that came after its beginning are left alone, and those that a receiver has locked.",
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

  begin: "Begin a job",
  beginText: "Choose the messages; how many are meant, and what is done to them, comes next.",
  beginFilter: "Filter by name",
  /** @param {string} count @param {string} state @param {string} path */
  beginLabel: (count, state, path) => `Begin a job about ${count} ${state} of ${path}`,
  active: "Active",
  scheduled: "Scheduled",
  deferred: "Deferred",
  dead: "Dead letters",
  nothing: "No entity has messages.",

  /** @param {string} path */
  dialogTitleOf: (path) => `Change messages of ${path}`,
  action: "Action",
  of: "Of",
  ofMessages: "Messages",
  ofDead: "Dead letters",
  statesLabel: "States",
  anyState: "none chosen means all",
  conditions: "Conditions",
  fields: {
    session_id: "Session id", reason: "Dead-letter reason", description: "Dead-letter description", without_reason: "No reason given",
    without_description: "No description given", filter: "SQL filter", text: "Text in the body", json_path: "JSONPath in the body",
    message_id: "Message id", correlation_id: "Correlation id", numbers: "Sequence numbers", enqueued_from: "Enqueued from", enqueued_before: "Enqueued before",
  },
  hints: {
    filter: "color = 'red' AND sys.EnqueuedTimeUtc < '2026-01-01T00:00:00Z'", json_path: "$.order[?@.total > 100]", numbers: "17, 18, 19",
  },
  /** @param {string} word */
  notNumber: (word) => `'${word}' is no sequence number.`,
  to: "To",
  toNone: "choose an entity",
  toMissing: "Choose the entity that gets them.",
  statements: "Statements that change properties first",
  statementsHint: "SET color = 'red'; REMOVE attempts",
  body: "Template of a new body",
  bodyHint: "{{body}} is the body, {{body:/a/0}} a value of it, {{property:NAME}} a property; empty leaves it as it is.",
  newReason: "Reason",
  newDescription: "Description",
  scheduledFor: "New time",
  scheduledMissing: "Enter a time.",
  limitLabel: "So many at most",
  limitHint: "It ends when it has changed so many; empty means all.",
  limitWrong: "Enter a whole number from 1 on.",

  counting: "Counting",
  /** @param {string} count */
  meant: (count) => `${messages(count)} meant`,
  /** @param {string} count */
  meantAtLeast: (count) => `at least ${messages(count)} meant`,
  /** @param {string} count */
  meantAtMost: (count) => `at most ${messages(count)} meant`,
  countOn: "Count further",
  /** @param {string} count */
  lockedStay: (count) => `${count} of the entity's ${count === "1" ? "is" : "are"} locked by a receiver: ${count === "1" ? "it is" : "they are"} left alone.`,
  does: {
    delete: "They are deleted; scheduled ones are cancelled. This cannot be undone.",
    move: "They become new messages there; dead-letter properties, delivery counts and numbers stay behind.",
    redrive: "They go back to where they were dead-lettered as new messages; of a topic, only the one subscription gets them.",
    dead_letter: "They become dead letters; receivers do not get them any more.",
    activate: "Deferred and scheduled messages become active at once.",
    reschedule: "Scheduled messages become active at another time.",
  },
  submit: { delete: "Purge", move: "Move", redrive: "Send again", dead_letter: "Dead-letter", activate: "Activate", reschedule: "Reschedule" },
  /** @param {string} id */
  started: (id) => `Job ${id} has begun.`,
  toJob: "Show it",
};
