//! Integration tests: everything together without sockets, and what the sources must look like.
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

mod configurations;
mod imports;
mod names;
mod parameters;
mod process;
mod tidy;
mod tokens;
