//! Operations on message sessions (`management.md#get-message-sessions`).

use bytes::Bytes;
use serde_amqp::Value;
use serde_amqp::primitives::Timestamp as WireTimestamp;
use serde_bytes::ByteBuf;

use super::operations::{Failure, Holders, Operation, OperationResult, Progress};
use super::values::{Map, wrong};
use super::{Body, Status};
use crate::limits;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{DeniedKind, Operation as Enlisted};
use jitney_queue::{SessionList, SessionLost, StateRefused};

/// A last-updated-time from here on asks for the sessions in use, whenever updated: clients send
/// the end of the year 9999, in their precision.
const IN_USE: Timestamp = Timestamp::from_millis(253_402_300_799_000);

impl Operation<'_, '_> {
    pub(super) fn renew_session(&mut self, map: Map<'_>) -> OperationResult {
        let session = map.string("session-id")?;
        self.check_holder(session, Holders::OfConnection)?;
        match self.step(|queue, cx| queue.renew_session(cx.now, session))? {
            Ok(until) => {
                let until = Value::Timestamp(WireTimestamp::from(until.as_millis()));
                Ok((Status::ok(), Body::Entries(vec![("expiration", until)])))
            }
            Err(SessionLost) => {
                Err(self.deny(DeniedKind::SessionLockLost, SessionLost.to_string()))
            }
        }
    }

    pub(super) fn session_state(&mut self, map: Map<'_>) -> OperationResult {
        let session = map.string("session-id")?;
        self.check_holder(session, Holders::All)?;
        let state = self.step(|queue, _| queue.session_state(session).cloned())?;
        let state = state.map_or(Value::Null, |state| {
            Value::Binary(ByteBuf::from(state.to_vec()))
        });
        Ok((Status::ok(), Body::Entries(vec![("session-state", state)])))
    }

    pub(super) fn set_session_state(&mut self, map: Map<'_>) -> OperationResult {
        let session = map.string("session-id")?;
        let state = match map.get("session-state") {
            None => None,
            Some(value) => match value.binary() {
                // Go clears a state with no bytes, and is to find none.
                Some([]) => None,
                Some(bytes) => Some(Bytes::copy_from_slice(bytes)),
                None => return Err(wrong("session-state", "a binary or null", value).into()),
            },
        };
        self.check_holder(session, Holders::All)?;
        if state.is_some() {
            self.gateway.namespaces.check_room(
                &self.address.path,
                "no state is set until there is room again",
            )?;
        }
        if let Some(id) = self.transaction {
            let queue = self.gateway.namespaces.queue(self.queue);
            let Some(holder) = queue.and_then(|queue| queue.session_holder(session)) else {
                return Err(self.deny(DeniedKind::SessionLockLost, SessionLost.to_string()));
            };
            let set = Enlisted::SetState {
                queue: self.queue,
                message_session: session.to_owned(),
                holder,
                state,
            };
            self.gateway
                .enlist(self.cx, self.connection, id, set, None)?;
            return Ok((Status::ok(), Body::Empty));
        }
        let held = self.gateway.namespaces.held_bytes(self.queue);
        let set = self.step(|queue, cx| {
            let elsewhere = held.saturating_sub(queue.bytes());
            queue.set_session_state(cx, session, state, elsewhere)
        })?;
        match set {
            Ok(()) => Ok((Status::ok(), Body::Empty)),
            Err(refused @ StateRefused::TooLarge(_)) => Err(refused.to_string().into()),
            Err(refused @ StateRefused::Full) => {
                Err(self.deny(DeniedKind::Limit, refused.to_string()))
            }
        }
    }

    pub(super) fn list_sessions(&mut self, map: Map<'_>) -> OperationResult {
        let number = |name| {
            let number = map.integer(name)?;
            usize::try_from(number).map_err(|_| format!("'{name}' must not be negative"))
        };
        let (skip, top) = (number("skip")?, number("top")?);
        let top = top.min(limits::REQUEST_ITEMS_MAX);
        let since = map.timestamp("last-updated-time")?;
        let since = (since < IN_USE).then_some(since);
        let mut list = match std::mem::take(&mut self.progress) {
            Progress::Listing(list) => list,
            Progress::Begun | Progress::Browsing(_) | Progress::Deleting { .. } => {
                SessionList::new(skip, top)
            }
        };
        let mut budget = self.gateway.scans.take_budget();
        let step = self.step(|queue, _| queue.list_sessions(since, &mut list, &mut budget));
        self.gateway.scans.put_budget(budget);
        step?;
        if !list.is_complete {
            return Err(Failure::Unfinished(Progress::Listing(list)));
        }
        let found = list.names;
        if found.is_empty() {
            return Ok((Status::no_session(), Body::Empty));
        }
        let skip = i32::try_from(skip + found.len()).unwrap_or(i32::MAX);
        let sessions = Body::Sessions { skip, ids: found };
        Ok((Status::ok(), sessions))
    }
}
