//! Round trips: everything that is written here reads back as the same.

use std::borrow::Cow;

use proptest::option;
use proptest::prelude::*;

use super::super::target::{Target, encode};
use super::super::text;
use super::super::write::is_character;
use super::{AdminAnswer, AdminOperation, asked, put};
use jitney_base::address::Address;
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::administration::{
    Counts, CreateRule, EntityView, Properties, RuleView, UpdateEntity,
};
use jitney_message::Scalar;
use jitney_queue::{Description, EntityKind, History, Status};
use jitney_rules::{Action, CorrelationFields, CorrelationFilter, Filter, Rule, SqlFilter, Value};

/// Milliseconds of .NET's longest time span in whole days: what is shorter is told as it is.
const LONGEST: i64 = 10_675_199 * 86_400_000;
/// 9999-12-31, and 0001-01-01, in seconds since 1970.
const YEARS: std::ops::Range<i64> = -62_135_596_800..253_402_300_799;

fn words() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| text.chars().filter(|c| is_character(*c)).collect())
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9\u{e9}%._ -]{1,12}(/[a-z$+~]{1,6}){0,2}"
}

fn millis() -> impl Strategy<Value = Millis> {
    let some = prop_oneof![0..LONGEST, 0..1_000_000_i64].prop_map(Millis::from_millis);
    prop_oneof![some, Just(Millis::MAX)]
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![
        Just(Status::Active),
        Just(Status::Disabled),
        Just(Status::ReceiveDisabled),
        Just(Status::SendDisabled),
    ]
}

fn authorization() -> impl Strategy<Value = AuthorizationRule> {
    let rights = prop_oneof![
        Just(Rights::ALL),
        Just(Rights {
            send: true,
            ..Rights::default()
        }),
        Just(Rights {
            listen: true,
            ..Rights::default()
        }),
        Just(Rights {
            send: true,
            listen: true,
            manage: false
        }),
    ];
    let key = || words().prop_filter("a key", |key| !key.is_empty());
    let time = option::of(YEARS.prop_map(|seconds| Timestamp::from_millis(seconds * 1000)));
    let all = (key(), rights, key(), option::of(key()), time);
    all.prop_map(
        |(name, rights, primary, secondary, time)| AuthorizationRule {
            name,
            rights,
            primary_key: Key::new(primary),
            secondary_key: secondary.map(Key::new),
            created_at: time,
            modified_at: None,
        },
    )
}

fn description(kind: EntityKind) -> impl Strategy<Value = Description> {
    let times = (millis(), millis(), millis(), millis());
    let numbers = (
        any::<u32>(),
        0..1_000_000_u64,
        0..1_000_000_u64,
        any::<u64>(),
    );
    let texts = (option::of(name()), option::of(name()), option::of(words()));
    let rules = prop::collection::vec(authorization(), 0..4);
    (times, numbers, texts, rules, status(), any::<[bool; 8]>()).prop_map(
        move |(times, numbers, texts, authorization, status, flags)| Description {
            kind,
            lock_duration: times.0,
            default_time_to_live: times.1,
            duplicate_window: times.2,
            auto_delete_on_idle: times.3,
            max_delivery_count: numbers.0,
            max_bytes: numbers.1 * 1024 * 1024,
            max_message_bytes: numbers.2 * 1024,
            status,
            dead_letter_on_expiration: flags[0],
            dead_letter_on_filter_error: flags[1],
            requires_session: flags[2],
            detects_duplicates: flags[3],
            partitioned: flags[4],
            batched_operations: flags[5],
            supports_ordering: flags[6],
            express: flags[7],
            forward_to: texts.0,
            forward_to_address: None,
            forward_dead_letters_to: texts.1,
            forward_dead_letters_to_address: None,
            user_metadata: texts.2,
            temporary: false,
            authorization,
            history: History {
                revision: numbers.3,
                ..History::default()
            },
        },
    )
}

fn kind() -> impl Strategy<Value = EntityKind> {
    prop_oneof![
        Just(EntityKind::Queue),
        Just(EntityKind::Topic),
        Just(EntityKind::Subscription),
    ]
}

/// Returns the properties that an entity of a kind has.
fn properties(is: &Description) -> Properties {
    let all = Properties {
        lock_duration: Some(is.lock_duration),
        max_size_megabytes: Some(is.max_bytes / (1024 * 1024)),
        requires_duplicate_detection: Some(is.detects_duplicates),
        requires_session: Some(is.requires_session),
        default_time_to_live: Some(is.default_time_to_live),
        dead_letter_on_expiration: Some(is.dead_letter_on_expiration),
        dead_letter_on_filter_error: None,
        duplicate_window: Some(is.duplicate_window),
        max_delivery_count: Some(is.max_delivery_count),
        batched_operations: Some(is.batched_operations),
        authorization: Some(is.authorization.clone()),
        status: Some(is.status),
        forward_to: is.forward_to.clone(),
        forward_dead_letters_to: is.forward_dead_letters_to.clone(),
        user_metadata: is.user_metadata.clone(),
        supports_ordering: Some(is.supports_ordering),
        auto_delete_on_idle: Some(is.auto_delete_on_idle),
        partitioned: Some(is.partitioned),
        express: Some(is.express),
        max_message_kilobytes: Some(is.max_message_bytes / 1024),
    };
    match is.kind {
        EntityKind::Queue => all,
        EntityKind::Topic => Properties {
            lock_duration: None,
            requires_session: None,
            dead_letter_on_expiration: None,
            max_delivery_count: None,
            forward_to: None,
            forward_dead_letters_to: None,
            ..all
        },
        EntityKind::Subscription => Properties {
            max_size_megabytes: None,
            requires_duplicate_detection: None,
            dead_letter_on_filter_error: Some(is.dead_letter_on_filter_error),
            duplicate_window: None,
            authorization: None,
            supports_ordering: None,
            partitioned: None,
            express: None,
            max_message_kilobytes: None,
            ..all
        },
    }
}

/// Returns the path in a URL, as an attaching client's is read.
fn path_of(url: Option<String>) -> Option<String> {
    let Ok(Address::Entity(entity)) = Address::parse(&url?) else {
        panic!("a URL of an entity")
    };
    Some(entity.path)
}

fn value() -> impl Strategy<Value = Value> {
    let seconds = || YEARS.prop_map(|seconds| seconds * 10_000_000);
    let scalar = prop_oneof![
        any::<bool>().prop_map(Scalar::Boolean),
        prop::num::f64::NORMAL.prop_map(Scalar::Double),
        Just(Scalar::Double(f64::INFINITY)),
        any::<i64>().prop_map(Scalar::Duration),
        any::<i64>().prop_map(Scalar::Long),
        any::<i32>().prop_map(|value| Scalar::Long(value.into())),
        (1_u64 << 63..).prop_map(Scalar::Ulong),
        words().prop_map(|text| Scalar::Text(Cow::Owned(text))),
        (seconds(), 0..10_000_000_i64).prop_map(|(at, ticks)| Scalar::Timestamp(at + ticks)),
        any::<[u8; 16]>().prop_map(Scalar::Uuid),
        Just(Scalar::Null),
    ];
    scalar.prop_map(Value::from)
}

fn values() -> impl Strategy<Value = Vec<(String, Value)>> {
    let name = words().prop_filter("a name", |name| !name.is_empty());
    let values = prop::collection::btree_map(name, value(), 0..6);
    values.prop_map(|values| values.into_iter().collect())
}

fn filter() -> impl Strategy<Value = Filter> {
    let field = || option::of(words().prop_filter("a field", |text| !text.is_empty()));
    let fields = (
        field(),
        field(),
        field(),
        field(),
        field(),
        field(),
        field(),
        values(),
    );
    let correlation = fields.prop_map(|(a, b, c, d, e, f, g, properties)| CorrelationFields {
        correlation_id: a,
        message_id: b,
        to: c,
        reply_to: d,
        label: e,
        session_id: f,
        reply_to_session_id: g,
        content_type: Some("text/plain".to_owned()),
        properties,
    });
    let texts = prop::sample::select(vec!["a<@p AND b>'&'", "1=1", "\"a b\" IN (1, 2,\n3)"]);
    prop_oneof![
        correlation.prop_map(|fields| Filter::Correlation(CorrelationFilter::new(fields).unwrap())),
        (texts, values()).prop_map(|(text, values)| {
            let parameters = values.into_iter().collect();
            Filter::Sql(SqlFilter::parse_with(text, parameters).unwrap())
        }),
        Just(Filter::True),
        Just(Filter::False),
    ]
}

fn action() -> impl Strategy<Value = Option<Action>> {
    option::of(values().prop_map(|values| {
        Action::parse_with("SET a='<'; REMOVE b", values.into_iter().collect()).unwrap()
    }))
}

proptest! {
    #[test]
    fn an_entity_that_is_told_is_the_same_when_it_comes_back(
        (kind, description) in kind().prop_flat_map(|kind| (Just(kind), description(kind))),
    ) {
        let target = match kind {
            EntityKind::Subscription => "/t/Subscriptions/s",
            EntityKind::Queue | EntityKind::Topic => "/t",
        };
        let view = EntityView {
            path: target.trim_start_matches('/').to_owned(),
            description: description.clone(),
            accessed_at: None,
            counts: Counts::default(),
            bytes: 0,
            subscriptions: 0,
            sql_filters: 0,
            correlation_filters: 0,
        };
        let told = asked("GET", target, None).unwrap().render(&AdminAnswer::Entity(Box::new(view)));
        let back = put(target, told.etag.as_deref(), &told.body);
        let Ok(AdminOperation::UpdateEntity(UpdateEntity { kind: back_kind, properties: mut back, revision, .. })) = back
        else {
            return Err(TestCaseError::fail(format!("{back:?}")));
        };
        prop_assert_eq!(revision, Some(description.history.revision));
        prop_assert_eq!(back_kind, kind);
        back.forward_to = path_of(back.forward_to);
        back.forward_dead_letters_to = path_of(back.forward_dead_letters_to);
        prop_assert_eq!(*back, properties(&description));
    }

    #[test]
    fn a_rule_that_is_told_is_the_same_when_it_comes_back(filter in filter(), action in action()) {
        let rule = Rule { name: "r".to_owned(), filter, action, created_at: Timestamp::EPOCH };
        let view = RuleView { subscription: "t/Subscriptions/s".to_owned(), rule: rule.clone() };
        let target = "/t/Subscriptions/s/Rules/r";
        let told = asked("GET", target, None).unwrap().render(&AdminAnswer::Rule(Box::new(view)));
        let expected = AdminOperation::CreateRule(CreateRule {
            subscription: "t/Subscriptions/s".to_owned(),
            rule: Box::new(rule),
        });
        prop_assert_eq!(put(target, None, &told.body), Ok(expected));
    }

    #[test]
    fn a_path_is_the_same_with_its_slashes_encoded_or_not(path in name()) {
        prop_assume!(!path.contains("$/") && !path.starts_with('$'));
        let encoded = encode(&path);
        let expected = Ok(Target::Entity(path));
        prop_assert_eq!(Target::read(&format!("/{encoded}"), None), expected.clone());
        prop_assert_eq!(Target::read(&encoded.replace('/', "%2F"), None), expected);
    }

    #[test]
    fn durations_read_as_they_were_written(ticks in any::<i64>()) {
        let written = jitney_base::time::ticks_as_duration(ticks.into());
        prop_assert_eq!(text::parse_ticks(&written), Some(ticks.into()));
    }

    #[test]
    fn times_are_written_to_the_millisecond(seconds in YEARS, millis in 0..1000_i64) {
        let at = Timestamp::from_millis(seconds * 1000 + millis);
        let written = text::time(at);
        prop_assert!(written.ends_with('Z') && written.len() <= 24, "{}", written);
        prop_assert_eq!(text::parse_time(&written), Some(at.as_millis() * 10_000));
    }
}
