// One message session: its state, its holder, its messages in order, and an end to what is left of it.

import { call } from "../../lib/api.js";
import { tenSeconds } from "../../lib/clock.js";
import { html } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { entityHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { href } from "../../lib/router.js";
import { can } from "../../lib/session.js";
import { Loaded, Notice } from "../../components/notice.js";
import { EntityName, Text } from "../../components/text.js";
import { Time } from "../../components/time.js";
import { openVerb } from "../../components/verb-dialog.js";
import { useCalm } from "./calm.js";
import { Holder, Messages } from "./list.js";
import { SessionMessages } from "./messages.js";
import { State } from "./state.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/sessions.js";

/** @param {{ path: string, id: string }} properties */
export function One({ path, id }) {
  const entity = entities.value.get(path);
  const now =
    entity === undefined
      ? ""
      : [
          entity.sessions,
          entity.sessions_held,
          entity.incoming,
          entity.completed,
          entity.abandoned,
          entity.locked,
          entity.deferred,
          entity.dead_letters,
          entity.scheduled,
          entity.locks_expired,
          entity.expired,
        ].join();
  const stir = useCalm(now);
  // A state that is set, and a lock that is renewed, are in no count.
  const session = useResource(
    (signal) => call("get_session", { path: { entity: path, id }, signal }),
    [path, id],
    [stir, tenSeconds.value],
  );
  const data = session.data;
  const open = (/** @type {import("../../components/verb-dialog.js").Kind} */ kind) => () =>
    openVerb({ entity: path, kind, selection: { session_id: id }, onDone: session.reload });
  return html`
    <div class="page-head">
      <p class="crumbs">
        <a href=${href(["sessions"])}>${C.pages.sessions}</a> / <a href=${href(["sessions", path])}>
          <${EntityName} value=${path} max=${260} />
        </a>
      </p>
      <h1 tabindex="-1"><${Text} value=${id} max=${260} none=${S.emptyId} /></h1>
      ${data && html`
        <span class=${data.lock == null ? "tag" : "tag accent"}>${data.lock == null ? S.freeTag : S.heldTag}</span>
      `}
      ${can("manage") && data && 0 < data.messages && html`
        <div class="actions">
          <button type="button" onClick=${open("dead_letter")}>${S.deadLetter}</button>
          <button type="button" onClick=${open("move")}>${S.move}</button>
          <button type="button" onClick=${open("delete")}>${S.remove}</button>
        </div>
      `}
    </div>
    <${Loaded} of=${session}>
      ${(/** @type {Schemas["Session"]} */ shown) => html`
        <${Shown} path=${path} session=${shown} reload=${session.reload} stir=${stir} />
      `}
    <//>
  `;
}

/** @param {{ path: string, session: Schemas["Session"], reload: () => void, stir: string }} properties */
function Shown({ path, session, reload, stir }) {
  const { id, messages, lock, state_bytes: bytes } = session;
  const deadHref = `${entityHref(path, "dead-letters")}&${new URLSearchParams({ by: "session_id", value: id })}`;
  return html`
    ${messages === 0 && lock == null && bytes == null && html`<${Notice}>${S.gone}<//>`}
    <div class="columns session">
      <section class="card" aria-labelledby="holder">
        <div class="card-head"><h2 id="holder">${S.holderTitle}</h2></div>
        <dl class="pairs">
          ${lock == null
            ? html`<dt>${S.holder}</dt><dd class="muted">${S.noHolder}</dd>`
            : html`
                <dt>${S.holder}</dt>
                <dd><${Holder} lock=${lock} /> <span class="muted">${lock.holder?.peer}</span></dd>
                ${lock.until != null && html`<dt>${S.until}</dt><dd><${Time} at=${lock.until} /></dd>`}
              `}
          <dt>${S.messages}</dt>
          <dd><${Messages} value=${messages} /></dd>
          <dt>${S.entity}</dt>
          <dd><a href=${entityHref(path)}><${EntityName} value=${path} /></a></dd>
          <dt>${S.deadTitle}</dt>
          <dd><a href=${deadHref}>${S.deadOnes}</a></dd>
        </dl>
      </section>
      <${State} path=${path} session=${session} reload=${reload} />
    </div>
    <${SessionMessages} path=${path} id=${id} stir=${stir} />
  `;
}
