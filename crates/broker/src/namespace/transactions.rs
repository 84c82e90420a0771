//! Transactions: sends and settlements that happen together, or not at all
//! (`transactions.md#transactions`).
//!
//! A transaction belongs to the connection that declared it. Its operations are kept here until it is
//! discharged. Then all of them are checked, and carried out in one step, whose records are kept together or
//! lost together. Locks may end before: then the transaction fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::transaction_scope::Scope;
use super::{Denied, DeniedKind, LostLock, Namespaces, StepContext, is_ahead};
use crate::limits;
use jitney_base::ids::{ConnectionId, EntityId, LockToken, SequenceNumber};
use jitney_base::memory::{Held, Purpose};
use jitney_base::time::{ClockStep, Timestamp};
use jitney_message::Message;
use jitney_queue::{Arrival, ConsumerId, Queue, SessionLost, Settlement, StateRefused};

/// The open transactions of all connections.
#[derive(Debug, Default)]
pub struct Transactions {
    /// By number. Numbers begin at 1, and are never given twice.
    open: BTreeMap<u64, Transaction>,
    last: u64,
    /// When they end by themselves.
    ends: BTreeSet<(Timestamp, u64)>,
    /// The locks whose messages are settled in one, and its number.
    enlisted: BTreeMap<(EntityId, LockToken), u64>,
    /// How many a connection has, and their bytes; nothing for a connection that has none.
    owners: BTreeMap<ConnectionId, Share>,
    /// Bytes of all of them.
    bytes: usize,
}

/// The open transactions of one connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Share {
    count: usize,
    bytes: usize,
}

/// Operations that happen together.
#[derive(Debug)]
struct Transaction {
    owner: ConnectionId,
    operations: Vec<Operation>,
    weight: Weight,
    /// Where it takes place, as its operations say.
    scope: Option<Scope>,
    /// Why one of its operations was refused: then none of them happens. Java does not notice a refused
    /// send, and would commit the rest.
    aborted: Option<String>,
    /// Bytes of the messages and settlements in it.
    held: Held,
    ends: Timestamp,
}

/// Something that happens when its transaction is committed.
#[derive(Debug)]
pub enum Operation {
    /// Messages come into a queue.
    Send {
        /// The queue.
        queue: EntityId,
        /// The entity that they are forwarded to, if their sender named one.
        destination: Option<Arc<str>>,
        /// By way of which entity they are sent, if their link is one of a group.
        group: Option<EntityId>,
        /// The messages.
        messages: Vec<Message>,
    },
    /// A message is settled by the holder of its lock.
    Settle {
        /// The queue.
        queue: EntityId,
        /// The lock.
        token: LockToken,
        /// What becomes of the message.
        settlement: Settlement,
        /// What is done if the lock has ended.
        lost: LostLock,
    },
    /// A message is scheduled, with a number that was told already.
    Schedule {
        /// The queue.
        queue: EntityId,
        /// Its number.
        number: SequenceNumber,
        /// The message.
        message: Message,
    },
    /// Scheduled messages are cancelled.
    Cancel {
        /// The queue.
        queue: EntityId,
        /// Their numbers.
        numbers: Vec<SequenceNumber>,
    },
    /// The state of a message session is set, or cleared, by its holder.
    SetState {
        /// The queue.
        queue: EntityId,
        /// The message session.
        message_session: String,
        /// Who holds it.
        holder: ConsumerId,
        /// The state; nothing clears it.
        state: Option<Bytes>,
    },
}

/// What an operation of a transaction has done when it was committed.
#[derive(Debug)]
pub struct CarriedOut {
    /// The queue.
    pub queue: EntityId,
    /// What was done.
    pub what: Done,
    /// The sequence numbers of its messages; 0 for one that was dropped as a duplicate.
    pub numbers: Vec<SequenceNumber>,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Messages were sent.
    Sent,
    /// With this outcome.
    Settled(&'static str),
    /// A message was scheduled.
    Scheduled,
    /// Scheduled messages were cancelled.
    Cancelled,
    /// The state of a message session was set or cleared.
    StateSet,
}

impl Operation {
    pub(crate) fn queue(&self) -> EntityId {
        match self {
            Self::Send { queue, .. }
            | Self::Settle { queue, .. }
            | Self::Schedule { queue, .. }
            | Self::Cancel { queue, .. }
            | Self::SetState { queue, .. } => *queue,
        }
    }

    /// Returns the entity by way of which messages are sent, if their link is one of a group.
    pub(crate) fn group(&self) -> Option<EntityId> {
        match self {
            Self::Send { group, .. } => *group,
            Self::Settle { .. }
            | Self::Schedule { .. }
            | Self::Cancel { .. }
            | Self::SetState { .. } => None,
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
            Self::SetState {
                message_session,
                state,
                ..
            } => message_session.len() + state.as_ref().map_or(0, Bytes::len),
        };
        size_of::<Self>() + own
    }

    fn weight(&self) -> Weight {
        match self {
            Self::Send { messages, .. } => Weight::of_sent(messages.len()),
            Self::Schedule { .. } => Weight::of_sent(1),
            Self::Settle { .. } | Self::SetState { .. } => Weight::of_settled(1),
            Self::Cancel { numbers, .. } => Weight::of_settled(numbers.len()),
        }
    }
}

/// What counts against the limits of a transaction.
#[derive(Debug, Default, Clone, Copy)]
struct Weight {
    /// Messages that are sent or scheduled.
    sent: usize,
    /// Messages that are settled, or whose schedule is cancelled, and states that are set.
    settled: usize,
}

impl Weight {
    const fn of_sent(sent: usize) -> Self {
        Self { sent, settled: 0 }
    }

    const fn of_settled(settled: usize) -> Self {
        Self { sent: 0, settled }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            settled: self.settled + other.settled,
        }
    }

    /// Checks the limits of a transaction.
    fn check(self) -> Result<(), Denied> {
        let text = if limits::TRANSACTION_MESSAGES_MAX < self.sent {
            "Can't send more than 100 messages in a single transaction.".to_owned()
        } else if jitney_base::limits::TRANSACTION_SETTLEMENTS_MAX < self.settled {
            format!(
                "Can't settle more than {} messages in a single transaction.",
                jitney_base::limits::TRANSACTION_SETTLEMENTS_MAX
            )
        } else {
            return Ok(());
        };
        // A quota: .NET makes of another condition no ServiceBusException (NServiceBus.Transport.AzureServiceBus#669).
        Err(Denied::new(DeniedKind::Limit, text, ""))
    }
}

impl Transactions {
    /// Returns how many transactions a connection has open.
    #[must_use]
    pub fn count_of(&self, owner: ConnectionId) -> usize {
        self.owners.get(&owner).map_or(0, |share| share.count)
    }

    /// Returns the bytes of all of them.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of the transaction in which a message is settled.
    pub(super) fn enlisted_in(&self, queue: EntityId, token: LockToken) -> Option<u64> {
        self.enlisted.get(&(queue, token)).copied()
    }

    /// Returns when the next one ends by itself.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        self.ends.first().map(|&(at, _)| at)
    }

    /// Gives open transactions as much time as they had left before the clock was set.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        let before = std::mem::take(&mut self.ends).into_iter();
        self.ends = before
            .map(|(at, number)| (at.moved(step), number))
            .collect();
        for transaction in self.open.values_mut() {
            transaction.ends = transaction.ends.moved(step);
        }
    }

    fn insert(&mut self, transaction: Transaction) -> u64 {
        self.last += 1;
        self.ends.insert((transaction.ends, self.last));
        self.owners.entry(transaction.owner).or_default().count += 1;
        self.open.insert(self.last, transaction);
        self.last
    }

    /// Adds an operation, which was checked.
    fn add(&mut self, number: u64, scope: Scope, operation: Operation) {
        let Some(transaction) = self.open.get_mut(&number) else {
            return;
        };
        let bytes = operation.bytes();
        transaction.held.resize(transaction.held.bytes() + bytes);
        transaction.scope = Some(scope);
        transaction.weight = transaction.weight.and(operation.weight());
        self.bytes += bytes;
        self.owners.entry(transaction.owner).or_default().bytes += bytes;
        if let Operation::Settle { queue, token, .. } = &operation {
            self.enlisted.insert((*queue, *token), number);
        }
        transaction.operations.push(operation);
    }

    /// Takes a transaction out: its operations do not happen, unless the caller carries them out.
    fn remove(&mut self, number: u64) -> Option<Transaction> {
        let transaction = self.open.remove(&number)?;
        let bytes = transaction.held.bytes();
        self.bytes -= bytes;
        self.ends.remove(&(transaction.ends, number));
        if let Some(share) = self.owners.get_mut(&transaction.owner) {
            share.count -= 1;
            share.bytes -= bytes;
            if share.count == 0 {
                self.owners.remove(&transaction.owner);
            }
        }
        for operation in &transaction.operations {
            if let Operation::Settle { queue, token, .. } = operation {
                self.enlisted.remove(&(*queue, *token));
            }
        }
        Some(transaction)
    }

    /// Checks that what is counted is what there is.
    pub(super) fn check(&self) {
        let mut owners: BTreeMap<ConnectionId, Share> = BTreeMap::new();
        let mut settled = 0;
        for (number, transaction) in &self.open {
            assert!(self.ends.contains(&(transaction.ends, *number)));
            let share = owners.entry(transaction.owner).or_default();
            share.count += 1;
            share.bytes += transaction.held.bytes();
            for operation in &transaction.operations {
                if let Operation::Settle { queue, token, .. } = operation {
                    assert_eq!(self.enlisted_in(*queue, *token), Some(*number));
                    settled += 1;
                }
            }
        }
        assert_eq!(self.ends.len(), self.open.len());
        assert_eq!(self.enlisted.len(), settled);
        assert_eq!(owners, self.owners);
        let bytes: usize = owners.values().map(|share| share.bytes).sum();
        assert_eq!(bytes, self.bytes);
    }
}

impl Namespaces {
    /// Opens a transaction for a connection, and returns its number.
    pub fn declare(&mut self, now: Timestamp, owner: ConnectionId) -> u64 {
        let ends = now.after(limits::TRANSACTION_TIMEOUT);
        self.transactions.insert(Transaction {
            owner,
            operations: Vec::new(),
            weight: Weight::default(),
            scope: None,
            aborted: None,
            held: self.shares.memory.hold(Purpose::Other, 0),
            ends,
        })
    }

    /// Carries out the operations of a transaction, all of them or none; returns the group of records that
    /// they rest on. `done` gets what each has done.
    ///
    /// # Errors
    ///
    /// If one of them cannot be carried out, or was refused before. The transaction is over then too.
    pub fn commit(
        &mut self,
        cx: &mut StepContext<'_>,
        number: u64,
        done: &mut dyn FnMut(CarriedOut),
    ) -> Result<u64, Denied> {
        let transaction = self.transactions.remove(number).ok_or_else(unknown)?;
        let rolled_back = |reason: &str| {
            let text = format!("The transaction was rolled back: {reason}");
            Denied::new(DeniedKind::TransactionRollback, text, "coordinator")
        };
        if let Some(reason) = &transaction.aborted {
            return Err(rolled_back(reason));
        }
        self.check_all(cx, &transaction.operations)
            .map_err(|denied| rolled_back(&denied.text))?;
        let mut durable_after = 0;
        for operation in transaction.operations {
            let queue = operation.queue();
            done(self.carry_out(cx, operation));
            durable_after = durable_after.max(self.group_of(queue));
        }
        Ok(durable_after)
    }

    /// Ends a transaction whose operations do not happen. Returns whether it was open.
    pub fn roll_back(&mut self, number: u64) -> bool {
        self.transactions.remove(number).is_some()
    }

    /// Ends the next transaction whose time is over; returns it with the connection that declared it.
    pub fn end_transaction(&mut self, now: Timestamp) -> Option<(ConnectionId, u64)> {
        let &(at, number) = self.transactions.ends.first()?;
        if now < at {
            return None;
        }
        let transaction = self.transactions.remove(number)?;
        Some((transaction.owner, number))
    }

    /// Adds to a transaction what is to be done in it.
    ///
    /// # Errors
    ///
    /// If there is no such transaction, it has too much in it already, it takes place elsewhere, or the
    /// operation could not be done even now. Then nothing of the transaction happens any more.
    pub fn enlist(
        &mut self,
        cx: &mut StepContext<'_>,
        number: u64,
        operation: Operation,
    ) -> Result<(), Denied> {
        let scope = self.check_operation(cx, number, &operation)?;
        self.transactions.add(number, scope, operation);
        Ok(())
    }

    /// Schedules a message in a transaction. Its number is returned now, and stays unused if the transaction is
    /// rolled back, or the message's time has come when it is committed.
    pub fn enlist_schedule(
        &mut self,
        cx: &mut StepContext<'_>,
        number: u64,
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
        let scope = self.check_operation(cx, number, &unnumbered)?;
        let given = self.with_queue(cx, queue, |queue, cx| {
            let arrival = Arrival::of(&message, queue.description());
            queue.reserve(cx, arrival.partition_hash)
        });
        let given = given.unwrap_or(SequenceNumber(0));
        self.transactions
            .add(number, scope, schedule(given, message));
        Ok(given)
    }

    /// Lets nothing of a transaction happen, because one of its operations was refused.
    pub fn abort(&mut self, number: u64, reason: &str) {
        if let Some(transaction) = self.transactions.open.get_mut(&number) {
            // It may quote the peer.
            let reason = || reason.chars().take(limits::ROLLBACK_REASON_MAX).collect();
            transaction.aborted.get_or_insert_with(reason);
        }
    }

    /// Checks that an operation can become part of a transaction, and returns where this takes place
    /// then. If it cannot, nothing of the transaction happens.
    fn check_operation(
        &mut self,
        cx: &mut StepContext<'_>,
        number: u64,
        operation: &Operation,
    ) -> Result<Scope, Denied> {
        let checked = self.try_operation(cx, number, operation);
        if let Err(denied) = &checked {
            self.abort(number, &denied.text);
        }
        checked
    }

    fn try_operation(
        &mut self,
        cx: &mut StepContext<'_>,
        number: u64,
        operation: &Operation,
    ) -> Result<Scope, Denied> {
        let transaction = self.transactions.open.get(&number).ok_or_else(unknown)?;
        let (owner, of_transaction) = (transaction.owner, transaction.scope);
        transaction.weight.and(operation.weight()).check()?;
        self.check_transaction_bytes(owner, operation.bytes())?;
        self.check_one(cx, operation)?;
        if let Operation::Settle { queue, token, .. } = operation {
            self.check_not_enlisted(*queue, *token)?;
        }
        let scope = self.scope_of(operation);
        let joined = scope.and_then(|scope| self.join_scopes(of_transaction, scope));
        if joined.is_err() {
            self.give_up_of_other_partition(cx, operation);
        }
        joined
    }

    /// Abandons the message of a settlement in a partition that is not the transaction's, as the service does.
    fn give_up_of_other_partition(&mut self, cx: &mut StepContext<'_>, operation: &Operation) {
        let Operation::Settle { queue, token, .. } = operation else {
            return;
        };
        let description = self.queue(*queue).map(Queue::description);
        if description.is_some_and(|description| description.partitioned) {
            self.settle_now(cx, *queue, *token, Settlement::Abandon(None));
        }
    }

    /// Checks that the open transactions of a connection, and of all, may hold so much more.
    pub fn check_transaction_bytes(&self, owner: ConnectionId, more: usize) -> Result<(), Denied> {
        let all_max = self.shares.memory.total() / limits::TRANSACTIONS_SHARE;
        let own_max = limits::TRANSACTION_BYTES_MAX.min(all_max / limits::CONNECTION_SHARE);
        let own = self.transactions.owners.get(&owner);
        let own = own.map_or(0, |share| share.bytes);
        let (whose, max) = if own_max < own + more {
            ("the connection", own_max)
        } else if all_max < self.transactions.bytes + more {
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

    /// Checks that all of a transaction can be done.
    fn check_all(
        &mut self,
        cx: &mut StepContext<'_>,
        operations: &[Operation],
    ) -> Result<(), Denied> {
        let mut sent: BTreeMap<EntityId, Vec<Message>> = BTreeMap::new();
        for operation in operations {
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
                Operation::Settle { .. }
                | Operation::Cancel { .. }
                | Operation::SetState { .. } => {}
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
            Operation::SetState {
                queue,
                message_session,
                holder,
                state,
            } => {
                // A lock may have ended since the last step.
                self.with_queue(cx, *queue, |_, _| ());
                let elsewhere = self.held_bytes(*queue);
                let Some(queue) = self.queue(*queue) else {
                    return Err(Denied::gone(""));
                };
                if queue.session_holder(message_session) != Some(*holder) {
                    let text = SessionLost.to_string();
                    return Err(Denied::new(DeniedKind::SessionLockLost, text, ""));
                }
                let length = state.as_ref().map_or(0, Bytes::len);
                let elsewhere = elsewhere.saturating_sub(queue.bytes());
                let checked = queue.check_session_state(message_session, length, elsewhere);
                checked.map_err(|refused| match refused {
                    StateRefused::TooLarge(_) => {
                        Denied::new(DeniedKind::Argument, refused.to_string(), "")
                    }
                    StateRefused::Full => Denied::new(DeniedKind::Limit, refused.to_string(), ""),
                })
            }
        }
    }

    /// Does what was checked.
    fn carry_out(&mut self, cx: &mut StepContext<'_>, operation: Operation) -> CarriedOut {
        let queue = operation.queue();
        let mut given = Vec::new();
        let what = match operation {
            Operation::Send {
                queue,
                destination,
                messages,
                ..
            } => {
                self.put(cx, queue, destination.as_ref(), messages, |number| {
                    given.push(number);
                });
                Done::Sent
            }
            Operation::Schedule {
                queue,
                number,
                message,
            } if is_ahead(cx.now, &message) => {
                self.put_reserved(cx, queue, number, message);
                given.push(number);
                Done::Scheduled
            }
            // As one that becomes active it gets a new number, in the order of what was asked for.
            Operation::Schedule { queue, message, .. } => {
                self.put(cx, queue, None, [message], |number| given.push(number));
                Done::Sent
            }
            Operation::Settle {
                queue,
                token,
                settlement,
                ..
            } => {
                let locked = self.queue(queue);
                given.extend(locked.and_then(|queue| queue.number_of_lock(token)));
                let outcome = settlement.outcome();
                let result = self.settle_now(cx, queue, token, settlement);
                debug_assert_eq!(result, Some(Ok(())), "it was checked");
                Done::Settled(outcome)
            }
            Operation::Cancel { queue, mut numbers } => {
                let done = self.with_queue(cx, queue, |queue, cx| {
                    // One transaction may cancel a message twice.
                    numbers.retain(|&number| queue.are_scheduled(&[number]));
                    queue.cancel(cx, &numbers)
                });
                debug_assert_eq!(done, Some(true), "it was checked");
                given = numbers;
                Done::Cancelled
            }
            // Each state was checked by itself. Those of one transaction are bounded by its bytes.
            Operation::SetState {
                queue,
                message_session,
                state,
                ..
            } => {
                self.with_queue(cx, queue, |queue, cx| {
                    queue.put_session_state(cx, &message_session, state);
                });
                Done::StateSet
            }
        };
        CarriedOut {
            queue,
            what,
            numbers: given,
        }
    }
}

/// There is no such transaction on a connection.
#[must_use]
pub fn unknown() -> Denied {
    let text = "There is no such transaction on this connection: it was never declared here, it has been \
                discharged, or it was open for more than two minutes.";
    Denied::new(DeniedKind::TransactionUnknown, text, "coordinator")
}

/// Returns the number of the transaction with this id; `None` if no id of ours is like it.
#[must_use]
pub fn number(id: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(id.try_into().ok()?))
}
