// Which subscriptions take a message, and which part of each rule's expression decided.

import { lastName, number } from "../../lib/format.js";
import { html, useState } from "../../lib/html.js";
import { writeJson } from "../../lib/json.js";
import { entityHref } from "../../lib/paths.js";
import { Choice } from "../../components/field.js";
import { Empty } from "../../components/notice.js";
import { useQuery } from "../../components/tabs.js";
import { Text } from "../../components/text.js";
import { S } from "../../strings/rule-test.js";

/** Subscriptions, and rules of one, that are shown at first. */
const [CARDS, RULES] = [100, 20];

/** @typedef {Loose<Schemas["TestedCondition"]> & { values?: Record<string, unknown> }} Condition */
/** @typedef {Schemas["SubscriptionTest"]} Subscription */

/** Adds to conditions the values that they read: an answer has each value once.
 * @param {Condition} condition
 * @param {Record<string, unknown>} values */
export function addValues(condition, values) {
  condition.values = Object.fromEntries((condition.properties ?? []).map((name) => [name, values[name] ?? null]));
  for (const part of condition.parts ?? []) addValues(part, values);
}

/** The conditions without parts by which a condition is what it is.
 * @param {Condition} condition
 * @returns {Condition[]} */
export function deciding(condition) {
  const parts = condition.parts ?? [];
  if (parts.length === 0) return [condition];
  // A negation is decided by its only part; AND and OR by those parts that have their result.
  const equal = parts.length === 1 ? parts : parts.filter(({ result }) => result === condition.result);
  return (equal.length === 0 ? parts : equal).flatMap(deciding);
}

/** @param {{ subscriptions: Subscription[], next: boolean, onMore: () => void, isTopic: boolean }} properties */
export function Results({ subscriptions, next, onMore, isTopic }) {
  const [show, setShow] = useQuery("show");
  const [most, setMost] = useState(CARDS);
  const taking = subscriptions.filter(({ takes }) => takes).length;
  const wanted = subscriptions.filter(({ takes }) => show === "" || takes === (show === "taking"));
  if (subscriptions.length === 0)
    return html`<div class="card"><${Empty} title=${S.noSubscriptions} text=${S.dropped} /></div>`;
  return html`
    <div class="tools test-summary">
      <div role="status"><h2>${S.summary(number(taking), number(subscriptions.length))}</h2></div>
      ${1 < subscriptions.length && html`
        <${Choice}
          label=${S.show}
          value=${show}
          onChange=${setShow}
          options=${[
            { value: "", label: S.all },
            { value: "taking", label: S.taking },
            { value: "not", label: S.notTaking },
          ]}
        />
      `}
    </div>
    ${isTopic && taking === 0 && !next && html`<p class="muted">${S.dropped}</p>`}
    ${wanted.length === 0
      ? html`<p class="muted">${S.noneShown}</p>`
      : html`
          <ul class="tests">
            ${wanted.slice(0, most).map((each) => html`<${Card} key=${each.path} subscription=${each} />`)}
          </ul>
        `}
    ${most < wanted.length && html`
      <p><button type="button" onClick=${() => setMost(most + CARDS)}>${S.showMore}</button></p>
    `}
    ${next && html`<p><button type="button" onClick=${onMore}>${S.more}</button></p>`}
  `;
}

/** @param {{ subscription: Subscription }} properties */
function Card({ subscription }) {
  const { path, takes, rules, incomplete } = subscription;
  const [most, setMost] = useState(RULES);
  return html`
    <li class="card">
      <div class="card-head">
        <h3><a href=${entityHref(path, "rules")}><${Text} value=${lastName(path)} max=${200} /></a></h3>
        <span class=${takes ? "tag accent" : "tag"}>${takes ? S.takes : S.takesNot}</span>
      </div>
      ${rules.length === 0
        ? html`<p class="muted">${S.noRules}</p>`
        : html`
            <ul class="tested-rules" aria-label=${S.rules}>
              ${rules.slice(0, most).map((rule) => html`<${Rule} key=${rule.name} rule=${rule} />`)}
            </ul>
          `}
      ${most < rules.length && html`
        <button type="button" class="quiet" onClick=${() => setMost(rules.length)}>${S.showMore}</button>
      `}
      ${incomplete && html`<p class="muted">${S.incomplete}</p>`}
    </li>
  `;
}

/** @param {{ rule: Schemas["RuleTest"] }} properties */
function Rule({ rule }) {
  /** @type {Condition} */
  const condition = rule;
  const hasParts = (condition.parts ?? []).length !== 0;
  return html`
    <li>
      <div class="tested-rule">
        <${Result} result=${condition.result} />
        <b><${Text} value=${rule.name} max=${100} /></b>
        <code class="muted"><${Text} value=${condition.text} max=${1000} /></code>
      </div>
      <div class="decided">
        ${hasParts && html`<span class="muted">${S.decided}</span>`}
        <ul>
          ${deciding(condition)
            .slice(0, RULES)
            .map(
              (each, at) => html`
                <li key=${at}>
                  ${hasParts && html`
                    <${Result} result=${each.result} /> <code><${Text} value=${each.text} max=${500} /></code>
                  `}
                  <${Values} condition=${each} />
                </li>
              `,
            )}
        </ul>
      </div>
      ${hasParts && html`<details><summary>${S.whole}</summary><${Tree} condition=${condition} /></details>`}
    </li>
  `;
}

/** The values that a condition read.
 * @param {{ condition: Condition }} properties */
function Values({ condition }) {
  const entries = Object.entries(condition.values ?? {});
  const isUnlike = condition.result === "unknown" && entries.every(([, value]) => value !== null);
  if (entries.length === 0 && !condition.error) return null;
  return html`
    <span class="values">
      ${entries.map(
        ([name, value]) => html`
          <span key=${name} class="value-read">
            ${value === null
              ? html`<${Text} value=${S.absent(name)} max=${200} />`
              : html`<${Text} value=${name} max=${200} /> = <b><${Text} value=${writeJson(value)} max=${300} /></b>`}
          </span>
        `,
      )}
      ${isUnlike && html`<span class="muted">${S.unlike}</span>`}
      ${condition.error && html`<span class="alarm-text"><${Text} value=${condition.error} /></span>`}
    </span>
  `;
}

/** @param {{ condition: Condition }} properties */
function Tree({ condition }) {
  const parts = condition.parts ?? [];
  return html`
    <div class="tree">
      <${Result} result=${condition.result} /> <code><${Text} value=${condition.text} max=${500} /></code>${" "}
      ${parts.length === 0 && html`<${Values} condition=${condition} />`}
      ${parts.length !== 0 && html`
        <ul>${parts.map((part, at) => html`<li key=${at}><${Tree} condition=${part} /></li>`)}</ul>
      `}
    </div>
  `;
}

/** True, false or unknown; red is what cannot be evaluated.
 * @param {{ result: Schemas["ConditionResult"] | undefined }} properties */
function Result({ result = "unknown" }) {
  return html`
    <span class=${`tag result ${result === "true" ? "accent" : result === "failed" ? "alarm" : ""} ${result}`}>
      ${S.results[result]}
    </span>
  `;
}
