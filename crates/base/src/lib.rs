//! What every other crate uses: time, identifiers, addresses, rights, secrets, histograms, the memory budget, and the bounds
//! that more than one crate knows.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod address;
pub mod histogram;
pub mod ids;
pub mod limits;
pub mod memory;
pub mod rights;
pub mod secret;
pub mod time;
