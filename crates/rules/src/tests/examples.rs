//! Conditions: what they are worth, and what is said about texts that are none.

use super::Truth::{False, True, Unknown};
use super::*;
use crate::limits;

/// 100 ns in a second.
const SECOND: i64 = 10_000_000;

fn order() -> Message {
    let sent = Sent::default()
        .field(Field::MessageId, "m-1")
        .field(Field::Label, "order")
        .field(Field::SessionId, "s")
        .property("color", "blue")
        .property("Quantity", 10)
        .property("price", 2.5)
        .property("urgent", true)
        .property("gift", false)
        .property("nothing", Scalar::Null)
        .property("huge", Scalar::Ulong(u64::MAX))
        .property("percent", "50%_x")
        .property("it's", "quoted")
        .property("http://x/y", "account")
        .property("and", 1)
        .property("größe", 3)
        .property("id", Scalar::Uuid([0x11; 16]))
        .property("blob", Scalar::Opaque([0xa0, 0x01, 0x05][..].into()))
        .property("from", Scalar::Timestamp(100 * SECOND))
        .property("until", Scalar::Timestamp(160 * SECOND))
        .property("name", "color")
        .property("big", i64::MAX);
    sent.message()
}

fn check(cases: &[(&str, Truth)]) {
    let message = order();
    for (text, expected) in cases {
        assert_eq!(truth(text, &message), *expected, "{text}");
    }
}

#[test]
fn logic_has_three_values() {
    check(&[
        ("1=1", True),
        ("1>1", False),
        ("TRUE", True),
        ("false", False),
        ("NULL", Unknown),
        ("missing = 1", Unknown),
        ("missing <> 1", Unknown),
        ("NOT missing = 1", Unknown),
        ("missing = 1 AND 1=1", Unknown),
        ("missing = 1 AND 1=0", False),
        ("1=0 AND missing = 1", False),
        ("missing = 1 OR 1=1", True),
        ("missing = 1 OR 1=0", Unknown),
        ("missing = missing", Unknown),
        ("missing + 1 = 2", Unknown),
        ("missing LIKE 'a%'", Unknown),
        ("color LIKE missing", Unknown),
        ("missing IN ('a')", Unknown),
        ("missing NOT IN ('a')", Unknown),
        ("color IN ('red', missing)", Unknown),
        ("color IN ('blue', missing)", True),
        ("nothing = NULL", Unknown),
        // The first decides; the second has no value.
        ("1=0 AND 1/0 = 1", False),
        ("1=1 OR 1/0 = 1", True),
    ]);
}

#[test]
fn operators_bind_as_tightly_as_they_should() {
    check(&[
        ("1=1 OR 1=1 AND 1=0", True),
        ("(1=1 OR 1=1) AND 1=0", False),
        ("NOT 1=0 AND 1=0", False),
        ("NOT (1=0 AND 1=0)", True),
        ("NOT NOT 1=1", True),
        ("2 + 3 * 4 = 14", True),
        ("(2 + 3) * 4 = 20", True),
        ("10 - 3 - 2 = 5", True),
        ("100 / 10 / 5 = 2", True),
        ("-2 * -3 = 6", True),
        ("- 2 + 3 = 1", True),
        ("2 - -3 = 5", True),
        ("Quantity + 1 > 10 AND price * 2 <= 5", True),
        ("NOT color = 'red' AND urgent", True),
    ]);
}

#[test]
fn numbers_compute_as_in_c_sharp() {
    check(&[
        ("10/3 = 3", True),
        ("-10/3 = -3", True),
        ("10%3 = 1", True),
        ("-10%3 = -1", True),
        ("10/4.0 = 2.5", True),
        ("1.5E1 = 15", True),
        (".5 + 5. = 5.5", True),
        ("1e-2 < 0.011", True),
        ("Quantity = 10.0", True),
        ("price > 2", True),
        ("1/0.0 > 1e308", True),
        ("0.0/0.0 = 0.0/0.0", False),
        ("0.0/0.0 < 1", False),
        ("huge > 9223372036854775807", True),
        ("huge - huge = 0", True),
        ("big = 9223372036854775807", True),
        // Not as doubles, of which both are the same one.
        ("big = 9223372036854775808.0", False),
        ("big < 9223372036854775808.0", True),
        ("-9223372036854775808 < 0", True),
        ("huge < 1e30 AND huge > -1e30", True),
        ("'a' + 'b' = 'ab'", True),
        ("color + '-' + Quantity = 'blue-10'", True),
        ("'' + urgent = 'True'", True),
        ("until - from = until - from", True),
        ("until - (until - from) = from", True),
        ("until - from > from - until", True),
        ("-(until - from) = from - until", True),
    ]);
    let failing = [
        ("Quantity / 0 = 1", "division by zero"),
        ("Quantity % 0 = 1", "division by zero"),
        ("big + 1 = 1", "64 bits"),
        ("big * big * big = 1", "64 bits"),
        ("huge + 1 = 1", "64 bits"),
        ("-9223372036854775808 / -1 = 1", "64 bits"),
        (
            "color * 2 = 1",
            "a text and an integer cannot be computed with '*'",
        ),
        ("urgent + 1 = 1", "a boolean and an integer"),
        ("-color = 1", "a text cannot have a sign"),
        ("-(big - big - big - 1) = 1", "64 bits"),
        ("color", "a text where a condition must be"),
        ("@p = 1", "the parameter @p has no value"),
        ("property(1) = 1", "an integer is no text"),
        ("property('sys.Nope') = 1", "no system property 'Nope'"),
        ("percent LIKE 'a!' ESCAPE '!'", "escape character"),
        ("percent LIKE 'a' ESCAPE color", "one character"),
    ];
    let message = order();
    for (text, problem) in failing {
        let Truth::EvaluationError(failure) = truth(text, &message) else {
            panic!("{text} has a value");
        };
        assert!(failure.contains(problem), "{text}: {failure}");
    }
}

#[test]
fn values_of_unlike_kinds_are_not_equal_and_not_unequal() {
    check(&[
        ("Quantity = '10'", Unknown),
        ("color > 10", Unknown),
        ("color <> 10", Unknown),
        ("urgent = 1", Unknown),
        ("urgent = TRUE", True),
        ("urgent > gift", Unknown),
        ("blob = blob", Unknown),
        ("blob IS NULL", False),
        ("id = id", True),
        ("id < id", Unknown),
        ("id = '11111111-1111-1111-1111-111111111111'", Unknown),
        ("'' + id = '11111111-1111-1111-1111-111111111111'", True),
        ("newid() <> newid()", True),
        ("color = 'Blue'", False),
        ("color < 'c' AND color > 'a'", True),
        ("from < until", True),
        ("from < sys.EnqueuedTimeUtc", True),
    ]);
}

#[test]
fn properties_are_named_in_many_ways() {
    check(&[
        ("COLOR = 'blue'", True),
        ("user.color = 'blue'", True),
        ("USER.[color] = 'blue'", True),
        ("[color] = 'blue'", True),
        ("\"it's\" = 'quoted'", True),
        ("[it's] = 'quoted'", True),
        ("\"http://x/y\" = 'account'", True),
        ("[and] = 1 And [AND] = 1", True),
        ("GRÖSSE = 3", Unknown),
        ("GRÖßE = 3", True),
        ("property('color') = 'blue'", True),
        ("p(name) = 'blue'", True),
        ("P('col' + 'or') = 'blue'", True),
        ("PROPERTY('user.color') = 'blue'", True),
        ("property('sys.label') = 'order'", True),
        ("property(missing) = 1", Unknown),
        ("label = 'order'", Unknown),
        ("sys.label = 'order'", True),
        ("SYS.Subject = 'order'", True),
        ("sys.[Label] = 'order'", True),
        ("sys.MessageId = 'm-1'", True),
        ("sys.CorrelationId = ''", Unknown),
        ("sys.CorrelationId IS NULL", True),
        ("EXISTS(sys.CorrelationId)", False),
        ("EXISTS(sys.SessionId)", True),
        (
            "sys.SequenceNumber = 42 AND sys.EnqueuedSequenceNumber = 42",
            True,
        ),
        ("sys.DeliveryCount = 0", True),
        (
            "sys.TimeToLive = sys.ExpiresAtUtc - sys.EnqueuedTimeUtc",
            True,
        ),
        ("sys.Size > 100 AND sys.Size < 1000", True),
        ("sys.LockToken IS NULL", True),
        ("nothing IS NULL", True),
        ("nothing IS NOT NULL", False),
        ("missing IS NULL", True),
        ("EXISTS(nothing)", True),
        ("EXISTS(missing)", False),
        ("EXISTS(property('color'))", True),
        ("color IS NOT NULL", True),
        ("urgent", True),
        ("NOT gift AND urgent", True),
        ("missing", Unknown),
    ]);
}

#[test]
fn like_and_in() {
    check(&[
        ("color LIKE 'b%'", True),
        ("color LIKE '%ue'", True),
        ("color LIKE '%l%'", True),
        ("color LIKE 'b_u_'", True),
        ("color LIKE 'b_u'", False),
        ("color LIKE 'B%'", False),
        ("color LIKE '%'", True),
        ("color LIKE '%%e'", True),
        ("color LIKE '%e%e'", False),
        ("color LIKE ''", False),
        ("color NOT LIKE 'b%'", False),
        ("'aXbXc' LIKE '%X_'", True),
        ("'aab' LIKE '%ab'", True),
        ("'grün' LIKE 'gr_n'", True),
        ("percent LIKE '50!%!_x' ESCAPE '!'", True),
        ("percent LIKE '50!%!_y' ESCAPE '!'", False),
        ("'50abx' LIKE '50!%!_x' ESCAPE '!'", False),
        ("'a!b' LIKE 'a!!b' ESCAPE '!'", True),
        ("'[a]' LIKE '[a]'", True),
        ("Quantity LIKE '1%'", Unknown),
        ("color IN ('red', 'blue')", True),
        ("color NOT IN ('red', 'blue')", False),
        ("Quantity IN (1, 2 * 5, 3)", True),
        ("Quantity + 1 IN (11)", True),
        ("Quantity NOT IN (1, 2)", True),
        ("NOT color IN ('red')", True),
    ]);
}

#[test]
fn parameters_have_values_of_any_kind() {
    let given = [
        ("@text", Scalar::Text("blue".into())),
        ("@long", Scalar::Long(10)),
        ("@span", Scalar::Duration(60 * SECOND)),
        ("bare", Scalar::Boolean(true)),
        ("@name", Scalar::Text("color".into())),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), Value::from(value)));
    let given = Parameters::from(given);
    let cases = [
        ("color = @text AND Quantity = @LONG", True),
        ("(until - from) <= @span", True),
        ("until - from < @span", False),
        ("@bare", True),
        ("property(@name) = @text", True),
        ("color LIKE @text", True),
    ];
    for (text, expected) in cases {
        assert_eq!(
            truth_with(text, given.clone(), &order()),
            expected,
            "{text}"
        );
    }
}

#[test]
fn what_is_no_condition_is_refused_where_it_goes_wrong() {
    let cases = [
        ("", 1, "found the end"),
        ("color =", 8, "found the end"),
        ("color = AND x", 9, "found the keyword AND"),
        ("color = 'blue", 9, "no closing '"),
        ("[color = 1", 1, "no closing ]"),
        ("größe = §", 9, "'§' has no meaning"),
        ("sys.Nope = 1", 1, "no system property 'Nope'"),
        ("1 = 1 AND a.b = 1", 11, "'a' is no scope"),
        ("set = 1", 1, "found the keyword SET"),
        ("a = 1 b", 7, "found the name b"),
        ("(a = 1", 7, "expected ')'"),
        ("a = 1)", 6, "found ')'"),
        ("a IN ()", 7, "found ')'"),
        ("a IN (1 2)", 9, "expected ',' or ')'"),
        ("a IS 1", 6, "NULL or NOT NULL"),
        ("1 IS NULL", 1, "IS NULL asks about a property"),
        ("EXISTS(1)", 8, "EXISTS asks about a property"),
        ("a = 1 = 2", 7, "a condition is used as a value"),
        ("a = NOT b", 5, "a condition is used as a value"),
        ("a + 1", 1, "a value is used as a condition"),
        ("'a'", 1, "a value is used as a condition"),
        ("a = 1 AND 5", 11, "a value is used as a condition"),
        ("length(a) = 1", 1, "no function length()"),
        ("newid(1) = a", 7, "expected ')'"),
        ("a = 9223372036854775808", 5, "64-bit"),
        ("a = -9223372036854775809", 6, "64-bit"),
        ("a = 99999999999999999999", 5, "64-bit"),
        ("a = 1e", 5, "exponent"),
        ("a = 1x", 5, "a number ends"),
        ("_a = 1", 1, "[_name]"),
        ("a LIKE 'b' ESCAPE 'cc'", 19, "one character"),
        ("a ! b", 3, "no meaning"),
        ("[] = 1", 1, "at least one character"),
        ("@ = 1", 1, "parameter"),
        ("user. = 1", 7, "the name of a property"),
        ("sys.In = 1", 5, "[IN]"),
    ];
    for (text, column, problem) in cases {
        let error = SqlFilter::parse(text).expect_err(text).to_string();
        let place = format!("(character {column}, at ==> in: ");
        assert!(
            error.contains(problem) && error.contains(&place),
            "{text}: {error}"
        );
    }
    let error = SqlFilter::parse("color = 'blue' AND AND size > 3").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a property, a number, a 'text', or '(', found the keyword AND (character 20, at ==> in: color = 'blue' AND ==>AND size > 3)"
    );
}

#[test]
fn texts_have_bounds() {
    let longest = format!("a = '{}'", "ö".repeat(limits::SQL_LENGTH_MAX - 6));
    assert!(SqlFilter::parse(&longest).is_ok());
    let error = SqlFilter::parse(&format!("{longest} ")).unwrap_err();
    assert!(error.to_string().contains("1024 characters"), "{error}");

    let nested = |depth: usize| format!("{}a{} = 1", "(".repeat(depth), ")".repeat(depth));
    assert!(SqlFilter::parse(&nested(limits::SQL_DEPTH_MAX - 1)).is_ok());
    for text in [
        nested(limits::SQL_DEPTH_MAX),
        "NOT ".repeat(200) + "a",
        "-".repeat(900) + "a = 1",
    ] {
        let error = SqlFilter::parse(&text).unwrap_err().to_string();
        assert!(error.contains("nested more than"), "{error}");
    }
    // A long sum is not deep, and is worth what it should.
    let sum = format!("{}1 = 500", "1+".repeat(499));
    assert_eq!(truth(&sum, &order()), True);
    let many = format!("{}a=1", "a=1 OR ".repeat(140));
    assert_eq!(
        truth(&many, &Sent::default().property("a", 2).message()),
        False
    );
}

#[test]
fn what_an_expression_makes_is_bounded() {
    let long = Sent::default().property("a", Scalar::Text("x".repeat(40_000).into()));
    let Truth::EvaluationError(failure) = truth("a + a = a", &long.message()) else {
        panic!("a text of 80,000 characters came of it");
    };
    assert!(failure.contains("longer than"), "{failure}");
    let Truth::EvaluationError(failure) = truth("'a' LIKE a", &long.message()) else {
        panic!("a pattern of 40,000 characters was tried");
    };
    assert!(failure.contains("longer than"), "{failure}");
    let slow = format!("a LIKE '%{}_y%'", "x".repeat(900));
    let Truth::EvaluationError(failure) = truth(&slow, &long.message()) else {
        panic!("a pattern was tried at all of 40,000 places");
    };
    assert!(failure.contains("steps"), "{failure}");
    let literal = format!("a LIKE '%{}y%'", "x".repeat(900));
    assert_eq!(truth(&literal, &long.message()), False);
    assert_eq!(
        truth("a LIKE '%x_x%xxx' AND NOT a LIKE '%y%'", &long.message()),
        True
    );
}

#[test]
fn long_expressions_need_little_of_the_stack() {
    let longest = [
        format!("{}1 = 0", "1-".repeat(500)),
        format!("{}a", "a OR ".repeat(200)),
        format!("{}a=1{}", "NOT (".repeat(30), ")".repeat(30)),
        format!("{}1 = 1", "-".repeat(limits::SQL_DEPTH_MAX - 6)),
    ];
    let work = move || {
        for text in longest {
            let filter = SqlFilter::parse(&text).unwrap();
            let copy = filter.clone();
            assert_eq!(copy, filter);
            truth(&text, &order());
        }
    };
    let thread = std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(work);
    thread.unwrap().join().unwrap();
}

#[test]
fn ids_that_are_no_texts_compare_as_the_sdks_show_them() {
    let sent = Sent {
        fields: vec![
            (Field::MessageId, Scalar::Ulong(u64::MAX)),
            (Field::CorrelationId, Scalar::Uuid([0xab; 16])),
        ],
        ..Sent::default()
    };
    let message = sent.message();
    assert_eq!(
        truth("sys.MessageId = '18446744073709551615'", &message),
        True
    );
    let uuid = "abababab-abab-abab-abab-abababababab";
    assert_eq!(
        truth(&format!("sys.CorrelationId = '{uuid}'"), &message),
        True
    );
    let fields = CorrelationFields {
        correlation_id: Some(uuid.to_owned()),
        ..CorrelationFields::default()
    };
    let mut rules = RuleSet::default();
    rules.insert(1, rule("r", correlation(fields))).unwrap();
    let mut found = Vec::new();
    rules.matches(&message, &facts(), &mut found);
    assert_eq!(found.len(), 1);
}

#[test]
fn annotations_are_system_properties() {
    let text = |value: &str| Scalar::Text(value.to_owned().into());
    let sent = Sent {
        annotations: vec![
            ("x-opt-partition-key".to_owned(), text("p")),
            ("x-opt-via-partition-key".to_owned(), text("v")),
            (
                "x-opt-scheduled-enqueue-time".to_owned(),
                Timestamp::EPOCH.into(),
            ),
        ],
        ..Sent::default()
    };
    let message = sent.message();
    assert_eq!(
        truth(
            "sys.PartitionKey = 'p' AND sys.ViaPartitionKey = 'v'",
            &message
        ),
        True
    );
    let early = "sys.ScheduledEnqueueTimeUtc < sys.EnqueuedTimeUtc";
    assert_eq!(truth(early, &message), True);
}
