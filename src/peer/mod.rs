//! Connections between the servers of a fleet: a client that reaches a server which has not its namespace is passed on to
//! the one that has it, over TLS with certificates on both sides.
//!
//! | file | what |
//! |---|---|
//! | `authority.rs` | the certificates of the servers, by an authority that the store keeps |
//! | `owners.rs` | which server has which namespace |
//! | `reach.rs` | finding it, waiting for it, and connecting to it |
//! | `places.rs` | how many connections may wait |
//! | `header.rs` | who the client is, in front of its bytes: the PROXY protocol |
//! | `splice.rs` | AMQP connections that are passed on |
//! | `copy.rs` | their bytes |
//! | `listener.rs` | the other end |

mod authority;
mod copy;
mod header;
mod listener;
mod owners;
mod places;
mod reach;
mod splice;

pub(super) use authority::{PeerTls, make_authority};
pub(super) use header::OriginalClient;
pub(super) use listener::{Bounds, Passed, accept};
pub(super) use owners::Owners;
#[cfg(test)]
pub(super) use owners::{FakeOwners, OwningServer};
pub(super) use reach::{Hop, Lookup, NotPassed, PeerConnection, Peers, Reached};
