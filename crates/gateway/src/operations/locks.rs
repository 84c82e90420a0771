//! Messages that an operator locks by their numbers, and locked messages that he settles.

use crate::Gateway;
use crate::request::{Request, Requester};
use jitney_base::ids::{LockToken, SequenceNumber};
use jitney_base::rights::Right;
use jitney_broker::namespace::{Denied, DeniedKind, LostLock, StepContext};
use jitney_queue::{Queue, Settlement};

/// Lock active or deferred messages: all of them, or none. No link holds the locks.
#[derive(Debug)]
pub struct LockMessages {
    /// The path of their queue.
    pub path: String,
    /// Their numbers.
    pub numbers: Vec<SequenceNumber>,
}

/// Settle locked messages, each for itself: one that cannot be settled does not hinder the others.
#[derive(Debug)]
pub struct SettleMessages {
    /// The path of their queue.
    pub path: String,
    /// Locks, and how their messages are settled.
    pub settlements: Vec<(LockToken, Settlement)>,
}

impl Request for LockMessages {
    /// The messages, in the order of their numbers.
    type Answer = Vec<(SequenceNumber, LockToken)>;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Vec<(SequenceNumber, LockToken)>, Denied> {
        let (queue, address) = gateway.at_path(requester, &self.path, Right::Manage)?;
        gateway.namespaces.check_status_receives(queue, &address)?;
        if gateway
            .namespaces
            .queue(queue)
            .is_some_and(Queue::has_sessions)
        {
            let text = "The entity has message sessions: a client that holds the session can \
                        receive its messages, and a job can activate, move or delete them.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, &address.path));
        }
        gateway.namespaces.record_access(cx.now, queue);
        let received = gateway.with_queue(cx, queue, |queue, cx| {
            queue.lock_by_number(cx, &self.numbers)
        });
        let received = received.ok_or_else(|| Denied::gone(&address.path))?;
        let received = received.map_err(|refused| {
            let text = refused.to_string();
            Denied::new(DeniedKind::MessageNotFound, text, &address.path)
        })?;
        let locked = received.into_iter().map(|handover| {
            let number = handover.stamps.sequence_number.cast_unsigned();
            (SequenceNumber(number), handover.token)
        });
        let locked: Vec<(SequenceNumber, LockToken)> = locked.collect();
        let detail = format!("{} messages", locked.len());
        gateway.audit(cx, requester, "lock", &address.path, &detail);
        Ok(locked)
    }
}

impl Request for SettleMessages {
    /// The result of each settlement.
    type Answer = Vec<Result<(), Denied>>;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<Vec<Result<(), Denied>>, Denied> {
        let (queue, address) = gateway.at_path(requester, &self.path, Right::Manage)?;
        gateway.namespaces.record_access(cx.now, queue);
        let results = self.settlements.into_iter().map(|(token, settlement)| {
            gateway.with_namespaces(cx, |namespaces, cx| {
                namespaces.settle(cx, queue, token, LostLock::Session, settlement)
            })
        });
        let results: Vec<Result<(), Denied>> = results.collect();
        let done = results.iter().filter(|result| result.is_ok()).count();
        let detail = format!("{done} messages");
        gateway.audit(cx, requester, "settle", &address.path, &detail);
        Ok(results)
    }
}
