//! Why a filter takes a message, or does not.

use super::*;
use crate::explain::Truth;

fn explained(filter: &Filter, message: &Message) -> Explanation {
    let none = Amendments::default();
    filter.explain(message, &none, &facts(), &mut Share::default())
}

fn sql(text: &str) -> Filter {
    Filter::Sql(SqlFilter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// An explanation in one line: each part with what it is.
fn line(explained: &Explanation) -> String {
    let truth = match &explained.truth {
        Truth::True => "true".to_owned(),
        Truth::False => "false".to_owned(),
        Truth::Unknown => "unknown".to_owned(),
        Truth::Failed(error) => format!("failed ({error})"),
    };
    let parts: Vec<String> = explained.parts.iter().map(line).collect();
    if parts.is_empty() {
        format!("{} is {truth}", explained.text)
    } else {
        format!("{truth} of [{}]", parts.join("; "))
    }
}

#[test]
fn each_part_of_a_condition_is_told() {
    let sent = Sent::default()
        .field(Field::Label, "order")
        .property("color", "red")
        .property("size", 3);
    let message = sent.message();
    let cases = [
        (
            "color = 'red' AND size > 5 AND absent = 1",
            "false of [color = 'red' is true; size > 5 is false; absent = 1 is unknown]",
        ),
        (
            "sys.Label LIKE 'ord%' OR (size IN (1, 2) AND NOT color IS NULL)",
            "true of [sys.Label LIKE 'ord%' is true; false of [size IN (1, 2) is false; \
             true of [color IS NULL is false]]]",
        ),
        ("absent = 1", "absent = 1 is unknown"),
        ("size / 0 = 1", "size / 0 = 1 is failed (division by zero)"),
        (
            "size > 1 AND color = @color",
            "failed (@color has no value: no SDK sends parameters over AMQP) of [size > 1 is true; \
             color = @color is failed (@color has no value: no SDK sends parameters over AMQP)]",
        ),
    ];
    for (text, wanted) in cases {
        let explained = explained(&sql(text), &message);
        assert_eq!(explained.text, text);
        assert_eq!(line(&explained), wanted);
    }
}

#[test]
fn the_properties_that_a_part_reads_are_told_with_their_values() {
    let message = Sent::default().property("size", 3).message();
    let explained = explained(&sql("size + [weird name] > 2"), &message);
    let wanted = [
        ("size".to_owned(), Some(Scalar::Long(3))),
        ("[weird name]".to_owned(), None),
    ];
    assert_eq!(explained.values, wanted);
}

#[test]
fn the_fields_of_a_correlation_filter_are_parts() {
    let fields = CorrelationFields {
        label: Some("order".to_owned()),
        properties: vec![("color".to_owned(), Scalar::Text("red".into()).into())],
        ..CorrelationFields::default()
    };
    let filter = Filter::Correlation(CorrelationFilter::new(fields).unwrap());
    let blue = Sent::default()
        .field(Field::Label, "order")
        .property("color", "blue");
    assert_eq!(
        line(&explained(&filter, &blue.message())),
        "false of [sys.Label = 'order' is true; color = 'red' is false]"
    );
}

/// What an explanation writes is read as the same condition.
#[test]
fn the_text_of_a_part_is_sql() {
    for text in [
        "a = 1 AND (b <> 'it''s' OR NOT (c >= 2.5))",
        "EXISTS(a) AND sys.CorrelationId IS NOT NULL",
        "a NOT IN ('x', 'y') OR a NOT LIKE 'x!%' ESCAPE '!'",
        "(a + 1) * -b % 3 < property('x' + y)",
        "[odd name] = TRUE AND user.a = FALSE",
        "sys.LockToken IS NULL",
    ] {
        let filter = SqlFilter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let written = filter.condition().to_string();
        let again = SqlFilter::parse(&written)
            .unwrap_or_else(|error| panic!("{text}, then {written}: {error}"));
        assert_eq!(again.condition(), filter.condition(), "{written}");
    }
}

#[test]
fn parameters_that_are_not_given_are_found_in_every_part() {
    let text = "(a = @a OR NOT b IN (1, @b)) AND c + @c > -@d AND e LIKE @e ESCAPE @f AND \
                property('x' + @g) IS NULL AND a <> @a AND @given = 1";
    let given = Parameters::from([("@given".to_owned(), Scalar::Long(1).into())]);
    let filter = SqlFilter::parse_with(text, given).unwrap();
    let missing = ["@a", "@b", "@c", "@d", "@e", "@f", "@g"];
    assert_eq!(filter.missing_parameters(), missing);
    let whole = SqlFilter::parse("a = 1 AND EXISTS(b) AND sys.Label = newid()").unwrap();
    assert!(whole.missing_parameters().is_empty());
}
