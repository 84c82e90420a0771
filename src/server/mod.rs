//! The parts with side effects: tasks, sockets, files, the clock, signals. It decides nothing.
//!
//! ```text
//!  connection tasks ──inputs──► owner task ──frames──► committer ──► disk
//!         ▲                        │  ▲                    │
//!         └──────── outboxes ──────┘  └──── durable ───────┘
//! ```
//!
//! The tasks of a shard run on its thread (`system/runtime.rs`). The committer is a part of the owner for what is small, and a
//! thread for the rest.
#![allow(
    clippy::disallowed_methods,
    reason = "the server is where clocks are read and tasks are made"
)]

mod amqp;
pub mod cli;
mod host;
mod http;
pub mod limits;
mod net;
mod peer;
mod run;
mod store;
mod system;
