//! Jitney: a broker that speaks the Azure Service Bus protocol, AMQP 1.0 with Service Bus
//! semantics, to the unmodified official SDKs.
//!
//! The core decides, and is pure: deterministic state machines (`amqp`, `message`, `queue`, `namespace`, `gateway`,
//! `shard`, the recovery in `journal`). The server (`server`) owns sockets, files, threads and clocks, and decides nothing.
//! ARCHITECTURE.md has the map; `tests/it/layers.rs` enforces it.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod access;
pub mod address;
pub mod amqp;
pub mod codec;
pub mod config;
#[doc(hidden)]
pub mod fuzzing;
pub mod gateway;
pub mod histogram;
pub mod ids;
pub mod journal;
pub mod limits;
pub mod memory;
pub mod message;
pub mod namespace;
pub mod queue;
pub mod rights;
pub mod rules;
pub mod secret;
pub mod server;
pub mod shard;
pub mod time;
