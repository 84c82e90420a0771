//! The cost of evaluating rules.

use super::*;
use crate::limits;

/// Returns what a condition is worth for a message whose property `a` is this text, and the steps
/// that it takes.
fn cost(condition: &str, text: &str) -> (Option<bool>, u64) {
    let message = Sent::default().property("a", text).message();
    let filter = SqlFilter::parse(condition).unwrap();
    let meter = Meter::default();
    meter.begin(limits::FILTER_STEPS_MAX);
    let worth = filter.matches(&View {
        message: &message,
        changed: &Amendments::default(),
        facts: &facts(),
        random: &RefCell::new(Random::new(1)),
        meter: &meter,
    });
    (worth.ok(), meter.spent())
}

#[test]
fn literal_parts_of_a_pattern_are_searched_in_linear_time() {
    // Each place but the last begins as the part that is searched for does.
    let text = "x".repeat(60_000);
    for pattern in [
        format!("%{}y%", "x".repeat(900)),
        format!("%{}y", "x".repeat(900)),
        format!("%{}%{}y%", "x".repeat(400), "x".repeat(400)),
    ] {
        let (worth, steps) = cost(&format!("a LIKE '{pattern}'"), &text);
        assert_eq!(worth, Some(false), "{pattern}");
        assert!(steps < 16_000, "{pattern}: {steps} steps");
    }
    let longest = ["a LIKE '%x%y%zzzzz%'"; 33].join(" OR ");
    let (worth, steps) = cost(&longest, &text[..30_000]);
    assert_eq!(worth, Some(false), "after {steps} steps");
}

#[test]
fn a_filter_is_given_up_at_its_bound() {
    let text = "x".repeat(30_000);
    let costly = ["a LIKE '%x_xxxxy%'"; 33].join(" OR ");
    let (worth, steps) = cost(&costly, &text);
    assert_eq!(worth, None);
    let beyond = steps - limits::FILTER_STEPS_MAX;
    assert!(beyond < 10_000, "{beyond} steps beyond the bound");
}

#[test]
fn whatever_takes_long_is_counted() {
    let text = "x".repeat(30_000);
    let lookups = ["p999 = 0"; 80].join(" OR ");
    let mut many = Sent::default();
    for number in 0..1_000 {
        many = many.property(&format!("p{number}"), number);
    }
    let many = many.message();
    let meter = Meter::default();
    meter.begin(u64::MAX);
    let filter = SqlFilter::parse(&lookups).unwrap();
    let worth = filter.matches(&View {
        message: &many,
        changed: &Amendments::default(),
        facts: &facts(),
        random: &RefCell::new(Random::new(1)),
        meter: &meter,
    });
    assert_eq!(worth, Ok(false));
    assert!(80_000 <= meter.spent(), "a search passes 1,000 properties");
    for condition in ["a = a", "a + a = a", "a IN (a, 'b')"] {
        let (_, steps) = cost(condition, &text);
        assert!(2_000 < steps, "{condition}: {steps}");
    }
}

/// A message, and a filter that is given up for it.
fn costly() -> (Message, Filter) {
    let text = "x".repeat(30_000);
    let message = Sent::default().property("a", text.as_str()).message();
    let parts = ["a LIKE '%x_xxxxy%'"; 33];
    (message, sql(&parts.join(" OR ")))
}

/// Returns what subscriptions get of a message, and in how many shares it is found out.
fn in_shares(rules: &RuleSet, message: &Message) -> (Vec<Match>, u64) {
    let (changed, mut out) = (Amendments::default(), Vec::new());
    let (mut evaluation, mut share) = (Evaluation::default(), Share::default());
    let mut shares = 1;
    rules.begin(&mut evaluation, message, &changed, &mut share);
    while rules.evaluate(&mut evaluation, message, &changed, &facts(), &mut share)
        == Progress::Paused
    {
        assert!(share.is_spent());
        share = Share::default();
        shares += 1;
    }
    rules.copies(&mut evaluation, message, &changed, &facts(), &mut out);
    (out, shares)
}

#[test]
fn the_rules_of_a_message_have_one_bound_together_and_are_looked_at_in_shares() {
    let (message, costly) = costly();
    let mut rules = RuleSet::default();
    for number in 0..500 {
        let name = format!("r{number}");
        rules.insert(1, rule(&name, costly.clone())).unwrap();
    }
    let (found, shares) = in_shares(&rules, &message);
    assert_eq!(found.len(), 1);
    assert!(found[0].error.as_ref().unwrap().contains("steps"));
    let most = limits::FILTERS_STEPS_MAX / limits::SHARE_STEPS + 2;
    assert!((10..=most).contains(&shares), "{shares} shares");
}

#[test]
fn costly_rules_of_one_subscription_do_not_take_the_steps_of_others() {
    let (message, costly) = costly();
    let mut rules = RuleSet::default();
    for number in 0..500 {
        let name = format!("r{number}");
        rules.insert(1, rule(&name, costly.clone())).unwrap();
    }
    for subscription in 2..200 {
        let wanted = rule("r", sql("a LIKE '%x%x%xxx'"));
        rules.insert(subscription, wanted).unwrap();
    }
    let (found, _) = in_shares(&rules, &message);
    let failed = found.iter().filter(|found| found.error.is_some());
    let failed: Vec<u32> = failed.map(|found| found.subscription).collect();
    assert_eq!(failed, [1]);
    assert_eq!(found.len(), 199);
}

#[test]
fn a_rule_that_goes_between_two_shares_gives_nothing() {
    let (message, costly) = costly();
    let mut rules = RuleSet::default();
    for number in 0..10 {
        let name = format!("r{number}");
        rules.insert(1, rule(&name, costly.clone())).unwrap();
        rules.insert(2 + number, rule("all", Filter::True)).unwrap();
    }
    let changed = Amendments::default();
    let (mut evaluation, mut share) = (Evaluation::default(), Share::default());
    let mut out = Vec::new();
    rules.begin(&mut evaluation, &message, &changed, &mut share);
    let facts = facts();
    let progress = rules.evaluate(&mut evaluation, &message, &changed, &facts, &mut share);
    assert_eq!(progress, Progress::Paused);
    rules.remove_subscription(1);
    rules.remove_subscription(5);
    rules.insert(20, rule("new", Filter::True)).unwrap();
    share = Share::default();
    let progress = rules.evaluate(&mut evaluation, &message, &changed, &facts, &mut share);
    assert_eq!(progress, Progress::Done);
    rules.copies(&mut evaluation, &message, &changed, &facts, &mut out);
    let found: Vec<u32> = out.iter().map(|found| found.subscription).collect();
    assert_eq!(found, [2, 3, 4, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn the_actions_of_a_message_have_one_bound_together() {
    let text = "x".repeat(30_000);
    let message = Sent::default().property("a", text.as_str()).message();
    let mut rules = RuleSet::default();
    for number in 0..400 {
        let action = Action::parse("SET b = a; SET c = a").unwrap();
        let with_action = Rule {
            action: Some(action),
            ..rule(&format!("r{number}"), Filter::True)
        };
        rules.insert(1, with_action).unwrap();
    }
    let (found, _) = in_shares(&rules, &message);
    let copies = found[0].copies.iter().flatten();
    let bytes: usize = copies.map(|changes| changes.size()).sum();
    assert!((4 << 20..9 << 20).contains(&bytes), "{bytes} bytes");
    assert!(found[0].error.is_some());
}
