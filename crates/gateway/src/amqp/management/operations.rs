//! The operations of an entity's management node.

use std::sync::Arc;

use bytes::Bytes;

use super::response::Carried;
use super::values::Map;
use super::{Body, RequestMessage, Status};
use crate::Gateway;
use crate::amqp::{Link, consumer_id, link_of};
use jitney_amqp::codec::Encoded;
use jitney_amqp::limits;
use jitney_base::address::EntityAddress;
use jitney_base::ids::{ConnectionId, EntityId, SequenceNumber};
use jitney_base::rights::Right;
use jitney_broker::namespace::{
    Denied, DeniedKind, ForwardingTarget, LostLock, Operation as Enlisted, StepContext,
};
use jitney_message::{Amendments, Message};
use jitney_queue::{
    Browsed, DeadLetter, DeferredRefused, Doomed, LockLost, Queue, ReceiveMode, ScanPosition,
    SessionList, SessionLost, Settlement,
};

/// An answer: a status and what it carries, or what is wrong with the request.
pub(super) type OperationResult = Result<(Status, Body), Failure>;

/// Why there is no answer, or none to what was asked.
pub(super) enum Failure {
    /// The request's own fault, as a sentence.
    Invalid(String),
    Denied(Denied),
    /// It is not complete: it continues in another turn.
    Unfinished(Progress),
}

/// How far an operation has come that looks at more than one turn allows.
#[derive(Debug, Default)]
pub(crate) enum Progress {
    /// It has not begun.
    #[default]
    Begun,
    /// Messages of one session are looked for from a place on.
    Browsing(ScanPosition),
    /// Messages have been deleted, and more are looked for from a place on.
    Deleting { deleted: usize, next: ScanPosition },
    /// Message sessions have been listed.
    Listing(SessionList),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Invalid(text)
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl Gateway {
    /// Carries an operation out; returns the group of records that the answer rests on too.
    ///
    /// # Errors
    ///
    /// How far it has come, if it continues in another turn.
    pub(crate) fn operate(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        address: &EntityAddress,
        call: &mut super::Call,
    ) -> Result<(u64, Status, Body), Progress> {
        let answer = match self.namespaces.resolve(address) {
            Some(queue) => {
                if is_of_session(&call.request.operation) {
                    self.namespaces.note_contact(cx.now, queue);
                } else {
                    self.namespaces.record_access(cx.now, queue);
                }
                let mut operation = Operation {
                    gateway: self,
                    cx,
                    connection,
                    queue,
                    address,
                    link: call.request.link.as_deref(),
                    transaction: call.transaction.as_ref(),
                    progress: std::mem::take(&mut call.progress),
                };
                operation.run(&call.request)
            }
            None => {
                let host = self.host_of(connection);
                Err(Denied::not_found(&host, &address.path).into())
            }
        };
        let durable_after = self
            .namespaces
            .resolve(address)
            .map_or(0, |id| self.namespaces.group_of(id));
        if let (Some(id), Err(failure)) = (&call.transaction, &answer) {
            match failure {
                Failure::Invalid(text) => self.abort(connection, id, text),
                Failure::Denied(denied) => self.abort(connection, id, &denied.text),
                Failure::Unfinished(_) => {}
            }
        }
        let (status, body) = match answer {
            Ok(answer) => answer,
            Err(Failure::Unfinished(progress)) => return Err(progress),
            Err(Failure::Invalid(text)) => (Status::invalid(&text), Body::Empty),
            Err(Failure::Denied(denied)) => (self.failed(cx.now, denied), Body::Empty),
        };
        Ok((durable_after, status, body))
    }
}

/// Returns whether an operation is about a message session and no message: none keeps its entity
/// (`entities.md#idle-entities`).
fn is_of_session(operation: &str) -> bool {
    matches!(
        operation,
        "com.microsoft:renew-session-lock"
            | "com.microsoft:get-session-state"
            | "com.microsoft:set-session-state"
    )
}

/// The receivers that may hold a message session of which a request names no link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holders {
    /// Any: Go's first SDK has a connection for requests alone.
    All,
    /// Those of the request's connection.
    OfConnection,
}

/// One operation on one queue.
pub(super) struct Operation<'a, 'b> {
    pub(super) gateway: &'a mut Gateway,
    pub(super) cx: &'a mut StepContext<'b>,
    pub(super) connection: ConnectionId,
    pub(super) queue: EntityId,
    pub(super) address: &'a EntityAddress,
    /// The name of the link that it is about.
    link: Option<&'a str>,
    pub(super) transaction: Option<&'a Bytes>,
    /// How far it has come in the turns before.
    pub(super) progress: Progress,
}

impl Operation<'_, '_> {
    fn run(&mut self, request: &RequestMessage) -> OperationResult {
        let operation = request.operation.as_str();
        let known = operation.strip_prefix("com.microsoft:").unwrap_or_default();
        let right = match known {
            "schedule-message" | "cancel-scheduled-message" => Right::Send,
            // Rules too: Java's rule manager has claims to listen only (`cbs.md#rights`).
            _ => Right::Listen,
        };
        let resource = self.address.resource();
        self.gateway
            .check_right(self.connection, &resource, Some(right))?;
        let scans = matches!(
            known,
            "peek-message"
                | "receive-by-sequence-number"
                | "batch-delete-messages"
                | "get-message-sessions"
                | "enumerate-rules"
        );
        if scans && self.gateway.scans.is_spent() {
            return Err(Failure::Unfinished(std::mem::take(&mut self.progress)));
        }
        match known {
            "peek-message" => self.peek(request.map()?),
            "receive-by-sequence-number" => self.receive_deferred(request.map()?),
            "update-disposition" => self.update_disposition(request.map()?),
            "renew-lock" => self.renew_locks(request.map()?),
            "schedule-message" => self.schedule(request.map()?),
            "cancel-scheduled-message" => self.cancel(request.map()?),
            "batch-delete-messages" => self.delete_batch(request.map()?),
            "renew-session-lock" => self.renew_session(request.map()?),
            "get-session-state" => self.session_state(request.map()?),
            "set-session-state" => self.set_session_state(request.map()?),
            "get-message-sessions" => self.list_sessions(request.map()?),
            "add-rule" => self.add_rule(request.map()?),
            "remove-rule" => self.remove_rule(request.map()?),
            "enumerate-rules" => self.enumerate_rules(request.map()?),
            _ => {
                let text = format!("The operation '{operation}' is not supported.");
                Err(self.deny(DeniedKind::NotImplemented, &text))
            }
        }
    }

    fn peek(&mut self, map: Map<'_>) -> OperationResult {
        let from = map.integer("from-sequence-number")?.max(0).cast_unsigned();
        let count = positive(map, "message-count")?;
        let from = SequenceNumber(from);
        let session = map.optional_string("session-id")?;
        let omits_body = map.optional_boolean("omit-message-body")?.unwrap_or(false);
        self.check_own_messages()?;
        let found = match session {
            Some(session) => self.peek_session(from, count, session)?,
            None => self.step(|queue, _| queue.browse(from, count))?,
        };
        self.gateway.scans.spend(found.len());
        let carried = found.into_iter().map(|browsed| Carried {
            body: browsed.body,
            stamps: browsed.stamps,
            token: None,
            omits_body,
        });
        Ok(messages(carried.collect()))
    }

    /// Finds messages of one session.
    fn peek_session(
        &mut self,
        from: SequenceNumber,
        count: usize,
        session: &str,
    ) -> Result<Vec<Browsed>, Failure> {
        let place = match self.progress {
            Progress::Browsing(ScanPosition(place)) => Some(place),
            Progress::Begun | Progress::Deleting { .. } | Progress::Listing(_) => None,
        };
        let mut budget = self.gateway.scans.take_budget();
        let found = self.step(|queue, _| {
            let start = place.unwrap_or_else(|| queue.browse_start(from));
            queue.browse_session(start, count, session, &mut budget)
        });
        self.gateway.scans.put_budget(budget);
        found?.map_err(|next| Failure::Unfinished(Progress::Browsing(next)))
    }

    fn receive_deferred(&mut self, map: Map<'_>) -> OperationResult {
        /// Each may be among packed entries of its own.
        const SCANNED_PER_NUMBER: usize = 64;
        let numbers = map.sequence_numbers("sequence-numbers")?;
        self.gateway.scans.spend(numbers.len() * SCANNED_PER_NUMBER);
        let mode = match map.integer("receiver-settle-mode")? {
            0 => ReceiveMode::ReceiveAndDelete,
            1 => ReceiveMode::PeekLock,
            other => {
                let text = format!("'receiver-settle-mode' must be 0 or 1, and {other} was found");
                return Err(text.into());
            }
        };
        self.gateway
            .namespaces
            .check_status_receives(self.queue, self.address)?;
        let session = map.optional_string("session-id")?;
        // Go names its link only.
        let session = match session {
            None if self.has_sessions() => self.session_of_link(),
            named => named.map(str::to_owned),
        };
        if self.has_sessions() {
            let session = session.as_deref().unwrap_or_default();
            self.check_holder(session, Holders::All)?;
        }
        if numbers.is_empty() {
            return Ok((Status::no_content(), Body::Empty));
        }
        let session = session.as_deref();
        match self.step(|queue, cx| queue.receive_deferred(cx, &numbers, mode, session))? {
            Ok(handovers) => {
                let carried = handovers.into_iter().map(|handover| Carried {
                    body: handover.body,
                    stamps: handover.stamps,
                    token: Some(handover.token),
                    omits_body: false,
                });
                Ok(messages(carried.collect()))
            }
            Err(DeferredRefused) => {
                Err(self.deny(DeniedKind::MessageNotFound, DeferredRefused.to_string()))
            }
        }
    }

    fn update_disposition(&mut self, map: Map<'_>) -> OperationResult {
        let mut tokens = map.lock_tokens("lock-tokens")?;
        tokens.sort_unstable();
        tokens.dedup();
        let settlement = settlement(map)?;
        let weight = settlement.changes().map_or(0, Amendments::weight);
        if limits::DISPOSITION_BYTES_MAX < tokens.len().saturating_mul(weight) {
            let text = format!(
                "The properties and texts for all lock tokens together would have more than {} \
                 bytes: settle fewer at a time.",
                limits::DISPOSITION_BYTES_MAX
            );
            return Err(self.deny(DeniedKind::Limit, &text));
        }
        let session = map.optional_string("session-id")?;
        let session = session.filter(|_| self.has_sessions());
        let lost = self.lost_lock(session)?;
        if let Some(id) = self.transaction {
            for token in tokens {
                let (queue, settlement) = (self.queue, settlement.clone());
                let settle = Enlisted::Settle {
                    queue,
                    token,
                    settlement,
                    lost,
                };
                self.gateway
                    .enlist(self.cx, self.connection, id, settle, None)?;
            }
            return Ok((Status::ok(), Body::Empty));
        }
        // All or none: a lock that is over must not leave the others half settled.
        for &token in &tokens {
            self.gateway
                .namespaces
                .check_not_enlisted(self.queue, token)?;
            let result = self.step(|queue, _| queue.check_settlement(token, &settlement))?;
            self.gateway
                .namespaces
                .settled(self.queue, lost, Some(result))?;
        }
        for token in tokens {
            let settlement = settlement.clone();
            let queue = self.queue;
            self.gateway.with_namespaces(self.cx, |namespaces, cx| {
                namespaces.settle(cx, queue, token, lost, settlement)
            })?;
        }
        Ok((Status::ok(), Body::Empty))
    }

    fn renew_locks(&mut self, map: Map<'_>) -> OperationResult {
        let tokens = map.lock_tokens("lock-tokens")?;
        if self.has_sessions() {
            let text = "The lock of a message in a session is renewed with the session's: use \
                        com.microsoft:renew-session-lock.";
            return Err(self.deny(DeniedKind::NotAllowed, text));
        }
        let result: Result<Vec<_>, LockLost> = self.step(|queue, cx| {
            if !tokens.iter().all(|&token| queue.is_locked(token)) {
                return Err(LockLost);
            }
            tokens
                .iter()
                .map(|&token| queue.renew(cx.now, token))
                .collect()
        })?;
        match result {
            Ok(ends) if ends.is_empty() => Ok((Status::no_content(), Body::Empty)),
            Ok(ends) => Ok((Status::ok(), Body::Expirations(ends))),
            Err(lost) => Err(self.deny(DeniedKind::MessageLockLost, lost.to_string())),
        }
    }

    fn schedule(&mut self, map: Map<'_>) -> OperationResult {
        self.gateway
            .namespaces
            .check_sendable(self.queue, self.address)?;
        let parts = map.items("messages")?.enumerate().map(|(at, item)| {
            let item = Map::new(item).ok_or_else(|| format!("'messages[{at}]' must be a map"))?;
            let bytes = item.get("message").and_then(Encoded::binary);
            let bytes =
                bytes.ok_or_else(|| format!("'messages[{at}].message' must be a binary"))?;
            Message::parse(Bytes::copy_from_slice(bytes))
                .map_err(|error| format!("'messages[{at}].message': {error}"))
        });
        let messages: Vec<Message> = parts.collect::<Result<_, String>>()?;
        if messages.is_empty() {
            return Ok((Status::no_content(), Body::Empty));
        }
        for (at, message) in messages.iter().enumerate() {
            // A time of another type reads as none, and what is sent at once cannot be called back.
            if message.scheduled_enqueue_time().is_none() {
                let text = format!(
                    "'messages[{at}].message' has no annotation x-opt-scheduled-enqueue-time, a \
                     timestamp"
                );
                return Err(text.into());
            }
        }
        if let Some(id) = self.transaction {
            let numbers = messages.into_iter().map(|message| {
                let (cx, queue) = (&mut *self.cx, self.queue);
                self.gateway
                    .enlist_schedule(cx, self.connection, id, queue, message)
            });
            let numbers = numbers.collect::<Result<_, _>>()?;
            return Ok((Status::ok(), Body::SequenceNumbers(numbers)));
        }
        let queue = self.queue;
        let numbers = self.gateway.with_namespaces(self.cx, |namespaces, cx| {
            namespaces.schedule_messages(cx, queue, messages)
        })?;
        Ok((Status::ok(), Body::SequenceNumbers(numbers)))
    }

    fn cancel(&mut self, map: Map<'_>) -> OperationResult {
        let mut numbers = map.sequence_numbers("sequence-numbers")?;
        numbers.sort_unstable();
        numbers.dedup();
        if let Some(id) = self.transaction {
            let queue = self.queue;
            let cancel = Enlisted::Cancel { queue, numbers };
            self.gateway
                .enlist(self.cx, self.connection, id, cancel, None)?;
            return Ok((Status::ok(), Body::Empty));
        }
        if self.step(|queue, cx| queue.cancel(cx, &numbers))? {
            return Ok((Status::ok(), Body::Empty));
        }
        let text = "One of the messages is not scheduled: it was cancelled, or is active already. \
                    None was cancelled.";
        Err(self.deny(DeniedKind::MessageNotFound, text))
    }

    fn delete_batch(&mut self, map: Map<'_>) -> OperationResult {
        let count = positive(map, "message-count")?;
        let before = map.timestamp("enqueued-time-utc")?;
        let tier = self
            .gateway
            .namespaces
            .directory()
            .tier_of(&self.address.path);
        let max = tier.batch_delete_max();
        if max < count {
            let text = format!(
                "'message-count' is {count}, and {max} is the most: the namespace is {tier}"
            );
            return Err(text.into());
        }
        let queue = self.gateway.namespaces.queue(self.queue);
        if queue.is_some_and(|queue| queue.description().partitioned) {
            let text = "Batch delete is not supported for an entity with partitioning enabled.";
            return Err(self.deny(DeniedKind::NotAllowed, text));
        }
        self.gateway
            .namespaces
            .check_status_receives(self.queue, self.address)?;
        let session = map.optional_string("session-id")?;
        let (before_this, start) = match self.progress {
            Progress::Deleting { deleted, next } => (deleted, next),
            Progress::Begun | Progress::Browsing(_) | Progress::Listing(_) => (0, ScanPosition(0)),
        };
        let doomed = Doomed {
            count: count.saturating_sub(before_this),
            before,
            message_session: session,
        };
        let mut budget = self.gateway.scans.take_budget();
        let step = self.step(|queue, cx| queue.delete_batch(cx, &doomed, start.0, &mut budget));
        self.gateway.scans.put_budget(budget);
        let (deleted, next) = step?;
        match (before_this + deleted, next) {
            (deleted, Some(next)) => Err(Failure::Unfinished(Progress::Deleting { deleted, next })),
            (0, None) => Ok((Status::no_content(), Body::Empty)),
            (deleted, None) => Ok((Status::ok(), Body::Count(deleted))),
        }
    }

    /// Checks that a message session's lock is held by the link that the request is about, on this connection; `of` says
    /// by whom it may be held if the request names no link (`management.md#session-state`).
    pub(super) fn check_holder(&mut self, session: &str, of: Holders) -> Result<(), Failure> {
        self.step(|_, _| ())?;
        let queue = self.gateway.namespaces.queue(self.queue);
        let holder = queue.and_then(|queue| queue.session_holder(session));
        let holds = holder.is_some_and(|holder| {
            let (connection, link) = link_of(holder);
            let name = match self.gateway.link(connection, link) {
                Some(Link::Receiver { name, .. }) => name.as_deref(),
                _ => None,
            };
            match (self.link, of) {
                (None, Holders::All) => true,
                (None, Holders::OfConnection) => connection == self.connection,
                (named, _) => connection == self.connection && named == name,
            }
        });
        if holds {
            return Ok(());
        }
        Err(self.deny(DeniedKind::SessionLockLost, SessionLost.to_string()))
    }

    /// Returns which lock is lost where a message's does not hold: only the message's, if the message
    /// session is held, by its name or by the link that the request is about.
    fn lost_lock(&mut self, session: Option<&str>) -> Result<LostLock, Failure> {
        if let Some(session) = session {
            self.check_holder(session, Holders::All)?;
            return Ok(LostLock::Message);
        }
        if self.has_sessions() {
            self.step(|_, _| ())?;
        }
        Ok(match self.session_of_link() {
            Some(_) => LostLock::Message,
            None => LostLock::Session,
        })
    }

    /// Finds the message session that the link holds which the request is about.
    fn session_of_link(&self) -> Option<String> {
        let wanted = self.link?;
        let connection = self.gateway.connections.get(self.connection)?;
        let mut links = connection.links.iter();
        let (&link, _) = links.find(|(_, state)| {
            matches!(state, Link::Receiver { queue, name: Some(name) }
                if *queue == self.queue && **name == *wanted)
        })?;
        let consumer = consumer_id(self.connection, link);
        let session = self
            .gateway
            .namespaces
            .queue(self.queue)?
            .session_held_by(consumer)?;
        Some(session.to_owned())
    }

    fn has_sessions(&self) -> bool {
        self.gateway
            .namespaces
            .queue(self.queue)
            .is_some_and(Queue::has_sessions)
    }

    /// Checks that messages of the entity can be looked at: it does not pass them on.
    fn check_own_messages(&self) -> Result<(), Failure> {
        let node = self.gateway.namespaces.node(self.queue);
        if node.is_some_and(|node| matches!(node.forwards_to, Some(ForwardingTarget::Entity(_)))) {
            let text = "Cannot create a message browser on an entity with auto-forwarding enabled.";
            return Err(self.deny(DeniedKind::NotAllowed, text));
        }
        Ok(())
    }

    pub(super) fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Queue, &mut jitney_queue::Context<'_>) -> T,
    ) -> Result<T, Failure> {
        match self.gateway.with_queue(self.cx, self.queue, step) {
            Some(result) => Ok(result),
            None => Err(Denied::gone(&self.address.path).into()),
        }
    }

    pub(super) fn deny(&self, kind: DeniedKind, text: impl Into<String>) -> Failure {
        Denied::new(kind, text, &self.address.path).into()
    }
}

/// What an update-disposition asks for (`management.md#update-disposition`): "defered" is spelled
/// so.
fn settlement(map: Map<'_>) -> Result<Settlement, String> {
    let amendments = match map.optional_map("properties-to-modify")? {
        Some(properties) => Amendments::from_encoded(properties.encoded()),
        None => Amendments::default(),
    };
    let changes = |all: Amendments| (!all.is_empty()).then(|| Arc::new(all));
    let status = map.string("disposition-status")?;
    match status {
        "completed" => Ok(Settlement::Complete),
        "abandoned" => Ok(Settlement::Abandon(changes(amendments))),
        "defered" => Ok(Settlement::Defer(changes(amendments))),
        "suspended" => {
            let reason = DeadLetter {
                reason: map.optional_string("deadletter-reason")?.map(Into::into),
                description: map
                    .optional_string("deadletter-description")?
                    .map(Into::into),
                amendments,
            };
            Ok(Settlement::DeadLetter(changes(reason.into_amendments())))
        }
        other => Err(format!(
            "'disposition-status' must be 'completed', 'abandoned', 'defered' or 'suspended', and \
             '{other}' was found"
        )),
    }
}

pub(super) fn positive(map: Map<'_>, name: &str) -> Result<usize, String> {
    let number = map.integer(name)?;
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "'{name}' must be 1 or more, and {number} was found"
        )),
    }
}

fn messages(carried: Vec<Carried>) -> (Status, Body) {
    if carried.is_empty() {
        (Status::no_content(), Body::Empty)
    } else {
        (Status::ok(), Body::Messages(carried))
    }
}
