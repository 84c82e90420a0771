// Texts of the servers that share namespaces.

export const S = {
  /** @param {string} alive @param {string} all @param {string} namespaces */
  counts: (alive, all, namespaces) => `${alive} of ${all} servers alive, ${namespaces} namespaces`,
  noFleetTitle: "This server shares its namespaces with no other.",
  noFleetText:
    "Its namespaces are in its data directory. Servers that are started with the same database share them: when one is lost, another takes its namespaces over.",
  noFleetCommand: "jitney serve --store postgres://USER:PASSWORD@HOST/DATABASE --server one --peer-listen ADDRESS:5670",
  forbiddenTitle: "Only the operator sees the servers.",
  forbiddenText: "Sign in with the operator's key.",
  noLease:
    "The server that answers may not serve clients at the moment: its last beat is too old, because the database or this server does not keep up.",
  /** @param {string} span */
  stale: (span) => `The server that answers has not reached the store for ${span}: what is shown is as old.`,

  attention: "Quarantine",
  /** @param {string} name */
  isQuarantined: (name) => `No server takes the namespace ${name}`,
  release: "End the quarantine",
  /** @param {string} name */
  releaseLabel: (name) => `End the quarantine of ${name}`,
  /** @param {string} name */
  releaseTitle: (name) => `End the quarantine of ${name}?`,
  releaseText:
    "A server takes the namespace within a second. The reason above may put it into quarantine again: read the servers' logs first.",
  /** @param {string} name */
  released: (name) => `The quarantine of ${name} was ended: a server takes it now.`,

  /** @param {string} names */
  away: (names) =>
    `The server that answers does not reach these stores: ${names}. Their namespaces are not served by it, and what is shown of them is older.`,
  /** @param {string} place */
  store: (place) => `Store ${place}`,
  /** @param {string} name @param {string} place */
  namedStore: (name, place) => `Store ${name}, ${place}`,
  identity: "Identity",
  lag: "Standby lag",
  lagTitle: "Bytes of the database's log that the last standby has not flushed",
  age: "Transaction age",
  ageTitle: "Transactions since the oldest that is not frozen; at two billion the database takes no writes",
  slots: "Inactive slots",
  slotsTitle: "Replication slots that no standby uses: they keep the database's log for ever",
  clock: "Clock offset",
  clockTitle:
    "The clock of the server that answers less the database's; beyond a second it is not followed, and this server takes no namespaces",
  /** @param {string} millis */
  millis: (millis) => `${millis}ms`,
  configuration: "Configuration",
  noConfiguration: "default",
  configurationTitle:
    "The number of the configuration that all servers apply; it grows with each change of a server's file",

  servers: "Servers",
  server: "Server",
  answers: "answers",
  answersTitle: "This server has sent what is shown",
  state: "State",
  alive: "alive",
  late: "late",
  leaving: "leaving",
  left: "left",
  lost: "lost",
  takesNone: "takes no namespaces",
  beat: "Last beat",
  /** @param {string} span */
  ago: (span) => `${span} ago`,
  beats: "Beats",
  has: "Namespaces",
  address: "Address",

  namespaces: "Namespaces",
  namespace: "Namespace",
  ofStore: "Store",
  rate: "Messages a second",
  epoch: "Epoch",
  noServer: "none",
  filter: "Filter by name or server",
  show: "Show",
  all: "All",
  problems: "Problems",
  served: "served",
  waiting: "waits for a server",
  suspended: "suspended",
  quarantined: "quarantined",
  noneTitle: "No namespace matches.",
  noProblem: "Every namespace is served.",
  clear: "Show all",
};
