// What the programs in JavaScript share: they run the steps that STEPS names and print an outcome of each.
"use strict";

const SOON = 15_000;

function check(condition, text) {
  if (!condition) throw new Error(text);
}

function within(promise, milliseconds) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${milliseconds / 1000} s`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** As many messages, which may come in several answers. */
async function collect(receive, count) {
  const found = [];
  const deadline = Date.now() + SOON;
  while (found.length < count && Date.now() < deadline) found.push(...(await receive(count - found.length)));
  check(found.length === count, `${found.length} messages of ${count}`);
  return found;
}

async function run(steps) {
  for (const name of process.env.STEPS.split(" ")) {
    const step = steps[name];
    if (!step) {
      console.log(`STEP ${name} absent`);
      continue;
    }
    try {
      await within(step(), 60_000);
      console.log(`STEP ${name} passed`);
    } catch (error) {
      const text = `${error.code ?? error.condition ?? error.name}: ${error.message ?? error.description}`;
      console.log(`STEP ${name} failed ${text.replace(/\s+/g, " ")}`);
    }
  }
  // What a client leaves open must not keep the program.
  process.exit(0);
}

module.exports = { check, collect, run };
