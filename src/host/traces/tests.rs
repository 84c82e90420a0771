use std::sync::{Arc, Mutex};

use crate::limits;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::SpanData;

use super::*;
use jitney_base::ids::SequenceNumber;
use jitney_base::time::Timestamp;

/// Keeps what would be sent.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl Kept {
    /// Returns the spans that were sent, in the order in which they ended.
    fn spans(&self, traces: &Traces) -> Vec<SpanData> {
        traces.stop();
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn start() -> (Kept, Traces, ShardTraces) {
    let kept = Kept::default();
    let traces = Traces::sending(kept.clone());
    let shard = traces.of_shard();
    (kept, traces, shard)
}

fn context() -> TraceContext {
    TraceContext {
        trace_id: [7; 16],
        span_id: [9; 8],
    }
}

fn accepted(group: u64) -> TraceEvent {
    TraceEvent::Accepted {
        context: context(),
        group,
        entity: "orders".to_owned(),
        number: SequenceNumber(5),
    }
}

fn token(number: u128) -> LockToken {
    LockToken::from_uuid(number.to_be_bytes())
}

fn handed_out(number: u128, mode: ReceiveMode) -> TraceEvent {
    TraceEvent::HandedOut(Box::new(HandedOut {
        token: token(number),
        mode,
        entity: "orders".to_owned(),
        number: SequenceNumber(5),
        deliveries: 2,
        enqueued: Timestamp::from_millis(12_345),
    }))
}

fn released(number: u128, context: Option<TraceContext>) -> TraceEvent {
    TraceEvent::Released {
        token: token(number),
        context,
    }
}

fn settled(number: u128, group: u64) -> TraceEvent {
    TraceEvent::Settled {
        token: token(number),
        group,
        disposition: "complete",
    }
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_ref()).collect()
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|it| it.key.as_str() == name);
    found.unwrap().value.to_string()
}

#[test]
fn a_message_has_a_span_for_each_step() {
    let (kept, traces, mut shard) = start();
    let begun = system_time();
    shard.happened(accepted(3), begun, 2);
    shard.committed(3);
    shard.durable(3);
    shard.happened(handed_out(1, ReceiveMode::PeekLock), begun, 3);
    shard.happened(released(1, Some(context())), begun, 3);
    shard.happened(settled(1, 4), begun, 3);
    shard.durable(3);
    shard.durable(4);
    let spans = kept.spans(&traces);
    assert_eq!(
        names(&spans),
        ["store", "accept orders", "deliver orders", "settle orders"]
    );
    let [store, accept, deliver, settle] = spans.as_slice() else {
        panic!("there are other spans");
    };
    let sent = context();
    for span in &spans {
        assert_eq!(span.span_context.trace_id().to_bytes(), sent.trace_id);
        assert!(span.start_time <= span.end_time);
    }
    for span in [accept, deliver, settle] {
        assert_eq!(span.parent_span_id.to_bytes(), sent.span_id);
        assert!(span.parent_span_is_remote);
        assert_eq!(attribute(span, "messaging.destination.name"), "orders");
        assert_eq!(attribute(span, "jitney.sequence_number"), "5");
    }
    assert_eq!(store.parent_span_id, accept.span_context.span_id());
    let deliveries = "messaging.servicebus.message.delivery_count";
    assert_eq!(attribute(deliver, deliveries), "2");
    let enqueued = "messaging.servicebus.message.enqueued_time";
    assert_eq!(attribute(deliver, enqueued), "12");
    let disposition = "messaging.servicebus.disposition_status";
    assert_eq!(attribute(settle, disposition), "complete");
    assert!(shard.deliveries.by_token.is_empty());
    assert!(shard.waiting.is_empty() && shard.committed.is_empty());
}

#[test]
fn messages_without_a_trace_have_no_spans() {
    let (kept, traces, mut shard) = start();
    let begun = system_time();
    shard.happened(handed_out(1, ReceiveMode::PeekLock), begun, 9);
    shard.happened(released(1, None), begun, 9);
    shard.happened(settled(1, 9), begun, 9);
    assert_eq!(kept.spans(&traces), []);
}

#[test]
fn a_message_that_is_received_and_deleted_is_not_remembered() {
    let (kept, traces, mut shard) = start();
    let begun = system_time();
    shard.happened(handed_out(1, ReceiveMode::ReceiveAndDelete), begun, 9);
    shard.happened(released(1, Some(context())), begun, 9);
    assert!(shard.deliveries.by_token.is_empty());
    assert_eq!(names(&kept.spans(&traces)), ["deliver orders"]);
}

#[test]
fn the_oldest_of_too_many_deliveries_is_forgotten() {
    let (_, _, mut shard) = start();
    let begun = system_time();
    let most = limits::TRACED_DELIVERIES_MAX as u128;
    for number in 0..=most {
        shard.happened(handed_out(number, ReceiveMode::PeekLock), begun, 0);
    }
    assert!(!shard.deliveries.by_token.contains_key(&token(0)));
    assert!(shard.deliveries.by_token.contains_key(&token(most)));
    assert_eq!(shard.deliveries.order.len(), limits::TRACED_DELIVERIES_MAX);
}

#[test]
fn spans_that_wait_for_the_disk_are_bounded() {
    let (_, _, mut shard) = start();
    let begun = system_time();
    for group in 1..=limits::TRACED_GROUPS_SPANS_MAX as u64 + 10 {
        shard.happened(accepted(group), begun, 0);
    }
    assert_eq!(shard.waiting.len(), limits::TRACED_GROUPS_SPANS_MAX);
    shard.durable(u64::MAX - 1);
    assert_eq!(shard.waiting_count, 0);
}

#[test]
fn the_path_for_spans_is_added_to_a_collector_without_one() {
    let url = |text| collector(text).unwrap().to_string();
    assert_eq!(url("http://c:4318"), "http://c:4318/v1/traces");
    assert_eq!(url("http://c:4318/"), "http://c:4318/v1/traces");
    assert_eq!(url("https://c/otlp/spans"), "https://c/otlp/spans");
    assert!(collector("c:4318").is_err());
    assert!(collector("grpc://c:4317").is_err());
}

#[test]
fn headers_are_names_and_values() {
    let (name, value) = header("X-Api-Key = a=b").unwrap();
    assert_eq!(
        (name.as_str(), value.as_bytes()),
        ("x-api-key", &b"a=b"[..])
    );
    assert!(header("x-api-key").is_err());
    assert!(header("x y=1").is_err());
    assert!(header("x=a\nb").is_err());
}
