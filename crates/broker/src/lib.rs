//! Namespaces and what their clients may do: entities, forwarding, transactions, jobs and the audit log in [`namespace`]; what a
//! token, a key or a certificate proves in [`access`].

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

pub mod access;
pub mod limits;
pub mod namespace;
