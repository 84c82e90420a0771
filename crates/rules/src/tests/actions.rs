//! The effects of actions.

use super::*;
use crate::limits;
use jitney_base::time::{Millis, Timestamp};
use jitney_message::Setting;

fn sent() -> Sent {
    Sent::default()
        .field(Field::Label, "order")
        .field(Field::SessionId, "s")
        .property("priority", "low")
        .property("count", Scalar::Opaque([0x71, 0, 0, 0, 9][..].into()))
        .property("single", Scalar::Opaque([0x72, 0x3f, 0, 0, 0][..].into()))
        .property("Note", "a")
}

fn applied(action: &str, message: &Message) -> Result<Amendments, String> {
    let action = Action::parse(action).unwrap_or_else(|error| panic!("{action}: {error}"));
    let changed = Amendments::default();
    let facts = facts();
    let random = RefCell::new(Random::new(1));
    let meter = Meter::default();
    meter.begin(limits::FILTER_STEPS_MAX);
    let view = View {
        message,
        changed: &changed,
        facts: &facts,
        random: &random,
        meter: &meter,
    };
    action.apply(&view).map_err(|failure| failure.to_string())
}

#[test]
fn user_properties_are_set_and_removed() {
    let long = |value: i64| [&[0x81][..], &value.to_be_bytes()].concat();
    let text = |value: &str| encoded(&Scalar::Text(value.to_owned().into()));
    // The action; the name that is looked up; its spelling and value afterwards.
    let cases = [
        (
            "SET Priority = 'high'",
            "priority",
            Some(("priority", text("high"))),
        ),
        ("SET [New One] = 5", "new one", Some(("New One", long(5)))),
        ("SET user.x = 1 SET x = x + 1", "x", Some(("x", long(2)))),
        ("set X = 1; set x = x + 1;", "x", Some(("X", long(2)))),
        ("SET a = 1, SET b = a", "b", Some(("b", long(1)))),
        ("REMOVE NOTE", "note", None),
        ("REMOVE nothing", "nothing", None),
        ("SET x = 1; REMOVE X", "x", None),
        (
            "REMOVE note; SET note = 'b'",
            "note",
            Some(("note", text("b"))),
        ),
        ("SET note = missing", "note", Some(("Note", vec![0x40]))),
        // Types stay what they are where that is possible.
        (
            "SET count = count + 1",
            "count",
            Some(("count", vec![0x71, 0, 0, 0, 10])),
        ),
        (
            "SET count = 4294967296",
            "count",
            Some(("count", long(1 << 32))),
        ),
        ("SET count = 'many'", "count", Some(("count", text("many")))),
        (
            "SET copy = count",
            "copy",
            Some(("copy", vec![0x71, 0, 0, 0, 9])),
        ),
        (
            "SET single = single * 3",
            "single",
            Some(("single", vec![0x72, 0x3f, 0xc0, 0, 0])),
        ),
        (
            "SET single = 2",
            "single",
            Some(("single", vec![0x72, 0x40, 0, 0, 0])),
        ),
        (
            "SET CorrelationId = 'user''s'",
            "correlationid",
            Some(("CorrelationId", text("user's"))),
        ),
    ];
    let message = sent().message();
    for (action, name, expected) in cases {
        let changes = applied(action, &message).unwrap();
        let found = changes.property_of(&message, name);
        let expected = expected.as_ref().map(|(name, value)| (*name, &value[..]));
        assert_eq!(found, expected, "{action}");
        assert_eq!(changes.field(Field::CorrelationId), None, "{action}");
    }
}

#[test]
fn all_spellings_of_a_property_are_removed() {
    let message = Sent::default().property("a", 1).property("A", 2).message();
    let changes = applied("REMOVE a", &message).unwrap();
    assert_eq!(changes.property_of(&message, "a"), None);
}

#[test]
fn system_properties_are_set_and_removed() {
    let message = sent().message();
    let read = |action: &str, field| {
        let changes = applied(action, &message).unwrap();
        let value = changes.field_of(&message, field);
        value.map(|value| Scalar::decode(value).into_owned())
    };
    let text = |text: &str| Some(Scalar::Text(text.to_owned().into()));
    assert_eq!(read("SET sys.Label = 'GREEN'", Field::Label), text("GREEN"));
    assert_eq!(
        read("SET sys.subject = sys.Label + '!'", Field::Label),
        text("order!")
    );
    assert_eq!(read("SET sys.MessageId = 5", Field::MessageId), text("5"));
    assert_eq!(read("SET sys.To = priority", Field::To), text("low"));
    assert_eq!(read("REMOVE sys.Label", Field::Label), None);
    assert_eq!(read("SET sys.Label = NULL", Field::Label), None);
    assert_eq!(
        read(
            "SET sys.ScheduledEnqueueTimeUtc = sys.EnqueuedTimeUtc",
            Field::Label
        ),
        text("order")
    );
    let changes = applied("SET sys.SessionId = 'other'", &message).unwrap();
    assert_eq!(changes.group_id(), Some("other"));
    assert_eq!(changes.time_to_live(), None);
    assert_eq!(applied("SET a = 1", &message).unwrap().group_id(), None);
}

#[test]
fn times_and_keys_are_set_and_removed() {
    let message = sent().message();
    let life = |action: &str| applied(action, &message).unwrap().time_to_live();
    let millis = |millis| Some(Millis::from_millis(millis));
    // The documentation's example.
    assert_eq!(life("SET sys.TimeToLive = '0:2:0'"), millis(120_000));
    assert_eq!(
        life("SET sys.TimeToLive = '1.02:03:04.5'"),
        millis(93_784_500)
    );
    assert_eq!(
        life("SET sys.TimeToLive = sys.ExpiresAtUtc - sys.EnqueuedTimeUtc"),
        life("SET sys.TimeToLive = sys.TimeToLive")
    );
    assert_eq!(life("REMOVE sys.TimeToLive"), Some(Millis::MAX));
    for wrong in [
        "'2 minutes'",
        "'0:60:0'",
        "'-0:1:0'",
        "5",
        "'0:0:0.12345678'",
    ] {
        let why = applied(&format!("SET sys.TimeToLive = {wrong}"), &message).unwrap_err();
        assert!(why.contains("a span of time"), "{wrong}: {why}");
    }
    let due = |action: &str| applied(action, &message).unwrap().scheduled_enqueue_time();
    let at = due("SET sys.ScheduledEnqueueTimeUtc = '2030-01-31T12:00:00Z'");
    assert_eq!(at.map(Timestamp::as_millis), Some(1_896_091_200_000));
    assert_eq!(due("REMOVE sys.ScheduledEnqueueTimeUtc"), None);
    let both = "SET sys.PartitionKey = 'p'; SET sys.ViaPartitionKey = sys.PartitionKey + '!'";
    let changes = applied(both, &message).unwrap();
    let text = |setting| changes.setting(setting).map(Scalar::decode);
    assert_eq!(text(Setting::PartitionKey), Some(Scalar::Text("p".into())));
    assert_eq!(
        text(Setting::ViaPartitionKey),
        Some(Scalar::Text("p!".into()))
    );
    let kept = Amendments::decode(&changes.encode()).unwrap();
    assert_eq!(kept, changes);
}

#[test]
fn an_action_that_cannot_be_done_says_why() {
    let message = sent().message();
    let long = "x".repeat(limits::MESSAGE_ID_LENGTH_MAX + 1);
    let doubling = "SET priority = priority + priority;".repeat(20);
    let cases = [
        (
            format!("SET sys.SessionId = '{long}'"),
            "group-id is longer than 128 characters",
        ),
        (
            "SET sys.To = sys.EnqueuedTimeUtc".to_owned(),
            "a time is no text",
        ),
        ("SET a = 1 / 0".to_owned(), "division by zero"),
        ("SET a = @p".to_owned(), "the parameter @p has no value"),
        (doubling, "longer than"),
    ];
    for (action, problem) in cases {
        let failure = applied(&action, &message).expect_err(&action);
        assert!(failure.contains(problem), "{action}: {failure}");
    }
    let big = Sent::default().property("a", Scalar::Text("x".repeat(40_000).into()));
    let failure = applied("SET b = a SET c = a", &big.message()).unwrap_err();
    assert!(
        failure.contains("the property that the action sets is longer"),
        "{failure}"
    );
}

#[test]
fn what_is_no_action_is_refused_where_it_goes_wrong() {
    let cases = [
        ("", 1, "expected SET or REMOVE, found the end"),
        ("a = 1", 1, "expected SET or REMOVE, found the name a"),
        ("SET a", 6, "expected '='"),
        ("SET a = ", 9, "found the end"),
        ("SET a = 1 b = 2", 11, "found the name b"),
        ("SET a = 1; b", 12, "expected SET or REMOVE"),
        ("SET a = b = c", 11, "found '='"),
        ("SET a = NOT b", 9, "a condition is used as a value"),
        (
            "SET sys.SequenceNumber = 1",
            5,
            "cannot change this property",
        ),
        ("SET sys.Nope = 1", 5, "no system property 'Nope'"),
        ("REMOVE sys.LockToken", 8, "cannot change this property"),
        ("REMOVE 'a'", 8, "the name of a property"),
    ];
    for (text, column, problem) in cases {
        let error = Action::parse(text).expect_err(text).to_string();
        let place = format!("(character {column}, at ==> in: ");
        assert!(
            error.contains(problem) && error.contains(&place),
            "{text}: {error}"
        );
    }
    let most = "REMOVE a ".repeat(limits::SQL_STATEMENTS_MAX);
    assert!(Action::parse(&most).is_ok());
    let error = Action::parse(&(most + "REMOVE a")).unwrap_err();
    assert!(error.to_string().contains("32 statements"), "{error}");
}

#[test]
fn parameters_are_values_of_actions_too() {
    let given = Parameters::from([("@p".to_owned(), Scalar::Long(5).into())]);
    let action = Action::parse_with("SET a = @p * 2", given).unwrap();
    let message = sent().message();
    let mut rules = RuleSet::default();
    let rule = Rule {
        action: Some(action),
        ..rule("r", Filter::True)
    };
    rules.insert(1, rule).unwrap();
    let mut out = Vec::new();
    rules.matches(&message, &facts(), &mut out);
    let changes = out[0].copies[0].as_ref().unwrap();
    let (_, value) = changes.property_of(&message, "a").unwrap();
    assert_eq!(Scalar::decode(value), Scalar::Long(10));
}
