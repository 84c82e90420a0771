// Changes an entity that is there: its properties by their version, its rules, and its end.

import { ApiError, call, request } from "../../lib/api.js";
import { lastName, topicOf } from "../../lib/format.js";
import { useDraft } from "../../lib/draft.js";
import { useRefusedFocus } from "../../lib/focus.js";
import { html, useState } from "../../lib/html.js";
import { parseJson } from "../../lib/json.js";
import { entityHref } from "../../lib/paths.js";
import { useResource } from "../../lib/resource.js";
import { go, href } from "../../lib/router.js";
import { visible } from "../../lib/visible.js";
import { confirm } from "../../components/dialog.js";
import { Empty, Loaded, Notice, Problem } from "../../components/notice.js";
import { EntityName } from "../../components/text.js";
import { announce, toast } from "../../components/toast.js";
import { Conflict } from "./conflict.js";
import { Fields } from "./fields.js";
import { fieldOfError, fieldsOf, propertiesOf, valuesOf } from "./model.js";
import { EditRules } from "./rules.js";
import { S as C } from "../../strings/common.js";
import { S } from "../../strings/new-entity.js";

/** @typedef {import("./model.js").Values} Values */
/** What an entity was when it was read.
 * @typedef {{ kind: Schemas["Kind"], etag: string, values: Values }} Version */
/** @typedef {{ base: Version | null, values: Values }} Draft */

/** @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<Version>} */
async function read(path, signal) {
  const response = await request("get_entity", { path: { entity: path }, signal });
  /** @type {Schemas["Entity"]} */
  const entity = parseJson(await response.text());
  return {
    kind: entity.kind,
    etag: response.headers.get("etag") ?? "*",
    values: valuesOf(entity.kind, /** @type {any} */ (entity.properties)),
  };
}

/** @param {{ path: string, query: Record<string, string> }} properties */
export function Edit({ path, query }) {
  const current = useResource((signal) => read(path, signal), [path]);
  const isGone = current.error instanceof ApiError && current.error.status === 404;
  const topic = topicOf(path);
  const remove = () =>
    confirm({
      title: S.removeTitle(visible(path)),
      text: S.removeText,
      name: path,
      action: S.remove,
      run: async () => {
        await call("delete_entity", { path: { entity: path } });
        toast(S.removed(visible(path)));
        go(topic === null ? href(["entities"]) : entityHref(topic, "subscriptions"));
      },
    });
  return html`
    <div class="page-head">
      <p class="crumbs">
        <a href=${href(["entities"])}>${C.pages.entities}</a>
        ${topic !== null && html` / <a href=${entityHref(topic)}><${EntityName} value=${topic} max=${260} /></a>`} / <a
          href=${entityHref(path)}
        >
          <${EntityName} value=${lastName(path)} max=${260} />
        </a>
      </p>
      <h1 tabindex="-1">${S.editTitle(visible(lastName(path)))}</h1>
      ${current.data && html`
        <span class="tag">${C.kinds[current.data.kind]}</span>
        <span class="actions">
          ${current.data.kind === "topic" && html`
            <a class="button" href=${href(["new-entity"], { kind: "subscription", topic: path })}>
              ${S.newSubscription}
            </a>
          `}
          <button type="button" onClick=${remove}>${S.remove}</button>
        </span>
      `}
    </div>
    ${isGone
      ? html`<div class="card"><${Empty} title=${S.gone}><a href=${href(["entities"])}>${S.toEntities}</a><//></div>`
      : html`
          <${Loaded} of=${current}>
            ${(/** @type {Version} */ version) => html`
              ${version.kind === "subscription" && html`<${EditRules} path=${path} query=${query} />`}
              <${Properties} path=${path} read=${version} />
            `}
          <//>
        `}
  `;
}

/** The names of what differs.
 * @param {Schemas["Kind"]} kind
 * @param {Values} a
 * @param {Values} b */
const differing = (kind, a, b) =>
  fieldsOf(kind)
    .map(({ name }) => name)
    .filter((name) => a[name] !== b[name]);

/** @param {{ path: string, read: Version }} properties */
function Properties({ path, read: first }) {
  const [draft, setDraft, forget] = useDraft(`edit ${path}`, /** @type {Draft} */ ({ base: null, values: {} }));
  const [fresh, setFresh] = useState(/** @type {Version | null} */ (null));
  const { kind } = first;
  // A draft of before a reload is of the version that it was begun with: whether that is still there, saving tells.
  const isBegun = draft.base !== null && differing(kind, draft.base.values, draft.values).length !== 0;
  const base = isBegun && draft.base !== null ? draft.base : (fresh ?? first);
  const values = isBegun ? draft.values : base.values;
  const changed = differing(kind, base.values, values);
  const [errors, setErrors] = useState(/** @type {Record<string, string>} */ ({}));
  const [theirs, setTheirs] = useState(/** @type {Version | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isKept, setKept] = useState(false);
  const form = useRefusedFocus(errors);
  const change = (/** @type {Values} */ next) => setDraft({ base, values: next });
  const settle = (/** @type {Version} */ version) => {
    forget();
    setFresh(version);
    setTheirs(null);
    setErrors({});
    setKept(false);
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (changed.length === 0) return announce(S.unchanged);
    setBusy(true);
    setErrors({});
    try {
      const body = /** @type {any} */ ({ kind, properties: propertiesOf(kind, values) });
      await call("put_entity", { path: { entity: path }, headers: { "If-Match": base.etag }, body });
      settle(await read(path));
      toast(S.saved(visible(path)), { href: entityHref(path, "properties"), linkText: S.open });
    } catch (error) {
      const refused = /** @type {Error} */ (error);
      if (refused instanceof ApiError && refused.status === 412) setTheirs(await read(path).catch(() => null));
      else setErrors({ [fieldOfError(refused)]: refused.message });
    } finally {
      setBusy(false);
    }
  };
  const keep = (/** @type {Version} */ now) => {
    const mine = Object.fromEntries(changed.map((name) => [name, values[name]]));
    setDraft({ base: now, values: { ...now.values, ...mine } });
    setTheirs(null);
    setKept(true);
    announce(S.conflictKept);
  };
  return html`
    <form ref=${form} class="entity-form card" aria-label=${S.properties} onSubmit=${submit} noValidate>
      ${theirs !== null && html`
        <${Conflict}
          names=${differing(kind, base.values, theirs.values)}
          was=${base.values}
          is=${theirs.values}
          mine=${values}
          onKeep=${() => keep(theirs)}
          onDrop=${() => settle(theirs)}
        />
      `}
      ${isKept && html`<${Notice}>${S.conflictKept}<//>`}
      <${Fields} kind=${kind} values=${values} errors=${errors} isEdit=${true} own=${path} onChange=${change} />
      ${(errors[""] ?? errors.name) && html`<${Problem} error=${new Error(errors[""] ?? errors.name)} />`}
      <div class="form-end">
        <button type="submit" class="primary" disabled=${isBusy || changed.length === 0}>
          ${isBusy ? S.saving : S.save}
        </button>
        <button type="button" class="quiet" disabled=${changed.length === 0} onClick=${() => settle(base)}>
          ${S.revert}
        </button>
        <span class="muted" role="status">${changed.length === 0 ? S.unchanged : S.changed(changed.length)}</span>
      </div>
    </form>
  `;
}
