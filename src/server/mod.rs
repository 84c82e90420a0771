//! What touches the world: tasks, sockets, files, the clock, signals. It decides nothing.
//!
//! ```text
//!  connection tasks ──inputs──► owner task ──frames──► committer thread ──► disk
//!         ▲                        │  ▲                      │
//!         └──────── outboxes ──────┘  └──── durable ─────────┘
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "the server is where clocks are read and tasks are made"
)]

mod buffers;
mod certs;
pub mod cli;
pub mod clock;
mod committer;
mod connection;
pub mod disk;
mod doors;
mod files;
mod heads;
mod install;
mod keys;
mod logging;
mod mailbox;
mod memory;
mod messages;
mod oidc;
mod outbox;
mod owner;
mod pages;
mod print;
mod reader;
mod serve;
mod supervisor;
mod tls;
mod visits;
mod web;
mod websocket;
