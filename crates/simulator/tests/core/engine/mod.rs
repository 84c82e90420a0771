//! The protocol engine by itself: dialogues with the server's end, and hostile peers.
#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "read more often than run"
)]

mod dialogue;
mod hostile;
pub mod words;

pub use dialogue::corpus;
