// Makes the clock of a program 59 minutes and 50 seconds late, so that signatures which it makes for an hour end after ten seconds; with
// HURRY set, what it wants to do in more than 40 minutes it does after three seconds.
//
//     node --import ./late-clock.js PROGRAM

const { now } = Date;
Date.now = () => now() - 3_590_000;

const wait = globalThis.setTimeout;
if (process.env.HURRY) {
  globalThis.setTimeout = (action, milliseconds, ...rest) => (
    wait(action, milliseconds > 2_400_000 ? 3_000 : milliseconds, ...rest)
  );
}
