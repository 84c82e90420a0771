// What changes, as it changes: entities, jobs, connections and what needs attention in the namespace.
//
// One tab of a browser has the stream; the others get from it what it gets. Browsers open six connections to a host and
// no more, so that a stream for each tab would leave none for the rest. Where a page has no locks (plain HTTP to
// another machine), a tab has a stream of its own while it is looked at.

import { ApiError } from "./api.js";
import { second } from "./clock.js";
import { batch, computed, effect, signal, untracked } from "./html.js";
import { entityOf } from "./paths.js";
import { BrokenError, follow } from "./stream.js";

/** @typedef {import("./stream.js").ServerEvent} ServerEvent */
/** `polling` is live too, with pauses. `refused` has its reason in `refusal`. `none` is for who may not listen.
 * @typedef {"starting" | "live" | "polling" | "away" | "refused" | "none"} Status */

/** @type {import("./html.js").Signal<Status>} */
export const status = signal("starting");
export const refusal = signal("");
/** Counts how often the broker came back: what was read before may be old. */
export const returns = signal(0);
/** Entities by their path. @type {import("./html.js").Signal<Map<string, Schemas["EntityNow"]>>} */
export const entities = signal(new Map());
/** Jobs by their id. @type {import("./html.js").Signal<Map<number, Schemas["Job"]>>} */
export const jobs = signal(new Map());
/** Connections by their id. @type {import("./html.js").Signal<Map<number, Schemas["Connection"]>>} */
export const connections = signal(new Map());
/** What needs attention, as the broker tells it; null while that is not known.
 * @type {import("./html.js").Signal<Schemas["AttentionNow"] | null>} */
export const attention = signal(null);
/** Whether the state is whole: before that, what is missing may only not have come yet. */
export const isKnown = signal(false);

/** Streams that broke soon, one after the other, until changes are polled, because short answers may pass where a
 * stream does not; and for how long before a stream is tried again. */
const BROKEN_MAX = 3;
const LASTING_MILLISECONDS = 30_000;
const POLLING_MILLISECONDS = 300_000;
const POLL_MILLISECONDS = 2_000;
/** Until the next try where the broker refuses, and does not say when. */
const REFUSED_MILLISECONDS = 10_000;

const RATE_SECONDS = 10;
const RATE_LEAST_MILLISECONDS = 2_900;
/** Changes come once a second: where none has come for longer, there was none. */
const CHANGES_MILLISECONDS = 1_500;
/** The entities of the last seconds, the oldest first, and the time of which they are.
 * @type {{ at: number, of: number, entities: Map<string, Schemas["EntityNow"]> }[]} */
let seconds = [];
/** When changes of entities came last. */
let heardAt = -Infinity;

/** The time of which the entities are. */
const timeOfEntities = () => Math.max(heardAt, performance.now() - CHANGES_MILLISECONDS);

effect(() => {
  second.value;
  const known = untracked(() => isKnown.value);
  const at = performance.now();
  // A tab that was hidden has a gap, and no rates over it.
  if (1_500 * RATE_SECONDS < at - (seconds[0]?.at ?? at) || !known) seconds = [];
  if (known) seconds = [...seconds.slice(-RATE_SECONDS), { at, of: timeOfEntities(), entities: entities.peek() }];
});

/** What is counted of an entity.
 * @typedef {"incoming" | "completed" | "dead_lettered" | "forwarded" | "expired" | "unmatched"} Counter */

/** Messages a second of an entity, over the last seconds.
 * @param {string} path
 * @param {Counter} counter */
export function rateOf(path, counter) {
  second.value;
  const then = seconds[0];
  const [before, after] = [then?.entities.get(path), entities.peek().get(path)];
  if (before === undefined || after === undefined || !hasRates()) return 0;
  return Math.max(0, (after[counter] - before[counter]) / ((timeOfEntities() - then.of) / 1000));
}

/** Whether there are rates. Over a second or two they would change too much to be read. */
export const hasRates = () =>
  second.value !== -1 && RATE_LEAST_MILLISECONDS <= performance.now() - (seconds[0]?.at ?? Infinity);

/** The path of an entity or of its dead letters, as the broker spells it: names are compared without case.
 * @param {string} path */
export function spelled(path) {
  const [known, own] = [entities.value, entityOf(path)];
  if (known.has(own)) return path;
  const wanted = own.toLowerCase();
  for (const each of known.keys()) if (each.toLowerCase() === wanted) return `${each}${path.slice(own.length)}`;
  return path;
}

/** Counts over the namespace. Copies of a topic count where they are. */
export const totals = computed(() => {
  const sum = { active: 0, deferred: 0, scheduled: 0, locked: 0, dead_letters: 0, size_bytes: 0 };
  for (const entity of entities.value.values()) {
    for (const name of /** @type {(keyof typeof sum)[]} */ (Object.keys(sum))) sum[name] += entity[name];
  }
  return sum;
});

/** @param {ServerEvent[]} events */
function apply(events) {
  let [nextEntities, nextJobs, nextConnections] = [
    new Map(entities.peek()),
    new Map(jobs.peek()),
    new Map(connections.peek()),
  ];
  let nextAttention = attention.peek();
  for (const { event, data } of events) {
    switch (event) {
      case "reset": {
        [nextEntities, nextJobs, nextConnections] = [new Map(), new Map(), new Map()];
        nextAttention = null;
        seconds = [];
        break;
      }
      case "entity":
        nextEntities.set(data.path, data);
        break;
      case "entity_deleted":
        nextEntities.delete(data.path);
        break;
      case "job":
        nextJobs.set(data.id, data);
        break;
      case "job_forgotten":
        nextJobs.delete(data.id);
        break;
      case "connection":
        nextConnections.set(data.id, data);
        break;
      case "connection_closed":
        nextConnections.delete(data.id);
        break;
      case "attention":
        nextAttention = data;
        break;
      case "attention_unknown":
        nextAttention = null;
        break;
    }
  }
  batch(() => {
    const has = (/** @type {string} */ word) => events.some(({ event }) => event === "reset" || event.startsWith(word));
    if (has("entity")) {
      entities.value = nextEntities;
      heardAt = performance.now();
    }
    if (has("job")) jobs.value = nextJobs;
    if (has("connection")) connections.value = nextConnections;
    if (has("attention")) attention.value = nextAttention;
    isKnown.value = true;
  });
}

/** @param {Status} next */
function setStatus(next) {
  batch(() => {
    // The first answer after an absence; the state of before is shown until then.
    if (status.peek() === "away" && (next === "live" || next === "polling")) returns.value += 1;
    status.value = next;
  });
}

/** The whole state as events, for a tab that begins to listen.
 * @returns {ServerEvent[]} */
const everything = () => [
  { event: "reset", data: {} },
  ...Array.from(entities.peek().values(), (data) => ({ event: "entity", data })),
  ...Array.from(jobs.peek().values(), (data) => ({ event: "job", data })),
  ...Array.from(connections.peek().values(), (data) => ({ event: "connection", data })),
  ...(attention.peek() === null ? [] : [{ event: "attention", data: attention.peek() }]),
];

let lastId = "";

/** Forgets what was followed before, and follows nothing.
 * @returns {() => void} */
export function forget() {
  apply([{ event: "reset", data: {} }]);
  batch(() => {
    status.value = "none";
    isKnown.value = false;
  });
  return () => {};
}

/** Follows the namespace of a session until the returned function is called.
 * @param {string} id tells sessions apart
 * @returns {() => void} */
export function begin(id) {
  const ended = new AbortController();
  const channel = new BroadcastChannel(`jitney-changes ${id}`);
  let isLeader = false;
  const post = (/** @type {object} */ message) => channel.postMessage(message);
  lastId = "";
  batch(() => {
    status.value = "starting";
    isKnown.value = false;
  });
  channel.onmessage = ({ data }) => {
    if (data.kind === "hello" && isLeader) {
      if (isKnown.peek()) post({ kind: "events", events: everything(), id: lastId, isWhole: true });
      post({ kind: "status", status: status.peek(), refusal: refusal.peek() });
    } else if (data.kind === "events" && !isLeader && (isKnown.peek() ? !data.isWhole : data.isWhole)) {
      lastId = data.id;
      apply(data.events);
    } else if (data.kind === "status" && !isLeader) {
      refusal.value = data.refusal;
      setStatus(data.status);
    }
  };
  const lead = async () => {
    isLeader = true;
    await keepFollowing(ended.signal, post);
  };
  if (navigator.locks === undefined) void lead();
  else {
    post({ kind: "hello" });
    navigator.locks.request(`jitney-changes ${id}`, { signal: ended.signal }, lead).catch(() => {
      // The session has ended before this tab was the one that follows.
    });
  }
  return () => {
    ended.abort();
    channel.close();
  };
}

/** Opens one stream after the other.
 * @param {AbortSignal} signal
 * @param {(message: object) => void} post */
async function keepFollowing(signal, post) {
  const say = (/** @type {Status} */ next, text = "") => {
    refusal.value = text;
    if (status.peek() === next) return;
    setStatus(next);
    post({ kind: "status", status: next, refusal: text });
  };
  let failures = 0;
  let broken = 0;
  let pollsUntil = 0;
  while (!signal.aborted) {
    await untilSeen(signal);
    const began = performance.now();
    const isPolling = began < pollsUntil;
    const current = isPolling ? "polling" : "live";
    try {
      await follow({
        lastId,
        seconds: isPolling ? 1 : undefined,
        signal,
        onOpen: () => {
          failures = 0;
          if (LASTING_MILLISECONDS < performance.now() - began) broken = 0;
          if (isKnown.peek()) say(current);
        },
        onEvents: (events, id) => {
          lastId = id;
          apply(events);
          say(current);
          post({ kind: "events", events, id });
        },
      });
      broken = 0;
      if (isPolling) await pause(POLL_MILLISECONDS, signal);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      if (error instanceof ApiError) {
        say("refused", error.message);
        await pause(error.retryAfter === null ? REFUSED_MILLISECONDS : error.retryAfter * 1_000, signal);
        continue;
      }
      if (error instanceof BrokenError && !isPolling) {
        // A machine that has slept finds it silent, too: that is no reason to poll, but twice is.
        broken += error.isSilent ? 2 : 1;
        if (BROKEN_MAX <= broken) {
          pollsUntil = performance.now() + POLLING_MILLISECONDS;
          broken = 0;
        }
        // A broker that is there takes another at once.
        if (!error.isSilent) continue;
      }
      say("away");
      await pause(Math.min(500 * failures, 3_000), signal);
    }
  }
}

/** Without locks every tab has a stream, and only while it is looked at.
 * @param {AbortSignal} signal */
async function untilSeen(signal) {
  while (navigator.locks === undefined && document.hidden && !signal.aborted) await pause(1_000, signal);
}

/** @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>} */
function pause(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        done();
      },
      { once: true },
    );
  });
}
