//! Requests as the official clients wrote them, byte for byte, and what they ask for.

use std::borrow::Cow;

use super::super::AdminError;
use super::{AdminAnswer, AdminOperation, asked, entry, operation, put};
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::administration::{
    CreateEntity, CreateRule, CreateSubscription, DeleteEntity, DeleteRule, ListEntities,
    ListRules, Listed, Properties, ReadEntity, ReadNamespace, ReadRule, RuleView, UpdateEntity,
    UpdateRule,
};
use jitney_message::Scalar;
use jitney_queue::{EntityKind, Status};
use jitney_rules::{
    Action, CorrelationFields, CorrelationFilter, Filter, Given, Rule, SqlFilter, Value,
};

/// 2020-07-05T11:12:13Z in 100 ns since 1970.
const THAT_DAY: i64 = 1_593_947_533 * 10_000_000;
const SECOND: i64 = 10_000_000;

/// Returns the operation of a recorded request.
fn recorded(request: &str) -> AdminOperation {
    let (head, body) = request.split_once("\n\n").unwrap();
    let mut lines = head.lines();
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let if_match = lines
        .next()
        .and_then(|line| line.strip_prefix("If-Match: "));
    let asked = asked(method, target, if_match).unwrap();
    asked.operation(body.as_bytes()).unwrap()
}

macro_rules! recorded {
    ($name:literal) => {
        recorded(include_str!(concat!("requests/", $name, ".txt")))
    };
}

fn text(text: &str) -> Value {
    Scalar::Text(Cow::Owned(text.to_owned())).into()
}

/// A value that was written otherwise than it would be by itself.
fn xml(scalar: Scalar<'static>, class: &str, text: &str) -> Value {
    let (class, text) = (class.to_owned(), text.to_owned());
    Value::given(scalar, Given::Xml { class, text })
}

fn named(values: &[(&str, Value)]) -> Vec<(String, Value)> {
    let values = values.iter();
    values
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

fn sql(expression: &str, parameters: &[(&str, Value)]) -> Filter {
    let parameters = named(parameters).into_iter().collect();
    Filter::Sql(SqlFilter::parse_with(expression, parameters).unwrap())
}

fn correlation(fields: CorrelationFields) -> Filter {
    Filter::Correlation(CorrelationFilter::new(fields).unwrap())
}

fn action(statements: &str, parameters: &[(&str, Value)]) -> Action {
    Action::parse_with(statements, named(parameters).into_iter().collect()).unwrap()
}

fn rule(name: &str, filter: Filter, action: Option<Action>) -> Box<Rule> {
    Box::new(Rule {
        name: name.to_owned(),
        filter,
        action,
        created_at: Timestamp::EPOCH,
    })
}

fn authorization(name: &str, rights: Rights, keys: (&str, Option<&str>)) -> AuthorizationRule {
    AuthorizationRule {
        name: name.to_owned(),
        rights,
        primary_key: Key::new(keys.0.to_owned()),
        secondary_key: keys.1.map(|key| Key::new(key.to_owned())),
        created_at: None,
        modified_at: None,
    }
}

fn url(path: &str) -> String {
    format!("sb://localhost:9443/{path}")
}

const LISTEN: Rights = Rights {
    send: false,
    listen: true,
    manage: false,
};

#[test]
fn python_makes_a_queue() {
    let expected = AdminOperation::CreateEntity(CreateEntity {
        path: "full/\u{e4} b&<>".to_owned(),
        is_topic: false,
        properties: Box::new(Properties {
            lock_duration: Some(Millis::from_millis(13_500)),
            max_size_megabytes: Some(2048),
            requires_duplicate_detection: Some(true),
            requires_session: Some(true),
            default_time_to_live: Some(Millis::from_secs(169 * 3600)),
            dead_letter_on_expiration: Some(true),
            duplicate_window: Some(Millis::from_secs(660)),
            max_delivery_count: Some(14),
            batched_operations: Some(false),
            authorization: Some(vec![
                authorization("k1", Rights::ALL, ("pk=", Some("sk="))),
                authorization("k2", LISTEN, ("pk2=", None)),
            ]),
            status: Some(Status::ReceiveDisabled),
            forward_to: Some(url("q1")),
            forward_dead_letters_to: Some(url("q2")),
            user_metadata: Some("a <&> \n\t\"'".to_owned()),
            auto_delete_on_idle: Some(Millis::from_secs(241 * 3600)),
            partitioned: Some(true),
            express: Some(true),
            max_message_kilobytes: Some(2000),
            ..Properties::default()
        }),
    });
    assert_eq!(recorded!("python-queue-create"), expected);
}

#[test]
fn python_gives_back_what_it_was_told_of_a_queue() {
    let AdminOperation::UpdateEntity(UpdateEntity {
        path,
        kind,
        properties,
        revision,
    }) = recorded!("python-queue-update")
    else {
        panic!("it is an update")
    };
    assert_eq!((path.as_str(), kind), ("q1", EntityKind::Queue));
    assert_eq!(revision, None);
    // It rounds the longest of time spans, and takes some off again.
    assert_eq!(properties.default_time_to_live, Some(Millis::MAX));
    assert_eq!(properties.auto_delete_on_idle, Some(Millis::MAX));
    assert_eq!(properties.status, Some(Status::Active));
    assert_eq!(properties.forward_to, None);
}

#[test]
fn python_makes_a_topic_and_changes_a_subscription() {
    let expected = AdminOperation::CreateEntity(CreateEntity {
        path: "t/1".to_owned(),
        is_topic: true,
        properties: Box::default(),
    });
    assert_eq!(recorded!("python-topic-create"), expected);
    let AdminOperation::UpdateEntity(UpdateEntity {
        path,
        kind,
        properties,
        ..
    }) = recorded!("python-subscription-update")
    else {
        panic!("it is an update")
    };
    assert_eq!(path, "t/1/Subscriptions/s1");
    assert_eq!(kind, EntityKind::Subscription);
    assert_eq!(properties.lock_duration, Some(Millis::from_secs(44)));
    assert_eq!(properties.dead_letter_on_filter_error, Some(true));
}

/// Values of each type that Python has.
fn python_values(prefix: &str) -> Vec<(String, Value)> {
    let that_day = || Scalar::Timestamp(THAT_DAY);
    let values = [
        ("p", Scalar::Long(5).into()),
        ("q", Scalar::Long(1 << 40).into()),
        ("s", text("a<b")),
        ("b", Scalar::Boolean(true).into()),
        ("d", Scalar::Double(1.5).into()),
        ("t", xml(that_day(), "dateTime", "2020-07-05T11:12:13")),
        ("x", Scalar::Duration(86_405 * SECOND).into()),
        ("n", Scalar::Long(-7).into()),
        (
            "t2",
            xml(that_day(), "dateTime", "2020-07-05T11:12:13+00:00"),
        ),
    ];
    let values = values.into_iter();
    values
        .map(|(name, value)| (format!("{prefix}{name}"), value))
        .collect()
}

#[test]
fn python_makes_rules_with_values_of_each_type() {
    let parameters = python_values("@").into_iter().collect();
    let filter = Filter::Sql(SqlFilter::parse_with("a=@p", parameters).unwrap());
    let expected = AdminOperation::CreateRule(CreateRule {
        subscription: "t/1/Subscriptions/s1".to_owned(),
        rule: rule("r1", filter, Some(action("SET x=@s", &[("@s", text("y"))]))),
    });
    assert_eq!(recorded!("python-rule-sql"), expected);

    let some = |text: &str| Some(text.to_owned());
    let fields = CorrelationFields {
        correlation_id: some("c"),
        message_id: some("m"),
        to: some("t"),
        reply_to: some("r"),
        label: some("l"),
        session_id: some("s"),
        reply_to_session_id: some("rs"),
        content_type: some("ct"),
        properties: python_values(""),
    };
    let expected = AdminOperation::CreateRule(CreateRule {
        subscription: "t/1/Subscriptions/s1".to_owned(),
        rule: rule("r2", correlation(fields), None),
    });
    assert_eq!(recorded!("python-rule-correlation"), expected);

    let expected = AdminOperation::CreateRule(CreateRule {
        subscription: "t/1/Subscriptions/s1".to_owned(),
        rule: rule("r4", Filter::False, None),
    });
    assert_eq!(recorded!("python-rule-false"), expected);
}

#[test]
fn javascript_makes_a_queue_and_changes_a_topic() {
    let expected = AdminOperation::CreateEntity(CreateEntity {
        path: "a/b c".to_owned(),
        is_topic: false,
        properties: Box::new(Properties {
            lock_duration: Some(Millis::from_secs(45)),
            max_size_megabytes: Some(16_384),
            requires_duplicate_detection: Some(true),
            requires_session: Some(true),
            default_time_to_live: Some(Millis::from_secs(48 * 3600)),
            dead_letter_on_expiration: Some(true),
            duplicate_window: Some(Millis::from_secs(60)),
            max_delivery_count: Some(8),
            batched_operations: Some(false),
            authorization: Some(vec![
                authorization("all", Rights::ALL, ("pk", Some("sk"))),
                authorization("l", LISTEN, ("pk3", Some("sk4"))),
            ]),
            status: Some(Status::SendDisabled),
            forward_to: Some(url("jq1")),
            forward_dead_letters_to: Some(url("jq2")),
            user_metadata: Some("x<&>".to_owned()),
            auto_delete_on_idle: Some(Millis::from_secs(3600)),
            partitioned: Some(true),
            express: Some(false),
            ..Properties::default()
        }),
    });
    assert_eq!(recorded!("javascript-queue-create"), expected);
    let AdminOperation::UpdateEntity(UpdateEntity {
        kind, properties, ..
    }) = recorded!("javascript-topic-update")
    else {
        panic!("it is an update")
    };
    assert_eq!(kind, EntityKind::Topic);
    assert_eq!(properties.supports_ordering, Some(true));
    assert_eq!(properties.default_time_to_live, Some(Millis::MAX));
}

#[test]
fn javascript_makes_a_subscription_with_its_first_rule() {
    let fields = CorrelationFields {
        label: Some("eu".to_owned()),
        properties: named(&[
            ("n", xml(Scalar::Double(5.0), "double", "5")),
            ("s", text("x")),
            ("b", Scalar::Boolean(true).into()),
            (
                "d",
                xml(Scalar::Timestamp(0), "dateTime", "1970-01-01T00:00:00.000Z"),
            ),
        ]),
        ..CorrelationFields::default()
    };
    let action = action(
        "SET a=@b",
        &[("@b", xml(Scalar::Double(2.0), "double", "2"))],
    );
    let expected = AdminOperation::CreateSubscription(CreateSubscription {
        path: "jt/Subscriptions/s2".to_owned(),
        properties: Box::new(Properties {
            lock_duration: Some(Millis::from_secs(10)),
            forward_to: Some(url("jq1")),
            ..Properties::default()
        }),
        rule: Some(rule("first", correlation(fields), Some(action))),
    });
    assert_eq!(recorded!("javascript-subscription-create"), expected);

    let filter = sql(
        "a=@p and b='<x>'",
        &[
            ("@p", xml(Scalar::Double(5.0), "double", "5")),
            ("@q", Scalar::Double(1.5).into()),
            ("@s", text("t ")),
            ("@b", Scalar::Boolean(false).into()),
            (
                "@d",
                xml(
                    Scalar::Timestamp(1_600_000_000 * SECOND),
                    "dateTime",
                    "2020-09-13T12:26:40.000Z",
                ),
            ),
        ],
    );
    let expected = AdminOperation::CreateRule(CreateRule {
        subscription: "jt/Subscriptions/s1".to_owned(),
        rule: rule("r1", filter, Some(self::action("SET x=1", &[]))),
    });
    assert_eq!(recorded!("javascript-rule-sql"), expected);
}

#[test]
fn go_makes_a_queue_and_a_subscription_with_its_first_rule() {
    let AdminOperation::CreateEntity(CreateEntity {
        path, properties, ..
    }) = recorded!("go-queue-create")
    else {
        panic!("it makes an entity")
    };
    assert_eq!(path, "gq/1");
    assert_eq!(properties.max_message_kilobytes, Some(2048));
    let at = Some(Timestamp::from_millis(1_795_263_947_309));
    let rule_of_key = AuthorizationRule {
        created_at: at,
        modified_at: at,
        ..authorization("k", Rights::ALL, ("pk", Some("sk")))
    };
    assert_eq!(properties.authorization, Some(vec![rule_of_key]));

    let filter = sql(
        "a=@a",
        &[
            ("@a", Scalar::Long(5).into()),
            ("@b", Scalar::Long(7).into()),
            ("@c", text("x")),
            ("@d", Scalar::Boolean(true).into()),
            ("@e", xml(Scalar::Double(1.5), "double", "1.500000")),
            (
                "@f",
                Scalar::Timestamp(1_600_000_000 * SECOND + SECOND / 2).into(),
            ),
        ],
    );
    let action = action("SET a=@x", &[("@x", Scalar::Long(1).into())]);
    let expected = AdminOperation::CreateSubscription(CreateSubscription {
        path: "gt/Subscriptions/gs".to_owned(),
        properties: Box::new(Properties {
            forward_to: Some(url("gx1")),
            ..Properties::default()
        }),
        rule: Some(rule("dr", filter, Some(action))),
    });
    assert_eq!(recorded!("go-subscription-create"), expected);
    let expected = AdminOperation::CreateRule(CreateRule {
        subscription: "gt/Subscriptions/gs".to_owned(),
        rule: rule("r3", Filter::True, None),
    });
    assert_eq!(recorded!("go-rule-create"), expected);
}

#[test]
fn java_makes_and_changes_entities() {
    let AdminOperation::CreateEntity(CreateEntity {
        path, properties, ..
    }) = recorded!("java-queue-create")
    else {
        panic!("it makes an entity")
    };
    assert_eq!(path, "javaq/1");
    let days = Millis::from_secs(400 * 86_400);
    assert_eq!(properties.default_time_to_live, Some(days));
    assert_eq!(
        properties.auto_delete_on_idle,
        Some(Millis::from_secs(18_000))
    );

    let AdminOperation::UpdateEntity(UpdateEntity { properties, .. }) =
        recorded!("java-queue-update")
    else {
        panic!("it is an update")
    };
    // The URL that it was given, with one of its own before it.
    assert_eq!(properties.forward_dead_letters_to, Some(url("q1")));
    let rights = Rights {
        send: true,
        ..LISTEN
    };
    let rules = vec![authorization("k", rights, ("pk", Some("sk")))];
    assert_eq!(properties.authorization, Some(rules));

    let AdminOperation::UpdateEntity(UpdateEntity {
        kind, properties, ..
    }) = recorded!("java-topic-update")
    else {
        panic!("it is an update")
    };
    assert_eq!(kind, EntityKind::Topic);
    assert_eq!(properties.auto_delete_on_idle, Some(Millis::MAX));
    assert_eq!(properties.user_metadata.as_deref(), Some("z"));
}

#[test]
fn java_makes_a_subscription_and_a_rule() {
    let AdminOperation::CreateSubscription(CreateSubscription { rule: first, .. }) =
        recorded!("java-subscription-create")
    else {
        panic!("it makes a subscription")
    };
    let expected = rule("first", sql("a=1", &[]), Some(action("SET b=1", &[])));
    assert_eq!(first, Some(expected));
    let fields = CorrelationFields {
        to: Some("t".to_owned()),
        label: Some("l".to_owned()),
        properties: named(&[("a", text("b"))]),
        ..CorrelationFields::default()
    };
    let expected = AdminOperation::CreateRule(CreateRule {
        subscription: "javat/Subscriptions/s1".to_owned(),
        rule: rule("r2", correlation(fields), None),
    });
    assert_eq!(recorded!("java-rule-correlation"), expected);
}

#[test]
fn what_is_around_names_has_no_case_and_any_encoding() {
    let read = |path: &str| {
        AdminOperation::ReadEntity(ReadEntity {
            path: path.to_owned(),
        })
    };
    let check = |target: &str, expected: &AdminOperation| {
        assert_eq!(operation("GET", target).as_ref(), Ok(expected), "{target}");
    };
    check("/q", &read("q"));
    check("/q/1/", &read("q/1"));
    check("/q%2F1?api-version=2017-04&enrich=True", &read("q/1"));
    check("/caf%C3%A9?api-version=2099-01-preview", &read("caf\u{e9}"));
    for target in [
        "/news/subscriptions/eu",
        "/news/Subscriptions/eu/",
        "/news/SUBSCRIPTIONS/eu?enrich=false",
    ] {
        check(target, &read("news/Subscriptions/eu"));
    }
    let default = AdminOperation::ReadRule(ReadRule {
        subscription: "a/b/Subscriptions/eu".to_owned(),
        name: "$Default".to_owned(),
    });
    check("/a/b/subscriptions/eu/rules/$Default", &default);
    check("/a%2fb/Subscriptions/eu/Rules/%24Default", &default);
    check(
        "/$namespaceinfo",
        &AdminOperation::ReadNamespace(ReadNamespace),
    );
    check(
        "/%24NamespaceInfo?api-version=2021-05",
        &AdminOperation::ReadNamespace(ReadNamespace),
    );
}

#[test]
fn lists_come_in_pages_of_a_hundred_at_most() {
    let check = |target: &str, what: Listed, skip: usize, top: usize| {
        let expected = AdminOperation::ListEntities(ListEntities { what, skip, top });
        assert_eq!(operation("GET", target), Ok(expected), "{target}");
    };
    check("/$Resources/queues", Listed::Queues(String::new()), 0, 100);
    check(
        "/%24resources/Queues?$skip=0&$top=100",
        Listed::Queues(String::new()),
        0,
        100,
    );
    check(
        "/$Resources/Topics?%24skip=7&%24top=5",
        Listed::Topics(String::new()),
        7,
        5,
    );
    check(
        "/$Resources/topics?$Skip=7&$Top=1000",
        Listed::Topics(String::new()),
        7,
        100,
    );
    let subscriptions = || Listed::Subscriptions("a/b".to_owned());
    check("/a/b/Subscriptions/", subscriptions(), 0, 100);
    check("/a%2Fb/subscriptions?$top=1", subscriptions(), 0, 1);
    let rules = AdminOperation::ListRules(ListRules {
        subscription: "a/Subscriptions/s".to_owned(),
        skip: 0,
        top: 100,
    });
    assert_eq!(operation("GET", "/a/Subscriptions/s/Rules/"), Ok(rules));
}

#[test]
fn a_list_of_queues_or_topics_may_have_a_filter_by_the_beginning_of_the_path() {
    let check = |filter: &str, prefix: &str| {
        let target = format!("/$Resources/topics?api-version=2021-05&$filter={filter}");
        let (what, skip, top) = (Listed::Topics(prefix.to_owned()), 0, 100);
        let expected = AdminOperation::ListEntities(ListEntities { what, skip, top });
        assert_eq!(operation("GET", &target), Ok(expected), "{filter}");
    };
    check("startswith(path,'a')", "a");
    check("startsWith(Path,%20'a/B')%20eq%20true", "a/B");
    check("startswith(+path+,+'it''s'+)+EQ+True", "it's");
    check("startswith(path,'')", "");
    for wrong in [
        "",
        "path eq 'a'",
        "startswith(path,'a') eq false",
        "startswith(path,'a')) eq true",
        "startswith(path,'a",
        "startswith(path,'a''",
        "startswith(name,'a')",
        "endswith(path,'a')",
    ] {
        let refused = operation("GET", &format!("/$Resources/queues?$filter={wrong}"));
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("startswith(path, 'PREFIX')"),
            "{wrong}: {text}"
        );
    }
    let target = "/t/subscriptions?$filter=startswith(path,'a')";
    assert!(operation("GET", target).is_err());
}

#[test]
fn a_sub_queue_is_no_entity() {
    for path in [
        "/q/$DeadLetterQueue",
        "/q/$transfer/$deadletterqueue",
        "/t/Subscriptions/s/$DeadLetterQueue",
    ] {
        let refused = asked("GET", path, None).unwrap_err();
        assert!(
            matches!(refused, AdminError::Malformed(_)),
            "{path}: {refused}"
        );
    }
}

#[test]
fn what_is_deleted_may_have_to_be_of_a_version() {
    let deleted = |target: &str, if_match| {
        let asked = asked("DELETE", target, if_match).unwrap();
        asked.operation(b"").unwrap()
    };
    let delete = |path: &str, revision| {
        AdminOperation::DeleteEntity(DeleteEntity {
            path: path.to_owned(),
            revision,
        })
    };
    assert_eq!(deleted("/q", None), delete("q", None));
    assert_eq!(deleted("/q", Some("*")), delete("q", None));
    assert_eq!(deleted("/q", Some("\"7\"")), delete("q", Some(7)));
    let path = "t/Subscriptions/s";
    assert_eq!(
        deleted("/t/subscriptions/s", Some("7")),
        delete(path, Some(7))
    );
    let rule = AdminOperation::DeleteRule(DeleteRule {
        subscription: path.to_owned(),
        name: "$Default".to_owned(),
        version: None,
    });
    assert_eq!(deleted("/t/subscriptions/s/rules/%24Default", None), rule);
}

#[test]
fn a_version_that_must_be_there_makes_an_update() {
    let body = entry("QueueDescription", "");
    let revision = |if_match| match put("/q", Some(if_match), &body).unwrap() {
        AdminOperation::UpdateEntity(UpdateEntity { revision, .. }) => revision,
        other => panic!("{other:?}"),
    };
    assert_eq!(revision("*"), None);
    assert_eq!(revision("\"12\""), Some(12));
    let body = entry("RuleDescription", "<Filter i:type='FalseFilter'/>");
    let expected = AdminOperation::UpdateRule(UpdateRule {
        subscription: "t/Subscriptions/s".to_owned(),
        rule: rule("r", Filter::False, None),
        version: None,
    });
    assert_eq!(
        put("/t/Subscriptions/s/Rules/r", Some("*"), &body),
        Ok(expected)
    );
}

#[test]
fn elements_are_known_by_namespace_in_any_order_and_foreign_ones_passed_over() {
    let body = "<?xml version=\"1.0\"?><!-- so be it --><?a b?>
        <a:entry xmlns:a='http://www.w3.org/2005/Atom' xmlns:x='urn:x'
            xmlns:s='http://schemas.microsoft.com/netservices/2010/10/servicebus/connect'
            xmlns:n='http://www.w3.org/2001/XMLSchema-instance'>
          <a:title>not this</a:title><a:content x:type='y' type='application/xml'>
          <s:QueueDescription>
            <s:SupportOrdering> FALSE </s:SupportOrdering><x:MaxDeliveryCount>9</x:MaxDeliveryCount>
            <s:Future><s:MaxDeliveryCount>8</s:MaxDeliveryCount></s:Future>
            <s:UserMetadata><![CDATA[<&]]>&#x41;&amp;&#66; </s:UserMetadata>
            <s:Status n:nil='true'/><s:ForwardTo/><s:LockDuration> PT0.25M </s:LockDuration>
            <s:DefaultMessageTimeToLive>P1Y2M1W1DT1H1M1.5S</s:DefaultMessageTimeToLive>
          </s:QueueDescription></a:content>
        </a:entry>";
    let days = 365 + 60 + 7 + 1;
    let expected = AdminOperation::CreateEntity(CreateEntity {
        path: "q".to_owned(),
        is_topic: false,
        properties: Box::new(Properties {
            supports_ordering: Some(false),
            user_metadata: Some("<&A&B ".to_owned()),
            forward_to: Some(String::new()),
            lock_duration: Some(Millis::from_secs(15)),
            default_time_to_live: Some(Millis::from_millis((days * 86_400 + 3_661) * 1000 + 500)),
            ..Properties::default()
        }),
    });
    assert_eq!(put("/q", None, body), Ok(expected));
}

#[test]
fn values_of_dotnet_s_own_types_are_read() {
    let value = |class: &str, text: &str| {
        let properties = format!(
            "<Filter type='CorrelationFilter'><Properties><KeyValueOfstringanyType><Key>k</Key>\
             <Value i:type='{class}'>{text}</Value></KeyValueOfstringanyType></Properties></Filter>"
        );
        let body = entry("RuleDescription", &properties);
        match put("/t/subscriptions/s/rules/r", None, &body) {
            Ok(AdminOperation::CreateRule(CreateRule { rule, .. })) => match rule.filter {
                Filter::Correlation(filter) => filter.fields().properties[0].1.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let value = |class: &str, text: &str| Value::from(value(class, text).scalar().clone());
    assert_eq!(
        value("int", " 2147483647 "),
        Scalar::Long(2_147_483_647).into()
    );
    assert_eq!(value("q:short", "-1"), Scalar::Long(-1).into());
    assert_eq!(
        value("unsignedLong", "18446744073709551615"),
        Scalar::Ulong(u64::MAX).into()
    );
    assert_eq!(value("x:float", "1.5E3"), Scalar::Double(1500.0).into());
    assert_eq!(value("decimal", "0.25"), Scalar::Double(0.25).into());
    assert_eq!(
        value("double", "-INF"),
        Scalar::Double(f64::NEG_INFINITY).into()
    );
    assert_eq!(value("char", "65"), text("A"));
    assert_eq!(value("string", " a "), text(" a "));
    assert_eq!(value("duration", "-PT1S"), Scalar::Duration(-SECOND).into());
    assert_eq!(
        value("dateTime", "2020-07-05T13:12:13+02:00"),
        Scalar::Timestamp(THAT_DAY).into()
    );
    let guid = "{01020304-0506-0708-090A-0b0c0d0e0f10}";
    let bytes = std::array::from_fn(|at| u8::try_from(at + 1).unwrap());
    assert_eq!(value("guid", guid), Scalar::Uuid(bytes).into());
}

/// Returns the `Value` elements of a rule that was made with one of a type, and then told.
fn told_again(class: &str, text: &str) -> String {
    let pair = format!(
        "<KeyValueOfstringanyType><Key>@k</Key><Value i:type='l28:{class}'>{text}</Value>\
         </KeyValueOfstringanyType>"
    );
    let rule = format!(
        "<Filter i:type='SqlFilter'><SqlExpression>a=@k</SqlExpression><Parameters>{pair}\
         </Parameters></Filter>"
    );
    let target = "/t/subscriptions/s/rules/r";
    let made = put(target, None, &entry("RuleDescription", &rule)).unwrap();
    let AdminOperation::CreateRule(CreateRule { rule, .. }) = made else {
        panic!("{made:?}");
    };
    let rule = Rule::from_json(&rule.to_json()).unwrap();
    let view = RuleView {
        subscription: "t/Subscriptions/s".to_owned(),
        rule,
    };
    let told = asked("GET", target, None).unwrap();
    let told = told.render(&AdminAnswer::Rule(Box::new(view))).body;
    let (_, rest) = told.split_once("<Value i:type=\"d6p1:").unwrap();
    let (class, rest) = rest.split_once('"').unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    format!("{class} {}", rest.split_once('<').unwrap().0)
}

#[test]
fn a_value_is_told_as_it_was_given() {
    for (class, text) in [
        ("long", "2"),
        ("int", "2"),
        ("long", "5000000000"),
        ("short", "-7"),
        ("unsignedInt", "7"),
        ("float", "1.5E3"),
        ("decimal", "0.250"),
        ("dateTime", "2020-07-05T11:12:13"),
        ("dateTime", "2020-07-05T11:12:13.0000000+02:00"),
        ("dateTime", "2020-07-05T11:12:13Z"),
        ("duration", "P1DT25H"),
        ("boolean", "1"),
        ("char", "65"),
        ("string", " a "),
    ] {
        assert_eq!(told_again(class, text), format!("{class} {text}"));
    }
}
