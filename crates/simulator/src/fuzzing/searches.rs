//! Selections of messages, templates of bodies and descriptions of jobs: what the JSON API reads, evaluated on a body.

use bytes::Bytes;

use super::{messages, parts};
use jitney_base::ids::SequenceNumber;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::{JobAction, JobDescription, Selection};
use jitney_message::{Draft, Message};
use jitney_rules::{Facts, Share};

/// Bytes that the text of a refusal may have: it quotes what is wrong.
const REFUSAL_MAX: usize = 8 * 1024;

/// Compiles the first part as a `JSONPath` and evaluates it in the second as a body, twice: the answers are the same. The third is
/// a template of a body, and the fourth a description of a job as the log has it, which is read and compiled. A refusal is short.
pub(super) fn run(input: &[u8]) {
    let all = parts(input);
    let part = |at: usize| all.get(at).copied().unwrap_or_default();
    let text = |at: usize| String::from_utf8_lossy(part(at)).into_owned();
    let selection = Selection {
        json_path: Some(text(0)),
        ..Selection::default()
    };
    match selection.compile() {
        Ok(selector) => {
            let message = message(part(1));
            let facts = Facts {
                sequence_number: SequenceNumber(42),
                enqueued_time: Timestamp::EPOCH,
                time_to_live: Millis::MAX,
                seed: 7,
            };
            let look = || {
                let stamps = messages::stamps(None);
                selector.selects(&message, &stamps, &facts, &mut Share::default())
            };
            assert_eq!(look(), look(), "two looks at one message differ");
        }
        Err(refused) => check_refusal(&refused.to_string()),
    }
    let moving = JobDescription {
        selection: Selection::default(),
        action: JobAction::Move {
            to: None,
            action: None,
            body: Some(text(2)),
        },
        most: None,
    };
    let described = serde_json::from_slice::<JobDescription>(part(3)).ok();
    for description in described.into_iter().chain([moving]) {
        if let Err(refused) = description.check() {
            check_refusal(&refused.to_string());
        }
        let kept = serde_json::to_vec(&description).unwrap_or_default();
        let read = serde_json::from_slice::<JobDescription>(&kept).ok();
        assert_eq!(read.as_ref(), Some(&description), "it is kept as another");
    }
}

/// Makes a message with a body.
fn message(body: &[u8]) -> Message {
    let mut composer = Draft::default().begin(Timestamp::EPOCH);
    composer.push(body);
    let encoded = Bytes::from(composer.finish().to_vec());
    let Ok(message) = Message::parse(encoded) else {
        unreachable!("what is composed is a message");
    };
    message
}

fn check_refusal(text: &str) {
    assert!(text.len() <= REFUSAL_MAX, "{} bytes: {text}", text.len());
}
