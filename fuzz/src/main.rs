//! One binary for all targets: the environment variable `FUZZ_TARGET` names the one that is fuzzed.
#![no_main]

use std::sync::OnceLock;

use jitney_simulator::fuzzing::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|target| target.name == name);
    *found.unwrap_or_else(|| panic!("FUZZ_TARGET is '{name}', which is not a target"))
}

fuzz_target!(|input: &[u8]| {
    (TARGET.get_or_init(chosen).run)(input);
});
