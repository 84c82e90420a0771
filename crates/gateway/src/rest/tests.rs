//! Requests read, and messages written, as the REST interface has them.

use crate::limits;
use bytes::Bytes;
use serde_json::Value;

use super::*;
use crate::Tracking;
use jitney_base::ids::BodyRef;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_message::{MessageState, Stamps, render};

const TOKEN: &str = "01020304-0506-0708-090a-0b0c0d0e0f10";

/// Sun, 06 Nov 1994 08:49:37 GMT.
const THEN: Timestamp = Timestamp::from_millis(784_111_777_000);

fn read(line: &str) -> String {
    let (method, target) = line.split_once(' ').unwrap();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    match RequestLine::read(method, path, query) {
        Ok(None) => "administration".to_owned(),
        Ok(Some(RequestLine::Send { path })) => format!("send {path}"),
        Ok(Some(RequestLine::Receive { path, mode, wait })) => {
            format!("{mode:?} {path} {}", wait.as_millis())
        }
        Ok(Some(RequestLine::Locked {
            path,
            action,
            token,
        })) => format!("{action:?} {path} {token}"),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn the_line_of_a_request_says_what_is_asked() {
    let lock = "0102030405060708090a0b0c0d0e0f10";
    for (line, asked) in [
        ("POST /orders/messages", "send orders"),
        ("POST /a/b/Messages/", "send a/b"),
        ("POST /orders/messages/head", "PeekLock orders 60000"),
        (
            "POST /orders/messages/head?timeout=5",
            "PeekLock orders 5000",
        ),
        (
            "DELETE /t/subscriptions/s/messages/head?api-version=2015-01&timeout=0",
            "ReceiveAndDelete t/subscriptions/s 0",
        ),
        (
            "POST /q/%24DeadLetterQueue/messages/head?timeout=600",
            "PeekLock q/%24DeadLetterQueue 60000",
        ),
        (
            "POST /q/messages/head?timeout=soon",
            "timeout must be a number of seconds, and 'soon' was found",
        ),
        ("PUT /orders/messages", "administration"),
        ("DELETE /orders/messages/7/x", "administration"),
        ("GET /orders/messages/head", "administration"),
        ("DELETE /orders", "administration"),
        ("POST /messages", "administration"),
        ("POST /messages/head", "administration"),
    ] {
        assert_eq!(read(line), asked, "{line}");
    }
    for (method, action) in [("DELETE", "Complete"), ("PUT", "Unlock"), ("POST", "Renew")] {
        for id in ["7", "some-id", "head"] {
            let line = format!("{method} /a/q/messages/{id}/{TOKEN}");
            assert_eq!(read(&line), format!("{action} a/q {lock}"), "{line}");
        }
    }
}

fn made(headers: &[(&str, &str)], body: &[u8]) -> Message {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    let headers: Vec<_> = headers.collect();
    let mut composer = draft(&headers).unwrap().begin(THEN);
    composer.push(body);
    Message::parse(composer.finish()).unwrap()
}

fn text(message: &Message, field: Field) -> String {
    match message.field(field).map(Scalar::decode) {
        Some(Scalar::Text(text)) => text.into_owned(),
        other => panic!("{field:?}: {other:?}"),
    }
}

#[test]
fn headers_become_what_a_message_has() {
    let properties = r#"{"CorrelationId":"c","SessionId":"s","MessageId":"m","Label":"l",
        "ReplyTo":"r","TimeToLive":4.444,"To":"t","ReplyToSessionId":"rs","PartitionKey":"s",
        "ScheduledEnqueueTimeUtc":"Sun, 06 Nov 1994 08:49:37 GMT","ForcePersistence":true,
        "Other":[1]}"#;
    let message = made(
        &[
            ("content-type", "text/plain"),
            ("BrokerProperties", properties),
            ("Priority", "\"High\""),
            ("Count", "7"),
            ("Ratio", "1.5"),
            ("Late", "true"),
            ("Words", "as they are"),
            ("Quotes", r#""say \"\u00e9\"""#),
            ("Broken", r#""a\b"c""#),
            ("Infinite", "inf"),
            ("Host", "localhost"),
            ("Authorization", "none"),
        ],
        b"hello",
    );
    for (field, value) in [
        (Field::ContentType, "text/plain"),
        (Field::CorrelationId, "c"),
        (Field::SessionId, "s"),
        (Field::MessageId, "m"),
        (Field::Label, "l"),
        (Field::ReplyTo, "r"),
        (Field::To, "t"),
        (Field::ReplyToSessionId, "rs"),
    ] {
        assert_eq!(text(&message, field), value);
    }
    assert_eq!(message.time_to_live(), Some(Millis::from_millis(4_444)));
    assert_eq!(message.scheduled_enqueue_time(), Some(THEN));
    assert_eq!(message.partition_key(), Some("s"));
    let properties: Vec<_> = message
        .application_properties()
        .map(|(name, value)| (name, Scalar::decode(value)))
        .collect();
    let text = |text: &'static str| Scalar::Text(text.into());
    assert_eq!(
        properties,
        [
            ("Priority", text("High")),
            ("Count", Scalar::Long(7)),
            ("Ratio", Scalar::Double(1.5)),
            ("Late", Scalar::Boolean(true)),
            ("Words", text("as they are")),
            ("Quotes", text("say \"\u{e9}\"")),
            ("Broken", text("a\\b\"c")),
            ("Infinite", text("inf")),
        ]
    );
    assert_eq!(message.plain_body(), &b"hello"[..]);
}

#[test]
fn broker_properties_that_cannot_be_are_refused() {
    for (properties, why) in [
        ("{", "is no object of JSON"),
        ("[]", "is no object of JSON"),
        (r#"{"MessageId":{}}"#, "MessageId must be a text"),
        (r#"{"TimeToLive":-1}"#, "TimeToLive must be a number"),
        (r#"{"TimeToLive":"soon"}"#, "TimeToLive must be a number"),
        (
            r#"{"ScheduledEnqueueTimeUtc":"soon"}"#,
            "ScheduledEnqueueTimeUtc must be a time",
        ),
    ] {
        let refused = draft(&[("brokerproperties", properties.as_bytes())]);
        let refused = refused.map(drop).unwrap_err().to_string();
        assert!(refused.contains(why), "{properties}: {refused}");
    }
}

#[test]
fn times_and_spans_are_read_in_each_of_their_forms() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "1994-11-06T08:49:37Z",
        "1994-11-06T09:49:37+01:00",
        "1994-11-06T08:49:37",
    ] {
        assert_eq!(times::read(text), Some(THEN), "{text}");
    }
    assert_eq!(times::read("tomorrow"), None);
    assert_eq!(times::http(THEN), "Sun, 06 Nov 1994 08:49:37 GMT");
    for (text, millis) in [
        ("90", Some(90_000)),
        ("00:00:40", Some(40_000)),
        ("1.02:03:04.5", Some(93_784_500)),
        ("-1", None),
        ("1:2", None),
        ("x:0:0", None),
    ] {
        let expected = millis.map(Millis::from_millis);
        assert_eq!(times::span(text), expected, "{text}");
    }
    assert_eq!(times::write_span(937_845_000_000), "1.02:03:04.5000000");
    assert_eq!(times::write_span(-10_000_000), "-00:00:01");
}

#[test]
fn a_batch_is_a_list_of_messages() {
    let kind = "application/vnd.microsoft.servicebus.json; charset=utf-8";
    let found = content(&[("content-type", kind.as_bytes())]);
    assert_eq!(found, Ok(Content::Batch));
    let body = r#"[
        {"Body":"one","BrokerProperties":{"Label":"M1","TimeToLiveTimeSpan":"00:00:40"}},
        {"Body":"two","UserProperties":{"Priority":"High","Count":7,"Late":false}},
        {"Body":"AAE=","IsBodyBase64":true}
    ]"#;
    let messages = batch(body.as_bytes(), THEN).unwrap();
    let bodies: Vec<_> = messages.iter().map(Message::plain_body).collect();
    assert_eq!(bodies, [&b"one"[..], b"two", b"\x00\x01"]);
    assert_eq!(text(&messages[0], Field::Label), "M1");
    assert_eq!(messages[0].time_to_live(), Some(Millis::from_secs(40)));
    assert_eq!(messages[1].application_properties().count(), 3);
}

#[test]
fn a_batch_that_is_none_is_refused() {
    let many = format!("[{}{{}}]", "{},".repeat(limits::REST_BATCH_MESSAGES_MAX));
    let most = format!("more than {} messages", limits::REST_BATCH_MESSAGES_MAX);
    for (body, why) in [
        ("", "the batch: "),
        ("{}", "a list of messages"),
        ("[]", "holds no message"),
        ("[{\"Body\":1}]", "the batch: "),
        (
            r#"[{"Body":"a"},{"UserProperties":{"a":[]}}]"#,
            "message 1 of the batch: UserProperties: a must be a simple value",
        ),
        (r#"[{"Body":"*","IsBodyBase64":true}]"#, "Body is no base64"),
        (&many, &most),
    ] {
        let refused = batch(body.as_bytes(), THEN).map(drop);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

fn handover(mode: ReceiveMode, amendments: Option<Amendments>) -> Handover {
    let token = uuid(TOKEN).unwrap();
    let locked = mode == ReceiveMode::PeekLock;
    Handover {
        token: LockToken::from_uuid(token),
        mode,
        body: BodyRef {
            position: 0,
            length: 0,
        },
        stamps: Stamps {
            sequence_number: 7,
            enqueued_sequence_number: 0,
            keyed_by_id: false,
            partition_id: None,
            default_message_id: [0xab; 16],
            enqueued_time: THEN,
            locked_until: locked.then(|| THEN.after(Millis::from_secs(60))),
            lock_token: locked.then_some(token),
            delivered: true,
            delivery_count: 0,
            acquired: false,
            state: MessageState::Active,
            time_to_live: Millis::MAX,
            dead_letter_source: None,
            amendments: amendments.map(std::sync::Arc::new),
        },
    }
}

fn header<'r>(response: &'r RestResponse, name: &str) -> Option<&'r str> {
    let mut named = response.headers.iter().filter(|(it, _)| it == name);
    named.next().map(|(_, value)| value.as_str())
}

fn properties(response: &RestResponse) -> Value {
    serde_json::from_str(header(response, "BrokerProperties").unwrap()).unwrap()
}

#[test]
fn a_locked_message_is_its_headers_and_its_body() {
    let message = made(
        &[
            ("content-type", "text/plain"),
            ("brokerproperties", r#"{"Label":"l\u00e9"}"#),
            ("Priority", "\"H\\u00eegh\""),
            ("Count", "7"),
            ("Ratio", "2.0"),
        ],
        b"hello",
    );
    let handover = handover(ReceiveMode::PeekLock, None);
    let entity = "http://localhost:5300/a/q";
    let response = deliver(&handover, message.bytes().clone(), entity);
    assert_eq!(response.status, 201);
    assert_eq!(response.body, "hello");
    let location = format!("{entity}/messages/7/{TOKEN}");
    assert_eq!(header(&response, "Location"), Some(location.as_str()));
    assert_eq!(header(&response, "Content-Type"), Some("text/plain"));
    assert_eq!(header(&response, "Priority"), Some(r#""H\u00eegh""#));
    assert_eq!(header(&response, "Count"), Some("7"));
    assert_eq!(header(&response, "Ratio"), Some("2.0"));
    let expected = serde_json::json!({
        "DeliveryCount": 1,
        "EnqueuedSequenceNumber": 0,
        "EnqueuedTimeUtc": "Sun, 06 Nov 1994 08:49:37 GMT",
        "Label": "l\u{e9}",
        "LockToken": TOKEN,
        "LockedUntilUtc": "Sun, 06 Nov 1994 08:50:37 GMT",
        "MessageId": "ab".repeat(16),
        "SequenceNumber": 7,
        "State": "Active",
        "TimeToLive": 922_337_203_685.477_5,
    });
    assert_eq!(properties(&response), expected);
    assert!(header(&response, "BrokerProperties").unwrap().is_ascii());
}

#[test]
fn a_message_that_is_gone_names_no_lock() {
    let message = made(&[("brokerproperties", r#"{"MessageId":"m"}"#)], b"");
    let mut amendments = Amendments::default();
    amendments.set_string("DeadLetterReason", "tired");
    let handover = handover(ReceiveMode::ReceiveAndDelete, Some(amendments));
    let response = deliver(&handover, message.bytes().clone(), "http://h/q");
    assert_eq!(response.status, 200);
    assert_eq!(response.body, "");
    assert_eq!(header(&response, "Location"), None);
    assert_eq!(header(&response, "DeadLetterReason"), Some("\"tired\""));
    let properties = properties(&response);
    assert_eq!(properties["MessageId"], "m");
    assert_eq!(properties.get("LockToken"), None);
    assert_eq!(properties.get("LockedUntilUtc"), None);
}

#[test]
fn what_amqp_s_clients_send_is_told_too() {
    let mut bytes = Vec::new();
    let plain = handover(ReceiveMode::PeekLock, None);
    render(&mut bytes, b"\x00\x53\x77\xa1\x02hi", &plain.stamps);
    let response = deliver(&plain, bytes.into(), "http://h/q");
    assert_eq!(response.body, "hi");
}

#[test]
fn a_property_never_is_a_header_of_http_s() {
    for name in [
        "Content-Length",
        "transfer-encoding",
        "Date",
        "BrokerProperties",
        "Sec-X",
    ] {
        assert!(!send::is_property(name), "{name}");
    }
    assert!(send::is_property("Priority"));
    let mut amendments = Amendments::default();
    amendments.set_string("Content-Length", "7");
    let handover = handover(ReceiveMode::PeekLock, Some(amendments));
    let response = deliver(&handover, made(&[], b"x").bytes().clone(), "http://h/q");
    assert_eq!(header(&response, "Content-Length"), None);
}

#[test]
fn a_refusal_has_a_status_and_a_text() {
    let tracking = Tracking {
        id: "id-1",
        system: "ns",
        at: THEN,
    };
    let text = || "A <b> & c.".to_owned();
    for (refusal, status) in [
        (RestError::Malformed(text()), 400),
        (
            RestError::Denied(Denied::new(DeniedKind::NotAllowed, text(), "")),
            400,
        ),
        (
            RestError::Denied(Denied::new(DeniedKind::Unauthorized, text(), "")),
            401,
        ),
        (
            RestError::Denied(Denied::new(DeniedKind::Limit, text(), "")),
            403,
        ),
        (RestError::TooLong(5), 403),
        (
            RestError::Denied(Denied::new(DeniedKind::MessageLockLost, text(), "")),
            404,
        ),
        (
            RestError::Denied(Denied::new(DeniedKind::NotFound, text(), "")),
            410,
        ),
        (
            RestError::Denied(Denied::new(DeniedKind::Full, text(), "")),
            503,
        ),
    ] {
        assert_eq!(refusal.render(&tracking).status, status);
    }
    let refused = RestError::Malformed(text()).render(&tracking);
    assert_eq!(
        refused.body,
        Bytes::from(
            "<Error><Code>400</Code><Detail>A &lt;b&gt; &amp; c. TrackingId:id-1, \
             SystemTracker:ns, Timestamp:Sun, 06 Nov 1994 08:49:37 GMT</Detail></Error>"
        )
    );
}
