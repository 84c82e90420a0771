//! Answers as the official clients read them. Each file was read by Python's, JavaScript's, Go's
//! and Java's; `UPDATE=1` writes them anew, and then they are to be read by these again.

use std::borrow::Cow;
use std::path::Path;

use super::{AdminAnswer, asked};
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::Tier;
use jitney_broker::namespace::administration::{
    Counts, EntityView, ListPage, More, NamespaceView, RuleView,
};
use jitney_message::Scalar;
use jitney_queue::{Description, EntityKind, History, Status};
use jitney_rules::{Action, CorrelationFields, CorrelationFilter, Filter, Rule, SqlFilter, Value};

const AT: Timestamp = Timestamp::from_millis(1_600_000_000_000);

/// The last entries of a list.
fn page_of<T>(entries: Vec<T>) -> ListPage<T> {
    let more = More::No;
    ListPage { entries, more }
}

/// Compares an answer with what is in a file, with a line for each element.
fn check(name: &str, target: &str, answer: &AdminAnswer) {
    let told = asked("GET", target, None).unwrap().render(answer);
    assert_eq!(told.status, 200);
    let body = told.body.replace("><", ">\n<") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/admin/tests/answers")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &body).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(body, expected, "{name}");
}

fn view(path: &str, description: Description) -> EntityView {
    EntityView {
        path: path.to_owned(),
        description: Description {
            history: History {
                created_at: AT,
                updated_at: AT.after(Millis::from_millis(1_234)),
                revision: 3,
            },
            ..description
        },
        accessed_at: None,
        counts: Counts {
            active: 1,
            deferred: 0,
            locked: 0,
            dead_letters: 2,
            scheduled: 3,
            transfer: 4,
            transfer_dead_letters: 5,
        },
        bytes: 4711,
        subscriptions: 6,
        sql_filters: 7,
        correlation_filters: 8,
    }
}

fn queue() -> EntityView {
    let description = Description {
        lock_duration: Millis::from_millis(30_500),
        max_bytes: 2048 * 1024 * 1024,
        status: Status::SendDisabled,
        forward_to: Some("a b/c".to_owned()),
        forward_dead_letters_to: Some("dead".to_owned()),
        user_metadata: Some("<&>\"'\r\n\t\u{1}\u{1f600}".to_owned()),
        auto_delete_on_idle: Millis::from_secs(90_000),
        authorization: vec![
            AuthorizationRule {
                name: "all".to_owned(),
                rights: Rights {
                    manage: true,
                    ..Rights::default()
                },
                primary_key: Key::new("cHJpbWFyeQ==".to_owned()),
                secondary_key: Some(Key::new("c2Vjb25kYXJ5".to_owned())),
                created_at: Some(AT),
                modified_at: Some(AT),
            },
            AuthorizationRule {
                name: "listen".to_owned(),
                rights: Rights {
                    listen: true,
                    ..Rights::default()
                },
                primary_key: Key::new("a2V5".to_owned()),
                secondary_key: None,
                created_at: None,
                modified_at: None,
            },
        ],
        ..Description::default()
    };
    EntityView {
        accessed_at: Some(AT),
        ..view("orders/new \u{e9}", description)
    }
}

fn of_kind(kind: EntityKind) -> Description {
    Description {
        kind,
        ..Description::default()
    }
}

fn rule(name: &str, filter: Filter, action: Option<Action>) -> RuleView {
    RuleView {
        subscription: "news/Subscriptions/eu".to_owned(),
        rule: Rule {
            name: name.to_owned(),
            filter,
            action,
            created_at: AT,
        },
    }
}

fn values() -> Vec<(String, Value)> {
    let values: [(&str, Value); 5] = [
        ("@boolean", Scalar::Boolean(true).into()),
        ("@double", Scalar::Double(2.0).into()),
        ("@int", Scalar::Long(-5).into()),
        ("@text", Scalar::Text(Cow::Borrowed(" <&> ")).into()),
        ("@time", Scalar::Timestamp(16_000_000_001_234_567).into()),
    ];
    let values = values.into_iter();
    values
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[test]
fn a_queue_is_told_with_all_that_there_is() {
    let answer = AdminAnswer::Entity(Box::new(queue()));
    check(
        "queue.xml",
        "/orders%2Fnew%20%C3%A9?api-version=2024-05",
        &answer,
    );
}

#[test]
fn a_topic_and_a_subscription_are_told() {
    let topic = view("news", of_kind(EntityKind::Topic));
    check("topic.xml", "/news", &AdminAnswer::Entity(Box::new(topic)));
    let subscription = view("news/Subscriptions/eu", of_kind(EntityKind::Subscription));
    let answer = AdminAnswer::Entity(Box::new(subscription));
    check(
        "subscription.xml",
        "/news/subscriptions/eu?api-version=2021-05",
        &answer,
    );
}

#[test]
fn rules_of_each_kind_are_told() {
    let parameters = values().into_iter().collect();
    let filter = Filter::Sql(SqlFilter::parse_with("a < @int", parameters).unwrap());
    let action = Action::parse("SET a = '<'").unwrap();
    let fields = CorrelationFields {
        correlation_id: Some("c".to_owned()),
        message_id: Some("m".to_owned()),
        to: Some("t".to_owned()),
        reply_to: Some("r".to_owned()),
        label: Some("l".to_owned()),
        session_id: Some("s".to_owned()),
        reply_to_session_id: Some("rs".to_owned()),
        content_type: Some("ct".to_owned()),
        properties: values(),
    };
    let correlation = Filter::Correlation(CorrelationFilter::new(fields).unwrap());
    let rules = vec![
        rule("$Default", Filter::True, None),
        rule("correlation", correlation, None),
        rule("none", Filter::False, None),
        rule("sql", filter, Some(action)),
    ];
    check(
        "rules.xml",
        "/news/Subscriptions/eu/Rules/",
        &AdminAnswer::Rules(page_of(rules)),
    );
}

#[test]
fn a_page_leads_to_the_next_one_if_there_is_one() {
    let page = |more| {
        let views = vec![
            view("a", Description::default()),
            view("b", Description::default()),
        ];
        AdminAnswer::Entities(ListPage {
            entries: views,
            more,
        })
    };
    let target = "/$Resources/queues?api-version=2021-05&enrich=false&$skip=4&$top=2";
    check("page.xml", target, &page(More::Yes));
    let last = asked("GET", target, None).unwrap().render(&page(More::No));
    assert_eq!(
        last.content_type,
        "application/atom+xml;type=feed;charset=utf-8"
    );
    assert!(!last.body.contains("rel=\"next\""), "{}", last.body);
    check(
        "nothing.xml",
        "/$Resources/Topics",
        &AdminAnswer::Entities(page_of(Vec::new())),
    );
}

#[test]
fn the_namespace_has_the_name_that_its_clients_know() {
    let view = |name: &str, tier: Tier| {
        AdminAnswer::Namespace(NamespaceView {
            name: name.to_owned(),
            tier,
            created_at: AT,
        })
    };
    check(
        "namespace.xml",
        "/$namespaceinfo?api-version=2021-05",
        &view("", Tier::Premium),
    );
    let told = asked("GET", "/$namespaceinfo", None).unwrap();
    let told = told.render(&view("other", Tier::Standard)).body;
    assert!(told.contains("<Name>other</Name>"), "{told}");
    assert!(
        told.contains("<MessagingSKU>Standard</MessagingSKU><ModifiedTime>"),
        "{told}"
    );
    assert!(
        told.contains("<title type=\"text\">other</title>"),
        "{told}"
    );
}

#[test]
fn the_name_of_a_namespace_is_the_first_part_of_a_host_unless_it_is_a_number() {
    let author = |host| {
        let request = super::RequestHead {
            method: "GET",
            path: "/q",
            query: None,
            host,
            if_match: None,
        };
        let answer = AdminAnswer::Entity(Box::new(view("q", Description::default())));
        let told = super::AdminRequest::read(&request)
            .unwrap()
            .render(&answer)
            .body;
        let (_, rest) = told.split_once("<author><name>").unwrap();
        rest.split_once('<').unwrap().0.to_owned()
    };
    assert_eq!(author("contoso.servicebus.windows.net"), "contoso");
    assert_eq!(author("localhost:5300"), "localhost");
    assert_eq!(author("127.0.0.1:5300"), "127.0.0.1");
    assert_eq!(author("[::1]:5300"), "[::1]");
}

#[test]
fn statuses_and_versions_are_those_that_clients_want() {
    let answer = AdminAnswer::Entity(Box::new(queue()));
    let told = |method, if_match| {
        let told = asked(method, "/orders", if_match).unwrap();
        let told = told.render(&answer);
        (told.status, told.etag)
    };
    let etag = Some("\"3\"".to_owned());
    assert_eq!(told("PUT", None), (201, etag.clone()));
    assert_eq!(told("PUT", Some("*")), (200, etag.clone()));
    assert_eq!(told("GET", None), (200, etag));
    let gone = asked("DELETE", "/orders", None).unwrap();
    let gone = gone.render(&AdminAnswer::Deleted);
    assert_eq!(
        (gone.status, gone.etag, gone.body.as_str()),
        (200, None, "")
    );
}

#[test]
fn urls_are_spelled_as_the_request_was() {
    let ids = |target: &str, answer: &AdminAnswer| {
        let told = asked("GET", target, None).unwrap().render(answer).body;
        let ids = told.split("<id>").skip(1);
        let ids = ids.map(|rest| rest.split("</id>").next().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let url = |rest: &str| format!("https://contoso.localhost:5300/{rest}");
    let subscription = || view("t1/Subscriptions/sub1", of_kind(EntityKind::Subscription));
    let one = AdminAnswer::Entity(Box::new(subscription()));
    for spelled in [
        "t1/subscriptions/sub1?api-version=2017-04",
        "T1/Subscriptions/SUB1?api-version=2024-05",
        "t1/SUBSCRIPTIONS/sub1",
    ] {
        assert_eq!(ids(&format!("/{spelled}"), &one), [url(spelled)]);
    }
    // The members of a list are below what was asked for; clients differ at its end.
    let all = AdminAnswer::Entities(page_of(vec![subscription()]));
    let told = ids("/T1/subscriptions?api-version=2017-04", &all);
    assert_eq!(told[1], url("T1/subscriptions/sub1?api-version=2017-04"));
    assert_eq!(
        ids("/t1/Subscriptions/", &all)[1],
        url("t1/Subscriptions/sub1")
    );
    let rules = AdminAnswer::Rules(page_of(vec![rule("$Default", Filter::True, None)]));
    let told = ids("/news/subscriptions/eu/rules?api-version=2017-04", &rules);
    let expected = url("news/subscriptions/eu/rules/$Default?api-version=2017-04");
    assert_eq!(told[1], expected);
    let queues = AdminAnswer::Entities(page_of(vec![view("a/B c", Description::default())]));
    assert_eq!(ids("/$Resources/queues", &queues)[1], url("a/B%20c"));
}

#[test]
fn clients_of_an_old_version_are_not_told_what_it_does_not_know() {
    let told = |version: &str| {
        let target = format!("/orders?api-version={version}");
        let told = asked("GET", &target, None).unwrap();
        let told = told.render(&AdminAnswer::Entity(Box::new(queue())));
        told.body.contains("MaxMessageSizeInKilobytes")
    };
    assert!(!told("2017-04") && !told("2014-01"));
    assert!(told("2021-05") && told("2024-05") && told("newest"));
}

#[test]
fn a_forward_is_told_as_it_was_given() {
    let mut view = queue();
    view.description.forward_to_address = Some("https://other.example/a%20b/c".to_owned());
    let told = asked("GET", "/orders", None).unwrap();
    let told = told.render(&AdminAnswer::Entity(Box::new(view))).body;
    assert!(
        told.contains("<ForwardTo>https://other.example/a%20b/c</ForwardTo>"),
        "{told}"
    );
}

#[test]
fn a_value_s_type_has_the_namespace_that_dotnet_reads_it_in() {
    const NET: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
    const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
    for (value, written) in [
        (
            Scalar::Duration(15_000_000),
            format!("<Value i:type=\"d6p1:duration\" xmlns:d6p1=\"{NET}\">PT1.5S</Value>"),
        ),
        (
            Scalar::Uuid([0x11; 16]),
            format!(
                "<Value i:type=\"d6p1:guid\" xmlns:d6p1=\"{NET}\">\
                 11111111-1111-1111-1111-111111111111</Value>"
            ),
        ),
        (
            Scalar::Long(3),
            format!("<Value i:type=\"d6p1:int\" xmlns:d6p1=\"{SCHEMA}\">3</Value>"),
        ),
        (
            Scalar::Timestamp(16_000_000_000_000_000),
            format!(
                "<Value i:type=\"d6p1:dateTime\" xmlns:d6p1=\"{SCHEMA}\">\
                 2020-09-13T12:26:40Z</Value>"
            ),
        ),
    ] {
        let parameters = [("@p".to_owned(), Value::from(value.clone()))].into();
        let filter = Filter::Sql(SqlFilter::parse_with("a = @p", parameters).unwrap());
        let fields = CorrelationFields {
            properties: vec![("p".to_owned(), value.into())],
            ..CorrelationFields::default()
        };
        let correlation = Filter::Correlation(CorrelationFilter::new(fields).unwrap());
        for filter in [filter, correlation] {
            let answer = AdminAnswer::Rule(Box::new(rule("r", filter, None)));
            let target = "/news/Subscriptions/eu/Rules/r";
            let told = asked("GET", target, None).unwrap().render(&answer).body;
            assert!(told.contains(&written), "{told}");
        }
    }
}
