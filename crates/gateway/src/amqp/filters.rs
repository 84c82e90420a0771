//! Receivers that look at messages without taking them, or take only some.

use jitney_broker::namespace::{Denied, DeniedKind};
use std::sync::Arc;

use crate::Gateway;
use crate::limits;
use jitney_amqp::{Attach, SelectorFilter};
use jitney_base::address::EntityAddress;
use jitney_base::ids::EntityId;
use jitney_queue::{Queue, ScanMode, Selection};
use jitney_rules::{SqlFilter, selector};

/// The messages of a queue that a receiver chooses.
#[derive(Debug)]
pub(super) struct ReceiverFilter {
    pub(super) scan_mode: ScanMode,
    pub(super) selection: Selection,
}

impl Gateway {
    /// Reads the filter of a receiver; `None` if it has none.
    pub(super) fn receiver_filter(
        &self,
        queue: EntityId,
        address: &EntityAddress,
        attach: &Attach,
    ) -> Result<Option<ReceiverFilter>, Denied> {
        if attach.is_no_local() {
            let text = "A receiver cannot leave out what its own connection sends (no-local): select \
                        by a property that the sender sets.";
            return Err(Denied::new(DeniedKind::NotImplemented, text, &address.path));
        }
        let selector = selector_of(address, attach)?;
        let scan_mode = if attach.browses() {
            ScanMode::Browse
        } else {
            ScanMode::Consume
        };
        let bytes_max = self.message_size_max(queue, attach);
        if scan_mode == ScanMode::Consume && selector.is_none() && bytes_max.is_none() {
            return Ok(None);
        }
        let selection = Selection {
            selector: selector.map(Arc::new),
            bytes_max,
        };
        Ok(Some(ReceiverFilter {
            scan_mode,
            selection,
        }))
    }

    /// Returns how large a message may be that is sent to a receiver, if its queue may have larger ones
    /// [2.7.3]. Of a message session all are sent, in their order.
    fn message_size_max(&self, queue: EntityId, attach: &Attach) -> Option<u64> {
        let queue = self
            .namespaces
            .queue(queue)
            .filter(|queue| !queue.has_sessions())?;
        let max = attach.message_size_max;
        let is_meant = max != 0 && max != limits::STATED_MESSAGE_SIZE;
        (is_meant && max < queue.description().max_message_bytes).then_some(max)
    }

    /// Checks that an entity's messages can be filtered so: a message session has one receiver, which
    /// gets them in order.
    pub(super) fn check_filter(
        &self,
        queue: EntityId,
        address: &EntityAddress,
        attach: &Attach,
        filter: &ReceiverFilter,
    ) -> Result<(), Denied> {
        let has_sessions = self
            .namespaces
            .queue(queue)
            .is_some_and(Queue::has_sessions);
        let text = if attach.session_filter().is_some() {
            "The messages of one session cannot be browsed or selected by a receiver: peek them by the \
             entity's $management node, or receive them."
        } else if has_sessions && filter.scan_mode == ScanMode::Consume {
            "A receiver of an entity that requires sessions cannot have a selector: accept a session."
        } else {
            return Ok(());
        };
        Err(Denied::new(DeniedKind::NotImplemented, text, &address.path))
    }
}

/// Reads the selector that a receiver has; an empty one is none.
pub(super) fn selector_of(
    address: &EntityAddress,
    attach: &Attach,
) -> Result<Option<SqlFilter>, Denied> {
    let text = match attach.selector() {
        None => return Ok(None),
        Some(SelectorFilter::Text(text)) if text.trim().is_empty() => return Ok(None),
        Some(SelectorFilter::Text(text)) => text,
        Some(SelectorFilter::Malformed) => {
            let text = "The selector of a receiver must be a string.";
            return Err(Denied::new(DeniedKind::InvalidField, text, &address.path));
        }
    };
    let selector = selector(&text).map_err(|error| {
        let text = format!("The selector is not valid: {error}.");
        Denied::new(DeniedKind::InvalidField, &text, &address.path)
    })?;
    Ok(Some(selector))
}
