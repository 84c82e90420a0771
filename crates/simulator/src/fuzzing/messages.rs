//! Messages, batches and amendments: parsed, amended and rendered.

use std::sync::Arc;

use bytes::Bytes;

use super::parts;
use jitney_amqp::codec;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::{Amendments, Control, Message, MessageState, Stamps, render, split_batch};

/// Parses the first part as a message, and renders it with the second as its amendments. The result
/// parses as a message, and renders to the same bytes again: a forwarded message does not grow with
/// each delivery.
pub(super) fn run(input: &[u8]) {
    let parts = parts(input);
    let bytes = Bytes::copy_from_slice(parts.first().copied().unwrap_or_default());
    if let Ok(length) = codec::value_length(&bytes) {
        assert!(length <= bytes.len(), "a value beyond its bytes");
    }
    let _ = Control::parse(&bytes);
    if let Ok(messages) = split_batch(&bytes) {
        let total: usize = messages.iter().map(Bytes::len).sum();
        assert!(total <= bytes.len(), "a batch holds more than it is long");
    }
    let amendments = parts
        .get(1)
        .and_then(|bytes| Amendments::decode(bytes).ok())
        .inspect(check_amendments)
        // Queues refuse all others.
        .filter(|amendments| amendments.compound().is_none());
    let Ok(message) = Message::parse(bytes.clone()) else {
        return;
    };
    let _ = (message.time_to_live(), message.scheduled_enqueue_time());
    let mut first = Vec::new();
    render(&mut first, &bytes, &stamps(amendments));
    let parsed = Message::parse(Bytes::copy_from_slice(&first));
    assert!(
        parsed.is_ok(),
        "the rendered bytes are no message: {parsed:?}"
    );
    let (mut second, mut third) = (Vec::new(), Vec::new());
    render(&mut second, &first, &stamps(None));
    render(&mut third, &second, &stamps(None));
    assert_eq!(second, third, "each delivery changes the message");
}

/// Amendments read back from the log must be equal.
fn check_amendments(amendments: &Amendments) {
    let kept = amendments.encode();
    assert_eq!(kept.len(), amendments.size(), "their size is another");
    let read = Amendments::decode(&kept);
    assert_eq!(read.as_ref(), Ok(amendments), "they are read as others");
}

/// The most that a delivery can write.
pub(super) fn stamps(amendments: Option<Amendments>) -> Stamps {
    let now = Timestamp::from_millis(1_800_000_000_000);
    Stamps {
        sequence_number: 7,
        enqueued_sequence_number: 5,
        keyed_by_id: false,
        partition_id: Some(3),
        default_message_id: [9; 16],
        enqueued_time: now,
        locked_until: Some(now.after(Millis::from_secs(60))),
        lock_token: Some([4; 16]),
        delivered: true,
        delivery_count: 2,
        acquired: true,
        state: MessageState::Active,
        time_to_live: Millis::from_secs(3_600),
        dead_letter_source: Some("queue.1".into()),
        amendments: amendments.map(Arc::new),
    }
}
