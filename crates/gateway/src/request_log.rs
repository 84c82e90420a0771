//! The log of requests: a line for each message that is sent, delivered or settled, for each request to a service node and
//! for each link, with its outcome. It is off unless `--log-requests` turns it on.
//!
//! A line is written when the step is done. Its answer leaves when the step is durable.

use tracing::{Level, enabled, info};

use super::amqp::management::Status;
use super::amqp::{Link, ServiceNode};
use super::operations::node_shown;
use super::{Gateway, QueuedReply, Reply, StepReply};
use jitney_base::address;
use jitney_base::ids::{ConnectionId, EntityId, LockToken, RequestId, SequenceNumber};
use jitney_base::rights::Right;
use jitney_broker::access::Actor;
use jitney_broker::namespace::Denied;
pub use jitney_broker::namespace::transactions::{CarriedOut, Done};
use jitney_queue::{Handover, ReceiveMode, Settlement};

/// The target of the lines. `RUST_LOG` may name it, too.
pub const TARGET: &str = "jitney::requests";

/// Sequence numbers that a line has at most.
const NUMBERS_SHOWN: usize = 20;

/// Sequence numbers for a line; nothing is collected while the log is off.
#[derive(Debug)]
pub(crate) struct Numbers {
    is_on: bool,
    first: Vec<u64>,
    count: usize,
}

/// A settlement for a line.
#[derive(Debug)]
pub(crate) struct Settled {
    outcome: &'static str,
    number: Option<SequenceNumber>,
}

/// Returns whether lines are written.
#[inline]
pub(crate) fn is_on() -> bool {
    enabled!(target: TARGET, Level::INFO)
}

impl Numbers {
    /// Begins to collect.
    pub(crate) fn begin() -> Self {
        Self {
            is_on: is_on(),
            first: Vec::new(),
            count: 0,
        }
    }

    /// Takes a number; 0 is that of a duplicate.
    pub(crate) fn push(&mut self, number: SequenceNumber) {
        if self.is_on {
            self.count += 1;
            if self.first.len() < NUMBERS_SHOWN {
                self.first.push(number.0);
            }
        }
    }
}

impl Gateway {
    /// Logs messages that were taken. The number of a duplicate, which is dropped, is 0.
    pub(crate) fn log_taken(&self, connection: ConnectionId, queue: EntityId, numbers: &Numbers) {
        if !numbers.is_on {
            return;
        }
        let (client, entity) = (self.client(connection), self.shown(queue));
        let (messages, numbers) = (numbers.count, &numbers.first);
        let connection = connection.0;
        info!(target: TARGET, connection, client, entity, messages, ?numbers, outcome = "accepted", "send");
    }

    /// Logs what the operations of a transaction have done at its commit.
    pub(crate) fn log_carried_out(
        &self,
        connection: ConnectionId,
        transaction: u64,
        carried_out: &[CarriedOut],
    ) {
        for done in carried_out {
            let (client, entity) = (self.client(connection), self.shown(done.queue));
            let connection = connection.0;
            let messages = done.numbers.len();
            let numbers = done.numbers.iter().map(|number| number.0);
            let numbers: Vec<u64> = numbers.take(NUMBERS_SHOWN).collect();
            let (what, outcome) = match done.what {
                Done::Sent => ("send", "accepted"),
                Done::Scheduled => ("schedule", "accepted"),
                Done::Cancelled => ("cancel", "cancelled"),
                Done::StateSet => ("set-session-state", "set"),
                Done::Settled(outcome) => {
                    let number = numbers.first();
                    info!(target: TARGET, connection, client, entity, transaction, number, outcome, "settle");
                    continue;
                }
            };
            info!(target: TARGET, connection, client, entity, transaction, messages, ?numbers, outcome, "{what}");
        }
    }

    /// Logs the end of a transaction.
    pub(crate) fn log_discharged(
        &self,
        connection: ConnectionId,
        transaction: u64,
        outcome: &'static str,
    ) {
        if is_on() {
            let client = self.client(connection);
            let connection = connection.0;
            info!(target: TARGET, connection, client, transaction, outcome, "transaction");
        }
    }

    /// Logs messages that were not taken.
    pub(crate) fn log_not_taken(&self, connection: ConnectionId, link: &Link, denied: &Denied) {
        if !is_on() {
            return;
        }
        let client = self.client(connection);
        let (what, entity) = match link {
            Link::Sender { queue, .. } => ("send", self.shown(*queue)),
            Link::Requests { node, .. } => ("request", node_shown(node)),
            Link::Receiver { .. }
            | Link::Waiting { .. }
            | Link::Coordinator { .. }
            | Link::Responses(_) => ("transaction", String::new()),
        };
        let (connection, outcome) = (connection.0, crate::denied::condition(denied.kind));
        let (outcome, reason) = (outcome.as_str(), &denied.text);
        info!(target: TARGET, connection, client, entity, outcome, reason, "{what}");
    }

    /// Takes note of a settlement before it is carried out: then the lock has gone.
    pub(crate) fn begin_settled(
        &self,
        queue: EntityId,
        token: LockToken,
        settlement: &Settlement,
    ) -> Option<Settled> {
        if !is_on() {
            return None;
        }
        let queue = self.namespaces.queue(queue);
        Some(Settled {
            outcome: settlement.outcome(),
            number: queue.and_then(|queue| queue.number_of_lock(token)),
        })
    }

    /// Logs a settlement.
    pub(crate) fn log_settled(
        &self,
        connection: ConnectionId,
        queue: EntityId,
        settled: &Settled,
        result: &Result<(), Denied>,
    ) {
        let (client, entity) = (self.client(connection), self.shown(queue));
        let (connection, number) = (connection.0, settled.number.map(|number| number.0));
        match result {
            Ok(()) => {
                let outcome = settled.outcome;
                info!(target: TARGET, connection, client, entity, number, outcome, "settle");
            }
            Err(denied) => {
                let (asked, reason) = (settled.outcome, &denied.text);
                let outcome = crate::denied::condition(denied.kind);
                let outcome = outcome.as_str();
                info!(target: TARGET, connection, client, entity, number, asked, outcome, reason, "settle");
            }
        }
    }

    /// Logs a message that is given to a receiver.
    pub(crate) fn log_delivered(
        &self,
        connection: ConnectionId,
        queue: Option<EntityId>,
        handover: &Handover,
    ) {
        let client = self.client(connection);
        let entity = queue.map(|queue| self.shown(queue)).unwrap_or_default();
        let stamps = &handover.stamps;
        let (number, delivery_count) = (stamps.sequence_number, stamps.delivery_count);
        let (connection, outcome) = (connection.0, delivered(handover.mode));
        info!(target: TARGET, connection, client, entity, number, delivery_count, outcome, "deliver");
    }

    /// Logs a message that is given to a receive over HTTP.
    pub(crate) fn log_received(&self, request: RequestId, queue: EntityId, handover: &Handover) {
        let open = self.receives.get(request);
        let client = open
            .map(|open| shown_actor(&open.client))
            .unwrap_or_default();
        let entity = self.shown(queue);
        let stamps = &handover.stamps;
        let (number, delivery_count) = (stamps.sequence_number, stamps.delivery_count);
        let (request, outcome) = (request.0, delivered(handover.mode));
        info!(target: TARGET, request, client, entity, number, delivery_count, outcome, "deliver");
    }

    /// Logs a request to a service node.
    pub(crate) fn log_answered(
        &self,
        connection: ConnectionId,
        node: &ServiceNode,
        operation: &str,
        status: &Status,
    ) {
        if !is_on() {
            return;
        }
        let (client, entity) = (self.client(connection), node_shown(node));
        let (status, reason) = status.shown();
        let connection = connection.0;
        info!(target: TARGET, connection, client, entity, operation, status, reason, "request");
    }

    /// Logs what a step decided about links and connections.
    pub(crate) fn log_links(&self, since: usize) {
        if !is_on() {
            return;
        }
        for reply in self.replies.0.iter().skip(since) {
            if let StepReply::Connection(routed) = reply {
                self.log_link(routed);
            }
        }
    }

    fn log_link(&self, routed: &QueuedReply) {
        let client = self.client(routed.connection);
        let connection = routed.connection.0;
        let link = |link| self.link(routed.connection, link);
        match &routed.reply {
            Reply::AcceptLink(id, _) => {
                let (role, entity) = link(*id)
                    .map(|link| self.shown_link(link))
                    .unwrap_or_default();
                info!(target: TARGET, connection, client, link = id.0, role, entity, outcome = "attached", "attach");
            }
            Reply::RefuseLink(id, denied) => {
                let outcome = crate::denied::condition(denied.kind);
                let (outcome, reason) = (outcome.as_str(), &denied.text);
                info!(target: TARGET, connection, client, link = id.0, outcome, reason, "attach");
            }
            Reply::Detach(id, denied) => {
                let outcome = crate::denied::condition(denied.kind);
                let (outcome, reason) = (outcome.as_str(), &denied.text);
                info!(target: TARGET, connection, client, link = id.0, outcome, reason, "detach");
            }
            Reply::Close(refusal) => {
                let (outcome, reason) = (refusal.condition.as_str(), &refusal.description);
                info!(target: TARGET, connection, client, outcome, reason, "close");
            }
            Reply::Deliver(..)
            | Reply::Drained(..)
            | Reply::SettleIncoming { .. }
            | Reply::ReturnCredit(_)
            | Reply::SettleOutgoing(..)
            | Reply::Respond(..)
            | Reply::Authenticated(_)
            | Reply::Admitted => {}
        }
    }

    fn shown_link(&self, link: &Link) -> (&'static str, String) {
        match link {
            Link::Sender { queue, .. } => ("sender", self.shown(*queue)),
            Link::Receiver { queue, .. } | Link::Waiting { queue, .. } => {
                ("receiver", self.shown(*queue))
            }
            Link::Coordinator { .. } => ("coordinator", String::new()),
            Link::Requests { node, .. } => ("requests", node_shown(node)),
            Link::Responses(_) => ("responses", String::new()),
        }
    }

    /// Returns the client of a connection that changes an entity by a right, for the audit log: whose key or token lets it, and
    /// not the name that it gives itself.
    pub(super) fn actor(&self, connection: ConnectionId, path: &str, right: Right) -> Actor {
        let Some(known) = self.connections.get(connection) else {
            return Actor::default();
        };
        let path = address::key(path);
        let mut grants = known.grants.iter();
        let grant = grants.find(|grant| grant.covers(&path) && grant.rights.allow(right));
        let whose = grant.map(|grant| grant.whose.clone());
        let whose = whose.filter(|whose| self.access.verifies() && !whose.is_empty());
        Actor {
            name: whose.unwrap_or_else(|| "anyone".to_owned()),
            peer: known.origin.peer.to_string(),
        }
    }

    /// Returns the container-id and the address of a connection's peer.
    pub(super) fn client(&self, connection: ConnectionId) -> String {
        let Some(known) = self.connections.get(connection) else {
            return String::new();
        };
        format!("{} at {}", known.container_id, known.origin.peer)
    }
}

/// Returns the outcome of a delivery.
const fn delivered(mode: ReceiveMode) -> &'static str {
    match mode {
        ReceiveMode::PeekLock => "locked",
        ReceiveMode::ReceiveAndDelete => "deleted",
    }
}

/// Returns the name and the address of a client over HTTP.
pub(super) fn shown_actor(client: &Actor) -> String {
    format!("{} at {}", client.name, client.peer)
}
