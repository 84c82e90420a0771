// A value of a message with its type: a text that looks like a number is none.

import { html } from "../lib/html.js";
import { writeJson } from "../lib/json.js";
import { Text } from "./text.js";

/** @param {{ value: any, type: string | undefined }} properties of AMQP: `string`, `long` */
export function Value({ value, type }) {
  const shown =
    typeof value !== "string" ? writeJson(value) : type === undefined || type === "string" ? `"${value}"` : value;
  return html`<code><${Text} value=${shown} /></code>${type !== undefined && html` <span class="tag">${type}</span>`}`;
}
