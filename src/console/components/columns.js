// Which columns a list of messages has: those that it is made with, others, and application properties.

import { number } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { setQuery } from "../lib/router.js";
import { writeJson } from "../lib/json.js";
import { Dialog, openDialog } from "./dialog.js";
import { Field } from "./field.js";
import { Text } from "./text.js";
import { Size, Time } from "./time.js";
import { S as C } from "../strings/common.js";
import { S as E } from "../strings/entity.js";
import { S } from "../strings/message-list.js";

/** @typedef {Schemas["MessageShown"]} Message */
/** @typedef {import("./table.js").Column<Message>} Column */
/** @typedef {"messages" | "dead-letters"} List */

/** In front of the names of application properties. */
const PROPERTY = "p:";
/** Columns that a list has at most. */
const COLUMNS_MAX = 20;
const STORED = "jitney-columns";

/** @type {Record<List, string[]>} */
const DEFAULTS = {
  messages: ["state", "id", "subject", "body", "deliveries", "size", "enqueued"],
  "dead-letters": ["reason", "id", "body", "deliveries", "size", "enqueued"],
};

/** @param {(message: Message) => string | null | undefined} of */
const text = (of) => (/** @type {Message} */ message) => html`<${Text} value=${of(message)} max=${80} />`;

/** Columns that lists of messages may have, in their order. `stateOf` and `Preview` are the list's.
 * @param {{ stateOf: (message: Message) => string, Preview: any }} list
 * @returns {Column[]} */
const columnsOf = ({ stateOf, Preview }) => [
  {
    id: "state",
    label: E.state,
    cell: (row) => html`<span class=${row.lock == null ? "tag" : "tag accent"}>${stateOf(row)}</span>`,
  },
  { id: "reason", label: E.reason, cell: text(({ dead_letter: dead }) => dead?.reason) },
  { id: "description", label: E.description, cell: text(({ dead_letter: dead }) => dead?.description) },
  { id: "id", label: E.messageId, hide: "narrow", cell: text(({ message_id: id }) => id) },
  { id: "correlation", label: S.correlationId, cell: text(({ correlation_id: id }) => id) },
  { id: "session", label: E.session, cell: text(({ session_id: id }) => id) },
  { id: "subject", label: E.subject, hide: "medium", cell: text(({ subject }) => subject) },
  { id: "type", label: S.contentType, cell: text(({ content_type: type }) => type) },
  { id: "body", label: E.body, isWide: true, cell: (row) => html`<${Preview} message=${row} />` },
  { id: "deliveries", label: E.deliveries, align: "end", hide: "medium", cell: (row) => number(row.delivery_count) },
  { id: "size", label: E.size, align: "end", hide: "medium", cell: (row) => html`<${Size} value=${row.size_bytes} />` },
  {
    id: "enqueued",
    label: E.enqueued,
    align: "end",
    hide: "narrow",
    cell: (row) => html`<${Time} at=${row.enqueued_at} />`,
  },
  {
    id: "expires",
    label: S.expires,
    align: "end",
    cell: (row) => html`<${Time} at=${row.expires_at ?? undefined} none=${C.never} />`,
  },
];

/** @param {string} name of a property
 * @returns {Column} */
const propertyColumn = (name) => ({
  id: PROPERTY + name,
  label: name,
  cell: ({ properties }) => {
    const value = properties?.[name];
    if (value === undefined) return null;
    const shown = typeof value === "string" ? value : writeJson(value);
    return html`<${Text} value=${shown} max=${80} />`;
  },
});

/** The columns that the address names, else those that the reader has chosen before, else those of the beginning. An
 * address is of the list's own words, with names of properties as they are; a comma in one is encoded.
 * @param {List} list
 * @param {string | undefined} query
 * @returns {string[]} */
export function chosenColumns(list, query) {
  if (query !== undefined)
    return query
      .split(",")
      .filter((each) => each !== "")
      .map(decoded)
      .slice(0, COLUMNS_MAX);
  try {
    const stored = JSON.parse(localStorage.getItem(`${STORED} ${list}`) ?? "null");
    if (Array.isArray(stored)) return stored.filter((each) => typeof each === "string").slice(0, COLUMNS_MAX);
  } catch {
    // What cannot be read has not been chosen.
  }
  return DEFAULTS[list];
}

/** @param {string} name */
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Makes the columns that are chosen.
 * @param {string[]} chosen
 * @param {{ stateOf: (message: Message) => string, Preview: any }} list
 * @returns {Column[]} */
export function columnsChosen(chosen, list) {
  const known = columnsOf(list);
  return chosen.flatMap((id) =>
    id.startsWith(PROPERTY) ? [propertyColumn(id.slice(PROPERTY.length))] : known.filter((each) => each.id === id),
  );
}

/** @param {List} list
 * @param {string[]} next */
function choose(list, next) {
  const isDefault = next.join() === DEFAULTS[list].join();
  if (isDefault) localStorage.removeItem(`${STORED} ${list}`);
  else localStorage.setItem(`${STORED} ${list}`, JSON.stringify(next));
  setQuery({ columns: isDefault ? undefined : next.map(encodeURIComponent).join(",") });
}

/** Opens the choice of columns.
 * @param {List} list
 * @param {string[]} chosen
 * @param {Message[]} messages whose properties are offered */
export function openColumns(list, chosen, messages) {
  const found = new Set(messages.flatMap(({ properties }) => Object.keys(properties ?? {})));
  openDialog(
    (close) => html`
      <${Columns} list=${list} chosen=${chosen} found=${[...found].sort().slice(0, 100)} close=${close} />
    `,
  );
}

/** @param {{ list: List, chosen: string[], found: string[], close: () => void }} properties */
function Columns({ list, chosen: before, found, close }) {
  const [chosen, setChosen] = useState(before);
  const [name, setName] = useState("");
  const set = (/** @type {string[]} */ next) => {
    setChosen(next);
    choose(list, next);
  };
  const known = columnsOf({ stateOf: () => "", Preview: () => null }).filter(
    ({ id }) => list === "dead-letters" || !["reason", "description"].includes(id),
  );
  const order = [...known.map(({ id }) => id)];
  /** @param {string} id */
  const toggle = (id) => {
    if (chosen.includes(id)) return set(chosen.filter((each) => each !== id));
    // One of the list's own goes to its place, a property to the end.
    const before = id.startsWith(PROPERTY) ? -1 : chosen.findIndex((each) => order.indexOf(id) < order.indexOf(each));
    return set(before === -1 ? [...chosen, id] : [...chosen.slice(0, before), id, ...chosen.slice(before)]);
  };
  const properties = [
    ...new Set([...found, ...chosen.filter((id) => id.startsWith(PROPERTY)).map((id) => id.slice(PROPERTY.length))]),
  ];
  const isFull = COLUMNS_MAX <= chosen.length;
  const box = (/** @type {string} */ id, /** @type {any} */ label) => html`
    <label key=${id}>
      <input
        type="checkbox"
        checked=${chosen.includes(id)}
        disabled=${isFull && !chosen.includes(id)}
        onChange=${() => toggle(id)}
      />${" "}
      ${label}
    </label>
  `;
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name !== "" && !isFull && !chosen.includes(PROPERTY + name)) set([...chosen, PROPERTY + name]);
    setName("");
  };
  return html`
    <${Dialog} title=${S.columns}>
      <form class="columns-form" onSubmit=${add}>
        <fieldset><legend>${S.ofMessages}</legend>${known.map(({ id, label }) => box(id, label))}</fieldset>
        <fieldset>
          <legend>${S.properties}</legend>
          ${properties.length === 0
            ? html`<p class="muted">${S.noProperties}</p>`
            : properties.map((each) => box(PROPERTY + each, html`<${Text} value=${each} max=${80} />`))}
        </fieldset>
        <${Field} label=${S.another}>
          <input
            value=${name}
            autocomplete="off"
            spellcheck=${false}
            onInput=${(/** @type {any} */ event) => setName(event.target.value)}
          />
        <//>
        <div class="dialog-actions">
          <button type="button" onClick=${() => set(DEFAULTS[list])}>${S.reset}</button>
          <button type="submit" disabled=${name === "" || isFull}>${S.add}</button>
          <button type="button" class="primary" onClick=${close}>${C.close}</button>
        </div>
      </form>
    <//>
  `;
}
