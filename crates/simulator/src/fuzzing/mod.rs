//! Targets of the fuzzers and of the replay of their corpora: each takes any bytes, and panics if
//! an invariant breaks.
//!
//! `fuzz/` calls them from libFuzzer, which looks for inputs that reach new code; `tests/core/fuzzing.rs` calls them with the inputs that
//! were found and kept in `fuzz/corpus`. A target is deterministic: the same bytes do the same.

mod administration;
mod configuration;
mod conversations;
mod engine;
mod messages;
mod requests;
mod rules;
mod searches;

use jitney_base::time::Timestamp;
use jitney_broker::namespace::StepContext;
use jitney_gateway::Gateway;
use jitney_queue::{Description, EntityKind};

pub use conversations::input as conversation_input;
pub use engine::input as engine_input;

/// A target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: the name of its directory in `fuzz/corpus`.
    pub name: &'static str,
    /// Takes an input.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 9] = [
    Target {
        name: "administration",
        run: administration::run,
    },
    Target {
        name: "configuration",
        run: configuration::run,
    },
    Target {
        name: "conversations",
        run: conversations::run,
    },
    Target {
        name: "engine",
        run: engine::run,
    },
    Target {
        name: "log",
        run: jitney_journal::fuzzing::run,
    },
    Target {
        name: "messages",
        run: messages::run,
    },
    Target {
        name: "requests",
        run: requests::run,
    },
    Target {
        name: "rules",
        run: rules::run,
    },
    Target {
        name: "searches",
        run: searches::run,
    },
];

/// The time at which inputs are played.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Makes the entities that inputs refer to: a queue, one with message sessions, and a topic with a
/// subscription.
fn make_entities(gateway: &mut Gateway, cx: &mut StepContext<'_>) {
    let queue = Description {
        max_delivery_count: 3,
        ..Description::default()
    };
    let of = |kind| Description {
        kind,
        ..queue.clone()
    };
    let sessions = Description {
        requires_session: true,
        ..queue.clone()
    };
    for (path, description) in [
        ("queue.1", queue.clone()),
        ("sessions.1", sessions),
        ("topic.1", of(EntityKind::Topic)),
        (
            "topic.1/Subscriptions/subscription.1",
            of(EntityKind::Subscription),
        ),
    ] {
        let made = gateway.ensure_entity(cx, path, description);
        assert!(made.is_ok(), "{path} cannot be made");
    }
}

/// Separates the parts of an input. A separator survives when bytes before it are added or removed,
/// which a length would not.
const SEPARATOR: [u8; 2] = [0xfe, 0xed];

/// Returns the parts of an input.
fn parts(input: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(2).position(|pair| pair == SEPARATOR) {
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after.get(SEPARATOR.len()..).unwrap_or_default();
    }
    parts.push(rest);
    parts
}

/// Returns two parts of an input as text, with invalid UTF-8 replaced.
fn two_texts(input: &[u8]) -> (String, String) {
    let mut parts = parts(input).into_iter();
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    (text(), text())
}
