// What needs a person, and why: found in the live state.

import { now } from "./clock.js";
import { number, span } from "./format.js";
import { computed } from "./html.js";
import { linkKey, troubleOf } from "./links.js";
import { connections, entities, jobs } from "./live.js";
import { connectionHref, entityHref, jobHref } from "./paths.js";
import { S } from "../strings/overview.js";

/** `weight` orders what has the same rank.
 * @typedef {{ id: string, name: string, why: string, address: string, isAlarm: boolean, rank: number, weight: number }} Matter */

/** @type {import("./html.js").Signal<Matter[]>} */
export const matters = /** @type {any} */ (computed(() => {
  const found = [...ofEntities(), ...ofReceivers(), ...ofJobs()];
  return found.sort((a, b) => a.rank - b.rank || b.weight - a.weight);
}));

/** @returns {Matter[]} */
function ofEntities() {
  const found = [];
  for (const { path, kind, active, locked, dead_letters: dead, receivers, locks_expired: expired, completed, oldest_enqueued_at: oldest } of entities.value.values()) {
    if (0 < dead) {
      found.push({ id: `dead ${path}`, name: path, why: S.why.dead(number(dead)), address: entityHref(path, "dead-letters"), isAlarm: true, rank: 0, weight: dead });
    }
    const waiting = active - locked;
    if (0 < waiting && receivers === 0 && kind !== "topic") {
      const age = oldest == null ? "" : `; ${S.why.oldest(span(now() - Date.parse(oldest)))}`;
      found.push({ id: `waits ${path}`, name: path, why: S.why.noReceiver(number(active)) + age, address: entityHref(path, "messages"), isAlarm: false, rank: 3, weight: active });
    }
    // Some locks always expire when a client ends; more of them than completions is a consumer that is too slow.
    if (10 < expired && completed < expired) {
      found.push({ id: `locks ${path}`, name: path, why: S.why.locksExpired(number(expired)), address: entityHref(path, "consumers"), isAlarm: true, rank: 2, weight: expired });
    }
  }
  return found;
}

/** @returns {Matter[]} */
function ofReceivers() {
  const found = [];
  for (const connection of connections.value.values()) {
    for (const link of connection.links) {
      const trouble = troubleOf(link);
      if (trouble === null || !trouble.isAlarm) continue;
      const why = S.why.stuck(connection.container_id || connection.peer, trouble.why);
      found.push({ id: `stuck ${linkKey(connection, link)}`, name: link.entity, why, address: connectionHref(connection.id), isAlarm: true, rank: 1, weight: link.locked ?? 0 });
    }
  }
  return found;
}

/** @returns {Matter[]} */
function ofJobs() {
  const found = [];
  for (const { id, entity, state, error, skipped } of jobs.value.values()) {
    if (state === "failed") {
      found.push({ id: `job ${id}`, name: entity, why: `${S.why.jobFailed(String(id))}: ${error ?? ""}`, address: jobHref(id), isAlarm: true, rank: 1, weight: id });
    } else if (0 < skipped && state === "completed") {
      found.push({ id: `job ${id}`, name: entity, why: S.why.jobSkipped(String(id), number(skipped)), address: jobHref(id), isAlarm: false, rank: 4, weight: id });
    }
  }
  return found;
}
