//! One binary for all targets: the environment variable `FUZZ_TARGET` names the one that is fuzzed.
#![no_main]

use std::sync::OnceLock;

use jitney_simulator::fuzzing::TARGETS;
use libfuzzer_sys::fuzz_target;

/// Takes an input.
type Run = fn(&[u8]);

static TARGET: OnceLock<Run> = OnceLock::new();

/// Returns the targets with their names.
fn targets() -> Vec<(&'static str, Run)> {
    let core = TARGETS.iter().map(|target| (target.name, target.run));
    #[cfg(feature = "server")]
    let core = core.chain(
        jitney::fuzzing::TARGETS
            .iter()
            .map(|target| (target.name, target.run)),
    );
    core.collect()
}

fn chosen() -> Run {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = targets().into_iter().find(|(known, _)| *known == name);
    let (_, run) =
        found.unwrap_or_else(|| panic!("FUZZ_TARGET is '{name}', which is not a target"));
    run
}

fuzz_target!(|input: &[u8]| {
    TARGET.get_or_init(chosen)(input);
});
