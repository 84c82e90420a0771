// Texts about the server, which its operator sees.

export const S = {
  title: "Server",
  version: "Version",
  state: "State",
  well: "accepts messages",
  notWell: "does not accept messages: its disk or memory is full, or the disk does not answer",
  started: "Started",
  memory: "Memory",
  log: "Log",
  disk: "Free disk",
  inMemory: "messages are in memory only",
  connections: "AMQP connections",
  descriptors: "File descriptors",
  of: "of",
  shards: "Shards",
  namespaces: "Namespaces",
  /** @param {string} shard */
  inShard: (shard) => `shard ${shard}`,
  elsewhere: "at another server",
  configured: "from the configuration file",
  here: "shown now",
  go: "Show",
  /** @param {string} name */
  goTo: (name) => `Show the namespace ${name}`,
  /** @param {string} name */
  now: (name) => `The namespace ${name} is shown now.`,
  drop: "Delete",
  /** @param {string} name */
  dropLabel: (name) => `Delete the namespace ${name}`,
  /** @param {string} name */
  dropTitle: (name) => `Delete the namespace ${name}?`,
  dropText: "All its entities and messages are deleted, and its connections are closed. This cannot be undone.",
  /** @param {string} name */
  dropped: (name) => `The namespace ${name} was deleted.`,
};
