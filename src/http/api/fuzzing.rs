//! Targets of the fuzzers: bodies that the JSON API reads to send messages, to lock and settle them, and to test rules.
//!
//! `fuzz/` calls them from libFuzzer; the tests below call them with the inputs that are kept in `fuzz/corpus`, and with
//! changes of these. A target takes any bytes, does the same for the same bytes, and panics if an invariant breaks.
//! What is made of a body is compared with the body as plain values of JSON.

use std::collections::BTreeSet;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::call::read_json;
use super::locks::{SETTLED_MAX, SettleRequest, read_numbers};
use super::problem::Problem;
use super::rule_tests::{RuleTestRequest, Subject, Tested, Values, facts, size_of_test, takes};
use super::sending::{SENT_MAX, SendRequest};
use jitney_amqp::codec::value::text;
use jitney_api::locks::LockRequest;
use jitney_base::time::Timestamp;
use jitney_gateway::limits::INSPECTED_MAX;
use jitney_message::{Amendments, Field, Message};
use jitney_queue::Settlement;
use jitney_rules::{Filter, Rule, Share, SqlFilter, selector};

/// A target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: the name of its directory in `fuzz/corpus`.
    pub name: &'static str,
    /// Takes an input.
    pub run: fn(&[u8]),
}

/// All targets that read bodies of the JSON API.
pub const TARGETS: [Target; 3] = [
    Target {
        name: "locks",
        run: locks,
    },
    Target {
        name: "rule-tests",
        run: rule_tests,
    },
    Target {
        name: "sending",
        run: sending,
    },
];

/// The time at which inputs are read.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// Separates the parts of an input, as in the other targets.
const SEPARATOR: [u8; 2] = [0xfe, 0xed];
/// Bytes of a refusal beside those of what it quotes.
const REFUSAL_BYTES: usize = 1_000;
/// How often a refusal may quote a byte of the body: as the field, in the text, and in the place before that. A control
/// character that is quoted has six, and a number such as `1e15` four times as many digits.
const QUOTED_MAX: usize = 24;
/// Bytes that a message has beside those of its JSON, and for each byte of that: a property of six bytes has fifteen.
const MESSAGE_BYTES: usize = 200;
const ENCODED_MAX: usize = 4;

/// Reads the messages of a request to send: they have the bodies and fields that it says, and are about as large.
fn sending(body: &[u8]) {
    let messages = match SendRequest::read(body, NOW) {
        Ok(messages) => messages,
        Err(problem) => return check_refusal(&problem, body),
    };
    check_json(body);
    let count = messages.len();
    assert!((1..=SENT_MAX).contains(&count), "{count} messages");
    let bytes: usize = messages.iter().map(|it| it.bytes().len()).sum();
    let max = MESSAGE_BYTES * count + ENCODED_MAX * body.len();
    assert!(bytes <= max, "{} bytes become {bytes}", body.len());
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    for (at, message) in messages.iter().enumerate() {
        check_message(message, sent.pointer(&format!("/messages/{at}")));
    }
}

/// Reads a request to lock messages, and one to settle them.
fn locks(body: &[u8]) {
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    match read::<LockRequest>(body).and_then(read_numbers) {
        Ok(numbers) => {
            let numbers: Vec<u64> = numbers.into_iter().map(|number| number.0).collect();
            assert!(!numbers.is_empty() && numbers.len() <= INSPECTED_MAX);
            assert_eq!(sent.get("sequence_numbers"), Some(&numbers.into()));
        }
        Err(problem) => check_refusal(&problem, body),
    }
    let settlements = match read::<SettleRequest>(body).and_then(SettleRequest::read) {
        Ok(settlements) => settlements,
        Err(problem) => return check_refusal(&problem, body),
    };
    let count = settlements.len();
    assert!((1..=SETTLED_MAX).contains(&count), "{count} settlements");
    let tokens: BTreeSet<_> = settlements.iter().map(|(token, _)| *token).collect();
    assert_eq!(tokens.len(), count, "a token is there twice");
    let weight: usize = settlements.iter().map(|(_, it)| it.size()).sum();
    assert!(weight <= jitney_amqp::limits::DISPOSITION_BYTES_MAX);
    for (at, (token, settlement)) in settlements.iter().enumerate() {
        let said = |name: &str| sent.pointer(&format!("/settlements/{at}/{name}"));
        let outcome = match settlement {
            Settlement::Complete => "complete",
            Settlement::Abandon(_) => "abandon",
            Settlement::Defer(_) => "defer",
            Settlement::DeadLetter(_) => "dead_letter",
            Settlement::Release => unreachable!("no outcome releases"),
        };
        assert_eq!(said("outcome").and_then(Value::as_str), Some(outcome));
        let digits = said("lock_token").and_then(Value::as_str).map(|text| {
            let digits = text.chars().filter(char::is_ascii_hexdigit);
            digits.collect::<String>().to_lowercase()
        });
        assert_eq!(digits, Some(token.to_string()), "another token");
    }
}

/// Reads a request to test rules. Its message is tested against a rule that has the second part as its condition: the
/// result is that of the rule, and room for the answer is reserved.
fn rule_tests(input: &[u8]) {
    let at = input.windows(2).position(|pair| pair == SEPARATOR);
    let (body, condition) = match at.map(|at| input.split_at(at)) {
        Some((body, rest)) => (body, rest.get(SEPARATOR.len()..).unwrap_or_default()),
        None => (input, &b"color = 'red'"[..]),
    };
    let subject = read::<RuleTestRequest>(body).and_then(|request| request.subject(NOW));
    let message = match subject {
        Ok(Subject::Sent(message)) => message,
        Ok(Subject::Kept(_)) => return,
        Err(problem) => return check_refusal(&problem, body),
    };
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    check_message(&message, sent.get("message"));
    let (changed, facts) = (Amendments::default(), facts(NOW));
    let tested = Tested {
        message: &message,
        changed: &changed,
        facts: &facts,
    };
    let condition = String::from_utf8_lossy(condition);
    let compiled = [SqlFilter::parse(&condition), selector(&condition)];
    for filter in compiled.into_iter().flatten() {
        let is_true = filter.is_true_of(&message, &changed, &facts, &mut Share::default());
        let rule = Rule {
            name: "rule".to_owned(),
            filter: Filter::Sql(filter),
            action: None,
            created_at: NOW,
        };
        let mut values = Values::default();
        let test = tested.against_rule(&rule, &mut values);
        assert_eq!(takes(&test), is_true, "'{condition}': {test:?}");
        let answer = serde_json::to_vec(&test).map_or(0, |json| json.len());
        // A control character has six bytes in JSON.
        let max = 6 * size_of_test(&test);
        assert!(answer <= max, "{answer} bytes, {max} were reserved");
    }
}

/// Reads a body as requests do; what is taken is JSON to its end.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let read = read_json(body);
    if read.is_ok() {
        check_json(body);
    }
    read
}

fn check_json(body: &[u8]) {
    let read: Result<IgnoredAny, _> = serde_json::from_slice(body);
    assert!(read.is_ok(), "it is no JSON: {read:?}");
}

/// A message that was read is a message, and has what its text says.
fn check_message(message: &Message, sent: Option<&Value>) {
    let again = Message::parse(message.bytes().clone());
    let again = again.map(|again| again.bytes().clone());
    assert_eq!(again.as_ref(), Ok(message.bytes()), "it is no message");
    let said = |name: &str| sent.and_then(|it| it.get(name)).and_then(Value::as_str);
    if said("encoded").is_some() {
        return;
    }
    if let Some(body) = said("body") {
        assert_eq!(*message.plain_body(), *body.as_bytes(), "another body");
    }
    for (name, field) in [
        ("message_id", Field::MessageId),
        ("correlation_id", Field::CorrelationId),
        ("session_id", Field::SessionId),
        ("subject", Field::Label),
        ("to", Field::To),
        ("reply_to", Field::ReplyTo),
        ("reply_to_session_id", Field::ReplyToSessionId),
        ("content_type", Field::ContentType),
    ] {
        let found = message.field(field).and_then(text);
        assert_eq!(found, said(name), "{name}");
    }
    assert_eq!(message.partition_key(), said("partition_key"));
}

/// A refusal says that the request is wrong, and is not much longer than that.
fn check_refusal(problem: &Problem, body: &[u8]) {
    let said = serde_json::to_value(problem).unwrap_or_default();
    assert_eq!(said.get("status"), Some(&400.into()), "{said}");
    let length = said.to_string().len();
    let max = REFUSAL_BYTES + QUOTED_MAX * body.len();
    assert!(length <= max, "a refusal of {length} bytes: {said}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use super::*;
    use jitney_base::ids::Random;

    /// What one input may take of the processor, without optimizations.
    const TIME_MAX: Duration = Duration::from_secs(20);
    /// How often an input is changed.
    const CHANGES: usize = 300;

    fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        let entries = fs::read_dir(corpus.join(target.name)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let inputs = paths.into_iter().map(|path| {
            let input = fs::read(&path).unwrap();
            (path, input)
        });
        inputs.collect()
    }

    /// Runs an input; says what is wrong with it.
    fn wrong(target: &Target, input: &[u8]) -> Option<String> {
        let began = clock_gettime(ClockId::ThreadCPUTime);
        let is_broken = catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err();
        let took = clock_gettime(ClockId::ThreadCPUTime) - began;
        let took = Duration::try_from(took).unwrap();
        let shown = || String::from_utf8_lossy(input).into_owned();
        (is_broken || TIME_MAX < took).then(|| format!("{took:?}: {}", shown()))
    }

    #[test]
    fn every_input_of_the_corpus_breaks_no_invariant() {
        for target in &TARGETS {
            let inputs = corpus(target);
            assert!(5 < inputs.len(), "{} has no corpus", target.name);
            let wrong = inputs
                .iter()
                .filter_map(|(path, input)| Some((path, wrong(target, input)?)));
            let wrong: Vec<_> = wrong.collect();
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }

    /// Changes an input at a few places: bytes, pieces that are cut out or stand twice, and pieces of another input.
    fn change(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
        let below = |random: &mut Random, end: usize| {
            let end = u64::try_from(end.max(1)).unwrap();
            usize::try_from(random.next_u64() % end).unwrap()
        };
        for _ in 0..=below(random, 3) {
            let at = below(random, input.len() + 1);
            let end = (at + 1 + below(random, 20)).min(input.len());
            match below(random, 6) {
                0 => input.truncate(at),
                1 => drop(input.drain(at..end)),
                2 => {
                    let piece = input[at..end].to_vec();
                    input.splice(at..at, piece);
                }
                3 => {
                    let from = below(random, other.len());
                    let to = (from + 1 + below(random, 60)).min(other.len());
                    input.splice(at..end, other[from..to].iter().copied());
                }
                4 => {
                    let words: [&[u8]; 14] = [
                        b"\"",
                        b"{",
                        b"}",
                        b"[",
                        b"]",
                        b",",
                        b":",
                        b"null",
                        b"-1",
                        b"1e400",
                        b"\\u0000",
                        b"\\ud800",
                        b"18446744073709551616",
                        b"\xff",
                    ];
                    let word = words[below(random, words.len())];
                    input.splice(at..at, word.iter().copied());
                }
                _ => {
                    let byte = u8::try_from(below(random, 256)).unwrap();
                    input.splice(at..at, [byte]);
                }
            }
        }
    }

    #[test]
    fn changed_inputs_of_the_corpus_break_no_invariant() {
        for target in &TARGETS {
            let inputs = corpus(target);
            let mut random = Random::new(7);
            for at in 0..inputs.len() {
                for number in 0..CHANGES {
                    let mut input = inputs[at].1.clone();
                    let (_, other) = &inputs[(at + number) % inputs.len()];
                    change(&mut random, &mut input, other);
                    let wrong = wrong(target, &input);
                    assert_eq!(wrong, None, "{}", target.name);
                }
            }
        }
    }
}
