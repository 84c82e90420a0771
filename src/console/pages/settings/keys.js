// Authorization rules of queues and topics: their rights and keys.

import { ApiError, call } from "../../lib/api.js";
import { html, useState } from "../../lib/html.js";
import { entities } from "../../lib/live.js";
import { useResource } from "../../lib/resource.js";
import { href, setQuery } from "../../lib/router.js";
import { session } from "../../lib/session.js";
import { visible } from "../../lib/visible.js";
import { EntityField } from "../../components/entity-field.js";
import { Field } from "../../components/field.js";
import { Empty, Loaded, Notice, Problem } from "../../components/notice.js";
import { Table } from "../../components/table.js";
import { useQuery } from "../../components/tabs.js";
import { EntityLink, Text } from "../../components/text.js";
import { toast } from "../../components/toast.js";
import { RightsOf, Rule } from "./rule.js";
import { S } from "../../strings/settings.js";

/** @typedef {Schemas["AuthorizationRuleShown"]} Shown */

/** @param {{ entity: string }} properties */
export function Keys({ entity }) {
  const choices = [...entities.value.values()]
    .filter(({ kind }) => kind !== "subscription")
    .map(({ path }) => path)
    .sort();
  return html`
    ${session.value?.credential.kind === "open" && html`<${Notice}>${S.development}<//>`}
    <div class="settings-pick">
      <${EntityField}
        label=${S.entity}
        value=${entity}
        choices=${choices}
        none=${S.everyEntity}
        onChange=${(/** @type {string} */ next) => setQuery({ entity: next })}
      />
    </div>
    ${entity === "" ? html`<${All} />` : html`<${OfEntity} key=${entity} entity=${entity} />`}
  `;
}

/** A rule without its keys. @typedef {{ entity: string, name: string, rights: string[] }} Row */

/** Reads which rules there are; their keys are not kept.
 * @param {AbortSignal} signal
 * @returns {Promise<Row[]>} */
async function readAll(signal) {
  const configuration = /** @type {any} */ (await call("get_configuration", { query: { keys: true }, signal }));
  const namespace = configuration?.UserConfig?.Namespaces?.[0] ?? {};
  const found = [...(namespace.Queues ?? []), ...(namespace.Topics ?? [])];
  return found.flatMap(({ Name: entity, AuthorizationRules: rules }) =>
    (rules ?? []).map((/** @type {any} */ rule) => ({ entity, name: rule.Name, rights: rule.Rights })),
  );
}

/** @type {import("../../components/table.js").Column<Row>[]} */
const COLUMNS = [
  {
    id: "entity",
    label: S.entity,
    sort: (row) => row.entity,
    isWide: true,
    cell: (row) => html`<${EntityLink} path=${row.entity} to=${hrefOf(row)} />`,
  },
  { id: "rule", label: S.rule, sort: (row) => row.name, cell: (row) => html`<${Text} value=${row.name} max=${260} />` },
  { id: "rights", label: S.ruleRights, sort: (row) => row.rights.join(), cell: (row) => row.rights.join(", ") },
];

/** @param {Row} row */
const hrefOf = ({ entity }) => href(["settings"], { tab: "keys", entity });

function All() {
  const rules = useResource(readAll, []);
  const [sort, setSort] = useQuery("sort", "entity");
  return html`
    <${Loaded} of=${rules}>
      ${(/** @type {Row[]} */ rows) =>
        rows.length === 0
          ? html`
              <div class="card"><${Empty} title=${S.noRules} text=${S.noRulesText} command=${S.noRulesCommand} /></div>
            `
          : html`
              <${Table}
                label=${S.allRules}
                columns=${COLUMNS}
                rows=${rows}
                keyOf=${(/** @type {Row} */ row) => `${row.entity} ${row.name}`}
                sort=${sort}
                onSort=${setSort}
                hrefOf=${hrefOf}
                fills=${true}
              />
            `}
    <//>
  `;
}

/** @param {{ entity: string }} properties */
function OfEntity({ entity }) {
  const rules = useResource((signal) => call("list_authorization_rules", { path: { entity }, signal }), [entity]);
  return html`
    <${Loaded} of=${rules}>
      ${(/** @type {Schemas["AuthorizationRules"]} */ { authorization_rules: all }) => html`
        ${all.length === 0
          ? html`<div class="card"><p class="empty-title">${S.noRulesOf(visible(entity))}</p></div>`
          : html`
              <ul class="key-rules" aria-label=${S.rulesOf(visible(entity))}>
                ${all.map(
                  (rule) => html`
                    <li key=${rule.name}><${Rule} entity=${entity} rule=${rule} reload=${rules.reload} /></li>
                  `,
                )}
              </ul>
            `}
        <${NewRule} entity=${entity} names=${all.map(({ name }) => name)} reload=${rules.reload} />
      `}
    <//>
  `;
}

/** @param {{ entity: string, names: string[], reload: () => void }} properties */
function NewRule({ entity, names, reload }) {
  const [name, setName] = useState("");
  const [rights, setRights] = useState(/** @type {import("./rule.js").Rights} */ ([]));
  const [errors, setErrors] = useState(/** @type {{ name?: string, rights?: string, "": string }} */ ({ "": "" }));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const wanted = name.trim();
    // To put a rule that is there would change it.
    if (wanted === "" || names.includes(wanted))
      return setErrors({ name: wanted === "" ? S.nameNeeded : S.exists, "": "" });
    try {
      await call("put_authorization_rule", { path: { entity, name: wanted }, body: { rights } });
      toast(S.made(visible(wanted)));
      setName("");
      setRights([]);
      setErrors({ "": "" });
      reload();
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      const field = error instanceof ApiError ? error.field : "";
      setErrors({ "": "", [field === "rights" || field === "name" ? field : ""]: message });
    }
  };
  return html`
    <section class="card" aria-labelledby="new-rule">
      <div class="card-head"><h2 id="new-rule">${S.newRule}</h2></div>
      <form class="settings-form" onSubmit=${submit}>
        <${Field} label=${S.ruleName} error=${errors.name}>
          <input
            value=${name}
            placeholder=${S.ruleNameExample}
            spellcheck=${false}
            autocomplete="off"
            onInput=${(/** @type {any} */ event) => setName(event.target.value)}
          />
        <//>
        <${RightsOf} rights=${rights} error=${errors.rights} onChange=${setRights} />
        ${errors[""] && html`<${Problem} error=${new Error(errors[""])} />`}
        <div class="actions"><button type="submit" class="primary">${S.make}</button></div>
      </form>
    </section>
  `;
}
