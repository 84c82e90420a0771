// Texts of the page of deferred messages.

export const S = {
  entity: "Entity",
  choose: "Entities with deferred messages",
  count: "Deferred",
  none: "No deferred messages.",
  noneText:
    "A receiver that defers a message gets it back by its sequence number only. Such messages are listed here, so that none is forgotten.",
  command: "jitney deferred orders 17 18",
  noneOf: "This entity has no deferred messages.",
  others: "All entities with deferred messages",
  /** @param {string} count */
  summary: (count) => `${count} deferred messages`,

  byNumber: "Receive by number",
  number: "Number",
  receive: "Receive",
  /** @param {string} number */
  receiveLabel: (number) => `Receive message ${number}`,
  numberNeeded: "A sequence number is needed.",
  /** @param {string} number */
  received: (number) => `Message ${number} is locked for you.`,
  inSession:
    "Messages of entities with message sessions are received by clients that hold the session; here they can be made active.",

  /** @param {string} number */
  selectLabel: (number) => `Select message ${number}`,
  /** @param {string} count */
  putBackAll: (count) => `Make all ${count} active`,
  /** @param {string} count */
  putBackSelected: (count) => `Make ${count} selected active`,
  putBack: "Make active",
  /** @param {string} number */
  putBackLabel: (number) => `Make active: message ${number}`,
  /** @param {string} count @param {string} path */
  putBackTitle: (count, path) => `Make all ${count} deferred messages of ${path} active?`,
  /** @param {string} number @param {string} path */
  putBackOneTitle: (number, path) => `Make message ${number} of ${path} active?`,
  putBackOneText: "It becomes active at once, and the next receiver that asks gets it. This cannot be undone.",
  /** @param {string} count @param {string} path */
  putBackSelectedTitle: (count, path) =>
    `Make ${count} selected deferred ${count === "1" ? "message" : "messages"} of ${path} active?`,
  putBackText:
    "They become active at once, and the next receiver that asks gets them. Messages that are deferred while the job runs, " +
    "and those that a receiver has locked, stay as they are.",
  /** @param {string} number */
  active: (number) => `Message ${number} is active now.`,
  /** @param {string} changed @param {string} skipped */
  putBackDone: (changed, skipped) =>
    `${changed} ${changed === "1" ? "message is" : "messages are"} active now${skipped === "0" ? "." : `; ${skipped} stayed as they are.`}`,
  /** @param {string} id */
  jobRuns: (id) => `Job ${id} is making them active.`,
  toJob: "Open the job",

  messages: "Messages",
  messageId: "Message id",
  subject: "Subject",
  body: "Body",
  enqueued: "Enqueued",
  deliveries: "Deliveries",
  actions: "Actions",
  more: "Show more",
  all: "all shown",
  refresh: "Refresh",

  held: "Received here",
  /** @param {string} number */
  heldTitle: (number) => `Message ${number}`,
  /** @param {string} left */
  left: (left) => `locked for ${left} more`,
  /** @param {string} seconds */
  leftAnnouncement: (seconds) => `The lock ends in ${seconds} seconds.`,
  ended: "The lock has ended: the message is deferred again.",
  lockLeft: "Time of the lock that is left",
  dismiss: "Dismiss",
  page: "Open",
  complete: "Complete",
  completeHint: "Done: it is deleted.",
  abandon: "Abandon",
  abandonHint: "Given back; it stays deferred, and the delivery counts as failed.",
  defer: "Defer",
  deferHint: "Given back; it stays deferred.",
  deadLetter: "Dead-letter",
  deadLetterTitle: "Dead-letter it",
  reason: "Reason",
  description: "Description",
  back: "Back",
  done: {
    /** @param {string} number */
    complete: (number) => `Message ${number} was completed.`,
    /** @param {string} number */
    abandon: (number) => `Message ${number} was abandoned. It stays deferred.`,
    /** @param {string} number */
    defer: (number) => `Message ${number} is deferred again.`,
    /** @param {string} number */
    dead_letter: (number) => `Message ${number} was dead-lettered.`,
  },
  notAllowed: "This key does not allow making messages active or settling them: that needs the right Manage.",
};
