// Times as fields have them: in the reader's zone, without naming it.

/** The value of a field of the kind `datetime-local`.
 * @param {number} at milliseconds */
export function fieldOf(at) {
  const moment = new Date(at);
  return new Date(at - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The time of such a field in milliseconds; null if there is none in it.
 * @param {string} value */
export function timeOf(value) {
  const at = value === "" ? NaN : new Date(value).getTime();
  return Number.isNaN(at) ? null : at;
}

/** @param {number} at milliseconds */
export const isoOf = (at) => new Date(at).toISOString();
