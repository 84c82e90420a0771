// Texts of the frame and of the shared components. Each feature has a file of its own beside this one.

export const S = {
  product: "Jitney",
  skip: "Skip to the content",
  menu: "Pages",
  navigation: "Pages",
  now: "just now",
  never: "never",
  none: "none",
  yes: "yes",
  no: "no",
  loading: "Loading",
  retry: "Try again",
  close: "Close",
  toasts: "Results",
  cancel: "Cancel",
  undo: "Undo",
  copy: "Copy",
  copied: "Copied",
  more: "Show more",
  unknown: "unknown",
  perSecond: "/s",
  filter: "Filter",
  clear: "Clear",
  actions: "Actions",
  notLoaded: "This page could not be loaded. It loads when the broker answers.",
  notFound: "There is no such page.",
  toOverview: "Go to the overview",
  chartKeys: "Drag to zoom, double-click to see all. Keys: arrows move, + zooms, − shows all.",
  /** @param {string} from @param {string} before */
  chartPart: (from, before) => `The charts show ${from} to ${before}.`,
  chartWhole: "Show all",
  /** @param {string} span */
  ago: (span) => `${span} ago`,
  /** @param {string} span */
  ahead: (span) => `in ${span}`,
  /** @param {string} name */
  typeName: (name) => `To confirm, type ${name}`,
  selectAll: "Select all that are shown",
  selectNone: "Select none",
  notSelectable: "Locked: cannot be selected",
  /** @param {string} column */
  sortBy: (column) => `Sort by ${column}`,
  /** @param {string} shown @param {string} all */
  rows: (shown, all) => (shown === all ? `${all}` : `${shown} of ${all}`),

  status: {
    starting: "Connecting",
    live: "Live",
    polling: "Live, polled",
    away: "Cannot reach the broker",
    refused: "No live updates",
    none: "Send only",
  },
  sendOnly: "This key may only send.",
  sendOnlyText: "Sign in with a key that has the right Listen to see entities and messages.",
  awayNotice: "Cannot reach the broker. You see its last answer; the page continues when the broker is back.",
  backAnnouncement: "The broker is back.",
  awayAnnouncement: "Cannot reach the broker.",
  openNotice: "Development profile: no keys are verified, and anyone on this machine may do everything.",
  plainNotice:
    "This page was loaded over plain HTTP from another machine: others on the network can read and change everything. " +
    "Use HTTPS.",
  noEntities: "This namespace has no entities yet.",
  noEntitiesText: "Create a queue or a topic here or on the command line, or import an emulator's Config.json.",
  noEntitiesCommand: "jitney queues create orders",
  noEntitiesLink: "Create one here",
  namespace: "Namespace",
  switchTo: "Another namespace",
  /** @param {string} name */
  switched: (name) => `The namespace ${name} is shown now.`,
  shortcuts: {
    title: "Keyboard shortcuts",
    keys: /** @type {const} */ ([
      ["/", "Search"],
      ["?", "This list"],
      ["↑ ↓", "Move in a table"],
      ["Enter", "Open the row"],
      ["Esc", "Close a dialog"],
      ["Ctrl Enter", "Send the form"],
    ]),
    /** @param {string} page */
    goTo: (page) => `Go to ${page}`,
  },
  signOut: "Sign out",
  signedInAs: {
    open: "no credentials needed",
    operator: "operator",
    signature: "shared access signature",
    /** @param {string} name */
    key: (name) => `key ${name}`,
    /** @param {string} name */
    oidc: (name) => name || "identity provider",
  },

  pages: {
    overview: "Overview",
    entities: "Entities",
    entity: "Entity",
    message: "Message",
    messages: "Messages",
    sessions: "Sessions",
    connections: "Connections",
    schedule: "Schedule",
    deferred: "Deferred",
    jobs: "Jobs",
    send: "Send",
    "rule-test": "Rule test",
    servers: "Servers",
    audit: "Audit log",
    settings: "Settings",
  },

  search: {
    label: "Search entities, pages and messages",
    placeholder: "Search",
    hint: "Entities, pages, message ids",
    results: "Results",
    /** @param {string} text */
    messageId: (text) => `Messages with message id “${text}”`,
    /** @param {string} text */
    correlationId: (text) => `Messages with correlation id “${text}”`,
    /** @param {string} text */
    number: (text) => `Messages with sequence number ${text}`,
    page: "page",
  },

  kinds: { queue: "queue", topic: "topic", subscription: "subscription" },
  states: { active: "active", deferred: "deferred", scheduled: "scheduled", locked: "locked" },
};
