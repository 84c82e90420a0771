//! Jitney: a broker that speaks the Azure Service Bus protocol, AMQP 1.0 with Service Bus
//! semantics, to the unmodified official SDKs.
//!
//! The core decides, and is pure: deterministic state machines in the crates below `crates/`. This package has the parts
//! with side effects: tasks, sockets, files, the clock, signals. It decides nothing. ARCHITECTURE.md has the map.
//!
//! ```text
//!  connection tasks ──inputs──► owner task ──frames──► committer ──► disk
//!         ▲                        │  ▲                    │
//!         └──────── outboxes ──────┘  └──── durable ───────┘
//! ```
//!
//! The tasks of a shard run on its thread (`system/runtime.rs`). The committer is a part of the owner for what is small,
//! and a thread for the rest.

#![allow(
    clippy::disallowed_methods,
    reason = "the server is where clocks are read and tasks are made"
)]
#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod amqp;
pub mod cli;
/// Targets of the fuzzers that need parts of this package; the others are in `crates/simulator`.
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing {
    pub use crate::http::api::fuzzing::{TARGETS, Target};
}
mod host;
mod http;
pub mod limits;
mod net;
mod peer;
mod run;
mod store;
mod system;
