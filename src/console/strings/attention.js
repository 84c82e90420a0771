// Texts of what needs attention. What it is, the broker says.

export const S = {
  title: "Needs attention",
  none: "Nothing needs attention.",
  noneShown: "Nothing but what is hidden.",
  notKnown: "Not known yet: the broker has not told what needs attention.",
  namespace: "Namespace",
  /** @param {string} span */
  since: (span) => `for ${span}`,
  sinceUnknown: "since when is not known",
  sinceUnknownTitle: "It held already when the broker looked for the first time after its start.",
  acknowledge: "Acknowledge",
  acknowledgeTitle: "Hide it until its number grows, or until it comes back",
  /** @param {string} name @param {string} text */
  acknowledgeLabel: (name, text) => `Acknowledge ${name}: ${text}`,
  mute: "Mute",
  muteTitle: "Hide it until it is unmuted",
  /** @param {string} name @param {string} text */
  muteLabel: (name, text) => `Mute ${name}: ${text}`,
  unmute: "Unmute",
  /** @param {string} name @param {string} text */
  unmuteLabel: (name, text) => `Unmute ${name}: ${text}`,
  showAgain: "Show again",
  /** @param {string} name @param {string} text */
  showAgainLabel: (name, text) => `Show again ${name}: ${text}`,
  acknowledged: "acknowledged",
  muted: "muted",
  /** @param {string} count */
  hidden: (count) => `${count} hidden`,
  showHidden: "Show hidden",
  hideAgain: "Hide again",
  /** @param {string} count */
  more: (count) => `Show ${count} more`,
  /** @param {string} count */
  leftOut: (count) => `${count} more are not listed here; the page of each entity has its own.`,
};
