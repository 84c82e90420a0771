// Deferred messages: put back, or received by number and settled.

import { call } from "../lib/api.js";
import { actOn, startJob } from "../lib/actions.js";
import { now } from "../lib/clock.js";
import { useDraft } from "../lib/draft.js";
import { useFocusKept } from "../lib/focus.js";
import { digits, number } from "../lib/format.js";
import { html, useEffect, useState } from "../lib/html.js";
import { entities, isKnown } from "../lib/live.js";
import { entityHref } from "../lib/paths.js";
import { useResource } from "../lib/resource.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { visible } from "../lib/visible.js";
import { confirm } from "../components/dialog.js";
import { Field } from "../components/field.js";
import { Empty, Loading, Notice } from "../components/notice.js";
import { Table } from "../components/table.js";
import { EntityLink, EntityName } from "../components/text.js";
import { Count } from "../components/time.js";
import { toast } from "../components/toast.js";
import { HeldMessage } from "./deferred/held.js";
import { DeferredList } from "./deferred/list.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/deferred.js";

/** @typedef {import("./deferred/held.js").Held} Held */
/** @typedef {Schemas["EntityNow"]} Entity */

/** Seconds for which a job is waited for before it is only named. */
const WAIT_SECONDS = 5;

/** @param {import("./index.js").PageProperties} properties */
export default function Deferred({ query }) {
  const path = query.entity ?? "";
  if (path !== "") return html`<${OfEntity} key=${path} path=${path} />`;
  const some = [...entities.value.values()]
    .filter(({ deferred }) => deferred !== 0)
    .sort((a, b) => b.deferred - a.deferred || (a.path < b.path ? -1 : 1));
  return html`
    <div class="page-head"><h1 tabindex="-1">${C.pages.deferred}</h1></div>
    ${!isKnown.value
      ? html`<${Loading} />`
      : some.length === 0
        ? html`<div class="card"><${Empty} title=${S.none} text=${S.noneText} command=${S.command} /></div>`
        : html`
            <${Table}
              label=${S.choose}
              columns=${ENTITIES}
              rows=${some}
              keyOf=${(/** @type {Entity} */ row) => row.path}
              hrefOf=${(/** @type {Entity} */ row) => hrefOf(row.path)}
              isSorted=${true}
              fills=${true}
            />
          `}
  `;
}

/** @param {string} path */
const hrefOf = (path) => href(["deferred"], { entity: path });

/** @type {import("../components/table.js").Column<Entity>[]} */
const ENTITIES = [
  {
    id: "path",
    label: S.entity,
    isWide: true,
    cell: (row) => html`<${EntityLink} path=${row.path} to=${hrefOf(row.path)} />`,
  },
  { id: "deferred", label: S.count, align: "end", cell: (row) => html`<${Count} value=${row.deferred} />` },
];

/** @param {{ path: string }} properties */
function OfEntity({ path }) {
  const entity = entities.value.get(path);
  const [all, setAll] = useDraft("deferred", /** @type {Held[]} */ ([]));
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [changes, setChanges] = useState(0);
  useFocusKept(".by-number input");
  const held = all.filter((each) => each.entity === path);
  const about = useResource(
    async (signal) => await call("get_entity", { path: { entity: path }, signal }).catch(() => null),
    [path],
  );
  const hasSessions = about.data?.properties.requires_session === true;
  const count = entity?.deferred ?? 0;
  useEffect(() => setSelected(new Set()), [count]);
  const changed = () => setChanges((/** @type {number} */ old) => old + 1);
  const keep = (/** @type {(now: Held[]) => Held[]} */ change) => {
    setAll(change);
    changed();
  };
  const forget = (/** @type {string} */ token) => keep((now) => now.filter((each) => each.token !== token));
  const take = async (/** @type {string} */ wanted) => {
    const from = now();
    const { messages } = await call("lock_messages", {
      path: { entity: path },
      body: { sequence_numbers: [/** @type {any} */ (BigInt(wanted))] },
    });
    const taken = messages.map((message) => ({
      entity: path,
      number: digits(message.sequence_number),
      token: message.lock_token,
      until: message.lock?.until ?? new Date(from + 30_000).toISOString(),
      from,
    }));
    keep((now) => [...taken, ...now]);
    toast(S.received(wanted));
  };
  // Rows move up when others are put back: the question names the message.
  const putBack = (/** @type {string} */ one) =>
    confirm({
      title: S.putBackOneTitle(one, visible(path)),
      text: S.putBackOneText,
      action: S.putBack,
      isAlarm: false,
      run: async () => {
        await actOn(path, BigInt(one), { kind: "activate" }).finally(changed);
        toast(S.active(one));
      },
    });
  const putBackMany = async (/** @type {Partial<Schemas["MessageSelection"]>} */ selection) => {
    const begun = await startJob(path, selection, { kind: "activate" });
    const job = await call("get_job", { path: { id: begun.id }, query: { wait: WAIT_SECONDS } });
    changed();
    setSelected(new Set());
    if (job.state === "running") toast(S.jobRuns(String(job.id)), { href: href(["jobs", job.id]), linkText: S.toJob });
    else if (job.error) throw new Error(job.error);
    else toast(S.putBackDone(number(job.changed), number(job.skipped)));
  };
  const putBackAll = () =>
    confirm({
      title: S.putBackTitle(number(count), visible(path)),
      text: S.putBackText,
      action: S.putBack,
      isAlarm: false,
      run: () => putBackMany({ states: ["deferred"] }),
    });
  const putBackSelected = () =>
    confirm({
      title: S.putBackSelectedTitle(number(selected.size), visible(path)),
      text: S.putBackText,
      action: S.putBack,
      isAlarm: false,
      run: () => putBackMany({ states: ["deferred"], numbers: /** @type {any} */ ([...selected].map(BigInt)) }),
    });
  return html`
    <div class="page-head">
      <p class="crumbs"><a href=${href(["deferred"])}>${S.others}</a></p>
      <h1 tabindex="-1">${C.pages.deferred}</h1>
      <a href=${entityHref(path)}><${EntityName} value=${path} max=${260} /></a>
      ${entity !== undefined && html`<span class="muted number">${S.summary(number(count))}</span>`}
      ${can("manage") && count !== 0 && html`
        <div class="actions">
          ${selected.size !== 0 && html`
            <button type="button" onClick=${putBackSelected}>${S.putBackSelected(number(selected.size))}</button>
          `}
          <button type="button" onClick=${putBackAll}>${S.putBackAll(number(count))}</button>
        </div>
      `}
    </div>
    ${!can("manage") && html`<${Notice}>${S.notAllowed}<//>`}
    ${can("manage") && (hasSessions ? html`<${Notice}>${S.inSession}<//>` : html`<${ByNumber} onReceive=${take} />`)}
    ${held.map(
      (each) => html`
        <${HeldMessage}
          key=${each.token}
          held=${each}
          onDone=${() => forget(each.token)}
          onEnd=${() => forget(each.token)}
        />
      `,
    )}
    ${entity === undefined && !isKnown.value
      ? html`<${Loading} />`
      : count === 0
        ? html`
            <div class="card">
              <${Empty} title=${S.noneOf} text=${S.noneText}><a href=${href(["deferred"])}>${S.others}</a><//>
            </div>
          `
        : html`
            <${DeferredList}
              path=${path}
              follows=${[count, entity?.locked ?? 0, entity?.abandoned ?? 0, changes]}
              selected=${selected}
              onSelect=${setSelected}
              onReceive=${
                hasSessions
                  ? null
                  : (/** @type {string} */ one) =>
                      void take(one).catch((error) => toast(error.message, { tone: "alarm" }))
              }
              onPutBack=${putBack}
            />
          `}
  `;
}

/** @param {{ onReceive: (number: string) => Promise<void> }} properties */
function ByNumber({ onReceive }) {
  const [value, setValue] = useState("");
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!/^\d{1,20}$/.test(value.trim())) {
      setError(S.numberNeeded);
      return;
    }
    setBusy(true);
    try {
      await onReceive(value.trim());
      setValue("");
      setError("");
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
    }
    setBusy(false);
  };
  return html`
    <form class="by-number" onSubmit=${submit} noValidate>
      <${Field} label=${S.byNumber} error=${error}>
        <input
          inputmode="numeric"
          value=${value}
          autocomplete="off"
          placeholder=${S.number}
          onInput=${(/** @type {any} */ event) => {
            setValue(event.target.value);
            setError("");
          }}
        />
      <//>
      <button type="submit" disabled=${isBusy}>${S.receive}</button>
    </form>
  `;
}
