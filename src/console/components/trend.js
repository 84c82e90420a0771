// A line of some pixels beside a number, and how the number has changed.

import { number } from "../lib/format.js";
import { html } from "../lib/html.js";
import { S } from "../strings/trends.js";

const WIDTH = 48;
const HEIGHT = 14;

/** Shows the numbers of the last hours. It says nothing that the number and its change do not say: screen readers leave
 * it out.
 * @param {{ values: (number | null)[], tone?: "alarm" | "" }} properties */
export function Sparkline({ values, tone = "" }) {
  const most = Math.max(...values.map((value) => value ?? 0));
  if (most === 0 || values.filter((value) => value !== null).length < 2) return null;
  let isOpen = false;
  const path = values
    .map((value, at) => {
      if (value === null) {
        isOpen = false;
        return "";
      }
      const [x, y] = [(at / (values.length - 1)) * (WIDTH - 2) + 1, HEIGHT - 1 - (value / most) * (HEIGHT - 2)];
      const step = `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      isOpen = true;
      return step;
    })
    .join("");
  return html`
    <svg
      class=${`sparkline ${tone}`}
      viewBox=${`0 0 ${WIDTH} ${HEIGHT}`}
      width=${WIDTH}
      height=${HEIGHT}
      aria-hidden="true"
      focusable="false"
    >
      <path d=${path} />
    </svg>
  `;
}

/** Shows by how much a number has changed within the last hour; nothing if it has not.
 * @param {{ value: number, day: number, tone?: "alarm" | "" }} properties `day` is that of the last day */
export function Change({ value, day, tone = "" }) {
  if (value === 0) return null;
  return html`
    <small class=${`trend-change ${tone}`} title=${S.changeTitle(signed(value), signed(day))}>${signed(value)}</small>
  `;
}

/** A number with the line and the change of its last day and hour. The broker is asked for them once a minute; what has
 * changed since is added. `tone` is that of what has come within the last hour.
 * @param {{ value: number, change: Schemas["ChangeShown"] | undefined, tone?: "alarm" | "",
 *   children?: any }} properties */
export function WithTrend({ value, change, tone = "", children }) {
  if (change === undefined) return html`<span class="with-trend">${children}</span>`;
  const since = value - change.now;
  return html`
    <span class="with-trend">
      <${Sparkline} values=${[...change.hours.slice(0, -1), value]} tone=${tone} />
      <${Change} value=${change.hour + since} day=${change.day + since} tone=${tone} />
      ${children}
    </span>
  `;
}

/** Says how many dead letters have come since the reader has looked.
 * @param {{ count: number }} properties */
export function Unseen({ count }) {
  if (count === 0) return null;
  return html`<span class="tag alarm unseen" title=${S.unseenTitle(number(count))}>${S.unseen(number(count))}</span>`;
}

/** @param {number} value */
const signed = (value) => (value < 0 ? `−${number(-value)}` : `+${number(value)}`);
