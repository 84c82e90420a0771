// Texts of the form that creates and edits entities and their rules.

export const S = {
  title: "New entity",
  kind: "Kind",
  kinds: { queue: "Queue", topic: "Topic", subscription: "Subscription" },
  name: "Name",
  nameExample: { queue: "orders", topic: "news", subscription: "eu" },
  topic: "Topic",
  topicHint: "Its subscriptions get what is sent to it.",
  form: "Properties of the entity",
  groups: { delivery: "Delivery", ways: "Forwarding", kind: "Sessions and duplicates", limits: "Limits", rest: "Other" },
  fixed: "Cannot be changed later.",
  byDefault: "By default",
  hints: {
    lock_duration: "How long a receiver keeps a message before another may get it. 1s to 5m.",
    max_delivery_count: "A message is dead-lettered after this number of failed deliveries.",
    default_time_to_live: "Such as 14d, 1h 30m, never.",
    dead_letter_on_expiration: "Otherwise expired messages are deleted.",
    dead_letter_on_filter_error: "Otherwise a message whose rule fails is discarded.",
    forward_to: "Messages go there instead of waiting here.",
    forward_dead_letters_to: "Dead letters go there instead of waiting here.",
    requires_session: "Messages carry a session id, and a receiver gets those of one session in order.",
    requires_duplicate_detection: "A message whose id came already within the window is discarded.",
    duplicate_detection_window: "20s to 7d.",
    max_size_megabytes: "When it is full, sending is refused.",
    max_message_kilobytes: "",
    partitioned: "",
    auto_delete_on_idle: "5m or more, or never.",
    status: "",
    user_metadata: "A note of yours.",
  },
  statuses: { active: "active", disabled: "disabled", receive_disabled: "receiving disabled", send_disabled: "sending disabled" },
  none: "none",

  subscriptions: "Subscriptions",
  subscriptionsHint: "Each gets a copy of every message that its filter takes. They can be created later.",
  /** @param {number} number */
  subscription: (number) => `Subscription ${number}`,
  subscriptionName: "Subscription",
  expression: "SQL filter",
  expressionNone: "every message",
  expressionExample: "region = 'EU' AND priority > 5",
  moreOf: "Correlation, action",
  /** @param {string} name */
  moreOfLabel: (name) => `Correlation, action: ${name}`,
  /** @param {string} name */
  without: (name) => `Remove ${name}`,

  rule: "Rule",
  rules: "Rules",
  rulesHint: "The subscription gets a message when one of them takes it; each action creates a copy of its own.",
  filter: "Takes",
  filters: { true: "Every message", sql: "SQL filter", correlation: "Correlation", false: "Nothing" },
  action: "Action",
  actionHint: "Statements that edit the copy: SET color = 'red'; REMOVE attempts",
  correlationHint: "A message is taken when all of these are equal.",
  field: "Property",
  value: "Value",
  type: "Type",
  types: { text: "text", number: "number", boolean: "boolean" },
  propertyName: "Name of the property",
  own: "application property…",
  fields: {
    correlation_id: "correlation id", message_id: "message id", subject: "subject", to: "to", reply_to: "reply to", session_id: "session id",
    reply_to_session_id: "reply to session id", content_type: "content type",
  },
  addPair: "Add a property",
  /** @param {number} number */
  removePair: (number) => `Remove the property ${number}`,
  notNumber: "Not a number.",

  /** @param {string} kind @param {number} subscriptions */
  make: (kind, subscriptions) =>
    `Create ${kind}${subscriptions === 0 ? "" : subscriptions === 1 ? " and 1 subscription" : ` and ${subscriptions} subscriptions`}`,
  makeRest: "Create the rest",
  making: "Creating",
  /** @param {string} path */
  wasMade: (path) => `${path} was created.`,
  partly: "Some of it was created; the rest was refused, with the reason at its field.",
  madeAlready: "created",
  made: "Created",
  open: "Open",
  export: "Export as Config.json",
  exported: "Config.json was exported.",
  forgetMade: "Clear",
  startOver: "Start over",
  exists: "It exists.",
  forbiddenTitle: "Creating and editing entities needs the right Manage.",
  forbiddenText: "Sign in with a key of the namespace that has it.",

  /** @param {string} path */
  editTitle: (path) => `Edit ${path}`,
  gone: "There is no such entity now.",
  toEntities: "All entities",
  newSubscription: "New subscription",
  properties: "Properties",
  save: "Save",
  saving: "Saving",
  /** @param {string} path */
  saved: (path) => `${path} was updated.`,
  unchanged: "Nothing is changed.",
  /** @param {number} count */
  changed: (count) => (count === 1 ? "1 property is changed." : `${count} properties are changed.`),
  revert: "Revert",
  remove: "Delete",
  /** @param {string} path */
  removeTitle: (path) => `Delete ${path}?`,
  removeText: "The entity is deleted with its messages, dead letters, subscriptions and rules. This cannot be undone.",
  /** @param {string} path */
  removed: (path) => `${path} was deleted.`,
  conflictTitle: "It was changed by someone else meanwhile.",
  conflictText: "Your changes are not saved. This is what they changed:",
  conflictNothing: "Its properties are as they were: something else of it changed, such as its keys.",
  conflictWas: "was",
  conflictIs: "is now",
  conflictYours: "yours",
  conflictKeep: "Keep my changes",
  conflictDrop: "Discard my changes",
  conflictKept: "Your changes are kept, on top of theirs. Save them if they are still right.",

  addRule: "Add a rule",
  editRule: "Edit",
  deleteRule: "Delete",
  /** @param {string} name */
  editRuleLabel: (name) => `Edit the rule ${name}`,
  /** @param {string} name */
  deleteRuleLabel: (name) => `Delete the rule ${name}`,
  newRule: "New rule",
  ruleName: "Name of the rule",
  ruleNameNeeded: "The rule needs a name.",
  saveRule: "Save the rule",
  makeRule: "Create the rule",
  /** @param {string} name */
  ruleSaved: (name) => `The rule ${name} was updated.`,
  /** @param {string} name */
  ruleMade: (name) => `The rule ${name} was created.`,
  /** @param {string} name */
  deleteRuleTitle: (name) => `Delete the rule ${name}?`,
  deleteRuleText: "Messages that it took stay; only the other rules take new ones.",
  deleteLastRuleText: "It is the only rule: without it the subscription takes no message.",
  /** @param {string} name */
  ruleDeleted: (name) => `The rule ${name} was deleted.`,
  ruleGone: "The rule is not there any more. Copy what you need, and create it again.",
  ruleConflict: 
    "The rule was changed by someone else meanwhile. You see your text; the present rule is below. Save again to replace it.",
  noRules: "No rule: this subscription takes no message.",
};
