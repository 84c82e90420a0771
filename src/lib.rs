//! Jitney: a broker that speaks the Azure Service Bus protocol, AMQP 1.0 with Service Bus
//! semantics, to the unmodified official SDKs.
//!
//! The core decides, and is pure: deterministic state machines in the crates below `crates/`. The server (`server`) owns
//! sockets, files, threads and clocks, and decides nothing. ARCHITECTURE.md has the map.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod server;
