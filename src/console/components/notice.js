// What a page says beside its data: notices, errors, nothing yet, commands to copy.

import { AwayError } from "../lib/api.js";
import { html, useState } from "../lib/html.js";
import { announce } from "./toast.js";
import { Text } from "./text.js";
import { S } from "../strings/common.js";

/** @param {{ tone?: "alarm" | "info", children?: any }} properties */
export function Notice({ tone = "info", children }) {
  return html`<div class=${`notice ${tone}`} role=${tone === "alarm" ? "alert" : "note"}>${children}</div>`;
}

/** Shows why something was refused, in the broker's words. Nothing while the broker is away: the head of the page says
 * that.
 * @param {{ error: Error | undefined | null, onRetry?: () => void }} properties */
export function Problem({ error, onRetry }) {
  if (!error) return null;
  if (error instanceof AwayError && onRetry !== undefined) return html`<p class="muted">${error.message}</p>`;
  return html`
    <${Notice} tone="alarm">
      <span><${Text} value=${error.message} /></span>
      ${onRetry && html`<button type="button" onClick=${onRetry}>${S.retry}</button>`}
    <//>
  `;
}

/** Says that there is nothing, and what to do next.
 * @param {{ title: string, text?: string, command?: string, children?: any }} properties */
export function Empty({ title, text, command, children }) {
  return html`
    <div class="empty">
      <p class="empty-title">${title}</p>
      ${text && html`<p>${text}</p>`}
      ${command && html`<${Command} text=${command} />`}
      ${children}
    </div>
  `;
}

/** A command to be copied.
 * @param {{ text: string, label?: string }} properties */
export function Command({ text, label }) {
  return html`
    <div class="command">
      ${label && html`<span class="muted">${label}</span>`}
      <code>
        ${text.split(" ").map((word, at) => html`${at !== 0 && " "}<span key=${at} class="word">${word}</span>`)}
      </code>
      <${Copy} text=${text} />
    </div>
  `;
}

/** Copies a text.
 * @param {{ text: string, label?: string }} properties */
export function Copy({ text, label = S.copy }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    announce(S.copied);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${isDone ? S.copied : label}</button>`;
}

/** @param {string} text */
async function copyText(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  // Pages that came over plain HTTP from another machine have no clipboard.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A place that is filled soon.
 * @param {{ label?: string }} properties */
export function Loading({ label = S.loading }) {
  return html`<p class="loading" role="status">${label}</p>`;
}

/** Shows a resource: its data, or why there is none.
 * @template T
 * @param {{ of: import("../lib/resource.js").Resource<T>, children: (data: T) => any }} properties */
export function Loaded({ of, children }) {
  if (of.data !== undefined) return children(of.data);
  return of.error ? html`<${Problem} error=${of.error} onRetry=${of.reload} />` : html`<${Loading} />`;
}
