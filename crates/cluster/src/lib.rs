//! Which server of a fleet has which namespace: decisions without I/O, in the caller's time.

#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        reason = "a test fails on what is not there"
    )
)]

pub mod clocks;
pub mod deaths;
pub mod heartbeat;
pub mod heartbeats;
pub mod lateness;
pub mod lease;
pub mod limits;
pub mod member;
pub mod name;
pub mod planner;
pub mod poll;
pub mod rates;
pub mod view;
