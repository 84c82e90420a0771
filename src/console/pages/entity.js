// One entity: what it has now, its messages and dead letters, who uses it, and how it is set.

import { call } from "../lib/api.js";
import { tenSeconds } from "../lib/clock.js";
import { lastName, number, topicOf } from "../lib/format.js";
import { html, useEffect } from "../lib/html.js";
import { entities, isKnown } from "../lib/live.js";
import { entityHref } from "../lib/paths.js";
import { go, href } from "../lib/router.js";
import { see } from "../lib/seen.js";
import { can } from "../lib/session.js";
import { freshOf } from "../lib/trends.js";
import { confirm } from "../components/dialog.js";
import { MessageList } from "../components/message-list.js";
import { Empty, Loading } from "../components/notice.js";
import { Tabs } from "../components/tabs.js";
import { EntityName } from "../components/text.js";
import { toast } from "../components/toast.js";
import { openVerb } from "../components/verb-dialog.js";
import { DeadLetters } from "./entity/dead-letters.js";
import { Consumers, linksTo } from "./entity/consumers.js";
import { Now } from "./entity/now.js";
import { Properties } from "./entity/properties.js";
import { Rules } from "./entity/rules.js";
import { Subscriptions } from "./entity/subscriptions.js";
import { Live } from "./entity/tail.js";
import { visible } from "../lib/visible.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/entity.js";
import { S as L } from "../strings/tail.js";

/** @param {import("./index.js").PageProperties} properties */
export default function Entity({ parameters, query }) {
  const entity = entities.value.get(parameters.path);
  useSeen(entity);
  if (entity === undefined)
    return html`
      <${Heading} path=${parameters.path} />
      ${isKnown.value
        ? html`<${Empty} title=${S.gone}><a href=${href(["entities"])}>${S.toEntities}</a><//>`
        : html`<${Loading} />`}
    `;
  const tabs = tabsOf(entity);
  const current = tabs.some(({ id }) => id === query.tab) ? query.tab : "now";
  return html`
    <${Heading} path=${entity.path} entity=${entity} />
    <${Tabs} label=${S.tabs} tabs=${tabs} current=${current} />
    <${Part} key=${current} entity=${entity} tab=${current} />
  `;
}

/** Keeps that the reader sees the dead letters of an entity, as long as the page is shown.
 * @param {Schemas["EntityNow"] | undefined} entity */
function useSeen(entity) {
  const tick = tenSeconds.value;
  useEffect(() => {
    if (entity !== undefined && entity.kind !== "topic") see(entity.path, entity.dead_letters);
  }, [entity?.path, entity?.dead_letters, tick]);
}

/** @param {Schemas["EntityNow"]} entity */
function tabsOf(entity) {
  const { kind, path } = entity;
  const tone = 0 < freshOf(path, entity.dead_letters) ? "alarm-text" : "";
  const dead = {
    id: "dead-letters",
    label: S.dead,
    count: entity.dead_letters === 0 ? undefined : html`<span class=${tone}>${number(entity.dead_letters)}</span>`,
  };
  return [
    { id: "now", label: S.now },
    {
      id: "messages",
      label: kind === "topic" ? S.scheduled : S.messages,
      count: number(entity.active + entity.scheduled + entity.deferred),
    },
    ...(kind === "topic" ? [{ id: "subscriptions", label: S.subscriptions }] : [dead]),
    ...(kind === "subscription" ? [{ id: "rules", label: S.rules }] : []),
    ...(kind === "topic" ? [] : [{ id: "live", label: L.live }]),
    { id: "consumers", label: S.consumers, count: number(linksTo(path).length) },
    { id: "properties", label: S.properties },
  ];
}

/** @param {{ entity: Schemas["EntityNow"], tab: string }} properties */
function Part({ entity, tab }) {
  switch (tab) {
    case "messages":
      return html`<${MessageList} address=${entity.path} newest=${entity.incoming + entity.completed} />`;
    case "dead-letters":
      return html`<${DeadLetters} entity=${entity} />`;
    case "live":
      return html`<${Live} entity=${entity} />`;
    case "subscriptions":
      return html`<${Subscriptions} topic=${entity.path} />`;
    case "rules":
      return html`<${Rules} path=${entity.path} />`;
    case "consumers":
      return html`<${Consumers} path=${entity.path} />`;
    case "properties":
      return html`<${Properties} path=${entity.path} />`;
    default:
      return html`<${Now} entity=${entity} />`;
  }
}

/** @param {{ path: string, entity?: Schemas["EntityNow"] }} properties */
function Heading({ path, entity }) {
  const topic = topicOf(path);
  return html`
    <div class="page-head">
      <p class="crumbs">
        <a href=${href(["entities"])}>${C.pages.entities}</a>
        ${topic !== null && html` / <a href=${entityHref(topic)}><${EntityName} value=${topic} max=${260} /></a>`}
      </p>
      <h1 tabindex="-1"><${EntityName} value=${lastName(path)} max=${260} /></h1>
      ${entity && html`<span class="tag">${C.kinds[entity.kind]}</span><${Actions} entity=${entity} />`}
    </div>
  `;
}

/** @param {{ entity: Schemas["EntityNow"] }} properties */
function Actions({ entity }) {
  const { path, kind } = entity;
  const name = visible(path);
  const isTopic = kind === "topic";
  const remove = () =>
    confirm({
      title: S.removeTitle(name),
      text: S.removeText,
      name: path,
      action: S.removeAction,
      run: async () => {
        await call("delete_entity", { path: { entity: path } });
        toast(S.removed(name));
        go(href(["entities"]));
      },
    });
  return html`
    <div class="actions">
      ${isTopic && can("manage") && html`
        <a class="button" href=${href(["new-entity"], { kind: "subscription", topic: path })}>${S.newSubscription}</a>
      `}
      ${kind !== "subscription" && can("send") && html`
        <a class="button" href=${href(["send"], { entity: path })}>${S.send}</a>
      `}
      ${kind !== "queue" && html`
        <a class="button" href=${href(["rule-test"], { entity: path })}>${C.pages["rule-test"]}</a>
      `}
      ${entity.deferred !== 0 && html`
        <a class="button" href=${href(["deferred"], { entity: path })}>${C.pages.deferred}</a>
      `}
      ${can("manage") && html`
        <a class="button" href=${href(["entity", path, "edit"])}>${S.change}</a>
        ${kind !== "subscription" && html`
          <a class="button" href=${href(["settings"], { tab: "keys", entity: path })}>${S.keys}</a>
        `}
        ${!isTopic && html`
          <button type="button" onClick=${() => openVerb({ entity: path, kind: "move" })}>${S.move}</button>
        `}
        <button type="button" onClick=${() => openVerb({ entity: path, kind: "delete" })}>${S.purge}</button>
        <button type="button" onClick=${remove}>${S.remove}</button>
      `}
    </div>
  `;
}
