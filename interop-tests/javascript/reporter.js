// One line for each test, the reason below a failure, and the closing line that the runner reads. Beside that, for the matrix of
// clients and scenarios, `scenarios.tsv` in JITNEY_WORK: what came of each scenario that a test has in its title, and, of those
// that the client has no call for, the suite's own `not-offered.json`.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** A title begins with the scenarios that it shows. */
const TITLE = /^(?:S\d+ )+/;
const NOTE_MAX = 79;

export default async function* report(events) {
  let passed = 0;
  let failed = 0;
  const outcomes = [];
  for await (const { type, data } of events) {
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { error, duration_ms: milliseconds, type: kind } = data.details;
    const isFailure = type === "test:fail";
    // A group fails with its tests; a file that could not be loaded fails by itself.
    if (kind === "suite" && (!isFailure || error?.failureType === "subtestsFailed")) continue;
    if (data.skip !== undefined) {
      yield `skip  ${data.name}: ${data.skip}\n`;
      continue;
    }
    if (data.nesting === 0 && !isFailure) continue;
    if (data.nesting === 0 && error?.failureType === "subtestsFailed") continue;
    if (isFailure) failed += 1;
    else passed += 1;
    for (const name of TITLE.exec(data.name)?.[0].trim().split(" ") ?? []) {
      outcomes.push([name, isFailure ? "fail" : "pass", isFailure ? data.name : ""]);
    }
    yield `${isFailure ? "FAIL" : "ok  "}  ${data.name} (${Math.round(milliseconds)} ms)\n`;
    if (isFailure) yield `${indent(reason(error))}\n`;
  }
  if (process.env.JITNEY_WORK) {
    const shown = new Set(outcomes.map(([name]) => name));
    for (const [name, why] of notOffered()) {
      if (shown.has(name)) {
        failed += 1;
        yield `FAIL  ${name} is a scenario of this suite, and not-offered.json says: ${why}\n`;
      }
      outcomes.push([name, "not offered", why]);
    }
    const lines = outcomes.map(([name, outcome, note]) => `${name}\t${outcome}\t${clean(note)}\n`);
    writeFileSync(path.join(process.env.JITNEY_WORK, "scenarios.tsv"), lines.join(""));
  }
  yield `${passed} passed, ${failed} failed\n`;
}

/** Scenarios and why not, from `{ "S05 S06 S231-S240": "why" }`. */
function notOffered() {
  const listed = JSON.parse(readFileSync("not-offered.json", "utf8"));
  return Object.entries(listed).flatMap(([names, why]) => names.split(" ").flatMap((name) => {
    const [first, last = first] = name.split("-").map((each) => Number(each.slice(1)));
    return Array.from({ length: last - first + 1 }, (_, index) => [`S${String(first + index).padStart(2, "0")}`, why]);
  }));
}

function clean(note) {
  return note.replace(/\s+/g, " ").slice(0, NOTE_MAX);
}

function reason(error) {
  const cause = error?.cause ?? error;
  // What rhea reports is no Error, but knows its fields; of others only the message has come from the test's process.
  const fields = typeof cause === "object" ? JSON.stringify(cause) : cause;
  return cause.stack ?? (fields === "{}" ? error.message : fields);
}

function indent(text) {
  return String(text).replace(/^/gm, "      ");
}
