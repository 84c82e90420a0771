// Texts of connections and links.

export const S = {
  table: "Connections",
  filter: "Filter by client, address or entity",
  show: "Links that are shown",
  all: "All",
  receivers: "Receivers",
  senders: "Senders",
  stuck: "Stuck",
  client: "Client",
  name: "Client, entity",
  address: "Address",
  credit: "Credit",
  unsettled: "Unsettled",
  oldestLock: "Oldest lock",
  waiting: "Waiting",
  waitingUnknown: "Which messages its selector matches is not counted.",
  idle: "Idle for",
  notKnown: "not known",
  notKnownYet: "not known yet",
  requests: "Requests",
  /** @param {string} links */
  folded: (links) => `${links} ${links === "1" ? "link" : "links"} for requests`,
  product: "Library",
  noProduct: "not named",
  transport: "Transport",
  tls: "TLS",
  noTls: "no TLS",
  since: "Connected",
  identity: "Credentials",
  noIdentity: "none were verified",
  /** @param {string} peer @param {string} port */
  addressOf: (peer, port) => (peer.includes(":") ? `${peer} port ${port}` : `${peer}:${port}`),
  rate: "Rate /s",
  session: "Session",
  role: "Role",
  entity: "Entity",
  noEntity: "no entity",
  noName: "no name",
  links: "Links",
  /** @param {string} links @param {string} connections */
  counts: (connections, links) =>
    `${connections} ${connections === "1" ? "connection" : "connections"}, ${links} ${links === "1" ? "link" : "links"}`,
  roles: {
    sender: "sends to",
    receiver: "receives from",
    waiting_receiver: "waits for a session of",
    coordinator: "transactions",
    requests: "requests to",
    responses: "responses of",
  },
  noCredit: "It accepts no message now.",
  rateTitle: "Deliveries a second over this link: messages that it was handed, or batches that it sent.",
  selector: "selector",

  receives: "Receives over HTTP that wait",
  mode: "Mode",
  modes: { peek_lock: "locks", receive_and_delete: "deletes" },
  waitsUntil: "Waits until",
  /** @param {string} entity */
  endTitle: (entity) => `End this receive from ${entity}?`,
  endText: "It is answered with status 503. The client may receive again.",
  endAction: "End the receive",
  ended: "The receive was ended.",
  /** @param {string} entity */
  endLabel: (entity) => `End the receive from ${entity}`,

  attention: "Stuck",
  attentionMore: "Show all that are stuck",
  why: {
    /** @param {string} locked @param {string} age @param {string} idle @param {string} waits */
    holding: (locked, age, idle, waits) =>
      `holds ${locked} unsettled${age === "" ? "" : `, the oldest for ${age}`}, and nothing has happened for ${idle}, while ${waits} ${waits === "1" ? "waits" : "wait"} for it`,
    /** @param {string} idle @param {string} waits */
    silent: (idle, waits) =>
      `has taken no message for ${idle}, while ${waits} ${waits === "1" ? "waits" : "wait"} for it`,
  },

  emptyTitle: "No client is connected.",
  emptyText: "Receive something; clients and their links are shown here while they are connected.",
  /** @param {string} path */
  emptyCommand: (path) => `jitney receive ${path} --wait 60`,
  noneTitle: "No link matches.",
  noneStuck: "No receiver is stuck.",
  clear: "Show all",

  /** @param {string} client */
  closeTitle: (client) => `Close the connection of ${client}?`,
  closeText: "The client may connect again.",
  /** @param {string} locked */
  locksEnd: (locked) =>
    `Its ${locked} locked ${locked === "1" ? "message returns" : "messages return"} to the queue at once, and the delivery counts as failed.`,
  /** @param {string} sessions */
  sessionsEnd: (sessions) =>
    `Its ${sessions === "1" ? "message session is" : `${sessions} message sessions are`} free at once; their messages return, and no delivery counts.`,
  locksNone: "It has no locks.",
  closeAction: "Close the connection",
  closed: "The connection was closed.",
  /** @param {string} client */
  closeLabel: (client) => `Close the connection of ${client}`,
  /** @param {string} entity */
  detachTitle: (entity) => `Detach this link to ${entity}?`,
  detachText: "The other links of the connection stay. The client may attach it again.",
  detachAction: "Detach the link",
  detached: "The link was detached.",
  /** @param {string} entity */
  detachLabel: (entity) => `Detach the link to ${entity}`,

  /** @param {string} id */
  title: (id) => `Connection ${id}`,
  gone: "This connection is closed.",
  goneText: "A client that connects again has another number.",
  toAll: "All connections",
  id: "Number",
  host: "Host name used",
  authorized: "Authorized",
  authorizedYes: "yes",
  authorizedNo: "not yet",
  noLinks: "It has no links.",
  heldTitle: "Messages that it holds",
  heldNone: "None among the first hundred of its entities.",
  number: "Number",
  lockedUntil: "Locked until",
  deliveries: "Failed deliveries",
  enqueued: "Enqueued",
};
