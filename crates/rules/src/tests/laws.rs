//! Laws that hold for all conditions, and that no text makes the parser fall.

use proptest::prelude::*;

use super::*;

/// A value, as a text of the language.
fn any_operand() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-3..4_i64).prop_map(|value| value.to_string()),
        (-3..4_i64).prop_map(|value| format!("{value}.5")),
        "[ab%_]{0,3}".prop_map(|text| format!("'{text}'")),
        prop::sample::select(vec![
            "a",
            "b",
            "[text]",
            "missing",
            "NULL",
            "TRUE",
            "yes",
            "sys.Label"
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        (
            inner.clone(),
            prop::sample::select(vec!["+", "-", "*"]),
            inner,
        )
            .prop_map(|(a, operator, b)| format!("({a} {operator} {b})"))
    })
}

fn any_condition() -> impl Strategy<Value = String> {
    let comparison = prop::sample::select(vec!["=", "<>", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (any_operand(), comparison, any_operand())
            .prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
        Just("yes".to_owned()),
        Just("missing IS NULL".to_owned()),
        Just("EXISTS(a)".to_owned()),
        (any_operand(), "[ab%_]{0,3}").prop_map(|(a, pattern)| format!("{a} LIKE '{pattern}'")),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("NOT ({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) AND ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) OR ({b})")),
        ]
    })
}

fn message() -> Message {
    Sent::default()
        .field(Field::Label, "ab")
        .property("a", 1)
        .property("b", 2.5)
        .property("text", "ab")
        .property("yes", true)
        .message()
}

/// Failures are alike: which of two comes first is no law.
fn worth(text: &str) -> Truth {
    match truth(text, &message()) {
        Truth::EvaluationError(_) => Truth::EvaluationError(String::new()),
        other => other,
    }
}

/// Words of the language and others, in no order.
fn any_soup() -> impl Strategy<Value = String> {
    let words = vec![
        "AND",
        "OR",
        "NOT",
        "IN",
        "LIKE",
        "ESCAPE",
        "IS",
        "NULL",
        "EXISTS",
        "TRUE",
        "SET",
        "REMOVE",
        "(",
        ")",
        ",",
        ";",
        ".",
        "=",
        "<>",
        "!=",
        "<",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "a",
        "sys",
        "user",
        "sys.Label",
        "[x y]",
        "\"q\"",
        "'t'",
        "'",
        "[",
        "\"",
        "@p",
        "@",
        "1",
        "2.5",
        "1e9",
        "9223372036854775808",
        "newid",
        "newid()",
        "property",
        "p(",
        "ä",
        "_",
        "💥",
        "\u{0}",
    ];
    let word = prop_oneof![8 => prop::sample::select(words).prop_map(str::to_owned), 1 => ".{0,4}"];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn two_negations_are_none(a in any_condition()) {
        prop_assert_eq!(worth(&format!("NOT (NOT ({a}))")), worth(&a));
    }

    #[test]
    fn conditions_follow_de_morgan(a in any_condition(), b in any_condition()) {
        prop_assert_eq!(worth(&format!("NOT (({a}) AND ({b}))")), worth(&format!("NOT ({a}) OR NOT ({b})")));
        prop_assert_eq!(worth(&format!("NOT (({a}) OR ({b}))")), worth(&format!("NOT ({a}) AND NOT ({b})")));
    }

    #[test]
    fn in_is_equal_to_one_or_another(
        a in any_operand(),
        items in proptest::collection::vec(any_operand(), 1..4),
    ) {
        let equals: Vec<String> = items.iter().map(|item| format!("{a} = {item}")).collect();
        let list = items.join(", ");
        prop_assert_eq!(worth(&format!("{a} IN ({list})")), worth(&equals.join(" OR ")));
        prop_assert_eq!(worth(&format!("{a} NOT IN ({list})")), worth(&format!("NOT ({a} IN ({list}))")));
    }

    #[test]
    fn like_without_wildcards_is_equal(a in "[abc]{0,3}", b in "[abc]{0,3}") {
        prop_assert_eq!(worth(&format!("'{a}' LIKE '{b}'")), worth(&format!("'{a}' = '{b}'")));
    }

    #[test]
    fn like_finds_what_a_slower_way_finds(text in "[ab]{0,8}", pattern in "[ab%_]{0,8}") {
        fn slowly(text: &[u8], pattern: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'%', rest)) => (0..=text.len()).any(|at| slowly(&text[at..], rest)),
                Some((b'_', rest)) => !text.is_empty() && slowly(&text[1..], rest),
                Some((wanted, rest)) => text.first() == Some(wanted) && slowly(&text[1..], rest),
            }
        }
        let expected = if slowly(text.as_bytes(), pattern.as_bytes()) { Truth::True } else { Truth::False };
        prop_assert_eq!(worth(&format!("'{text}' LIKE '{pattern}'")), expected);
    }

    #[test]
    fn orders_agree(a in any_operand(), b in any_operand()) {
        prop_assert_eq!(worth(&format!("{a} < {b}")), worth(&format!("{b} > {a}")));
        prop_assert_eq!(worth(&format!("NOT {a} < {b}")), worth(&format!("{a} >= {b}")));
        prop_assert_eq!(worth(&format!("NOT {a} = {b}")), worth(&format!("{a} <> {b}")));
        prop_assert_eq!(worth(&format!("{a} <> {b}")), worth(&format!("{a} != {b}")));
    }

    #[test]
    fn keywords_and_spaces_may_be_written_otherwise(a in any_condition()) {
        let other = a.replace(" AND ", "\n\taNd ").replace("NOT ", "not  ").replace(" OR ", " Or ");
        let other = other.replace(" LIKE ", " liKe ").replace("IS NULL", "is null").replace("TRUE", "True");
        prop_assert_eq!(worth(&other), worth(&a));
    }

    #[test]
    fn integers_divide_with_a_remainder(a in any::<i64>(), b in any::<i64>()) {
        prop_assume!(b != 0 && (a, b) != (i64::MIN, -1));
        let (quotient, remainder) = (a / b, a % b);
        let text = format!("{a} / {b} = {quotient} AND {a} % {b} = {remainder}");
        prop_assert_eq!(worth(&text), Truth::True);
    }

    #[test]
    fn no_text_makes_the_parser_fall(text in prop_oneof![any_soup(), ".{0,60}"]) {
        if let Err(error) = SqlFilter::parse(&text) {
            prop_assert!(error.to_string().contains("==>"));
        }
        let filter = SqlFilter::parse(&text);
        if filter.is_ok() {
            // It is evaluated without a panic, too.
            worth(&text);
        }
        if let Ok(action) = Action::parse(&text) {
            let mut rules = RuleSet::default();
            rules.insert(1, Rule { action: Some(action), ..rule("r", Filter::True) }).unwrap();
            let mut out = Vec::new();
            rules.matches(&message(), &facts(), &mut out);
            prop_assert_eq!(out.len(), 1);
        }
    }
}
