// Texts of the overview.

export const S = {
  in: "In",
  inTitle:
    "Messages that arrived at queues and subscriptions in the last minute. Each copy of a topic's message counts where it is received; a message that is forwarded counts where it ends.",
  out: "Completed",
  outTitle: "Messages that were completed at queues and subscriptions in the last minute, or received and deleted.",
  /** @param {string} rate */
  published: (rate) => `${rate} /s published to topics`,
  active: "Active",
  locked: "Locked",
  scheduled: "Scheduled",
  deferred: "Deferred",
  dead: "Dead letters",
  size: "Size",
  traffic: "Messages a second",
  backlog: "Messages at rest",
  busiest: "Busiest entities",
  busiestNone: "No messages in the last seconds.",
  entity: "Entity",
  quietTitle: "No message has come in since the broker started.",
  /** @param {string} path */
  quietCommand: (path) => `jitney send ${path} --body hello`,
  quietLink: "Send one here",
};
