// Texts of the page of an entity, and of lists of messages.

export const S = {
  tabs: "Parts of the entity",
  now: "Now",
  messages: "Messages",
  dead: "Dead letters",
  subscriptions: "Subscriptions",
  rules: "Rules",
  consumers: "Clients",
  properties: "Properties",
  gone: "There is no such entity now.",
  toEntities: "All entities",

  active: "Active",
  locked: "Locked",
  scheduled: "Scheduled",
  deferred: "Deferred",
  size: "Size",
  receivers: "Receivers",
  sessions: "Sessions",
  heldSessions: "held",
  transfer: "In transfer",
  transferDead: "Transfer dead letters",
  traffic: "Messages a second",
  backlog: "Messages at rest",
  scheduledMessages: "Scheduled messages",
  in: "In",
  out: "Completed",
  deadLettered: "Dead-lettered",
  picture: "The way of messages",
  arrives: "Arrives",
  isHere: "Is here now",
  leaves: "Leaves",
  forwarded: "Forwarded",
  /** @param {string} total */
  inAll: (total) => `${total} in all`,
  /** @param {number} count @param {string} shown */
  receiving: (count, shown) => (count === 1 ? "1 receiver" : count === 0 ? "no receiver" : `${shown} receivers`),
  /** @param {number} count @param {string} shown */
  deadLettersHere: (count, shown) => (count === 1 ? "1 dead letter" : `${shown} dead letters`),
  to: "to",
  unmatched: "Taken by no subscription",
  /** @param {string} shown @param {number} count */
  copiedTo: (shown, count) => (count === 1 ? "Is copied to 1 subscription" : `Is copied to ${shown} subscriptions`),
  /** @param {string} shown @param {number} count */
  othersAreCalmer: (shown, count) =>
    count === 1
      ? "1 other has fewer dead letters or a shorter backlog."
      : `${shown} others have fewer dead letters or a shorter backlog.`,
  /** @param {string} count */
  showAll: (count) => `Show all ${count}`,
  forwardsTo: "Forwards to",
  or: "or",
  then: "then",
  /** @param {string} count */
  moreRules: (count) => `and ${count} more`,
  pictureNote:
    "Rates are those of the last ten seconds, totals those since the broker started. Locked messages count as active or " +
    "deferred, too, and those that were moved as forwarded.",
  abandonedTotal: "Abandoned",
  expiredTotal: "Expired",
  locksExpiredTotal: "Locks expired",

  send: "Send",
  change: "Edit",
  newSubscription: "New subscription",
  keys: "Keys",
  move: "Move",
  purge: "Delete messages",
  remove: "Delete entity",
  /** @param {string} path */
  removeTitle: (path) => `Delete ${path}?`,
  removeText: "The entity is deleted with its messages, dead letters, subscriptions and rules. This cannot be undone.",
  removeAction: "Delete",
  /** @param {string} path */
  removed: (path) => `${path} was deleted.`,

  groups: "Dead letters by reason",
  reason: "Reason",
  description: "Description",
  count: "Messages",
  numbers: "Numbers",
  noReason: "no reason given",
  noDescription: "no description given",
  /** @param {string} reason */
  descriptionsOf: (reason) => `Descriptions of ${reason}`,
  /** @param {string} count */
  moreDescriptions: (count) => `${count} more ${count === "1" ? "description" : "descriptions"}`,
  /** @param {string} count */
  andMore: (count) => `and ${count} more: their messages are in the row of the reason.`,
  groupsPart:
    "Not all dead letters are counted yet. An action on a row applies to all messages of its reason and description; " +
    "its dialog counts them.",
  groupsMore: "Count more",
  /** @param {string} count */
  groupsLooked: (count) => `${count} counted`,
  refresh: "Refresh",
  resend: "Send again",
  deleteGroup: "Delete",
  /** @param {string} reason */
  resendLabel: (reason) => `Send again: ${reason}`,
  /** @param {string} reason */
  moveLabel: (reason) => `Move: ${reason}`,
  /** @param {string} reason */
  purgeLabel: (reason) => `Delete: ${reason}`,
  noDead: "No dead letters.",
  noDeadText: "A message is dead-lettered when it fails too often, expires, or is rejected by a receiver.",

  number: "Number",
  state: "State",
  messageId: "Message id",
  subject: "Subject",
  enqueued: "Enqueued",
  deliveries: "Deliveries",
  body: "Body",
  session: "Session",
  anyState: "All",
  by: "Search by",
  byNone: "Everything",
  byMessageId: "Message id",
  byCorrelationId: "Correlation id",
  bySession: "Session id",
  byText: "Text in the body",
  byFilter: "SQL filter",
  byJsonPath: "JSONPath in the body",
  byReason: "Dead-letter reason",
  byDescription: "Dead-letter description",
  topicCounts:
    "Counts of a topic are those of its subscriptions together, beside its own scheduled messages: a message is copied to " +
    "each subscription whose rules take it, and each copy is completed by itself.",
  published: "Published",
  copiesCompleted: "Copies completed",
  value: "Value",
  search: "Search",
  noMessages: "No messages here.",
  noMatch: "No message matches.",
  showEvery: "Show all messages",
  /** @param {string} path */
  sendCommand: (path) => `jitney send ${path} --body hello`,
  continueSearch: "Continue the search",
  listEnd: "all shown",

  client: "Client",
  peer: "Address",
  role: "Role",
  credit: "Credit",
  lockedByLink: "Locked",
  heldSession: "Session",
  selector: "Selector",
  roles: {
    sender: "sender",
    receiver: "receiver",
    waiting_receiver: "waits for a session",
    coordinator: "transactions",
    requests: "requests",
    responses: "responses",
  },
  noConsumers: "No client is attached.",

  addRule: "Add a rule",
  /** @param {string} name */
  changeRule: (name) => `Edit rule ${name}`,
  filter: "Filter",
  action: "Action",
  all: "takes every message",
  nothing: "takes no message",
  noRules: "No rule: this subscription takes no message.",
  noSubscriptions: "This topic has no subscriptions: messages that are sent to it are discarded.",
  createSubscription: "Create one here",
  createdAt: "Created",
  updatedAt: "Updated",
  accessedAt: "Last used",
  unit: "MiB",
};

/** What properties are called. @type {Record<string, string>} */
export const PROPERTIES = {
  lock_duration: "Lock duration",
  max_size_megabytes: "Size limit (MiB)",
  max_message_kilobytes: "Message size limit (KiB)",
  max_delivery_count: "Max delivery count",
  default_time_to_live: "Time to live",
  dead_letter_on_expiration: "Dead-letter on expiration",
  dead_letter_on_filter_error: "Dead-letter on filter error",
  requires_session: "Requires session",
  requires_duplicate_detection: "Duplicate detection",
  duplicate_detection_window: "Duplicate detection window",
  partitioned: "Partitioned",
  forward_to: "Forward to",
  forward_dead_letters_to: "Forward dead letters to",
  auto_delete_on_idle: "Delete when idle for",
  status: "Status",
  batched_operations: "Batched operations",
  supports_ordering: "Ordering supported",
  express: "Express",
  user_metadata: "User metadata",
};
