//! AMQP as Service Bus speaks it: links to entities and to service nodes, transfers and dispositions, and the
//! bounds of a connection.

mod cbs;
pub(crate) mod connections;
mod damage;
#[cfg(test)]
mod damage_tests;
mod delivery;
pub(crate) mod early_attach;
#[cfg(test)]
mod early_attach_tests;
mod filters;
#[cfg(test)]
mod forwarding_tests;
pub(crate) mod grants;
#[cfg(test)]
mod grants_tests;
#[cfg(test)]
mod idle_tests;
mod jms;
#[cfg(test)]
mod jms_tests;
mod link_memory;
mod links;
#[cfg(test)]
mod loss_tests;
pub mod management;
pub(crate) mod send;
#[cfg(test)]
mod sending_tests;
pub(crate) mod settle;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod transactions;
#[cfg(test)]
mod transactions_tests;
pub(crate) mod windows;
#[cfg(test)]
mod windows_tests;

use std::sync::Arc;

pub(super) use self::jms::default_description;

use super::{CreditReturn, QueuedReply, Reply};
use jitney_amqp::{LinkId, SessionId};
use jitney_base::address::EntityAddress;
use jitney_base::ids::{ConnectionId, EntityId};
use jitney_queue::ConsumerId;

pub use damage::DeliveryCredit;
pub(crate) use links::ResponseLink;

/// A link of a client.
#[derive(Debug)]
pub(crate) enum Link {
    /// A client sends messages to a queue or a topic.
    Sender {
        queue: EntityId,
        /// The transfer destination that the sender asks for (`com.microsoft:transfer-destination-address`).
        destination: Option<Arc<str>>,
        /// The entity by way of which it sends in transactions, if a coordinator was attached to its session
        /// before.
        group: Option<EntityId>,
        /// Deliveries that have come over it.
        deliveries: u64,
    },
    /// A client receives messages of a queue.
    Receiver {
        queue: EntityId,
        /// Its name, if it holds a message session: requests about the session name it.
        name: Option<Box<str>>,
    },
    /// A receiver that is not accepted yet: it waits for a message session.
    Waiting { queue: EntityId, name: Box<str> },
    /// A client declares and discharges transactions.
    Coordinator { session: SessionId },
    /// A client sends requests to a service node.
    Requests {
        node: ServiceNode,
        session: SessionId,
    },
    /// A client receives the responses of a service node.
    Responses(ResponseLink),
}

/// A node that answers requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServiceNode {
    /// `$cbs`, where tokens are put.
    Cbs,
    /// The `$management` node of an entity.
    Management(EntityAddress),
}

/// Returns the id that a link has as a receiver of a queue.
pub(crate) fn consumer_id(connection: ConnectionId, link: LinkId) -> ConsumerId {
    ConsumerId(u64::from(connection.0) << 32 | u64::from(link.0))
}

/// Returns the link that is a receiver of a queue.
pub(crate) fn link_of(consumer: ConsumerId) -> (ConnectionId, LinkId) {
    let low = u32::try_from(consumer.0 & u64::from(u32::MAX)).expect("masked to 32 bits");
    let high = u32::try_from(consumer.0 >> 32).expect("32 bits are left");
    (ConnectionId(high), LinkId(low))
}
