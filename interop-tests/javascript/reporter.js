// Prints a line for each test, and the reason below a failure: ../outcomes.py reads the lines.

export default async function* report(events) {
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
    yield `${isFailure ? "FAIL" : "ok  "}  ${data.name} (${Math.round(milliseconds)} ms)\n`;
    if (isFailure) yield `${indent(reason(error))}\n`;
  }
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
