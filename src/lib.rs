//! Jitney: a broker that speaks the Azure Service Bus protocol, AMQP 1.0 with Service Bus
//! semantics, to the unmodified official SDKs.
//!
//! A pure core and a thin shell around it: everything that decides is a deterministic state
//! machine (`amqp`, `message`, `entity`, `broker`, the recovery in `storage`); everything that
//! touches the world is `shell`. ARCHITECTURE.md has the map; `tests/it/layers.rs` enforces it.

pub mod address;
pub mod admin;
pub mod amqp;
pub mod broker;
pub mod config;
pub mod entity;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
pub mod message;
pub mod rest;
pub mod shape;
pub mod shard;
pub mod shell;
pub mod storage;
pub mod time;
