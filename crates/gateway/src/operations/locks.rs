//! Messages that an operator locks by their numbers, and locked messages that he settles.

use super::Operated;
use crate::Gateway;
use jitney_base::ids::{LockToken, SequenceNumber};
use jitney_base::rights::Right;
use jitney_broker::access::Authority;
use jitney_broker::namespace::{Denied, DeniedKind, LostLock, StepContext};
use jitney_queue::{Queue, Settlement};

impl Gateway {
    /// Locks active or deferred messages: all of them, or none. No link holds the locks.
    pub(super) fn lock_by_number(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
        numbers: &[SequenceNumber],
    ) -> Result<Operated, Denied> {
        let (queue, address) = self.at_path(host, authority, path, Right::Manage)?;
        self.namespaces.check_status_receives(queue, &address)?;
        if self
            .namespaces
            .queue(queue)
            .is_some_and(Queue::has_sessions)
        {
            let text = "The entity has message sessions: a client that holds the session can \
                        receive its messages, and a job can activate, move or delete them.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, &address.path));
        }
        self.namespaces.record_access(cx.now, queue);
        let received = self.with_queue(cx, queue, |queue, cx| queue.lock_by_number(cx, numbers));
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
        self.audit(cx, authority, "lock", &address.path, &detail);
        Ok(Operated::Locked(locked))
    }

    /// Settles locked messages. One that cannot be settled does not hinder the others.
    pub(super) fn settle_locked(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        path: &str,
        settlements: Vec<(LockToken, Settlement)>,
    ) -> Result<Operated, Denied> {
        let (queue, address) = self.at_path(host, authority, path, Right::Manage)?;
        self.namespaces.record_access(cx.now, queue);
        let results = settlements.into_iter().map(|(token, settlement)| {
            self.with_namespaces(cx, |namespaces, cx| {
                namespaces.settle(cx, queue, token, LostLock::Session, settlement)
            })
        });
        let results: Vec<Result<(), Denied>> = results.collect();
        let done = results.iter().filter(|result| result.is_ok()).count();
        let detail = format!("{done} messages");
        self.audit(cx, authority, "settle", &address.path, &detail);
        Ok(Operated::Settled(results))
    }
}
