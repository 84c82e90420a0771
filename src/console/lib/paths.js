// Paths of entities and of their sub-queues.

import { href } from "./router.js";

const DEAD = "/$DeadLetterQueue";

/** @param {string} path */
export const deadLettersOf = (path) => `${path}${DEAD}`;

/** @param {string} address */
export const isDeadLetters = (address) => address.toLowerCase().endsWith(DEAD.toLowerCase());

/** The entity of a sub-queue, and of itself.
 * @param {string} address */
export const entityOf = (address) => address.replace(/\/\$[^/]*$/, "");

/** @param {string} path
 * @param {string} [tab] */
export const entityHref = (path, tab) => href(["entity", path], { tab });

/** @param {string} address of a queue, or of dead letters
 * @param {number | bigint} number */
export const messageHref = (address, number) => href(["entity", address, "message", number]);

/** A message session of an entity.
 * @param {string} path
 * @param {string} id */
export const sessionHref = (path, id) => href(["sessions", path, id]);

/** @param {number | bigint} id */
export const connectionHref = (id) => href(["connections", id]);

/** @param {number | bigint} id */
export const jobHref = (id) => href(["jobs", id]);
