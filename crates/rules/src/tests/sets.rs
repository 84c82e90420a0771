//! The rules of a topic's subscriptions: who gets what, and how rules are kept.

use std::collections::BTreeMap;

use crate::limits;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

fn matches(rules: &RuleSet, message: &Message) -> Vec<Match> {
    let mut out = Vec::new();
    rules.matches(message, &facts(), &mut out);
    out
}

fn with_action(name: &str, filter: Filter, action: &str) -> Rule {
    let action = Some(Action::parse(action).unwrap());
    Rule {
        action,
        ..rule(name, filter)
    }
}

#[test]
fn plain_rules_give_one_copy_and_each_action_one_more() {
    let mut rules = RuleSet::default();
    for (subscription, rule) in [
        (1, rule("plain 1", Filter::True)),
        (1, rule("plain 2", sql("a = 1"))),
        (1, rule("plain 3", wants("A", 1))),
        (1, with_action("act 1", Filter::True, "SET b = 1")),
        (1, with_action("act 2", wants("a", 1), "REMOVE a")),
        (1, with_action("act 3", Filter::False, "SET b = 3")),
        (2, with_action("only", sql("a > 0"), "SET b = a")),
        (3, rule("no", sql("a = 2"))),
        (4, rule("no", Filter::False)),
    ] {
        rules.insert(subscription, rule).unwrap();
    }
    let message = Sent::default().property("a", 1).message();
    let found = matches(&rules, &message);
    let counts: Vec<_> = found
        .iter()
        .map(|found| (found.subscription, found.copies.len()))
        .collect();
    assert_eq!(counts, [(1, 3), (2, 1)]);
    assert!(found.iter().all(|found| found.error.is_none()));
    let [plain, first, second] = &found[0].copies[..] else {
        panic!("{found:?}")
    };
    assert_eq!(*plain, None);
    for (copy, name, a, b) in [
        (first, "act 1", true, true),
        (second, "act 2", false, false),
    ] {
        let changes = copy.as_ref().unwrap();
        let read = |name| {
            changes
                .property_of(&message, name)
                .map(|(_, value)| Scalar::decode(value))
        };
        assert_eq!(read("RuleName"), Some(Scalar::Text(name.into())));
        assert_eq!((read("a").is_some(), read("b").is_some()), (a, b));
    }
}

#[test]
fn a_subscription_without_rules_gets_nothing() {
    let mut rules = RuleSet::default();
    rules.insert(1, rule("$Default", Filter::True)).unwrap();
    let message = Sent::default().message();
    assert_eq!(matches(&rules, &message).len(), 1);
    assert!(rules.remove(1, "$default"));
    assert!(!rules.remove(1, "$Default"));
    assert_eq!(matches(&rules, &message), []);
}

#[test]
fn a_rule_that_fails_is_told_and_the_others_hold() {
    let mut rules = RuleSet::default();
    rules.insert(1, rule("bad", sql("1 / zero = 1"))).unwrap();
    rules.insert(1, rule("worse", sql("1 % zero = 1"))).unwrap();
    rules.insert(1, rule("good", Filter::True)).unwrap();
    rules
        .insert(2, with_action("act", Filter::True, "SET a = 1 / zero"))
        .unwrap();
    rules.insert(3, rule("good", Filter::True)).unwrap();
    let found = matches(&rules, &Sent::default().property("zero", 0).message());
    let found: Vec<_> = found
        .iter()
        .map(|found| (found.copies.len(), found.error.as_deref()))
        .collect();
    let told = |name| format!("rule '{name}': division by zero");
    assert_eq!(
        found,
        [
            (1, Some(&*told("bad"))),
            (0, Some(&*told("act"))),
            (1, None)
        ]
    );
}

#[test]
fn rules_see_what_was_changed_before() {
    let mut rules = RuleSet::default();
    for (subscription, filter) in [
        (1, wants("deadletterreason", "Old")),
        (2, sql("deadletterreason = 'Old'")),
        (3, wants("a", 1)),
        (4, sql("EXISTS(a)")),
        (5, wants("b", 2)),
        (6, wants("b", 3)),
        (
            7,
            correlation(CorrelationFields {
                label: Some("new".to_owned()),
                ..CorrelationFields::default()
            }),
        ),
    ] {
        rules.insert(subscription, rule("r", filter)).unwrap();
    }
    let action = with_action("act", wants("b", 3), "SET b = b + 1");
    rules.insert(8, action).unwrap();
    let message = Sent::default()
        .field(Field::Label, "old")
        .property("a", 1)
        .property("b", 2)
        .message();
    let mut changed = Amendments::default();
    changed.set_string("DeadLetterReason", "Old");
    changed.remove("a");
    changed.set_encoded("b", encoded(&Scalar::Long(3)));
    changed.set_field(Field::Label, Some("new"));
    let mut out = Vec::new();
    rules.matches_amended(&message, &changed, &facts(), &mut out);
    let found: Vec<u32> = out.iter().map(|found| found.subscription).collect();
    assert_eq!(found, [1, 2, 6, 7, 8]);
    let copy = out[4].copies[0].as_ref().unwrap();
    let read = |name| {
        copy.property_of(&message, name)
            .map(|(_, value)| Scalar::decode(value))
    };
    assert_eq!(read("b"), Some(Scalar::Long(4)));
    assert_eq!(read("DeadLetterReason"), Some(Scalar::Text("Old".into())));
    assert_eq!(read("a"), None);
}

#[test]
fn a_publish_looks_only_at_rules_that_may_match() {
    let mut rules = RuleSet::default();
    for number in 0..1_000 {
        let both = CorrelationFields {
            label: Some("order".to_owned()),
            properties: vec![("Customer".to_owned(), Scalar::Long(number).into())],
            ..CorrelationFields::default()
        };
        let subscription = u32::try_from(number).unwrap();
        rules
            .insert(subscription, rule("both", correlation(both)))
            .unwrap();
        rules
            .insert(subscription, rule("no", Filter::False))
            .unwrap();
        let other = CorrelationFields {
            correlation_id: Some(number.to_string()),
            properties: vec![("kind".to_owned(), Scalar::Boolean(true).into())],
            ..CorrelationFields::default()
        };
        rules
            .insert(subscription, rule("other", correlation(other)))
            .unwrap();
    }
    rules.insert(7, rule("sql", sql("1=0"))).unwrap();
    let sent = Sent::default()
        .field(Field::Label, "order")
        .property("kind", true);
    let message = sent.property("customer", 500).message();
    // The one whose customer it is, the SQL filter, and the first: no label was rarer for it.
    let mut looked_at = Vec::new();
    rules.candidates(&message, &Amendments::default(), &mut looked_at);
    assert!(looked_at.len() <= 3, "{looked_at:?}");
    assert_eq!(matches(&rules, &message).len(), 1);
}

#[test]
fn a_rule_is_met_once_by_a_property_that_is_there_twice() {
    let mut rules = RuleSet::default();
    let action = with_action("act", wants("a", 1), "SET b = 1");
    rules.insert(1, action).unwrap();
    let message = Sent::default().property("a", 1).property("A", 1).message();
    assert_eq!(matches(&rules, &message)[0].copies.len(), 1);
    // The first is the one that counts.
    let message = Sent::default().property("A", 2).property("a", 1).message();
    assert_eq!(matches(&rules, &message), []);
}

#[test]
fn names_are_taken_once_whatever_their_case() {
    let mut rules = RuleSet::default();
    rules.insert(1, rule("Red", wants("color", "red"))).unwrap();
    assert_eq!(
        rules.insert(1, rule("rED", Filter::True)),
        Err(RuleRefused::NameTaken)
    );
    rules.insert(2, rule("red", Filter::True)).unwrap();
    assert_eq!(rules.rule(1, "RED").unwrap().name, "Red");
    assert_eq!(rules.rule(1, "blue"), None);
}

#[test]
fn rules_are_listed_by_the_time_they_were_made() {
    let mut rules = RuleSet::default();
    for (name, at) in [("c", 9), ("a", 3), ("b", 3), ("d", -1)] {
        let created_at = Timestamp::from_millis(at);
        rules
            .insert(
                5,
                Rule {
                    created_at,
                    ..rule(name, Filter::True)
                },
            )
            .unwrap();
    }
    rules.insert(6, rule("x", Filter::True)).unwrap();
    let names = |subscription| {
        rules
            .rules(subscription)
            .map(|rule| rule.name.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(5), ["d", "a", "b", "c"]);
    assert_eq!(names(6), ["x"]);
    assert!(names(7).is_empty());
    let mut rules = rules.clone();
    rules.remove_subscription(5);
    assert_eq!(rules.rules(5).count() + rules.rules(6).count(), 1);
}

#[test]
fn sql_filters_are_counted_on_their_own() {
    let mut rules = RuleSet::default();
    for number in 0..limits::SQL_RULES_MAX {
        rules
            .insert(1, rule(&number.to_string(), sql("a=1")))
            .unwrap();
    }
    assert_eq!(
        rules.insert(1, rule("more", sql("a=1"))),
        Err(RuleRefused::TooManySql)
    );
    rules.insert(1, rule("other", wants("a", 1))).unwrap();
    assert_eq!(
        rules.check_room(&sql("a=1"), Some(2)),
        Err(RuleRefused::TooManySql)
    );
    assert_eq!(rules.check_room(&sql("a=1"), Some(1)), Ok(()));
    assert!(rules.remove(1, "7"));
    rules.insert(1, rule("more", sql("a=1"))).unwrap();
}

#[test]
fn correlation_filters_compare_by_value_and_kind() {
    let message = Sent::default()
        .field(Field::CorrelationId, "abcd")
        .field(Field::Label, "Red")
        .property("color", "blue")
        .property("two", 2)
        .property("text", "2")
        .property("half", 0.5)
        .property("null", Scalar::Null)
        .property("span", Scalar::Duration(5))
        .message();
    let cases = [
        (wants("Color", "blue"), true),
        (wants("color", "Blue"), false),
        (wants("two", 2), true),
        (wants("two", 2.0), true),
        (wants("two", "2"), false),
        (wants("text", 2), false),
        (wants("text", "2"), true),
        (wants("half", 0.5), true),
        (wants("half", 0), false),
        (wants("span", Scalar::Duration(5)), true),
        (wants("span", 5), false),
        (wants("null", Scalar::Null), true),
        (wants("missing", Scalar::Null), false),
        (
            correlation(CorrelationFields {
                correlation_id: Some("abcd".to_owned()),
                to: Some(String::new()),
                properties: vec![("two".to_owned(), Scalar::Long(2).into())],
                ..CorrelationFields::default()
            }),
            true,
        ),
        (
            correlation(CorrelationFields {
                correlation_id: Some("abcd".to_owned()),
                label: Some("red".to_owned()),
                ..CorrelationFields::default()
            }),
            false,
        ),
    ];
    for (filter, expected) in cases {
        let mut rules = RuleSet::default();
        rules.insert(1, rule("r", filter.clone())).unwrap();
        assert_eq!(
            matches(&rules, &message).len(),
            usize::from(expected),
            "{filter:?}"
        );
    }
    let empty = CorrelationFields {
        to: Some(String::new()),
        ..CorrelationFields::default()
    };
    assert_eq!(CorrelationFilter::new(empty), Err(EmptyFilter));
}

#[test]
fn rules_are_kept_as_json() {
    let text = "a = @p";
    let scalars = [
        Scalar::Boolean(true),
        Scalar::Double(f64::INFINITY),
        Scalar::Double(-0.1),
        Scalar::Duration(-7),
        Scalar::Long(i64::MIN),
        Scalar::Null,
        Scalar::Opaque(vec![0xa0, 1, 2].into()),
        Scalar::Text("ä\"".into()),
        Scalar::Timestamp(1),
        Scalar::Ulong(u64::MAX),
        Scalar::Uuid([7; 16]),
    ];
    let given = [vec![0x54, 7], vec![0xa3, 1, b's']].map(Value::from_encoded);
    let values: Vec<Value> = scalars.map(Value::from).into_iter().chain(given).collect();
    let parameters: Parameters = (0..)
        .map(|n: u32| format!("@{n}"))
        .zip(values.clone())
        .collect();
    let fields = CorrelationFields {
        label: Some("x".to_owned()),
        properties: (0..).map(|n: u32| n.to_string()).zip(values).collect(),
        ..CorrelationFields::default()
    };
    for filter in [
        Filter::True,
        Filter::False,
        Filter::Sql(SqlFilter::parse_with(text, parameters.clone()).unwrap()),
        correlation(fields),
    ] {
        let action = Some(Action::parse_with("SET a = @1", parameters.clone()).unwrap());
        for action in [None, action] {
            let rule = Rule {
                action,
                ..rule("r", filter.clone())
            };
            assert_eq!(Rule::from_json(&rule.to_json()).unwrap(), rule);
        }
    }
    // The stored form in logs, to the byte.
    let kept = Rule {
        action: Some(Action::parse("SET a=1").unwrap()),
        ..rule("n", sql("1=1"))
    };
    let json = r#"{"name":"n","filter":{"sql":{"text":"1=1"}},"action":{"text":"SET a=1"},"created_at":1}"#;
    assert_eq!(String::from_utf8(kept.to_json()).unwrap(), json);
    for broken in [
        "",
        "{}",
        r#"{"name":"n","filter":{"sql":{"text":"1="}},"created_at":1}"#,
        r#"{"name":"n","filter":{"correlation":{}},"created_at":1}"#,
    ] {
        assert!(Rule::from_json(broken.as_bytes()).is_err(), "{broken}");
    }
}

const NAMES: [&str; 4] = ["a", "B", "bb", "ü"];

/// The properties of a message, or of a rule: values of a few properties, and a label.
fn any_wish() -> impl Strategy<Value = (BTreeMap<usize, i64>, Option<u8>)> {
    (
        btree_map(0..NAMES.len(), 0..3_i64, 0..4),
        proptest::option::of(0..3_u8),
    )
}

fn label_of(label: u8) -> String {
    format!("l{label}")
}

proptest! {
    #[test]
    fn the_index_finds_what_a_look_at_each_rule_would(
        wishes in vec((0..4_u32, any_wish(), any::<bool>()), 0..24),
        removed in vec(any::<prop::sample::Index>(), 0..6),
        (has, label) in any_wish(),
    ) {
        let mut rules = RuleSet::default();
        let mut present = Vec::new();
        for (number, (subscription, wish, upper)) in wishes.into_iter().enumerate() {
            let spelled = |name: &str| if upper { name.to_uppercase() } else { name.to_owned() };
            let properties = wish.0.iter().map(|(&at, &value)| (spelled(NAMES[at]), Scalar::Long(value).into()));
            let fields = CorrelationFields {
                label: wish.1.map(label_of),
                properties: properties.collect(),
                ..CorrelationFields::default()
            };
            if let Ok(filter) = CorrelationFilter::new(fields) {
                let name = number.to_string();
                rules.insert(subscription, rule(&name, Filter::Correlation(filter))).unwrap();
                present.push((subscription, name, wish));
            }
        }
        for index in removed {
            if !present.is_empty() {
                let (subscription, name, _) = present.swap_remove(index.index(present.len()));
                prop_assert!(rules.remove(subscription, &name));
            }
        }
        let mut sent = Sent::default();
        for (&at, &value) in &has {
            sent = sent.property(NAMES[at], value);
        }
        if let Some(label) = label {
            sent = sent.field(Field::Label, &label_of(label));
        }
        let wanted = present.iter().filter(|(_, _, wish)| {
            wish.0.iter().all(|(at, value)| has.get(at) == Some(value)) && (wish.1.is_none() || wish.1 == label)
        });
        let mut expected: Vec<u32> = wanted.map(|(subscription, _, _)| *subscription).collect();
        expected.sort_unstable();
        expected.dedup();
        let found = matches(&rules, &sent.message());
        prop_assert_eq!(found.iter().map(|found| found.subscription).collect::<Vec<_>>(), expected);
        prop_assert!(found.iter().all(|found| found.copies == [None]));
    }
}
