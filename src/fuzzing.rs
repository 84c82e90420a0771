//! Targets of the fuzzers that need parts of this package; the others are in `crates/simulator`.

pub use crate::http::api::fuzzing::{TARGETS, Target};
