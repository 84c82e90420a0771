// Texts of the settings: who is signed in, keys, and the namespace as a file.

export const S = {
  tabs: "Parts of the settings",
  access: "Access",
  keys: "Keys",
  file: "Config.json",

  signedIn: "Signed in",
  who: "As",
  rights: "Rights",
  right: { listen: "Listen", send: "Send", manage: "Manage" },
  has: "yes",
  hasNot: "no",
  onlyTry: "unknown until used",
  onlyEntity: "Only for",
  kept: "Credential",
  keptOpen: "none needed: the broker runs with the development profile",
  keptKey: "kept for this tab; the key does not leave it, tokens are signed here",
  keptToken: "kept for this tab",
  signOut: "Sign out",

  namespace: "Namespace",
  name: "Name",
  tier: "Tier",
  queues: "Queues",
  topics: "Topics",
  subscriptions: "Subscriptions",
  messages: "Messages at rest",
  dead: "Dead letters",
  size: "Size",
  thisAddress: "that of this address",

  other: "Another namespace",
  otherText: "A broker may serve several namespaces, by the names in its configuration.",
  otherName: "Name",
  otherGo: "Open",
  otherNow: (/** @type {string} */ name) => `This is ${name} now.`,
  otherKey: "A key is of one namespace. To see another, sign out, and in again with a key of it.",

  rootKeys: "Keys of the namespace",
  rootKeysText:
    "They are not edited here: they are AuthorizationRules of the namespace in the configuration file, or the key that the broker created at its " +
    "first start. Queues and topics have keys of their own, which are created, rotated and deleted under Keys.",
  rootKeysCommand: "jitney serve --config Config.json --auth sas",

  entity: "Queue or topic",
  everyEntity: "all",
  allRules: "Keys of queues and topics",
  rule: "Rule",
  ruleRights: "Rights",
  noRules: "No queue and no topic has keys of its own.",
  noRulesText: "Until one has, clients use a key of the namespace. Choose a queue or a topic above to create one.",
  noRulesCommand: "jitney keys create orders app --right send",
  /** @param {string} path */
  noRulesOf: (path) => `${path} has no keys of its own.`,
  /** @param {string} path */
  rulesOf: (path) => `Keys of ${path}`,
  development: "The broker verifies no keys now (development profile): whatever a client sends is accepted.",
  newRule: "New rule",
  ruleName: "Name",
  ruleNameExample: "app",
  make: "Create",
  exists: "There is a rule of this name: edit its rights instead.",
  nameNeeded: "The rule needs a name.",
  manageIncludes: "Manage includes the others.",
  /** @param {string} name */
  made: (name) => `The rule ${name} was created, with two random keys.`,
  primary: "Primary",
  secondary: "Secondary",
  noKey: "none",
  show: "Show",
  hide: "Hide",
  /** @param {string} which @param {string} name */
  showLabel: (which, name) => `Show the ${which.toLowerCase()} key of ${name}`,
  /** @param {string} which @param {string} name */
  hideLabel: (which, name) => `Hide the ${which.toLowerCase()} key of ${name}`,
  hidden: "••••••••••••••••",
  copyString: "Copy connection string",
  rotate: "Rotate",
  /** @param {string} which @param {string} name */
  rotateLabel: (which, name) => `Rotate the ${which.toLowerCase()} key of ${name}`,
  /** @param {string} which @param {string} name */
  rotateTitle: (which, name) => `Rotate the ${which.toLowerCase()} key of ${name}?`,
  rotateText:
    "A random key replaces it. Clients that use the old one are refused as soon as the tokens that they have end. " +
    "For clients that run: rotate the secondary key, give it to them, then rotate the primary one.",
  /** @param {string} which @param {string} name */
  rotated: (which, name) => `The ${which.toLowerCase()} key of ${name} was rotated.`,
  changeRights: "Edit rights",
  /** @param {string} name */
  changeRightsLabel: (name) => `Edit rights of ${name}`,
  save: "Save",
  /** @param {string} name */
  rightsChanged: (name) => `The rights of ${name} were updated.`,
  remove: "Delete",
  /** @param {string} name */
  removeLabel: (name) => `Delete ${name}`,
  /** @param {string} name */
  removeTitle: (name) => `Delete the rule ${name}?`,
  removeText: "Its keys verify no further token. What was granted with them ends when the tokens do.",
  /** @param {string} name */
  removed: (name) => `The rule ${name} was deleted.`,
  changedAt: "Updated",

  exportTitle: "Export",
  exportText:
    "The entities of the namespace, their properties and rules, as the emulator's Config.json: a broker or an emulator can be started with it.",
  exportKeys: "With the keys of queues and topics",
  exportKeysHint: "The file has secrets in it then.",
  exportButton: "Export Config.json",
  exported: "Config.json was exported.",
  exportCommand: "jitney export config --file Config.json",

  importTitle: "Import",
  importText: "What the file names is created or updated; everything else stays, and so do the keys of the namespace.",
  importFile: "File",
  importArea: "Config.json",
  importHint: "JSON, with comments and trailing commas if there are any.",
  importButton: "Apply",
  importBusy: "Applying",
  /** @param {string} made @param {string} changed */
  applied: (made, changed) => `${made} created, ${changed} updated.`,
  refused: "These could not be created or updated, and are as they were:",
  preview: "What it names",
  previewNone: "It names no queue and no topic.",
  previewOther: "It names several namespaces; the one with this name counts:",
  notRead: "It cannot be read yet:",
  toPlace: "Go to the error",
  path: "Entity",
  kind: "Kind",
  effect: "What happens",
  effectNew: "is created",
  effectSame: "unchanged",
  effectUnknown: "exists",
  rulesChange: "its rules are updated",
  /** @param {number} count */
  withKeys: (count) => (count === 1 ? "with 1 key rule" : `with ${count} key rules`),
  unset: "–",
  importCommand: "jitney import config Config.json",

  forbiddenTitle: "This needs the right Manage.",
  forbiddenText: "Sign in with a key of the namespace that has it.",
};
