//! Requests to `$management`, with all around them: how many wait, what one brings, and how one
//! that looks at much takes its turns.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field as LogField, Visit};
use tracing::span::{Attributes, Id, Record as TracingRecord};
use tracing::{Event as LogEvent, Metadata, Subscriber};

mod sessions;

use super::*;
use crate::amqp::tests::{Bench, message};
use crate::amqp::windows::Windows;
use crate::limits;
use crate::testing::{REQUESTS, RESPONSES, attach, attach_both, request, search};
use crate::{CreditReturn, Report};
use jitney_amqp::codec::Encoded;
use jitney_amqp::{Condition, Event, IncomingTransfer, LinkCredit, Outcome};
use jitney_base::time::Millis;
use jitney_message::Message;
use jitney_rules::{CorrelationFields, CorrelationFilter, Filter, Rule};

/// The answers that have come: status, text, and messages.
fn answers(bench: &mut Bench) -> Vec<(ConnectionId, i64, String, usize)> {
    let told = std::mem::take(&mut bench.told).into_iter();
    let answers = told.filter_map(|routed| {
        let Reply::Respond(_, response) = routed.reply else {
            return None;
        };
        let bodies: Vec<Bytes> = response.bodies().map(|body| bench.bytes(body)).collect();
        let encoded = Message::parse(response.encode(&bodies).into()).unwrap();
        let mut properties: BTreeMap<&str, Encoded<'_>> = BTreeMap::new();
        for (name, value) in encoded.application_properties() {
            properties.insert(name, Encoded::new(value));
        }
        let status = properties["statusCode"].integer().unwrap();
        let text = properties["statusDescription"].text().unwrap().to_owned();
        Some((routed.connection, status, text, bodies.len()))
    });
    answers.collect()
}

/// Asks a queue something, and returns the answer: status, text and number of messages.
fn ask(bench: &mut Bench, path: &str, report: Report) -> (i64, String, usize) {
    let id = ConnectionId(1);
    bench.run(|gateway, cx| {
        attach_both(gateway, cx, id, path);
        gateway.apply(cx, id, report);
    });
    let mut answers = answers(bench);
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (_, status, text, messages) = answers.remove(0);
    let left = Report::Event(Event::Closed {
        error: None,
        unsent: Vec::new(),
    });
    bench.run(|gateway, cx| gateway.apply(cx, id, left));
    (status, text, messages)
}

#[test]
fn calls_that_look_at_much_come_to_their_end_in_turns_with_what_others_want() {
    const MESSAGES: usize = 70_000;
    let (one, two, three) = (ConnectionId(1), ConnectionId(2), ConnectionId(3));
    let mut bench = Bench::new();
    let a = bench.id("t/Subscriptions/a");
    bench.run(|gateway, cx| gateway.fill(cx, MESSAGES));
    for id in [one, two] {
        bench.step(|gateway, cx| attach_both(gateway, cx, id, "q"));
    }
    bench.step(|gateway, cx| attach_both(gateway, cx, three, "t/Subscriptions/a"));
    bench.step(|gateway, cx| {
        gateway.apply(cx, one, search());
        gateway.apply(cx, two, search());
    });
    let (mut turns, mut ended) = (0, Vec::new());
    while bench.gateway.has_unfinished() {
        turns += 1;
        assert_eq!(bench.gateway.poll_timeout(), Some(Timestamp::EPOCH));
        // In each turn other clients send, and one peeks a few messages.
        bench.step(|gateway, cx| {
            gateway.take_messages(cx, a, vec![message("y")]).unwrap();
            if turns == 1 {
                gateway.apply(cx, three, search());
            }
        });
        assert_eq!(bench.seen("t/Subscriptions/a").len(), turns);
        let answered = answers(&mut bench).into_iter();
        ended.extend(answered.map(|(id, status, ..)| {
            assert_eq!(status, 204);
            (id, turns)
        }));
        assert!(turns < 20, "they come to no end");
    }
    let at = |id| ended.iter().find(|(found, _)| *found == id).unwrap().1;
    assert_eq!(ended.len(), 3, "{ended:?}");
    let needed = 2 * MESSAGES / jitney_queue::limits::SCAN_BUDGET;
    assert!(
        (needed..=needed + 2).contains(&at(one).max(at(two))),
        "{ended:?}"
    );
    assert!(at(three) <= 3, "it waits for its turn only: {ended:?}");
    assert!(bench.gateway.poll_timeout() != Some(Timestamp::EPOCH));
}

#[test]
fn a_link_that_goes_takes_its_unfinished_call_with_it() {
    let mut bench = Bench::new();
    bench.step(|gateway, cx| gateway.leave_calls_unfinished(cx, ConnectionId(1), 1));
    let detached = Event::Detached {
        link: RESPONSES,
        error: None,
        unsent: Vec::new(),
    };
    bench.step(|gateway, cx| gateway.apply(cx, ConnectionId(1), Report::Event(detached)));
    bench.step(|_, _| ());
    assert!(!bench.gateway.has_unfinished());
}

/// The outcomes of requests.
fn outcomes(bench: &mut Bench) -> Vec<Outcome> {
    let told = std::mem::take(&mut bench.told).into_iter();
    let outcomes = told.filter_map(|routed| match routed.reply {
        Reply::SettleIncoming { outcome, .. } => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

#[test]
fn what_waits_beyond_the_bytes_of_a_connection_is_answered_busy() {
    const MAX: usize = limits::REQUESTS_WAITING_BYTES_MAX;
    let id = ConnectionId(1);
    for (bytes, whole) in [
        (1 << 20, MAX / (1 << 20) - 1),
        // The first one is taken, whatever it takes.
        (MAX, 1),
    ] {
        let mut bench = Bench::new();
        bench.run(|gateway, cx| {
            gateway.apply(cx, id, attach(REQUESTS, "q/$management"));
            for _ in 0..whole + 2 {
                let padding = vec![("padding", Value::String("x".repeat(bytes)))];
                gateway.apply(cx, id, request("peek-message", padding));
            }
        });
        let taken = outcomes(&mut bench);
        assert_eq!(
            taken,
            vec![Outcome::Accepted; whole + 2],
            "none is rejected"
        );
        bench.run(|gateway, cx| {
            gateway.apply(cx, id, attach(RESPONSES, "q/$management"));
            let credit = Event::Credit(LinkCredit {
                link: RESPONSES,
                limit: 1_000,
                drain: false,
            });
            gateway.apply(cx, id, Report::Event(credit));
        });
        let told = std::mem::take(&mut bench.told);
        let answers: Vec<String> = (told.iter())
            .filter_map(|routed| match &routed.reply {
                Reply::Respond(_, response) => Some(format!("{response:?}")),
                _ => None,
            })
            .collect();
        let busy = (answers.iter()).filter(|answer| answer.contains("ServerBusy"));
        assert_eq!((answers.len(), busy.count()), (whole + 2, 2));
        let returned = told.iter();
        let returned = returned.filter(|it| matches!(it.reply, Reply::ReturnCredit(REQUESTS)));
        assert_eq!(returned.count(), whole + 2, "each gives its credit back");
    }
}

#[test]
fn the_credit_of_a_request_comes_back_with_its_answer_or_with_the_end_of_its_link() {
    let id = ConnectionId(1);
    let mut bench = Bench::new();
    bench.run(|gateway, cx| {
        for link in [REQUESTS, RESPONSES] {
            gateway.apply(cx, id, attach(link, "q/$management"));
        }
        for _ in 0..3 {
            gateway.apply(cx, id, request("peek-message", Vec::new()));
        }
    });
    let credit = |bench: &mut Bench| {
        let told = std::mem::take(&mut bench.told).into_iter();
        let of = |routed: QueuedReply| match routed.reply {
            Reply::ReturnCredit(REQUESTS) => Some(CreditReturn::Later),
            Reply::SettleIncoming { credit, .. } => {
                assert_eq!(credit, CreditReturn::Later);
                None
            }
            _ => None,
        };
        told.filter_map(of).count()
    };
    assert_eq!(credit(&mut bench), 0, "they wait for credit");
    let one = Event::Credit(LinkCredit {
        link: RESPONSES,
        limit: 1,
        drain: false,
    });
    bench.run(|gateway, cx| gateway.apply(cx, id, Report::Event(one)));
    assert_eq!(credit(&mut bench), 1);
    let detached = Event::Detached {
        link: RESPONSES,
        error: None,
        unsent: Vec::new(),
    };
    bench.run(|gateway, cx| gateway.apply(cx, id, Report::Event(detached)));
    assert_eq!(credit(&mut bench), 2);
}

#[test]
fn requests_that_wait_on_one_connection_keep_no_other_from_its_first() {
    const LARGE: usize = 900_000;
    let mut bench = Bench::new();
    bench.gateway.connections.windows = Windows::new(LARGE + 1_000);
    // Returns whether all of the request is kept; if not, it is answered "busy".
    let mut ask = |connection: u32, bytes: usize, links: &[LinkId]| {
        let id = ConnectionId(connection);
        let before = bench.gateway.connection(id).waiting;
        bench.run(|gateway, cx| {
            for &link in links {
                gateway.apply(cx, id, attach(link, "q/$management"));
            }
            let padding = vec![("padding", Value::String("x".repeat(bytes)))];
            gateway.apply(cx, id, request("peek-message", padding));
        });
        assert_eq!(outcomes(&mut bench), [Outcome::Accepted]);
        before + bytes <= bench.gateway.connection(id).waiting
    };
    assert!(ask(1, LARGE, &[REQUESTS, RESPONSES]), "it waits for credit");
    assert!(!ask(1, LARGE, &[]), "both are more than the share");
    assert!(!ask(2, LARGE, &[REQUESTS]), "so are those of two");
    assert!(
        !ask(4, limits::FIRST_REQUEST_BYTES, &[REQUESTS]),
        "many such are much"
    );
    assert!(
        ask(5, limits::FIRST_REQUEST_BYTES / 2, &[REQUESTS]),
        "a small one is taken whatever others have"
    );
    bench.run(|gateway, cx| {
        let id = ConnectionId(3);
        for link in [REQUESTS, RESPONSES] {
            gateway.apply(cx, id, attach(link, "q/$management"));
        }
        let credit = Event::Credit(LinkCredit {
            link: RESPONSES,
            limit: 10,
            drain: false,
        });
        gateway.apply(cx, id, Report::Event(credit));
        let padding = vec![("padding", Value::String("x".repeat(20_000)))];
        gateway.apply(cx, id, request("peek-message", padding));
    });
    assert_eq!(
        outcomes(&mut bench),
        [Outcome::Accepted],
        "it need not wait"
    );
    let detached = Event::Detached {
        link: RESPONSES,
        error: None,
        unsent: Vec::new(),
    };
    bench.run(|gateway, cx| gateway.apply(cx, ConnectionId(1), Report::Event(detached)));
    let id = ConnectionId(2);
    let before = bench.gateway.connection(id).waiting;
    let padding = vec![("padding", Value::String("x".repeat(LARGE / 2)))];
    bench.run(|gateway, cx| gateway.apply(cx, id, request("peek-message", padding)));
    assert!(before + LARGE / 2 <= bench.gateway.connection(id).waiting);
}

#[test]
fn a_request_for_whose_answer_there_is_no_room_is_rejected() {
    let mut bench = Bench::new();
    bench.gateway.connections.windows = Windows::new(limits::REQUEST_BYTES);
    let id = ConnectionId(1);
    bench.run(|gateway, cx| {
        gateway.apply(cx, id, attach(REQUESTS, "q/$management"));
        for _ in 0..4 {
            let padding = vec![("padding", Value::String("x".repeat(100)))];
            gateway.apply(cx, id, request("peek-message", padding));
        }
    });
    let outcomes = outcomes(&mut bench);
    let Some(Outcome::Rejected(Some(why))) = outcomes.last() else {
        panic!("{outcomes:?}");
    };
    assert_eq!(why.refusal.condition, Condition::ResourceLimitExceeded);
    let Report::Event(mut event) = request("peek-message", Vec::new()) else {
        panic!("it is an event")
    };
    if let Event::Transfer(IncomingTransfer { settled, .. }) = &mut event {
        *settled = true;
    }
    bench.run(|gateway, cx| gateway.apply(cx, id, Report::Event(event)));
    let last = bench.told.pop().map(|routed| routed.reply);
    let is_ended =
        matches!(&last, Some(Reply::Detach(REQUESTS, denied)) if denied.kind == DeniedKind::Limit);
    assert!(is_ended, "nothing else can tell it: {last:?}");
}

#[test]
fn a_request_names_so_many_messages_at_most() {
    let mut bench = Bench::new();
    for (count, expected) in [
        (limits::REQUEST_ITEMS_MAX, 404),
        (limits::REQUEST_ITEMS_MAX + 1, 400),
    ] {
        let numbers = Value::List(vec![Value::Long(1); count]);
        let entries = vec![
            ("sequence-numbers", numbers),
            ("receiver-settle-mode", Value::Uint(1)),
        ];
        let asked = request("receive-by-sequence-number", entries);
        let (status, text, _) = ask(&mut bench, "q", asked);
        assert_eq!(status, expected, "{text}");
        let is_counted = text.contains(&format!("{} are the most", limits::REQUEST_ITEMS_MAX));
        assert_eq!(is_counted, expected == 400, "{text}");
    }
}

/// A request for as many messages as there are.
fn peek() -> Report {
    let entries = vec![
        ("from-sequence-number", Value::Long(0)),
        ("message-count", Value::Int(i32::MAX)),
    ];
    request("peek-message", entries)
}

#[test]
fn a_peek_brings_so_many_messages_and_bytes() {
    let mut bench = Bench::new();
    bench.run(|gateway, cx| gateway.fill(cx, jitney_queue::limits::PEEK_MESSAGES_MAX + 1));
    let (status, _, messages) = ask(&mut bench, "q", peek());
    assert_eq!(
        (status, messages),
        (200, jitney_queue::limits::PEEK_MESSAGES_MAX)
    );
    // As many as fit.
    for (bytes, expected) in [
        (jitney_queue::limits::PEEK_BYTES_MAX / 4, 3),
        (jitney_queue::limits::PEEK_BYTES_MAX - 1_000, 1),
    ] {
        let mut bench = Bench::new();
        let mut body = vec![0x00, 0x53, 0x75, 0xb0];
        body.extend(u32::try_from(bytes).unwrap().to_be_bytes());
        body.resize(body.len() + bytes, b'x');
        let large = Message::parse(body.into()).unwrap();
        (0..5).for_each(|_| bench.send("q", large.clone()));
        let (_, _, messages) = ask(&mut bench, "q", peek());
        assert_eq!(messages, expected, "of {bytes} bytes each");
    }
}

#[test]
fn rules_are_told_in_answers_of_so_many_bytes() {
    const BYTES: usize = 60_000;
    let mut bench = Bench::new();
    let (topic, subscription) = (bench.id("t"), bench.id("t/Subscriptions/a"));
    let fit = limits::RULES_ANSWER_BYTES_MAX / BYTES;
    for number in 0..=fit {
        let fields = CorrelationFields {
            label: Some("l".repeat(BYTES)),
            ..CorrelationFields::default()
        };
        let rule = Rule {
            name: format!("large{number}"),
            filter: Filter::Correlation(CorrelationFilter::new(fields).unwrap()),
            action: None,
            created_at: bench.now,
        };
        let kept =
            bench.run(|gateway, cx| gateway.namespaces.keep_rule(cx, topic, subscription, rule));
        kept.unwrap();
    }
    // The subscription has its default rule, too.
    for (top, expected) in [(fit, 200), (fit + 2, 403)] {
        let top = Value::Int(i32::try_from(top).unwrap());
        let asked = request(
            "enumerate-rules",
            vec![("skip", Value::Int(0)), ("top", top)],
        );
        let (status, text, _) = ask(&mut bench, "t/Subscriptions/a", asked);
        assert_eq!(status, expected, "{text}");
    }
}

#[test]
fn a_batch_delete_is_bounded_by_the_tier() {
    use jitney_broker::namespace::Tier;
    let delete = |bench: &mut Bench, path: &str, count: i32| {
        let when = serde_amqp::primitives::Timestamp::from(2_000);
        let entries = vec![
            ("message-count", Value::Int(count)),
            ("enqueued-time-utc", Value::Timestamp(when)),
        ];
        bench.run(|gateway, cx| {
            attach_both(gateway, cx, ConnectionId(1), path);
            gateway.apply(
                cx,
                ConnectionId(1),
                request("batch-delete-messages", entries),
            );
        });
        let (_, status, text, _) = answers(bench).remove(0);
        (status, text)
    };
    let mut bench = Bench::new();
    let partitioned = jitney_queue::Description {
        partitioned: true,
        ..jitney_queue::Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "p", partitioned))
        .unwrap();
    assert_eq!(delete(&mut bench, "q", 4_000).0, 204);
    assert_eq!(delete(&mut bench, "q", 4_001).0, 400);
    let (status, text) = delete(&mut bench, "p", 10);
    assert_eq!(status, 400);
    assert!(text.contains("partitioning"), "{text}");
    bench.run(|gateway, cx| gateway.set_tier(cx, "", Tier::Standard));
    assert_eq!(delete(&mut bench, "q", 500).0, 204);
    let (status, text) = delete(&mut bench, "q", 501);
    assert_eq!(status, 400);
    assert!(
        text.contains("500 is the most: the namespace is Standard"),
        "{text}"
    );
}

/// Returns the names of the rules on a page of a subscription's.
fn rules_on_page(bench: &mut Bench, skip: usize, top: usize) -> Vec<String> {
    let number = |number: usize| Value::Int(i32::try_from(number).unwrap());
    let page = vec![("skip", number(skip)), ("top", number(top))];
    bench.run(|gateway, cx| {
        let id = ConnectionId(1);
        attach_both(gateway, cx, id, "t/Subscriptions/a");
        gateway.apply(cx, id, request("enumerate-rules", page));
    });
    let told = std::mem::take(&mut bench.told).into_iter();
    let answer = told.filter_map(|routed| match routed.reply {
        Reply::Respond(_, response) => Some(Message::parse(response.encode(&[]).into()).unwrap()),
        _ => None,
    });
    let answer = { answer }.next().unwrap();
    let map = Encoded::new(answer.value().unwrap());
    let rules = map.entries().find(|(key, _)| key.text() == Some("rules"));
    let Some((_, rules)) = rules else {
        return Vec::new();
    };
    let names = Encoded::new(rules).items().unwrap().map(|rule| {
        let (_, description) = rule.entries().next().unwrap();
        let (_, fields) = Encoded::new(description).described().unwrap();
        let name = fields.items().unwrap().nth(2).unwrap();
        name.text().unwrap().to_owned()
    });
    names.collect()
}

#[test]
fn rules_are_told_by_name_over_the_pages() {
    let mut bench = Bench::new();
    let numbers = [7, 2, 11, 1, 9, 10, 3, 12, 8, 5, 4, 6];
    for number in numbers {
        let filter = vec![("expression", Value::String("a = 1".to_owned()))];
        let asked = add_rule(&format!("r{number}"), filter);
        let (status, text, _) = ask(&mut bench, "t/Subscriptions/a", asked);
        assert_eq!(status, 200, "{text}");
    }
    let mut names: Vec<String> = Vec::new();
    loop {
        let page = rules_on_page(&mut bench, names.len(), 5);
        assert!(page.len() <= 5);
        if page.is_empty() {
            break;
        }
        names.extend(page);
    }
    let expected = [
        "$Default", "r1", "r10", "r11", "r12", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9",
    ];
    assert_eq!(names, expected);
}

/// A request for a rule with a SQL filter.
fn add_rule(name: &str, filter: Vec<(&str, Value)>) -> Report {
    let map = |entries: Vec<(&str, Value)>| {
        let of = |(name, value): (&str, Value)| (Value::String(name.to_owned()), value);
        Value::Map(entries.into_iter().map(of).collect())
    };
    let description = map(vec![("sql-filter", map(filter))]);
    let entries = vec![
        ("rule-name", Value::String(name.to_owned())),
        ("rule-description", description),
    ];
    request("add-rule", entries)
}

/// What is written to the log of the process, as lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &TracingRecord<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &LogEvent<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &LogField, value: &dyn fmt::Debug) {
                write!(self.0, " {field}={value:?}").unwrap();
            }
        }
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_rule_whose_parameters_have_no_values_is_named_in_the_log_once() {
    let mut bench = Bench::new();
    let log = Log::default();
    let text = |text: &str| Value::String(text.to_owned());
    let told = tracing::subscriber::with_default(log.clone(), || {
        for (name, expression) in [
            ("lost", "color = @color OR size > @size OR size < @size"),
            ("whole", "color = 'red'"),
            ("lost", "color = @color"),
        ] {
            let asked = add_rule(name, vec![("expression", text(expression))]);
            ask(&mut bench, "t/Subscriptions/a", asked);
        }
        bench.send("t", message("x"));
        let told = log.0.lock().unwrap();
        let told = told.iter().filter(|line| line.contains("parameters"));
        told.cloned().collect::<Vec<String>>()
    });
    // The second one of the same name is refused.
    let [line] = &told[..] else {
        panic!("{told:?}");
    };
    for part in [
        "INFO",
        "subscription=\"t/Subscriptions/a\"",
        "rule=\"lost\"",
        "parameters=\"@color, @size\"",
        "no SDK sends parameters over AMQP",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn an_empty_array_asks_for_nothing_and_is_no_mistake() {
    let mut bench = Bench::new();
    bench.send("q", message("x"));
    let none = || Value::List(Vec::new());
    for (operation, entries, expected) in [
        (
            "receive-by-sequence-number",
            vec![
                ("sequence-numbers", none()),
                ("receiver-settle-mode", Value::Uint(1)),
            ],
            204,
        ),
        (
            "update-disposition",
            vec![
                ("disposition-status", Value::String("completed".to_owned())),
                ("lock-tokens", none()),
            ],
            200,
        ),
        ("renew-lock", vec![("lock-tokens", none())], 204),
        ("schedule-message", vec![("messages", none())], 204),
        (
            "cancel-scheduled-message",
            vec![("sequence-numbers", none())],
            200,
        ),
    ] {
        let (status, text, messages) = ask(&mut bench, "q", request(operation, entries));
        assert_eq!((status, messages), (expected, 0), "{operation}: {text}");
        assert_eq!(bench.seen("q"), [(1, 0)], "{operation}");
    }
    bench.check_replay();
}

/// A message whose annotations have the time that it is scheduled for as this value.
fn scheduled_for(time: Option<Value>) -> Value {
    let mut bytes = Vec::new();
    if let Some(time) = time {
        let name = Value::Symbol("x-opt-scheduled-enqueue-time".into());
        bytes.extend([0x00, 0x53, 0x72]);
        let annotations = Value::Map([(name, time)].into_iter().collect());
        bytes.extend(serde_amqp::to_vec(&annotations).unwrap());
    }
    bytes.extend([0x00, 0x53, 0x75, 0xa0, 1, b'x']);
    let message = (
        Value::String("message".to_owned()),
        Value::Binary(bytes.into()),
    );
    Value::List(vec![Value::Map([message].into_iter().collect())])
}

#[test]
fn a_message_that_is_scheduled_for_no_time_is_not_sent_at_once() {
    let mut bench = Bench::new();
    let late = bench.now.after(Millis::from_secs(60)).as_millis();
    for (time, expected) in [
        (None, 400),
        (Some(Value::Long(late)), 400),
        (Some(Value::String("2026-01-01T00:00:00Z".to_owned())), 400),
        (Some(Value::Timestamp(late.into())), 200),
    ] {
        let entries = vec![("messages", scheduled_for(time.clone()))];
        let (status, text, _) = ask(&mut bench, "q", request("schedule-message", entries));
        assert_eq!(status, expected, "{time:?}: {text}");
        let is_named = text.contains("no annotation x-opt-scheduled-enqueue-time, a timestamp");
        assert_eq!(is_named, expected == 400, "{time:?}: {text}");
    }
    assert_eq!(bench.seen("q").len(), 1, "the last one");
    bench.check_replay();
}
