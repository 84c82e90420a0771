//! Drivers of the core for tests: the targets of the fuzzers. The simulation is in `tests/it/sim`.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod fuzzing;
