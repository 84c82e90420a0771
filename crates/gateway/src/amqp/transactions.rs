//! The coordinator: transactions as AMQP declares and discharges them (`transactions.md#transactions`), and the
//! links of an AMQP session that may send to several entities in one.

use bytes::Bytes;

use super::{Link, QueuedReply, Reply};
use crate::limits;
use crate::{Gateway, request_log};
use jitney_amqp::{DeliveryId, IncomingTransfer, LinkId, Outcome, SessionId};
use jitney_base::address::EntityAddress;
use jitney_base::ids::{ConnectionId, EntityId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Denied, DeniedKind, Operation, StepContext, transactions};
use jitney_message::{Control, Message};

/// A transaction that a connection has declared.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The coordinator link that it was declared on; when that ends, it is rolled back [4.2].
    link: LinkId,
    /// The deliveries that are settled when it is committed.
    answers: Vec<CommitSettlement>,
}

/// A delivery that its receiver decided about provisionally, and what settles it at the commit.
#[derive(Debug)]
pub(super) struct CommitSettlement {
    pub(super) link: LinkId,
    pub(super) delivery: DeliveryId,
    pub(super) outcome: Outcome,
}

/// The links of one AMQP session that were attached after a coordinator.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// The session's coordinator links: the group ends with the last one.
    coordinators: usize,
    /// The entity of its first link.
    via: Option<EntityId>,
}

impl Gateway {
    /// Takes a message to the coordinator: a declare or a discharge. Returns its outcome, and the
    /// group of records that this rests on.
    pub(super) fn control(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        incoming: &IncomingTransfer,
    ) -> Result<(Outcome, u64), Denied> {
        match Control::parse(&incoming.payload) {
            Ok(Control::Declare) => self
                .declare(cx.now, connection, incoming.link)
                .map(|outcome| (outcome, 0)),
            Ok(Control::Discharge { id, fail }) => {
                let (number, declared) = self.take_declared(connection, &id)?;
                if fail {
                    self.namespaces.roll_back(number);
                    self.log_discharged(connection, number, "rolled back");
                    return Ok((Outcome::Accepted, 0));
                }
                self.commit(cx, connection, number, declared)
            }
            Err(error) => {
                let text = format!("The message is neither a declare nor a discharge: {error}.");
                Err(Denied::new(DeniedKind::Decode, text, "coordinator"))
            }
        }
    }

    fn declare(
        &mut self,
        now: Timestamp,
        connection: ConnectionId,
        link: LinkId,
    ) -> Result<Outcome, Denied> {
        let max = if self.is_authorized(connection) {
            limits::TRANSACTIONS_MAX
        } else {
            limits::UNAUTHENTICATED_TRANSACTIONS_MAX
        };
        if max <= self.namespaces.transactions().count_of(connection) {
            let text = format!(
                "The connection has {max} open transactions, and may have no more: discharge one first."
            );
            return Err(Denied::new(DeniedKind::Limit, text, "coordinator"));
        }
        let number = self.namespaces.declare(now, connection);
        let declared = Declared {
            link,
            answers: Vec::new(),
        };
        let open = &mut self.connection(connection).transactions;
        open.insert(number, declared);
        let id = Bytes::copy_from_slice(&number.to_be_bytes());
        Ok(Outcome::Declared(id))
    }

    /// Takes an open transaction that is to end.
    fn take_declared(
        &mut self,
        connection: ConnectionId,
        id: &[u8],
    ) -> Result<(u64, Declared), Denied> {
        let open = &mut self.connection(connection).transactions;
        let declared =
            transactions::number(id).and_then(|number| Some((number, open.remove(&number)?)));
        declared.ok_or_else(transactions::unknown)
    }

    fn commit(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        number: u64,
        declared: Declared,
    ) -> Result<(Outcome, u64), Denied> {
        let is_logged = request_log::is_on();
        let mut carried_out = Vec::new();
        let durable_after = self.with_namespaces(cx, |namespaces, cx| {
            namespaces.commit(cx, number, &mut |done| {
                if is_logged {
                    carried_out.push(done);
                }
            })
        })?;
        self.log_carried_out(connection, number, &carried_out);
        self.log_discharged(connection, number, "committed");
        // Its provisional dispositions are settled now, and not before [4.4.2].
        self.replies
            .extend(declared.answers.into_iter().map(|answer| {
                let reply = Reply::SettleOutgoing(answer.link, answer.delivery, answer.outcome);
                QueuedReply {
                    connection,
                    durable_after,
                    reply,
                }
            }));
        Ok((Outcome::Accepted, durable_after))
    }

    /// Returns the number of a transaction that a connection has declared.
    ///
    /// # Errors
    ///
    /// If it has declared none with this id, or it is over.
    fn open_transaction(&self, connection: ConnectionId, id: &[u8]) -> Result<u64, Denied> {
        let state = self.connections.get(connection);
        let number = transactions::number(id)
            .filter(|number| state.is_some_and(|state| state.transactions.contains_key(number)));
        number.ok_or_else(transactions::unknown)
    }

    /// Adds to a transaction of a connection what is to be done in it; `answer` settles its delivery when it
    /// is committed.
    ///
    /// # Errors
    ///
    /// If it cannot be part of it. Then nothing of the transaction happens any more.
    pub(super) fn enlist(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        operation: Operation,
        answer: Option<CommitSettlement>,
    ) -> Result<(), Denied> {
        let number = self.open_transaction(connection, id)?;
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.enlist(cx, number, operation)
        })?;
        let open = &mut self.connection(connection).transactions;
        if let Some(declared) = open.get_mut(&number) {
            declared.answers.extend(answer);
        }
        Ok(())
    }

    /// Schedules a message in a transaction of a connection.
    ///
    /// # Errors
    ///
    /// If it cannot be part of it. Then nothing of the transaction happens any more.
    pub(super) fn enlist_schedule(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        queue: EntityId,
        message: Message,
    ) -> Result<SequenceNumber, Denied> {
        let number = self.open_transaction(connection, id)?;
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.enlist_schedule(cx, number, queue, message)
        })
    }

    /// Lets nothing of a transaction happen, because one of its operations was refused.
    pub(crate) fn abort(&mut self, connection: ConnectionId, id: &[u8], reason: &str) {
        if let Ok(number) = self.open_transaction(connection, id) {
            self.namespaces.abort(number, reason);
        }
    }

    /// Rolls back the transactions that have been open for too long.
    pub(crate) fn end_transactions(&mut self, now: Timestamp) {
        while let Some((owner, number)) = self.namespaces.end_transaction(now) {
            if let Some(connection) = self.connections.get_mut(owner) {
                connection.transactions.remove(&number);
            }
            self.log_discharged(owner, number, "timed out");
        }
    }

    /// Rolls back what a connection has left open: all, or what was declared on one link.
    pub(super) fn roll_back(&mut self, connection: ConnectionId, link: Option<LinkId>) {
        let Some(state) = self.connections.get_mut(connection) else {
            return;
        };
        let namespaces = &mut self.namespaces;
        state.transactions.retain(|&number, declared| {
            let stays = link.is_some_and(|link| link != declared.link);
            if !stays {
                namespaces.roll_back(number);
            }
            stays
        });
    }

    /// Notes that a coordinator was attached to a session: the links that come after it are a group.
    pub(super) fn begin_group(&mut self, connection: ConnectionId, session: SessionId) {
        let groups = &mut self.connection(connection).groups;
        groups.entry(session).or_default().coordinators += 1;
    }

    /// Notes that a coordinator of a session has gone.
    pub(super) fn end_group(&mut self, connection: ConnectionId, session: SessionId) {
        let Some(state) = self.connections.get_mut(connection) else {
            return;
        };
        if let Some(group) = state.groups.get_mut(&session) {
            group.coordinators -= 1;
            if group.coordinators == 0 {
                state.groups.remove(&session);
            }
        }
    }

    /// Makes a link one of its session's group, if there is one.
    pub(super) fn join_group(
        &mut self,
        connection: ConnectionId,
        session: SessionId,
        link: &mut Link,
    ) {
        let groups = &self.connection(connection).groups;
        let Some(queue) = link.queue().filter(|_| groups.contains_key(&session)) else {
            return;
        };
        let via = self.via(connection, session);
        let via = via.unwrap_or_else(|| self.namespaces.whole(queue));
        if let Some(group) = self.connection(connection).groups.get_mut(&session) {
            group.via = Some(via);
        }
        if let Link::Sender { group, .. } = link {
            *group = Some(via);
        }
    }

    /// Refuses a receiver that its session's group cannot have: messages cannot be received by way
    /// of another entity.
    pub(super) fn check_group(
        &self,
        connection: ConnectionId,
        session: SessionId,
        queue: EntityId,
        address: &EntityAddress,
    ) -> Result<(), Denied> {
        let via = self.via(connection, session);
        if via.is_none_or(|via| via == self.namespaces.whole(queue)) {
            return Ok(());
        }
        let text = format!(
            "Local transactions cannot span multiple top-level entities such as queue or topic. A \
             receiver of '{address}' needs a connection or an AMQP session of its own: this session \
             has a transaction coordinator, and its first link is of '{}'.",
            via.map(|via| self.namespaces.name_of(via))
                .unwrap_or_default(),
        );
        Err(Denied::new(DeniedKind::NotAllowed, &text, &address.path))
    }

    /// Returns the entity by way of which a session's group sends.
    fn via(&self, connection: ConnectionId, session: SessionId) -> Option<EntityId> {
        let group = self.connections.get(connection)?.groups.get(&session)?;
        // Of one that was deleted, the next link's entity takes the place.
        group.via.filter(|&via| self.namespaces.node(via).is_some())
    }
}
