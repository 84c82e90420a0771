//! The cost of a publish: a measurement.

use std::hint::black_box;

use super::*;

/// Prints nanoseconds for each publish, to hold against a plain queue's send: with correlation
/// filters of which one matches, the number of the others should not matter.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "it is a measurement")]
#[expect(clippy::print_stdout, reason = "it is what the measurement is for")]
fn what_a_publish_costs_rules() {
    const ROUNDS: u32 = 200_000;
    type Make = fn(u32) -> Filter;
    let by_property: Make = |number| wants("customer", i64::from(number));
    let by_two: Make = |number| {
        correlation(CorrelationFields {
            label: Some("order".to_owned()),
            correlation_id: Some(format!("c{number}")),
            ..CorrelationFields::default()
        })
    };
    let by_sql: Make = |number| sql(&format!("customer = {number}"));
    let message = Sent::default()
        .field(Field::Label, "order")
        .field(Field::CorrelationId, "c0")
        .property("kind", "order")
        .property("customer", 0)
        .property("amount", 12.5)
        .message();
    for (what, make, counts) in [
        ("one property", by_property, &[1, 1_000, 50_000][..]),
        ("label and correlation-id", by_two, &[1, 1_000, 50_000]),
        ("SQL", by_sql, &[1, 1_000]),
    ] {
        for &count in counts {
            let mut rules = RuleSet::default();
            for number in 0..count {
                rules.insert(number, rule("r", make(number))).unwrap();
            }
            let rounds = if what == "SQL" {
                ROUNDS / count
            } else {
                ROUNDS
            };
            let mut out = Vec::new();
            let begin = std::time::Instant::now();
            for _ in 0..rounds {
                rules.matches(black_box(&message), &facts(), &mut out);
                assert_eq!(out.len(), 1);
            }
            let nanos = begin.elapsed() / rounds;
            println!("{what}: {count} subscriptions, 1 matches: {nanos:?} for each publish");
        }
    }
}
