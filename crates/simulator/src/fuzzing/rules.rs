//! Filters, selectors and actions: compiled, and evaluated on a message.

use bytes::Bytes;

use super::{parts, two_texts};
use jitney_base::ids::SequenceNumber;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::{Amendments, Message};
use jitney_rules::{
    Action, Evaluation, Facts, Filter, Match, Progress, Rule, RuleSet, Share, SqlFilter, selector,
};

/// A message with properties of all kinds: `a` to `f`.
const MESSAGE: &[u8] = b"\x00\x53\x70\xc0\x02\x01\x41\
    \x00\x53\x73\xc0\x19\x0b\xa1\x02id\x40\xa1\x02to\xa1\x05label\x40\x40\x40\x40\x40\x40\xa1\x01s\
    \x00\x53\x74\xc1\x2a\x0c\xa1\x01a\x54\x07\xa1\x01b\xa1\x05a%b_c\xa1\x01c\x82\x40\x09\x21\xfb\x54\x44\x2d\x18\xa1\x01d\x41\
    \xa1\x01e\x40\xa1\x01f\xa0\x02\x00\xff\
    \x00\x53\x75\xa0\x02hi";

/// Shares of steps that one rule may take at most.
const SHARES_MAX: usize = 1_000;

/// Compiles the first part as a condition, as a selector and as an action, and the second as an
/// action; they are evaluated on the third part, if it is a message. A compiled rule is written to
/// the log form, and must read back as equal.
pub(super) fn run(input: &[u8]) {
    let (condition, action) = two_texts(input);
    let sent = parts(input).get(2).copied().unwrap_or(MESSAGE);
    let message = Message::parse(Bytes::copy_from_slice(sent))
        .or_else(|_| Message::parse(Bytes::from_static(MESSAGE)));
    let Ok(message) = message else { return };
    let facts = Facts {
        sequence_number: SequenceNumber(42),
        enqueued_time: Timestamp::from_millis(1_700_000_000_000),
        time_to_live: Millis::from_secs(60),
        seed: 7,
    };
    let action = Action::parse(&action)
        .or_else(|_| Action::parse(&condition))
        .ok();
    for filter in [SqlFilter::parse(&condition), selector(&condition)]
        .into_iter()
        .flatten()
    {
        let is_true = filter.is_true_of(
            &message,
            &Amendments::default(),
            &facts,
            &mut Share::default(),
        );
        let rule = Rule {
            name: "rule".to_owned(),
            filter: Filter::Sql(filter),
            action: action.clone(),
            created_at: facts.enqueued_time,
        };
        let read = Rule::from_json(&rule.to_json());
        assert!(
            read.as_ref().is_ok_and(|read| *read == rule),
            "{rule:?} is kept as {read:?}"
        );
        let mut rules = RuleSet::default();
        assert!(rules.insert(1, rule).is_ok(), "the first rule is refused");
        let matches = matches(&rules, &message, &facts);
        let copies = matches
            .iter()
            .map(|found| found.copies.len())
            .sum::<usize>();
        let failed = matches.iter().any(|found| found.error.is_some());
        assert!(
            copies == usize::from(is_true) || (failed && copies == 0),
            "'{condition}' is {is_true} and gives {copies} copies"
        );
    }
}

/// Returns the copies that subscriptions get of a message, evaluated a share at a time as in a
/// topic.
fn matches(rules: &RuleSet, message: &Message, facts: &Facts) -> Vec<Match> {
    let unchanged = Amendments::default();
    let (mut evaluation, mut share) = (Evaluation::default(), Share::default());
    rules.begin(&mut evaluation, message, &unchanged, &mut share);
    let mut shares = 1;
    while rules.evaluate(&mut evaluation, message, &unchanged, facts, &mut share)
        == Progress::Paused
    {
        share = Share::default();
        shares += 1;
        assert!(shares < SHARES_MAX, "no end of shares");
    }
    let mut out = Vec::new();
    rules.copies(&mut evaluation, message, &unchanged, facts, &mut out);
    out
}
