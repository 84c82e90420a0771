//! Transactions: sends and settlements that happen together, or not at all
//! (`transactions.md#transactions`).
//!
//! A transaction belongs to the connection that declared it. What is done in it is kept here until
//! it is discharged: then all of it is checked, and done in one step, whose records are kept
//! together or lost together. Locks go on meanwhile, and may end; then the transaction fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::send::{Incoming, is_ahead};
use super::settle::LostLock;
use super::transaction_scope::Scope;
use super::{
    Broker, ConnectionId, DeliveryId, Denied, DeniedKind, EntityId, LinkId, LockToken, Outcome,
    Reply, Routed, SequenceNumber, StepContext, Timestamp,
};
use crate::limits;
use crate::memory::{Held, Purpose};
use crate::message::{Control, Message};
use crate::queue::{Arrival, Settlement};
use crate::time::ClockStep;

/// The open transactions of one connection, by their ids.
pub(super) type Open = BTreeMap<u64, Transaction>;

/// What is to happen together.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The coordinator link that it was declared on; when that ends, it is rolled back [4.2].
    link: LinkId,
    operations: Vec<Operation>,
    /// Where it takes place, as its operations say.
    scope: Option<Scope>,
    /// Why something of it was refused: then nothing of it happens. Java does not notice a refused
    /// send, and would commit the rest.
    spoiled: Option<String>,
    /// Bytes of the messages and settlements in it.
    held: Held,
    ends: Timestamp,
}

/// Something that happens when its transaction is committed.
#[derive(Debug)]
pub(super) enum Operation {
    /// Messages come into a queue.
    Send {
        queue: EntityId,
        destination: Option<Arc<str>>,
        /// By way of which entity they are sent, if their link is one of a group.
        group: Option<EntityId>,
        messages: Vec<Message>,
    },
    /// A message is settled by the holder of its lock.
    Settle {
        queue: EntityId,
        token: LockToken,
        settlement: Settlement,
        lost: LostLock,
        /// What is to be settled at the commit, if it was decided over a link.
        answer: Option<Answer>,
    },
    /// A message is scheduled, with a number that was told already.
    Schedule {
        queue: EntityId,
        number: SequenceNumber,
        message: Message,
    },
    /// Scheduled messages are cancelled.
    Cancel {
        queue: EntityId,
        numbers: Vec<SequenceNumber>,
    },
}

/// A delivery that its receiver decided about provisionally, and what settles it at the commit.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) link: LinkId,
    pub(super) delivery: DeliveryId,
    pub(super) outcome: Outcome,
}

impl Operation {
    pub(super) fn queue(&self) -> EntityId {
        match self {
            Self::Send { queue, .. }
            | Self::Settle { queue, .. }
            | Self::Schedule { queue, .. }
            | Self::Cancel { queue, .. } => *queue,
        }
    }

    /// Returns the entity by way of which messages are sent, if their link is one of a group.
    pub(super) fn group(&self) -> Option<EntityId> {
        match self {
            Self::Send { group, .. } => *group,
            Self::Settle { .. } | Self::Schedule { .. } | Self::Cancel { .. } => None,
        }
    }

    /// Takes out what is to be told when it is done.
    fn take_answer(&mut self) -> Option<Answer> {
        match self {
            Self::Settle { answer, .. } => answer.take(),
            Self::Send { .. } | Self::Schedule { .. } | Self::Cancel { .. } => None,
        }
    }

    /// Returns the bytes of the messages in it, or of what a settlement changes, with what is around
    /// them.
    fn bytes(&self) -> usize {
        let own = match self {
            Self::Send { messages, .. } => {
                messages.iter().map(|message| message.bytes().len()).sum()
            }
            Self::Schedule { message, .. } => message.bytes().len(),
            Self::Settle { settlement, .. } => settlement.size(),
            Self::Cancel { numbers, .. } => size_of_val(numbers.as_slice()),
        };
        size_of::<Self>() + own
    }

    fn weight(&self) -> usize {
        match self {
            Self::Send { messages, .. } => messages.len(),
            Self::Settle { .. } | Self::Schedule { .. } => 1,
            Self::Cancel { numbers, .. } => numbers.len(),
        }
    }
}

impl Broker {
    /// Takes a message to the coordinator: a declare or a discharge. Returns its outcome, and the
    /// group of records that this rests on.
    pub(super) fn control(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        incoming: &Incoming,
    ) -> Result<(Outcome, u64), Denied> {
        match Control::parse(&incoming.payload) {
            Ok(Control::Declare) => self
                .declare(cx, connection, incoming.link)
                .map(|outcome| (outcome, 0)),
            Ok(Control::Discharge { id, fail }) => self.discharge(cx, connection, &id, fail),
            Err(error) => {
                let text = format!("The message is neither a declare nor a discharge: {error}.");
                Err(Denied::new(DeniedKind::Decode, &text, "coordinator"))
            }
        }
    }

    fn declare(
        &mut self,
        cx: &StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
    ) -> Result<Outcome, Denied> {
        let max = if self.is_admitted(connection) {
            limits::TRANSACTIONS_MAX
        } else {
            limits::UNADMITTED_TRANSACTIONS_MAX
        };
        if max <= self.connection(connection).transactions.len() {
            let text = format!(
                "The connection has {max} open transactions, and may have no more: discharge one first."
            );
            return Err(Denied::new(DeniedKind::Limit, &text, "coordinator"));
        }
        let id = self.next_transaction;
        self.next_transaction += 1;
        let ends = cx.now.after(limits::TRANSACTION_TIMEOUT);
        let transaction = Transaction {
            link,
            operations: Vec::new(),
            scope: None,
            spoiled: None,
            held: self.shares.memory.hold(Purpose::Other, 0),
            ends,
        };
        let open = &mut self.connection(connection).transactions;
        open.insert(id, transaction);
        self.transaction_ends.insert((ends, connection, id));
        Ok(Outcome::Declared(Bytes::copy_from_slice(&id.to_be_bytes())))
    }

    fn discharge(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        fail: bool,
    ) -> Result<(Outcome, u64), Denied> {
        let transaction = self.take_transaction(connection, id);
        let transaction = transaction.ok_or_else(unknown)?;
        if fail {
            return Ok((Outcome::Accepted, 0));
        }
        let rolled_back = |reason: &str| {
            let text = format!("The transaction was rolled back: {reason}");
            Denied::new(DeniedKind::TransactionRollback, text, "coordinator")
        };
        if let Some(reason) = &transaction.spoiled {
            return Err(rolled_back(reason));
        }
        self.check(cx, &transaction)
            .map_err(|denied| rolled_back(&denied.text))?;
        let mut rests_on = 0;
        let mut answers = Vec::new();
        for mut operation in transaction.operations {
            let queue = operation.queue();
            answers.extend(operation.take_answer());
            self.carry_out(cx, operation);
            rests_on = rests_on.max(self.node(queue).map_or(0, |node| node.group));
        }
        // What was decided in it is settled now, and not before [4.4.2].
        self.replies.extend(answers.into_iter().map(|answer| {
            let reply = Reply::SettleOutgoing(answer.link, answer.delivery, answer.outcome);
            Routed {
                connection,
                rests_on,
                reply,
            }
        }));
        Ok((Outcome::Accepted, rests_on))
    }

    /// Adds to a transaction what is to be done in it.
    ///
    /// # Errors
    ///
    /// If there is no such transaction on the connection, it has too much in it already, it takes
    /// place elsewhere, or the operation could not be done even now. Then nothing of the transaction
    /// happens any more.
    pub(super) fn enlist(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        operation: Operation,
    ) -> Result<(), Denied> {
        let scope = self.check_operation(cx, connection, id, &operation)?;
        self.add(connection, id, scope, operation);
        Ok(())
    }

    /// Lets nothing of a transaction happen, for something of it was refused.
    pub(super) fn spoil(&mut self, connection: ConnectionId, id: &[u8], reason: &str) {
        let open = &mut self.connection(connection).transactions;
        if let Some(transaction) = number(id).and_then(|number| open.get_mut(&number)) {
            // It may quote the peer.
            let reason = || reason.chars().take(REASON_MAX).collect();
            transaction.spoiled.get_or_insert_with(reason);
        }
    }

    /// Schedules a message in a transaction: its number is told now, and goes unused if the
    /// transaction comes to nothing, or the message's time has come when it is committed.
    pub(super) fn enlist_schedule(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        queue: EntityId,
        message: Message,
    ) -> Result<SequenceNumber, Denied> {
        let schedule = |number, message| Operation::Schedule {
            queue,
            number,
            message,
        };
        // A number is given away for good: all is checked before.
        let unnumbered = schedule(SequenceNumber(0), message.clone());
        let scope = self.check_operation(cx, connection, id, &unnumbered)?;
        let number = self.with_queue(cx, queue, |queue, cx| {
            let arrival = Arrival::of(&message, queue.description());
            queue.reserve(cx, arrival.partition_hash)
        });
        let number = number.unwrap_or(SequenceNumber(0));
        self.add(connection, id, scope, schedule(number, message));
        Ok(number)
    }

    /// Checks that an operation can become part of a transaction, and returns where this takes place
    /// then. If it cannot, nothing of the transaction happens.
    fn check_operation(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        operation: &Operation,
    ) -> Result<Scope, Denied> {
        let checked = self.try_operation(cx, connection, id, operation);
        if let Err(denied) = &checked {
            self.spoil(connection, id, &denied.text);
        }
        checked
    }

    fn try_operation(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        id: &[u8],
        operation: &Operation,
    ) -> Result<Scope, Denied> {
        self.check_weight(connection, id, operation.weight(), operation.bytes())?;
        self.check_one(cx, operation)?;
        if let Operation::Settle { queue, token, .. } = operation {
            self.check_not_enlisted(*queue, *token)?;
        }
        let scope = self.scope_of(operation)?;
        let open = &self.connection(connection).transactions;
        let transaction = number(id).and_then(|number| open.get(&number));
        let of_transaction = transaction.and_then(|transaction| transaction.scope);
        self.join_scopes(of_transaction, scope)
    }

    /// Makes an operation that was checked part of its transaction.
    fn add(&mut self, connection: ConnectionId, id: &[u8], scope: Scope, operation: Operation) {
        let Some(number) = number(id) else { return };
        let open = &mut self.connection(connection).transactions;
        let Some(transaction) = open.get_mut(&number) else {
            return;
        };
        let bytes = operation.bytes();
        transaction.held.resize(transaction.held.bytes() + bytes);
        transaction.scope = Some(scope);
        let settled = match &operation {
            Operation::Settle { queue, token, .. } => Some((*queue, *token)),
            Operation::Send { .. } | Operation::Schedule { .. } | Operation::Cancel { .. } => None,
        };
        transaction.operations.push(operation);
        self.transaction_bytes += bytes;
        self.enlisted
            .extend(settled.map(|settled| (settled, number)));
    }

    /// Checks that there is such a transaction, and that so much more may be in it.
    fn check_weight(
        &mut self,
        connection: ConnectionId,
        id: &[u8],
        more: usize,
        bytes: usize,
    ) -> Result<(), Denied> {
        let open = &self.connection(connection).transactions;
        let Some(transaction) = number(id).and_then(|number| open.get(&number)) else {
            return Err(unknown());
        };
        let weight: usize = transaction.operations.iter().map(Operation::weight).sum();
        if limits::TRANSACTION_OPERATIONS_MAX < weight + more {
            let text = "Can't send more than 100 messages in a single transaction.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, ""));
        }
        self.check_transaction_bytes(connection, bytes)
    }

    /// Checks that the open transactions of a connection, and of all, may hold so much more.
    pub(super) fn check_transaction_bytes(
        &mut self,
        connection: ConnectionId,
        more: usize,
    ) -> Result<(), Denied> {
        let all_max = self.shares.memory.total() / limits::TRANSACTIONS_SHARE;
        let own_max = limits::TRANSACTION_BYTES_MAX.min(all_max / limits::CONNECTION_SHARE);
        let open = self.connection(connection).transactions.values();
        let own: usize = open.map(|open| open.held.bytes()).sum();
        let (whose, max) = if own_max < own + more {
            ("the connection", own_max)
        } else if all_max < self.transaction_bytes + more {
            ("all connections", all_max)
        } else {
            return Ok(());
        };
        let text = format!(
            "The open transactions of {whose} would hold more than {max} bytes of messages and \
             settlements: discharge one first."
        );
        Err(Denied::new(DeniedKind::Limit, &text, ""))
    }

    /// Moves the ends of open transactions with the clock.
    pub(super) fn move_transaction_ends(&mut self, step: ClockStep) {
        let before = std::mem::take(&mut self.transaction_ends).into_iter();
        let moved = before.map(|(at, connection, id)| (at.moved(step), connection, id));
        self.transaction_ends = moved.collect();
        for connection in self.connections.values_mut() {
            for transaction in connection.transactions.values_mut() {
                transaction.ends = transaction.ends.moved(step);
            }
        }
    }

    /// Rolls the transactions back that have been open for too long.
    pub(super) fn end_transactions(&mut self, now: Timestamp) {
        while let Some(&(ends, connection, id)) = self.transaction_ends.first() {
            if now < ends {
                return;
            }
            self.take_transaction(connection, &id.to_be_bytes());
        }
    }

    /// Rolls back what a connection has left open: all, or what was declared on one link.
    pub(super) fn roll_back(&mut self, connection: ConnectionId, link: Option<LinkId>) {
        let Some(state) = self.connections.get(&connection) else {
            return;
        };
        let open = state.transactions.iter();
        let open = open.filter(|(_, open)| link.is_none_or(|link| link == open.link));
        let open: Vec<u64> = open.map(|(&id, _)| id).collect();
        for id in open {
            self.take_transaction(connection, &id.to_be_bytes());
        }
    }

    /// Takes a transaction out: what it holds is not done, unless the caller does it.
    fn take_transaction(&mut self, connection: ConnectionId, id: &[u8]) -> Option<Transaction> {
        let id = number(id)?;
        let transaction = self.connection(connection).transactions.remove(&id)?;
        self.transaction_bytes -= transaction.held.bytes();
        self.transaction_ends
            .remove(&(transaction.ends, connection, id));
        for operation in &transaction.operations {
            if let Operation::Settle { queue, token, .. } = operation {
                self.enlisted.remove(&(*queue, *token));
            }
        }
        Some(transaction)
    }

    /// Checks that all of a transaction can be done.
    fn check(&mut self, cx: &mut StepContext<'_>, transaction: &Transaction) -> Result<(), Denied> {
        let mut sent: BTreeMap<EntityId, Vec<Message>> = BTreeMap::new();
        for operation in &transaction.operations {
            self.check_one(cx, operation)?;
            match operation {
                Operation::Send {
                    queue, messages, ..
                } => {
                    let all = sent.entry(*queue).or_default();
                    all.extend(messages.iter().cloned());
                }
                Operation::Schedule { queue, message, .. } => {
                    sent.entry(*queue).or_default().push(message.clone());
                }
                Operation::Settle { .. } | Operation::Cancel { .. } => {}
            }
        }
        // Together they may be too many for an entity.
        for (queue, messages) in sent {
            self.admit(cx, queue, &messages)?;
        }
        Ok(())
    }

    fn check_one(&mut self, cx: &mut StepContext<'_>, operation: &Operation) -> Result<(), Denied> {
        match operation {
            Operation::Send {
                queue, messages, ..
            } => self.admit(cx, *queue, messages),
            Operation::Schedule { queue, message, .. } => {
                self.admit(cx, *queue, std::slice::from_ref(message))
            }
            Operation::Settle {
                queue,
                token,
                settlement,
                lost,
                ..
            } => {
                let result = self.with_queue(cx, *queue, |queue, _| {
                    queue.check_settlement(*token, settlement)
                });
                self.settled(*queue, *lost, result)
            }
            Operation::Cancel { queue, numbers } => {
                let scheduled =
                    self.with_queue(cx, *queue, |queue, _| queue.are_scheduled(numbers));
                if scheduled == Some(true) {
                    return Ok(());
                }
                let text = "One of the messages is not scheduled. None was cancelled.";
                Err(Denied::new(DeniedKind::MessageNotFound, text, ""))
            }
        }
    }

    /// Does what was checked.
    fn carry_out(&mut self, cx: &mut StepContext<'_>, operation: Operation) {
        match operation {
            Operation::Send {
                queue,
                destination,
                messages,
                ..
            } => {
                self.put(cx, queue, destination.as_ref(), messages, |_| ());
            }
            Operation::Schedule {
                queue,
                number,
                message,
            } if is_ahead(cx.now, &message) => {
                self.put_reserved(cx, queue, number, message);
            }
            // As one that becomes active it gets a new number, in the order of what was asked for.
            Operation::Schedule { queue, message, .. } => {
                self.put(cx, queue, None, [message], |_| ());
            }
            Operation::Settle {
                queue,
                token,
                settlement,
                ..
            } => {
                let result =
                    self.with_queue(cx, queue, |queue, cx| queue.settle(cx, token, settlement));
                debug_assert_eq!(result, Some(Ok(())), "it was checked");
            }
            Operation::Cancel { queue, mut numbers } => {
                let done = self.with_queue(cx, queue, |queue, cx| {
                    // One transaction may cancel a message twice.
                    numbers.retain(|&number| queue.are_scheduled(&[number]));
                    queue.cancel(cx, &numbers)
                });
                debug_assert_eq!(done, Some(true), "it was checked");
            }
        }
    }
}

fn unknown() -> Denied {
    let text = "There is no such transaction on this connection: it was never declared here, it has been \
                discharged, or it was open for more than two minutes.";
    Denied::new(DeniedKind::TransactionUnknown, text, "coordinator")
}

/// Characters that are kept of why something was refused.
const REASON_MAX: usize = 512;

/// Returns the number of the transaction with this id; none if no id of ours is like it.
pub(super) fn number(id: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(id.try_into().ok()?))
}
