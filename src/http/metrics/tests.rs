use std::fmt::Write as _;

use super::*;
use crate::host::owner_message::ShardReport;
use jitney_base::address::SubQueue;
use jitney_base::histogram::Histogram;
use jitney_broker::namespace::{
    self, AttentionKind, DeniedKind, EntityStatistics, QueueStatistics,
};
use jitney_journal::LogStatistics;
use jitney_queue::{Counters, DeadLetterCause, EntityKind, Status};
use jitney_shard::{MaintenanceCounters, Statistics};

/// A report in which everything has happened, of entities with these paths.
fn report(paths: &[&str]) -> ShardReport {
    let mut counters = Counters {
        incoming: 5,
        delivered: 6,
        ..Counters::default()
    };
    counters.dead_lettered[DeadLetterCause::Expired as usize] = 2;
    counters.delivery_delay.record(1_500);
    let queue = QueueStatistics {
        active: 3,
        sessions: 2,
        sessions_held: 1,
        counters,
        ..QueueStatistics::default()
    };
    let entities = paths.iter().map(|path| EntityStatistics {
        namespace: "one".to_owned(),
        path: (*path).to_owned(),
        kind: EntityKind::Queue,
        status: Status::Active,
        requires_session: false,
        forward_to: None,
        forward_dead_letters_to: None,
        next_number: None,
        queues: vec![(SubQueue::Main, queue), (SubQueue::DeadLetter, queue)],
    });
    let namespaces = namespace::Statistics {
        entities: entities.collect(),
        others: [SubQueue::Main, SubQueue::DeadLetter]
            .map(|kind| (("one".to_owned(), kind), queue))
            .into(),
        ..namespace::Statistics::default()
    };
    ShardReport {
        statistics: Statistics {
            gateway: jitney_gateway::Statistics {
                namespaces,
                connections: 4,
                authorized: 3,
                senders: 1,
                receivers: 2,
                receives: 5,
                other_links: 7,
                refused: [1; DeniedKind::ALL.len()],
                attention: vec![("one".to_owned(), [2; AttentionKind::ALL.len()])],
            },
            log: LogStatistics::default(),
            groups: 9,
            in_flight_bytes: 0,
            maintenance: MaintenanceCounters::default(),
            damaged: 0,
            shortage: None,
        },
        commit_times: Histogram::default(),
        sync_times: Histogram::default(),
        sessions: 11,
    }
}

fn scrape(paths: &[&str]) -> Scrape {
    Scrape {
        process: Usage::now(),
        memory: Memory::default().by_purpose(),
        answers: (4_096, 2),
        unauthenticated: (1, 1),
        shards: [report(paths), report(&[])]
            .into_iter()
            .zip(0..)
            .map(|(report, number)| ShardScrape {
                name: number.to_string(),
                is_healthy: number == 0,
                report,
            })
            .collect(),
        fleet: None,
    }
}

#[test]
fn every_family_is_written_once_in_both_formats() {
    let text = scrape(&["a"]).openmetrics().unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let other = prometheus(&text);
    assert!(!other.contains("EOF"), "{other}");
    for family in families::ALL {
        let (name, kind) = match family.kind {
            Kind::Counter => (family.name.to_owned(), "counter"),
            Kind::Gauge => (family.name.to_owned(), "gauge"),
            Kind::Histogram => (family.name.to_owned(), "histogram"),
        };
        let described = |text: &str, name: &str| {
            let (help, kind) = (
                format!("# HELP {name} {}\n", family.help),
                format!("# TYPE {name} {kind}\n"),
            );
            assert_eq!(text.matches(&help).count(), 1, "{help}{text}");
            assert_eq!(text.matches(&kind).count(), 1, "{kind}{text}");
        };
        described(&text, &name);
        let suffix = if family.kind == Kind::Counter {
            "_total"
        } else {
            ""
        };
        described(&other, &format!("{name}{suffix}"));
    }
}

#[test]
fn values_have_their_labels() {
    let text = scrape(&["orders"]).openmetrics().unwrap();
    let queue = r#"namespace="one",entity="orders",kind="queue""#;
    for line in [
        format!(r#"jitney_entity_messages{{{queue},sub_queue="",state="active"}} 3"#),
        format!(r#"jitney_entity_incoming_messages_total{{{queue},sub_queue="dead_letter"}} 5"#),
        format!(r#"jitney_entity_dead_lettered_messages_total{{{queue},sub_queue="",reason="expired"}} 2"#),
        format!(r#"jitney_entity_sessions{{{queue},sub_queue="",state="free"}} 1"#),
        r#"jitney_entity_delivered_messages_total{namespace="one",entity="*",kind="*",sub_queue=""} 6"#.to_owned(),
        r#"jitney_entity_delivered_messages_total{namespace="one",entity="*",kind="*",sub_queue="dead_letter"} 6"#.to_owned(),
        r#"jitney_connections{shard="0",authorized="false"} 1"#.to_owned(),
        r#"jitney_amqp_sessions{shard="0"} 11"#.to_owned(),
        r#"jitney_shard_healthy{shard="0"} 1"#.to_owned(),
        r#"jitney_shard_healthy{shard="1"} 0"#.to_owned(),
        r#"jitney_refusals_total{shard="0",reason="not_found"} 1"#.to_owned(),
        r#"jitney_namespace_attention{namespace="one",kind="stuck_receiver"} 2"#.to_owned(),
        // One entity and the others of each shard; dead letters apart.
        r#"jitney_delivery_delay_seconds_count{namespace="one"} 3"#.to_owned(),
        r#"jitney_delivery_delay_seconds_bucket{le="0.001",namespace="one"} 0"#.to_owned(),
        r#"jitney_delivery_delay_seconds_bucket{le="0.0025",namespace="one"} 3"#.to_owned(),
        r#"jitney_delivery_delay_seconds_bucket{le="+Inf",namespace="one"} 3"#.to_owned(),
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
}

#[test]
fn a_name_ends_no_line_and_no_label() {
    let text = scrape(&["a\"} 1\nb \\"]).openmetrics().unwrap();
    assert!(text.contains(r#"entity="a\"} 1\nb \\","#), "{text}");
    assert!(!text.lines().any(|line| line.starts_with('b')), "{text}");
}

/// Returns the document of all metrics.
fn document() -> String {
    let mut text = "# Metrics\n\n\
        `GET /metrics` at the HTTP ports, in the text format of Prometheus, or in that of OpenMetrics if `Accept` asks for it. It needs the\n\
        operator's key (`Authorization: Bearer KEY`), which is in `operator.key` in the data directory; in the development profile a request\n\
        from this machine needs none. `--metrics ADDR` opens an address for `/metrics` and `/health` alone, without a key.\n\n\
        Counters begin with the process. Entities beyond `--metrics-entities` (1,000 in each shard), and temporary nodes, are added up for each\n\
        namespace with the labels `entity=\"*\"` and `kind=\"*\"`, so that sums over all entities stay right. `sub_queue` is empty for an entity's\n\
        own messages, `dead_letter` for its dead letters, and `transfer_dead_letter` for messages that a transaction sent by way of it to a target that refused them. A histogram's\n\
        buckets are the same everywhere, from 0.1 ms to a day.\n\n\
        This list is made by the test `http::metrics::tests::the_document_is_up_to_date`; `UPDATE_DOCS=1 cargo test up_to_date` writes it.\n\n\
        | metric | kind | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for family in families::ALL {
        let (suffix, kind) = match family.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
        };
        let labels = family.labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "| `{}{suffix}` | {kind} | {labels} | {} |",
            family.name, family.help
        );
    }
    text
}

#[test]
fn the_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == document(),
        "docs/metrics.md differs: run UPDATE_DOCS=1 cargo test up_to_date"
    );
}
