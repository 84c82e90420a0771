// Texts of the overview.

export const S = {
  in: "In",
  inTitle: "Messages that arrived at queues and subscriptions. Each copy of a topic's message counts where it is received; a message that is forwarded counts where it ends.",
  out: "Completed",
  outTitle: "Messages that were completed at queues and subscriptions, or received and deleted.",
  /** @param {string} rate */
  published: (rate) => `(${rate} published to topics)`,
  perSecond: "/s",
  active: "Active",
  locked: "Locked",
  scheduled: "Scheduled",
  deferred: "Deferred",
  dead: "Dead letters",
  size: "Size",
  traffic: "Messages a second",
  backlog: "Messages at rest",
  attention: "Needs attention",
  attentionNone: "Nothing: no dead letters, no backlog without a receiver, no receiver that is stuck, no job that failed.",
  busiest: "Busiest entities",
  busiestNone: "No messages in the last seconds.",
  entity: "Entity",
  /** @param {string} count */
  moreAttention: (count) => `${count} more`,
  quietTitle: "No message has come in since the broker started.",
  /** @param {string} path */
  quietCommand: (path) => `jitney send ${path} --body hello`,
  quietLink: "Send one here",
  why: {
    /** @param {string} count */
    dead: (count) => (count === "1" ? "1 dead letter" : `${count} dead letters`),
    /** @param {string} age */
    oldest: (age) => `the oldest waits for ${age}`,
    /** @param {string} count */
    noReceiver: (count) => `${count} active ${count === "1" ? "message" : "messages"}, and no receiver`,
    /** @param {string} client @param {string} why */
    stuck: (client, why) => `${client}: ${why}`,
    /** @param {string} id */
    jobFailed: (id) => `Job ${id} failed`,
    /** @param {string} id @param {string} count */
    jobSkipped: (id, count) => `Job ${id} skipped ${count} messages`,
    /** @param {string} count */
    locksExpired: (count) => `${count} locks expired before their message was settled`,
  },
};
