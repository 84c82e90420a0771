//! Tests of the core as a whole, without sockets: the simulation, transcripts, hostile peers, and the corpora of the fuzzers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    unreachable_pub,
    reason = "a test that fails may do so in any way"
)]

mod authority;
mod engine;
mod fuzzing;
mod hostile;
mod idle;
mod rig;
mod sim;
mod transcript;
