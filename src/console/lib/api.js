// The one client of the JSON API. Operations have the names, parameters and answers of /api/v1/openapi.json:
// operations.js and the types are made of it.

import { observe } from "./clock.js";
import { parseJson, writeJson } from "./json.js";
import { OPERATIONS } from "./operations.js";

/** A request that the broker has refused. Its message is the broker's. */
export class ApiError extends Error {
  /** @param {Schemas["Problem"]} problem
   * @param {number | null} retryAfter seconds after which the broker wants to be asked again */
  constructor(problem, retryAfter = null) {
    super(problem.detail);
    this.name = "ApiError";
    this.status = problem.status;
    this.reason = problem.reason;
    /** The parameter or the field of the body that is wrong, if that is known. */
    this.field = problem.field ?? "";
    this.retryAfter = retryAfter;
  }
}

/** The broker cannot be reached. */
export class AwayError extends Error {
  constructor() {
    super("Cannot reach the broker.");
    this.name = "AwayError";
  }
}

/** A body that is sent as it was written: the places in the broker's errors are those of the text. */
export class JsonText {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** Who asks: set by session.js.
 * @type {{ authorization: () => Promise<string | null>, namespace: string }} */
let caller = { authorization: async () => null, namespace: "" };

/** @param {typeof caller} next */
export function callAs(next) {
  caller = next;
}

/** Calls an operation and returns its answer.
 *
 * `path` has the parameters of the path, `query` those of the query (undefined ones are left out), `body` what is sent
 * as JSON.
 * @template {OperationName} O
 * @param {O} operation
 * @param {CallOptions<O>} [options]
 * @returns {Promise<Answer<O>>} */
export async function call(operation, options) {
  const response = await request(operation, options);
  const text = await response.text().catch(() => {
    throw new AwayError();
  });
  return /** @type {Answer<O>} */ (text === "" ? undefined : parseJson(text));
}

/** As `call`, but returns the answer with its headers, and a body that may be a stream.
 * @template {OperationName} O
 * @param {O} operation
 * @param {CallOptions<O>} [options] */
export async function request(operation, options) {
  const { path, query, body, headers, signal } = /** @type {AnyCallOptions} */ (options ?? {});
  const [method, template] = OPERATIONS[operation];
  const authorization = await caller.authorization();
  /** @type {Record<string, string>} */
  const sent = { ...headers };
  if (authorization !== null) sent.Authorization = authorization;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(template, path ?? {}, query ?? {}), {
      method,
      headers: sent,
      body: body === undefined ? undefined : body instanceof JsonText ? body.text : writeJson(body),
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new AwayError();
  }
  observe(response.headers.get("date"));
  if (!response.ok) throw new ApiError(await problemOf(response), secondsOf(response.headers.get("retry-after")));
  return response;
}

/** @param {string} template
 * @param {Record<string, unknown>} path
 * @param {Record<string, unknown>} query */
function address(template, path, query) {
  const filled = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(path[name])));
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, namespace: query.namespace ?? caller.namespace })) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") pairs.append(name, String(each));
    }
  }
  return pairs.size === 0 ? filled : `${filled}?${pairs}`;
}

/** @param {string | null} text as the broker writes them: seconds, no date */
const secondsOf = (text) => (text !== null && /^\d{1,6}$/.test(text) ? Number(text) : null);

/** @param {Response} response
 * @returns {Promise<Schemas["Problem"]>} */
async function problemOf(response) {
  const text = await response.text().catch(() => "");
  try {
    const problem = JSON.parse(text);
    if (typeof problem.detail === "string") return problem;
  } catch {
    // Before the API answers, a request may be refused with a line of text.
  }
  const detail = text.trim() || `The broker answered ${response.status} ${response.statusText}.`;
  return { status: response.status, title: response.statusText, detail, reason: "http" };
}
