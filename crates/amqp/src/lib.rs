//! AMQP 1.0's transport as a state machine without IO: bytes and time in, events and bytes out.
//!
//! A [`Connection`] is one end of one connection, in the server's or the client's role. Its
//! methods are of four kinds:
//!
//! - `handle_bytes`, `handle_timeout`: what the world did. Never fail: what is wrong with the
//!   peer goes out as the right error in the smallest scope.
//! - commands (`accept_link`, `deliver`, `settle_incoming`, ...): what the owner wants. Never wait.
//! - `poll_event`, `poll_timeout`, `take_output`: what is to be done, drained after each of the
//!   above until they return nothing.
//! - plain getters.
//!
//! Links are named from our side: on an *incoming* link the peer sends messages to us, on an
//! *outgoing* link we send. A [`LinkId`] is ours, unique for the life of the connection and never
//! used twice, so a late command for a link that has gone is harmless and ignored.
//!
//! Leaves to others: what an address means, what a message means, sockets, TLS.

#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod api;
pub mod codec;
mod condition;
mod connection;
mod discharged;
mod dispositions;
#[cfg(test)]
mod field_tests;
mod frame;
mod handshake;
pub mod limits;
mod link;
mod links;
mod names;
mod serial;
mod session;
mod small_frame;
mod state;
mod table;
mod termini;
#[cfg(test)]
mod tests;
mod trace;
mod transfers;
mod unsettled;

pub use api::{
    Accept, Attach, Capability, Condition, Config, CreditLost, Delivery, DeliveryId, DynamicNode,
    EncodedFields, Event, Fields, Identity, IncomingDisposition, IncomingTransfer, LinkCredit,
    LinkId, LinkRole, LinkTarget, Outcome, Product, Refusal, Rejection, SelectorFilter,
    SessionFilter, SessionId, SettleMode, Tag, Value,
};
pub use connection::Connection;
pub use trace::words;
