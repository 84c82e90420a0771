// Makes queues, topics with their subscriptions, and subscriptions; at an entity's address, changes it.

import { useDraft } from "../lib/draft.js";
import { useRefusedFocus } from "../lib/focus.js";
import { html, useEffect, useState } from "../lib/html.js";
import { entityHref } from "../lib/paths.js";
import { href, setQuery } from "../lib/router.js";
import { can } from "../lib/session.js";
import { visible } from "../lib/visible.js";
import { Choice, Field } from "../components/field.js";
import { Empty, Problem } from "../components/notice.js";
import { EntityName } from "../components/text.js";
import { attempt, toast } from "../components/toast.js";
import { Edit } from "./new-entity/edit.js";
import { Fields, PathField } from "./new-entity/fields.js";
import { NO_ERRORS, exportConfiguration, make, named, pathOf } from "./new-entity/make.js";
import { DEFAULTS } from "./new-entity/model.js";
import { RuleFields } from "./new-entity/rule-fields.js";
import { NEW_RULE } from "./new-entity/rule-model.js";
import { NewSubscriptions, withEmpty } from "./new-entity/subscriptions.js";
import { S as C } from "../strings/common.js";
import { S } from "../strings/new-entity.js";

/** @typedef {import("./new-entity/make.js").Draft} Draft */
/** @typedef {Schemas["Kind"]} Kind */

/** @type {Draft} */
const NEW = { name: "", topic: "", values: DEFAULTS, rule: NEW_RULE, subscriptions: withEmpty([]), made: [] };

/** @param {import("./index.js").PageProperties} properties */
export default function NewEntity({ parameters, query }) {
  if (!can("manage")) {
    return html`
      <div class="page-head"><h1 tabindex="-1">${S.title}</h1></div>
      <div class="card"><${Empty} title=${S.forbiddenTitle} text=${S.forbiddenText} /></div>
    `;
  }
  return parameters.path === undefined
    ? html`<${Make} query=${query} />`
    : html`<${Edit} key=${parameters.path} path=${parameters.path} query=${query} />`;
}

/** @param {string | undefined} kind
 * @returns {Kind} */
const kindOf = (kind) => (kind === "topic" || kind === "subscription" ? kind : "queue");

/** @param {{ query: Record<string, string> }} properties */
function Make({ query }) {
  const kind = kindOf(query.kind);
  const [made, setMade, forgetMade] = useDraft("made entities", /** @type {string[]} */ ([]));
  return html`
    <div class="page-head">
      <p class="crumbs"><a href=${href(["entities"])}>${C.pages.entities}</a></p>
      <h1 tabindex="-1">${S.title}</h1>
    </div>
    ${made.length !== 0 && html`<${Made} paths=${made} onClear=${forgetMade} />`}
    <div class="tools">
      <${Choice}
        label=${S.kind}
        value=${kind}
        onChange=${(/** @type {string} */ next) => setQuery({ kind: next === "queue" ? "" : next })}
        options=${
          /** @type {Kind[]} */ (["queue", "topic", "subscription"]).map((value) => ({
            value,
            label: S.kinds[value],
          }))
        }
      />
    </div>
    <${Form}
      key=${kind}
      kind=${kind}
      topic=${query.topic ?? ""}
      onMade=${(/** @type {string[]} */ paths) =>
        setMade((now) => [...now.filter((path) => !paths.includes(path)), ...paths])}
    />
  `;
}

/** What was made here, the newest last.
 * @param {{ paths: string[], onClear: () => void }} properties */
function Made({ paths, onClear }) {
  return html`
    <section class="card made" aria-labelledby="made">
      <div class="card-head">
        <h2 id="made">${S.made}</h2>
        <span class="actions">
          <button type="button" onClick=${() => attempt(exportConfiguration, S.exported)}>${S.export}</button>
          <button type="button" class="quiet" onClick=${onClear}>${S.forgetMade}</button>
        </span>
      </div>
      <ul>
        ${paths.map(
          (path) => html`
            <li key=${path}><a href=${entityHref(path)}><${EntityName} value=${path} max=${260} /></a></li>
          `,
        )}
      </ul>
    </section>
  `;
}

/** @param {{ kind: Kind, topic: string, onMade: (paths: string[]) => void }} properties */
function Form({ kind, topic, onMade }) {
  const [draft, setDraft, forget] = useDraft(`new ${kind}`, /** @type {Draft} */ ({ ...NEW, topic }));
  const [errors, setErrors] = useState(NO_ERRORS);
  const [isBusy, setBusy] = useState(false);
  const form = useRefusedFocus(errors);
  // Another form comes with another kind: its first field is where the reader goes on.
  const focusName = () => form.current?.querySelector("input")?.focus();
  useEffect(() => {
    // A topic that is named in the address is what the reader came from.
    if (topic !== "" && draft.topic !== topic) set({ topic });
  }, [topic]);
  const set = (/** @type {Partial<Draft>} */ part) => setDraft((now) => ({ ...now, ...part }));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setErrors(NO_ERRORS);
    /** @type {string[]} */
    const done = [];
    const refused = await make(kind, draft, (path) => done.push(path));
    setBusy(false);
    if (done.length !== 0) onMade(done);
    if (refused === null) {
      toast(S.wasMade(visible(pathOf(kind, draft))), { href: entityHref(pathOf(kind, draft)), linkText: S.open });
      forget();
      focusName();
      return;
    }
    if (done.length !== 0) toast(S.partly, { tone: "alarm" });
    setDraft((now) => ({ ...now, made: [...now.made, ...done] }));
    setErrors(refused);
  };
  const isPartly = draft.made.length !== 0;
  const count = kind === "topic" ? named(draft).length : 0;
  return html`
    <form ref=${form} class="entity-form card" aria-label=${S.form} onSubmit=${submit} noValidate>
      <div class="field-grid">
        ${kind === "subscription" && html`
          <${PathField}
            label=${S.topic}
            hint=${S.topicHint}
            error=${errors.fields.topic}
            value=${draft.topic}
            kinds=${["topic"]}
            onChange=${(/** @type {string} */ next) => set({ topic: next })}
          />
        `}
        <${Field} label=${S.name} error=${errors.fields.name}>
          <input
            value=${draft.name}
            placeholder=${S.nameExample[kind]}
            spellcheck=${false}
            autocomplete="off"
            maxlength="400"
            readonly=${isPartly}
            onInput=${(/** @type {any} */ event) => set({ name: event.target.value })}
          />
        <//>
      </div>
      ${kind === "topic" && html`
        <${NewSubscriptions}
          topic=${draft.name}
          subscriptions=${draft.subscriptions}
          made=${draft.made}
          errors=${errors.subscriptions}
          onChange=${(/** @type {any} */ subscriptions) => set({ subscriptions })}
        />
      `}
      ${kind === "subscription" && html`
        <fieldset class="field-group">
          <legend>${S.rule}</legend>
          <div class="rule-form">
            <${RuleFields}
              rule=${draft.rule}
              errors=${errors.rule}
              onChange=${(/** @type {any} */ rule) => set({ rule })}
            />
          </div>
        </fieldset>
        ${(errors.rule[""] ?? errors.rule.name) && html`
          <${Problem} error=${new Error(errors.rule[""] ?? errors.rule.name)} />
        `}
      `}
      ${!isPartly && html`
        <${Fields}
          kind=${kind}
          values=${draft.values}
          errors=${errors.fields}
          onChange=${(/** @type {any} */ values) => set({ values })}
        />
      `}
      ${errors.fields[""] && html`<${Problem} error=${new Error(errors.fields[""])} />`}
      <div class="form-end">
        <button type="submit" class="primary" disabled=${isBusy}>
          ${isBusy ? S.making : isPartly ? S.makeRest : S.make(C.kinds[kind], count)}
        </button>
        <button
          type="button"
          class="quiet"
          onClick=${() => {
            forget();
            setErrors(NO_ERRORS);
            focusName();
          }}
        >
          ${S.startOver}
        </button>
      </div>
    </form>
  `;
}
