//! Messages are settled by those who hold their locks.

use super::{Denied, DeniedKind, Namespaces, StepContext, traces, transactions};
use jitney_base::ids::{EntityId, LockToken};
use jitney_queue::{Queue, SessionLost, Settlement, SettlementRefused};

/// The lock that is reported as lost if a message's lock does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostLock {
    /// The message's own: the client that settles it holds the message session, if it is of one.
    Message,
    /// That of the message session, where the queue has any.
    Session,
}

impl Namespaces {
    /// Settles a message outside of transactions.
    pub fn settle(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        token: LockToken,
        lost: LostLock,
        settlement: Settlement,
    ) -> Result<(), Denied> {
        self.check_not_enlisted(queue, token)?;
        let result = self.settle_now(cx, queue, token, settlement);
        if result == Some(Ok(())) {
            self.record_access(cx.now, queue);
        }
        self.settled(queue, lost, result)
    }

    /// Settles a message, whose transaction is committed if it has one.
    pub(super) fn settle_now(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        token: LockToken,
        settlement: Settlement,
    ) -> Option<Result<(), SettlementRefused>> {
        let disposition = traces::disposition(&settlement);
        let result = self.with_queue(cx, queue, |queue, cx| queue.settle(cx, token, settlement));
        if self.is_traced() && result == Some(Ok(())) {
            self.trace_settled(queue, token, disposition);
        }
        result
    }

    /// Says in the service's words why a settlement did not happen.
    pub fn settled(
        &self,
        queue: EntityId,
        lost: LostLock,
        result: Option<Result<(), SettlementRefused>>,
    ) -> Result<(), Denied> {
        let refused = match result {
            Some(Ok(())) => return Ok(()),
            Some(Err(refused)) => refused,
            None => return Err(Denied::gone("")),
        };
        let is_of_session = lost == LostLock::Session
            && matches!(refused, SettlementRefused::LockLost(_))
            && self.queue(queue).is_some_and(Queue::has_sessions);
        let (kind, text) = if is_of_session {
            (DeniedKind::SessionLockLost, SessionLost.to_string())
        } else {
            (kind(refused), refused.to_string())
        };
        Err(Denied::new(kind, text, &self.name_of(queue)))
    }

    /// Checks that a message is not settled in an open transaction.
    pub fn check_not_enlisted(&self, queue: EntityId, token: LockToken) -> Result<(), Denied> {
        if self.transactions.enlisted_in(queue, token).is_none() {
            return Ok(());
        }
        let text = "The message is settled in a transaction that is still open.";
        Err(Denied::new(DeniedKind::NotAllowed, text, ""))
    }

    /// Returns whether a message is settled in this transaction, which is open.
    pub fn is_enlisted_in(&self, id: Option<&[u8]>, queue: EntityId, token: LockToken) -> bool {
        let open = self.transactions.enlisted_in(queue, token);
        open.is_some() && open == id.and_then(transactions::number)
    }
}

/// The kind of reason for a settlement that did not happen.
fn kind(refused: SettlementRefused) -> DeniedKind {
    match refused {
        SettlementRefused::LockLost(_) => DeniedKind::MessageLockLost,
        SettlementRefused::DeadLetterAlready => DeniedKind::NotAllowed,
        SettlementRefused::NotSimple | SettlementRefused::TooManyProperties => DeniedKind::Argument,
    }
}
