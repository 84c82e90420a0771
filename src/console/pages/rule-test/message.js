// Which message is tested: one that is pasted, or one that is in a queue.

import { call } from "../../lib/api.js";
import { digits } from "../../lib/format.js";
import { html, useEffect, useLayoutEffect, useState } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { deadLettersOf, messageHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { setQuery } from "../../lib/router.js";
import { EntityField } from "../../components/entity-field.js";
import { Field } from "../../components/field.js";
import { Preview } from "../../components/message-list.js";
import { Loaded } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { Text } from "../../components/text.js";
import { S } from "../../strings/rule-test.js";

/** Messages that are offered to be picked. */
const OFFERED = 50;

/** @param {{ text: string, onText: (text: string) => void, note: string, error: string }} properties */
export function Paste({ text, onText, note, error }) {
  // A layout effect: a reader can paste as soon as the page is there.
  useLayoutEffect(() => {
    // What is pasted outside of fields is the message, too.
    const paste = (/** @type {ClipboardEvent} */ event) => {
      const pasted = event.clipboardData?.getData("text") ?? "";
      if (pasted === "" || (event.target instanceof Element && event.target.matches("input, textarea, select"))) return;
      event.preventDefault();
      onText(pasted);
    };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, [onText]);
  return html`
    <${Field} label=${S.pasteLabel} hint=${note || S.pasteHint} error=${error}>
      <textarea
        rows="10"
        spellcheck=${false}
        placeholder=${S.example}
        value=${text}
        onInput=${(/** @type {any} */ event) => onText(event.target.value)}
      />
    <//>
  `;
}

/** @param {{ of: string, number: string, error: string }} properties */
export function Pick({ of, number, error }) {
  const [typed, setTyped] = useState(number);
  useEffect(() => setTyped(number), [number]);
  const choices = [...entities.value.values()]
    .flatMap(({ path, active, deferred, scheduled, dead_letters: dead }) => [
      ...(active + deferred + scheduled !== 0 ? [path] : []),
      ...(dead !== 0 ? [deadLettersOf(path)] : []),
    ])
    .sort();
  const change = (/** @type {string} */ next) => {
    setTyped(next);
    if (next === "" || /^\d{1,20}$/.test(next)) setQuery({ number: next });
  };
  return html`
    <div class="pick">
      <${EntityField}
        label=${S.queue}
        value=${of}
        choices=${choices}
        none=${S.chooseQueue}
        onChange=${(/** @type {string} */ next) => setQuery({ of: next, by: "keep", number: undefined })}
      />
      <${Field} label=${S.number} error=${error}>
        <input
          inputmode="numeric"
          value=${typed}
          autocomplete="off"
          onInput=${(/** @type {any} */ event) => change(event.target.value.trim())}
        />
      <//>
    </div>
    ${of !== "" && number !== "" && html`
      <p class="actions">
        <a href=${messageHref(of, /** @type {any} */ (number))}>${S.look}</a>
        <button type="button" class="quiet" onClick=${() => setQuery({ number: undefined })}>${S.another}</button>
      </p>
    `}
    ${of !== "" && number === "" && html`<${Offered} of=${of} />`}
  `;
}

/** @param {{ of: string }} properties */
function Offered({ of }) {
  const found = useResource(
    (signal) => call("list_messages", { path: { entity: of }, query: { limit: OFFERED, body: "preview" }, signal }),
    [of],
  );
  return html`
    <${Loaded} of=${found}>
      ${(/** @type {Schemas["Messages"]} */ { messages }) =>
        messages.length === 0
          ? html`<p class="muted">${S.noMessages}</p>`
          : html`
              <${Table}
                label=${S.pick}
                columns=${COLUMNS}
                rows=${messages}
                keyOf=${(/** @type {Schemas["MessageShown"]} */ row) => String(row.sequence_number)}
                heightMax=${320}
                isSorted=${true}
              />
            `}
    <//>
  `;
}

/** @type {import("../../components/table.js").Column<Schemas["MessageShown"]>[]} */
const COLUMNS = [
  {
    id: "number",
    label: S.number,
    align: "end",
    cell: (row) => html`
      <button
        type="button"
        class="link number"
        aria-label=${S.testLabel(digits(row.sequence_number))}
        onClick=${() => setQuery({ number: digits(row.sequence_number) })}
      >
        ${digits(row.sequence_number)}
      </button>
    `,
  },
  { id: "id", label: S.messageId, cell: (row) => html`<${Text} value=${row.message_id} max=${80} />` },
  { id: "subject", label: S.subject, hide: "medium", cell: (row) => html`<${Text} value=${row.subject} max=${80} />` },
  { id: "body", label: S.body, isWide: true, hide: "narrow", cell: (row) => html`<${Preview} message=${row} />` },
];
