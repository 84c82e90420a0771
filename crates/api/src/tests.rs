//! What is written is read again, and what is left out is read as empty.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// Reads a value, and returns what is written of it.
fn again<T: Serialize + DeserializeOwned>(value: &Value) -> Value {
    let read: T = serde_json::from_value(value.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

#[test]
fn what_an_answer_leaves_out_is_read_and_left_out_again() {
    let nothing = json!({});
    assert_eq!(again::<messages::Messages>(&nothing), nothing);
    assert_eq!(again::<jobs::Jobs>(&nothing), nothing);
    assert_eq!(again::<rules::Rules>(&nothing), nothing);
    assert_eq!(again::<connections::Connections>(&nothing), nothing);
    assert_eq!(again::<search::Found>(&nothing), nothing);
    assert_eq!(again::<locks::Received>(&nothing), nothing);
    assert_eq!(again::<rule_tests::RuleTests>(&nothing), nothing);
    let count = json!({"messages": 1, "locked": 0, "size_bytes": 7});
    assert_eq!(again::<selection::SelectionCount>(&count), count);
    let entry = json!({"number": 1, "at": "t", "actor": "operator", "operation": "update"});
    assert_eq!(again::<audit::Entry>(&entry), entry);
}

#[test]
fn answers_of_a_broker_without_the_history_of_a_day_are_read() {
    let point = json!({"at": "t", "incoming": 1, "published": 0, "completed": 0, "dead_lettered": 0, "active": 1, "deferred": 0,
        "scheduled": 0, "dead_letters": 0});
    let hour = json!({"interval_seconds": 10, "points": [point]});
    let read: history::HistoryShown = serde_json::from_value(hour).unwrap();
    assert_eq!(
        (read.range, read.gaps.len()),
        (history::HistoryRange::Hour, 0)
    );
    let entity = json!({"path": "q", "kind": "queue", "active": 1, "deferred": 0, "scheduled": 0, "locked": 0, "dead_letters": 0,
        "size_bytes": 1, "receivers": 0, "status": "active", "requires_session": false, "transfer_dead_letters": 0, "sessions": 0,
        "sessions_held": 0, "incoming": 1, "completed": 0, "abandoned": 0, "expired": 0, "locks_expired": 0, "dead_lettered": 0});
    let read: changes::EntityNow = serde_json::from_value(entity).unwrap();
    assert_eq!((read.forwarded, read.unmatched), (0, 0));
}

#[test]
fn a_locked_message_is_read_with_its_token_beside_its_fields() {
    let message = json!({"lock_token": "8b1f6f0e", "sequence_number": u64::MAX, "state": "deferred", "enqueued_at": "t",
        "lock": {"until": "t", "holder": {"connection": 1, "container_id": "c", "peer": "p"}}, "delivery_count": 2,
        "size_bytes": 3, "dead_letter": {"reason": "r"}, "properties": {"f": 0.1, "n": null, "s": "x"},
        "property_types": {"f": "double", "n": "null", "s": "string"},
        "body": {"text": "x", "size_bytes": 1, "truncated": true, "decoded": {"format": "gzip", "text": "y"}}});
    assert_eq!(again::<locks::LockedMessage>(&message), message);
}

#[test]
fn a_tested_rule_is_read_with_the_parts_of_its_condition() {
    let part = json!({"text": "a = 1", "result": "unknown", "properties": ["a"]});
    let test = json!({"name": "r", "text": "NOT a = 1", "result": "failed", "error": "e", "parts": [part]});
    assert_eq!(again::<rule_tests::RuleTest>(&test), test);
}

#[test]
fn what_a_request_does_not_know_is_refused_and_what_an_answer_does_not_know_is_passed_over() {
    let request = json!({"directory": "d", "more": 1});
    assert!(serde_json::from_value::<backups::BackupRequest>(request).is_err());
    let released = json!({"name": "n", "was": "w", "more": 1});
    let known = json!({"name": "n", "was": "w"});
    assert_eq!(again::<fleet::Released>(&released), known);
}
