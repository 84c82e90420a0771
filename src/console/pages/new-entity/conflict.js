// What someone else has changed while the reader was changing it.

import { html, useLayoutEffect, useRef } from "../../lib/html.js";
import { Text } from "../../components/text.js";
import { S as C } from "../../strings/common.js";
import { PROPERTIES } from "../../strings/entity.js";
import { S } from "../../strings/new-entity.js";

/** @typedef {import("./model.js").Values} Values */

/** @param {{ names: string[], was: Values, is: Values, mine: Values, onKeep: () => void, onDrop: () =>
 *   void }} properties */
export function Conflict({ names, was, is, mine, onKeep, onDrop }) {
  /** @type {{ current: HTMLDivElement | null }} */
  const box = useRef(null);
  useLayoutEffect(() => box.current?.focus(), []);
  return html`
    <div ref=${box} class="conflict notice-box" role="alert" tabindex="-1">
      <div><b>${S.conflictTitle}</b> ${names.length === 0 ? S.conflictNothing : S.conflictText}</div>
      ${names.length !== 0 && html`
        <div class="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">${S.properties}</th>
                <th scope="col">${S.conflictWas}</th>
                <th scope="col">${S.conflictIs}</th>
                <th scope="col">${S.conflictYours}</th>
              </tr>
            </thead>
            <tbody>
              ${names.map(
                (name) => html`
                  <tr key=${name}>
                    <th scope="row">${PROPERTIES[name] ?? name}</th>
                    <td><${Value} value=${was[name]} /></td>
                    <td><b><${Value} value=${is[name]} /></b></td>
                    <td><${Value} value=${mine[name]} /></td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
      `}
      <div class="actions">
        <button type="button" class="primary" onClick=${onKeep}>${S.conflictKeep}</button>
        <button type="button" onClick=${onDrop}>${S.conflictDrop}</button>
      </div>
    </div>
  `;
}

/** @param {{ value: string | boolean | undefined }} properties */
function Value({ value }) {
  if (typeof value === "boolean") return value ? C.yes : C.no;
  return html`<${Text} value=${value} none=${S.none} />`;
}
