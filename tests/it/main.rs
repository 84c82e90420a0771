//! Integration tests: everything together without sockets, and what the sources must look like.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "tests say what went wrong by panicking"
)]

mod hostile;
mod rig;
