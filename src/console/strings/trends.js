// Texts of histories and of how numbers have changed.

export const S = {
  range: "Time",
  ranges: { hour: "1h", day: "24h", week: "7d" },
  empty: {
    hour: "There is no history yet; the first values come after twenty seconds.",
    day: "There is no history of a day yet: its intervals last five minutes.",
    week: "There is no history of a week yet: its intervals last half an hour.",
  },
  /** @param {string} hour @param {string} day */
  changeTitle: (hour, day) => `${hour} within the last hour, ${day} within the last day`,
  /** @param {string} count */
  unseen: (count) => `${count} new`,
  /** @param {string} count */
  unseenTitle: (count) =>
    count === "1"
      ? "1 dead letter has come since you opened the entity"
      : `${count} dead letters have come since you opened the entity`,
};
