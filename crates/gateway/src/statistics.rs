//! The statistics of clients: their connections and links, and what was refused.

use super::Gateway;
use super::amqp::Link;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{self, AttentionCounts, DeniedKind};

/// The clients of a shard, and its namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// The entities.
    pub namespaces: namespace::Statistics,
    /// Connections.
    pub connections: usize,
    /// Those that were authorized for something.
    pub authorized: usize,
    /// Links on which clients send.
    pub senders: usize,
    /// Links on which clients receive messages, or wait for a message session.
    pub receivers: usize,
    /// Receives over HTTP that wait for a message.
    pub receives: usize,
    /// Other links: to service nodes and transaction coordinators.
    pub other_links: usize,
    /// Refusals since the process started, by [`DeniedKind`].
    pub refused: [u64; DeniedKind::ALL.len()],
    /// What needs attention, by the name of the namespace.
    pub attention: Vec<(String, AttentionCounts)>,
}

impl Gateway {
    /// Returns the statistics of all connections, and of up to `most` entities one by one. It also looks at what needs attention, now
    /// and then.
    pub fn statistics(&mut self, now: Timestamp, most: usize) -> Statistics {
        self.namespaces.watch_all(now);
        let mut found = Statistics {
            namespaces: self.namespaces.statistics(now, most),
            connections: 0,
            authorized: 0,
            senders: 0,
            receivers: 0,
            receives: self.receives.count(),
            other_links: 0,
            refused: self.refusals.counts(),
            attention: self.namespaces.attention_counts(),
        };
        for (_, connection) in self.connections.iter() {
            found.connections += 1;
            found.authorized += usize::from(connection.authorized);
            for link in connection.links.values() {
                match link {
                    Link::Sender { .. } => found.senders += 1,
                    Link::Receiver { .. } | Link::Waiting { .. } => found.receivers += 1,
                    Link::Coordinator { .. } | Link::Requests { .. } | Link::Responses(_) => {
                        found.other_links += 1;
                    }
                }
            }
        }
        found
    }
}
