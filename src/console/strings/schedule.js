// Texts of the page of scheduled messages.

export const S = {
  entity: "Entity",
  /** @param {string} count */
  all: (count) => `All entities with scheduled messages (${count})`,
  /** @param {string} path @param {string} count */
  one: (path, count) => `${path} (${count})`,
  /** @param {string} most @param {string} all */
  most: (most, all) =>
    `The ${most} entities with the most scheduled messages, of ${all}, are shown. Choose one to see another.`,

  histogram: "Scheduled messages over time",
  /** @param {string} step */
  step: (step) => `${step} a bar`,
  /** @param {string} time @param {string} count */
  bar: (time, count) => `${time}: ${count} ${count === "1" ? "message" : "messages"}`,
  help:
    "Drag over a time to zoom in, click a bar to see its messages. Keys: arrows move, Shift and arrows or Space select, " +
    "+ and − zoom, Page Up and Page Down move on, 0 shows all.",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  earlier: "Earlier",
  later: "Later",
  whole: "All",
  hour: "Next hour",
  day: "24 hours",
  week: "7 days",
  span: "Time shown",
  now: "now",
  incomplete: "More messages are scheduled than one request counts: those behind are not in the bars.",

  messages: "Messages",
  /** @param {string} time */
  messagesIn: (time) => `Messages, ${time}`,
  clear: "Clear the selection",
  due: "Becomes active",
  queue: "Entity",
  number: "Number",
  messageId: "Message id",
  body: "Body",
  /** @param {string} found @param {string} all */
  found: (found, all) => `${found} of ${all}`,
  /** @param {string} count */
  partlyRead: (count) => `The ${count} with the lowest numbers were read: earlier ones may be missing here.`,
  further: "Read more",
  /** @param {string} count @param {string} time */
  behind: (count, time) =>
    `${count} ${count === "1" ? "message is" : "messages are"} much later, until ${time}: show all`,
  noneInSpan: "No message becomes active in this time.",
  showAll: "Show all times",

  none: "No scheduled messages.",
  noneText: "A message that is sent for a later time waits here, and becomes active then.",
  noneOf: "This entity has no scheduled messages.",
  command: "jitney schedule orders --in 10m --body later",
  sendOne: "Schedule one here",

  sendNow: "Make active",
  actions: "Actions",
  /** @param {string} number */
  changeLabel: (number) => `Reschedule message ${number}`,
  /** @param {string} number */
  sendLabel: (number) => `Make active: message ${number}`,
  /** @param {string} number */
  cancelLabel: (number) => `Cancel message ${number}`,
  /** @param {string} number */
  changeTitle: (number) => `Reschedule message ${number}`,
  newTime: "Becomes active",
  /** @param {string} utc */
  newTimeHint: (utc) => `${utc}. A time that has passed makes it active at once.`,
  timeNeeded: "A time is needed.",
  shift: "Shift",
  shifts: /** @type {const} */ ([
    ["−1h", -3_600_000],
    ["+10m", 600_000],
    ["+1h", 3_600_000],
    ["+1d", 86_400_000],
  ]),
  save: "Reschedule",
  /** @param {string} number @param {string} time */
  changed: (number, time) => `Message ${number} becomes active ${time}.`,
  /** @param {string} number */
  sent: (number) => `Message ${number} is active now.`,
  /** @param {string} number @param {string} path */
  sendTitle: (number, path) => `Make message ${number} of ${path} active?`,
  sendText:
    "It becomes active at once, gets another sequence number, and the next receiver that asks gets it. This cannot be undone.",
  /** @param {string} number */
  cancelTitle: (number) => `Cancel message ${number}?`,
  /** @param {string} path */
  cancelText: (path) => `It is deleted from ${path}, and no receiver gets it. This cannot be undone.`,
  cancelAction: "Cancel the message",
  /** @param {string} number */
  cancelled: (number) => `Message ${number} was cancelled.`,
};
