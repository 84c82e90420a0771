// What a Config.json names, compared with what is there.

/** An entity of a file. `changes` are those of its properties; `effect` says what applying it does.
 * @typedef {{ path: string, kind: Schemas["Kind"], effect: "new" | "same" | "change" | "unknown", changes: {
 *   name: string, was: string, is: string }[], areRulesNew: boolean, keys: number }} Named */

/** Blanks out comments and trailing commas, which the file may have: every place stays where it is.
 * @param {string} text */
export function withoutComments(text) {
  const blank = (/** @type {string} */ part) => part.replace(/[^\n]/g, " ");
  const bare = text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (part) =>
    part[0] === '"' ? part : blank(part),
  );
  return bare.replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (part) => (part === "," ? " " : part));
}

/** @param {unknown} value
 * @returns {any[]} */
const list = (value) => (Array.isArray(value) ? value.filter((each) => each !== null && typeof each === "object") : []);

/** The namespaces of a file. Throws what JSON does.
 * @param {string} text
 * @returns {any[]} */
export function namespacesOf(text) {
  const read = JSON.parse(withoutComments(text));
  return list(read?.UserConfig?.Namespaces);
}

/** The one of several that is meant for a namespace of this name.
 * @param {any[]} namespaces
 * @param {string | undefined} name */
export const chosen = (namespaces, name) =>
  namespaces.length === 1
    ? namespaces[0]
    : namespaces.find((each) => String(each.Name).toLowerCase() === name?.toLowerCase());

/** @typedef {{ path: string, kind: Schemas["Kind"], properties: Record<string, unknown>, rules: unknown,
 *   keys: number }} Found */

/** @param {any} namespace
 * @returns {Found[]} */
function entitiesOf(namespace) {
  const of = (/** @type {any} */ entity, /** @type {Schemas["Kind"]} */ kind, /** @type {string} */ path) => ({
    path,
    kind,
    properties: entity.Properties ?? {},
    rules: entity.Rules,
    keys: list(entity.AuthorizationRules).length,
  });
  const topics = list(namespace?.Topics).flatMap((topic) => [
    of(topic, "topic", String(topic.Name)),
    ...list(topic.Subscriptions).map((subscription) =>
      of(subscription, "subscription", `${topic.Name}/Subscriptions/${subscription.Name}`),
    ),
  ]);
  return [...list(namespace?.Queues).map((queue) => of(queue, "queue", String(queue.Name))), ...topics];
}

/** The same durations may be written in several ways.
 * @param {unknown} value */
function comparable(value) {
  const found =
    typeof value === "string" ? /^P(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?$/.exec(value) : null;
  if (found === null) return JSON.stringify(value) ?? "";
  const [days, hours, minutes, seconds] = found.slice(1).map((part) => Number(part ?? 0));
  return String(((days * 24 + hours) * 60 + minutes) * 60 + seconds);
}

/** Rules without what the file may leave out.
 * @param {unknown} rules */
function comparableRules(rules) {
  return JSON.stringify(
    list(rules).map(
      ({
        Name: name,
        Properties: {
          FilterType: type,
          SqlFilter: sql,
          CorrelationFilter: correlation,
          Action: action,
        } = /** @type {any} */ ({}),
      }) => [name, type, sql?.SqlExpression, Object.entries(correlation ?? {}).sort(), action?.SqlExpression],
    ),
  );
}

/** @param {unknown} value */
const shown = (value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

/** Compares a namespace of a file with that which is there.
 * @param {any} namespace
 * @param {any} current undefined if it is not known
 * @param {(path: string) => boolean} exists
 * @returns {Named[]} */
export function preview(namespace, current, exists) {
  const there = new Map(entitiesOf(current).map((entity) => [entity.path.toLowerCase(), entity]));
  return entitiesOf(namespace).map(({ path, kind, properties, rules, keys }) => {
    const before = there.get(path.toLowerCase());
    const named = { path, kind, keys, changes: /** @type {Named["changes"]} */ ([]), areRulesNew: false };
    if (before === undefined) return { ...named, effect: exists(path) ? "unknown" : "new" };
    const names = Object.keys(properties).filter(
      (name) =>
        comparable(properties[name]) !== comparable(before.properties[name]) &&
        !(properties[name] === "" && before.properties[name] === undefined) &&
        !(properties[name] === false && before.properties[name] === undefined),
    );
    const changes = names.map((name) => ({ name, was: shown(before.properties[name]), is: shown(properties[name]) }));
    const areRulesNew =
      kind === "subscription" && rules !== undefined && comparableRules(rules) !== comparableRules(before.rules);
    return { ...named, changes, areRulesNew, effect: changes.length !== 0 || areRulesNew ? "change" : "same" };
  });
}

/** The places in an error of the broker: it begins each line with one.
 * @param {string} detail
 * @returns {{ line: number, column: number, text: string }[]} */
export const mistakesOf = (detail) =>
  detail.split("\n").flatMap((each) => {
    const found = /^(\d+):(\d+): (.*)$/s.exec(each);
    return found === null ? [] : [{ line: Number(found[1]), column: Number(found[2]), text: found[3] }];
  });

/** Where a line and column are in a text.
 * @param {string} text
 * @param {number} line
 * @param {number} column */
export function offsetOf(text, line, column) {
  const lines = text.split("\n").slice(0, line - 1);
  return lines.reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
}
