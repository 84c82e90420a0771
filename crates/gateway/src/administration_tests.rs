//! What administrators make, change and delete, and that the records say the same.

use crate::amqp::tests::{Bench, inquiry, message};
use crate::request::Requester;
use jitney_base::address::SubQueue;
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::Millis;
use jitney_base::time::Timestamp;
use jitney_broker::access::Authority;
use jitney_broker::namespace::Tier;
use jitney_broker::namespace::administration::*;
use jitney_broker::namespace::{Denied, DeniedKind, MessageCounts};
use jitney_queue::{Description, EntityKind, Status};
use jitney_rules::{Filter, Rule, SqlFilter};

type Outcome = Result<EntityView, Denied>;

fn administer<R: AdminRequest>(bench: &mut Bench, request: R) -> Result<R::Answer, Denied> {
    let done = bench.run(|gateway, cx| {
        let authority = gateway.authorize(cx.now, &inquiry(None, None, "")).unwrap();
        let host = None;
        gateway.serve(cx, &Requester { host, authority }, request)
    });
    bench.check_replay();
    done
}

fn create(bench: &mut Bench, path: &str, properties: Properties) -> Outcome {
    let (path, properties) = (path.to_owned(), Box::new(properties));
    if path.contains("/Subscriptions/") {
        let rule = None;
        return administer(
            bench,
            CreateSubscription {
                path,
                properties,
                rule,
            },
        );
    }
    let is_topic = false;
    administer(
        bench,
        CreateEntity {
            path,
            is_topic,
            properties,
        },
    )
}

fn update(bench: &mut Bench, path: &str, properties: Properties) -> Outcome {
    let kind = bench
        .gateway
        .namespaces()
        .description(path)
        .map_or(EntityKind::Queue, |it| it.kind);
    administer(
        bench,
        UpdateEntity {
            path: path.to_owned(),
            kind,
            properties: Box::new(properties),
            revision: None,
        },
    )
}

fn entity(outcome: Outcome) -> EntityView {
    outcome.unwrap()
}

fn check_refused<T: std::fmt::Debug>(outcome: Result<T, Denied>, words: &str) {
    let refused = outcome.expect_err("it cannot be").to_string();
    assert!(
        refused.contains(words),
        "{refused:?} does not say {words:?}"
    );
}

fn all_properties() -> Properties {
    let rule = AuthorizationRule {
        name: "app".to_owned(),
        rights: Rights::ALL,
        primary_key: Key::new("k".to_owned()),
        secondary_key: None,
        created_at: Some(Timestamp::from_millis(7)),
        modified_at: None,
    };
    Properties {
        lock_duration: Some(Millis::from_secs(30)),
        max_size_megabytes: Some(2_048),
        requires_duplicate_detection: Some(true),
        requires_session: Some(false),
        default_time_to_live: Some(Millis::from_secs(600)),
        dead_letter_on_expiration: Some(true),
        dead_letter_on_filter_error: Some(false),
        duplicate_window: Some(Millis::from_secs(60)),
        max_delivery_count: Some(5),
        batched_operations: Some(false),
        authorization: Some(vec![rule]),
        status: Some(Status::SendDisabled),
        forward_to: Some(String::new()),
        forward_dead_letters_to: Some("sb://host/q".to_owned()),
        user_metadata: Some("about it".to_owned()),
        supports_ordering: Some(false),
        auto_delete_on_idle: Some(Millis::from_secs(3_600)),
        partitioned: Some(true),
        express: Some(false),
        max_message_kilobytes: Some(100),
    }
}

#[test]
fn a_queue_has_what_was_asked_for_and_defaults_for_what_was_not() {
    let mut bench = Bench::new();
    let made = entity(create(&mut bench, "New/One", all_properties()));
    let description = &made.description;
    assert_eq!(made.path, "new/one", "as the service tells it");
    assert_eq!(description.lock_duration, Millis::from_secs(30));
    assert_eq!(
        description.max_bytes,
        16 * (2 << 30),
        "2 GiB in each partition"
    );
    assert_eq!(description.max_message_bytes, 100 * 1024);
    assert_eq!(description.duplicates(), Some(Millis::from_secs(60)));
    assert_eq!(description.forward_dead_letters_to.as_deref(), Some("q"));
    let revision = description.history.revision;
    assert_eq!(
        description.authorization[0].created_at,
        Some(Timestamp::from_millis(7))
    );
    bench.now = bench.now.after(Millis::from_secs(1));
    // What can be changed and is not given gets its default; the rest stays.
    let changed = entity(update(&mut bench, "new/one", Properties::default())).description;
    assert_eq!(changed.lock_duration, Millis::from_secs(60));
    assert_eq!(changed.user_metadata, None);
    assert!(changed.partitioned && changed.detects_duplicates);
    assert_eq!(changed.authorization, description.authorization);
    assert_eq!(changed.history.revision, revision + 1);
    let times = changed.history;
    assert!(
        times.created_at < times.updated_at,
        "clients compare the times of versions"
    );
    assert_eq!(changed.history.created_at, description.history.created_at);
    assert_eq!(changed.history.updated_at, bench.now);
    let again = entity(update(&mut bench, "new/one", Properties::default())).description;
    assert_eq!(again.history, changed.history, "nothing has changed");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of mistakes")]
fn what_cannot_be_is_refused_and_nothing_changes() {
    let mut bench = Bench::new();
    let of = |change: fn(&mut Properties)| {
        let mut properties = Properties::default();
        change(&mut properties);
        properties
    };
    for (properties, words) in [
        (
            of(|it| it.lock_duration = Some(Millis::from_millis(999))),
            "LockDuration",
        ),
        (
            of(|it| it.lock_duration = Some(Millis::from_secs(301))),
            "LockDuration",
        ),
        (
            of(|it| it.default_time_to_live = Some(Millis::default())),
            "DefaultMessageTimeToLive",
        ),
        (
            of(|it| it.duplicate_window = Some(Millis::from_secs(19))),
            "DuplicateDetection",
        ),
        (
            of(|it| it.auto_delete_on_idle = Some(Millis::from_secs(299))),
            "AutoDeleteOnIdle",
        ),
        (of(|it| it.max_delivery_count = Some(0)), "MaxDeliveryCount"),
        (
            of(|it| it.user_metadata = Some("x".repeat(1_025))),
            "UserMetadata",
        ),
        (
            of(|it| it.max_message_kilobytes = Some(102_401)),
            "MaxMessageSizeInKilobytes",
        ),
        (
            of(|it| it.forward_to = Some("nowhere".to_owned())),
            "SubCode=40400. The auto forwarding destination entity doesn't exist",
        ),
        (
            of(|it| it.forward_to = Some("x".to_owned())),
            "The auto forwarding destination entity doesn't exist",
        ),
        (
            of(|it| it.max_size_megabytes = Some(1)),
            "1024, 2048, 3072, 4096, 5120; in Premium also 10240",
        ),
        (
            of(|it| it.max_size_megabytes = Some(1_500)),
            "MaxSizeInMegabytes",
        ),
    ] {
        check_refused(create(&mut bench, "x", properties), words);
    }
    for name in [
        "",
        "a//b",
        "a/subscriptions/b",
        "a/../b",
        "a?",
        &"a".repeat(261),
    ] {
        check_refused(
            create(&mut bench, name, Properties::default()),
            "allowed: 1 to 260",
        );
    }
    check_refused(
        create(&mut bench, "Q", Properties::default()),
        "already exists",
    );
    check_refused(
        create(&mut bench, "none/Subscriptions/s", Properties::default()),
        "not found",
    );
    check_refused(
        create(&mut bench, "q/Subscriptions/s", Properties::default()),
        "does not exist",
    );
    let sessions = of(|it| it.requires_session = Some(true));
    let words = "The value for the RequiresSession property of an existing Queue cannot be changed";
    check_refused(update(&mut bench, "q", sessions), words);
    let partitioned = of(|it| it.partitioned = Some(true));
    let words = "Partitioning cannot be changed for Topic. ";
    check_refused(update(&mut bench, "t", partitioned), words);
    assert!(bench.gateway.namespaces().description("x").is_none());
    let history = bench.gateway.namespaces().description("q").unwrap().history;
    assert_eq!(history.created_at, history.updated_at);
}

fn forwarding_to(target: &str) -> Properties {
    Properties {
        forward_to: Some(target.to_owned()),
        ..Properties::default()
    }
}

#[test]
fn an_entity_may_forward_to_itself() {
    let mut bench = Bench::new();
    let dead_letters = |to: &str| Properties {
        forward_dead_letters_to: Some(to.to_owned()),
        ..Properties::default()
    };
    for (path, properties) in [
        ("q", forwarding_to("q")),
        ("q", forwarding_to("one")),
        ("q", dead_letters("Q")),
        ("t/Subscriptions/a", forwarding_to("t")),
        ("t/Subscriptions/b", dead_letters("t")),
    ] {
        let changed = entity(update(&mut bench, path, properties)).description;
        assert!(changed.forward_to.is_some() || changed.forward_dead_letters_to.is_some());
    }
    let with_sessions = Properties {
        requires_session: Some(true),
        ..forwarding_to("two")
    };
    let made = entity(create(&mut bench, "sessions", with_sessions)).description;
    assert_eq!(made.forward_to.as_deref(), Some("two"));
}

#[test]
fn a_version_that_has_gone_is_not_changed() {
    let mut bench = Bench::new();
    let revision = bench
        .gateway
        .namespaces()
        .description("q")
        .unwrap()
        .history
        .revision;
    let delete = |revision| DeleteEntity {
        path: "q".to_owned(),
        revision,
    };
    let refused = administer(&mut bench, delete(Some(revision + 1)));
    assert!(
        matches!(
            refused,
            Err(Denied {
                kind: DeniedKind::Changed,
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(administer(&mut bench, delete(Some(revision))), Ok(()));
    let refused = administer(&mut bench, delete(None));
    assert!(
        matches!(
            refused,
            Err(Denied {
                kind: DeniedKind::NotFound,
                ..
            })
        ),
        "{refused:?}"
    );
}

fn rule(name: &str, text: &str) -> Box<Rule> {
    Box::new(Rule {
        name: name.to_owned(),
        filter: Filter::Sql(SqlFilter::parse(text).unwrap()),
        action: None,
        created_at: Timestamp::EPOCH,
    })
}

#[test]
fn a_rule_that_has_changed_since_is_not_changed() {
    let mut bench = Bench::new();
    let subscription = "t/Subscriptions/new".to_owned();
    let create = CreateSubscription {
        path: subscription.clone(),
        properties: Box::default(),
        rule: Some(rule("first", "a = 1")),
    };
    administer(&mut bench, create).unwrap();
    let read = ReadRule {
        subscription: subscription.clone(),
        name: "FIRST".to_owned(),
    };
    let seen = |bench: &mut Bench| {
        let view = administer(bench, read.clone()).unwrap();
        view.rule.version()
    };
    let update = |text: &str, version| UpdateRule {
        subscription: subscription.clone(),
        rule: rule("first", text),
        version,
    };
    let delete = |version| DeleteRule {
        subscription: subscription.clone(),
        name: "first".to_owned(),
        version,
    };
    let before = seen(&mut bench);
    administer(&mut bench, update("b = 2", Some(before))).unwrap();
    let after = seen(&mut bench);
    assert_ne!(before, after);
    let words = "has changed since";
    let stale = update("c = 3", Some(before));
    check_refused(administer(&mut bench, stale), words);
    check_refused(administer(&mut bench, delete(Some(before))), words);
    assert_eq!(seen(&mut bench), after);
    assert_eq!(administer(&mut bench, delete(Some(after))), Ok(()));
}

#[test]
fn rules_are_made_replaced_and_deleted() {
    let mut bench = Bench::new();
    let subscription = "t/Subscriptions/new".to_owned();
    let made = administer(
        &mut bench,
        CreateSubscription {
            path: subscription.clone(),
            properties: Box::default(),
            rule: Some(rule("first", "a = 1")),
        },
    );
    assert_eq!(entity(made).path, subscription);
    let list = |bench: &mut Bench| {
        let list = ListRules {
            subscription: subscription.clone(),
            skip: 0,
            top: 10,
        };
        let page = administer(bench, list).unwrap();
        assert_eq!(page.more, More::No);
        let views = page.entries.into_iter();
        let texts = views.map(|view| match view.rule.filter {
            Filter::Sql(filter) => format!("{} {}", view.rule.name, filter.text()),
            _ => view.rule.name,
        });
        texts.collect::<Vec<String>>()
    };
    assert_eq!(list(&mut bench), ["first a = 1"]);
    let create = |rule| CreateRule {
        subscription: subscription.clone(),
        rule,
    };
    let replace = |rule| UpdateRule {
        subscription: subscription.clone(),
        rule,
        version: None,
    };
    bench.now = bench.now.after(Millis::from_secs(1));
    administer(&mut bench, create(rule("second", "b = 2"))).unwrap();
    check_refused(
        administer(&mut bench, create(rule("FIRST", "c = 3"))),
        "already exists",
    );
    check_refused(
        administer(&mut bench, replace(rule("third", "c = 3"))),
        "not found",
    );
    administer(&mut bench, replace(rule("FIRST", "c = 3"))).unwrap();
    assert_eq!(list(&mut bench), ["first c = 3", "second b = 2"]);
    let path = "t".to_owned();
    let topic = entity(administer(&mut bench, ReadEntity { path }));
    assert_eq!((topic.subscriptions, topic.sql_filters), (3, 4));
    let delete = DeleteRule {
        subscription: subscription.clone(),
        name: "first".to_owned(),
        version: None,
    };
    let deleted = administer(&mut bench, delete.clone());
    assert_eq!(deleted, Ok(()));
    check_refused(administer(&mut bench, delete), "not found");
    assert_eq!(list(&mut bench), ["second b = 2"]);
}

#[test]
fn a_list_has_all_names_of_the_first_namespace_beside_another_one() {
    let mut bench = Bench::new();
    // A path that begins with two slashes is one of another namespace; '-' and '.' come before a slash.
    bench.run(|gateway, cx| {
        gateway.with_namespaces(cx, |namespaces, cx| {
            let made =
                namespaces.make_entity(cx, "//other/vault", Description::default(), Vec::new());
            made.unwrap();
        });
    });
    for name in ["-x", ".y", "0z"] {
        create(&mut bench, name, Properties::default()).unwrap();
    }
    let (what, skip, top) = (Listed::Queues(String::new()), 0, 100);
    let listed = administer(&mut bench, ListEntities { what, skip, top }).unwrap();
    assert_eq!(listed.more, More::No);
    let names: Vec<&str> = listed
        .entries
        .iter()
        .map(|view| view.path.as_str())
        .collect();
    assert_eq!(names, ["-x", ".y", "0z", "one", "q", "two"]);
    let (queues, _) = bench.gateway.namespaces().queues_from("", None);
    assert!(queues.is_empty(), "they have no messages");
}

#[test]
fn lists_come_in_pages() {
    let mut bench = Bench::new();
    for number in 0..jitney_broker::limits::LISTED_MAX + 5 {
        create(
            &mut bench,
            &format!("page{number:03}"),
            Properties::default(),
        )
        .unwrap();
    }
    let mut names = Vec::new();
    loop {
        let (what, skip, top) = (Listed::Queues(String::new()), names.len(), 1_000);
        let ListPage {
            entries: views,
            more,
        } = administer(&mut bench, ListEntities { what, skip, top }).unwrap();
        assert!(views.len() <= jitney_broker::limits::LISTED_MAX);
        names.extend(views.into_iter().map(|view| view.path));
        if more == More::No {
            break;
        }
    }
    assert_eq!(
        names.len(),
        jitney_broker::limits::LISTED_MAX + 5 + 3,
        "q, one and two are there too"
    );
    assert!(names.is_sorted());
}

#[test]
fn a_key_of_an_entity_manages_that_and_what_is_below() {
    fn is_allowed<R: AdminRequest>(bench: &mut Bench, who: &Requester, request: R) -> bool {
        let done = bench.run(|gateway, cx| gateway.serve(cx, who, request));
        !done.is_err_and(|denied| denied.kind == DeniedKind::Unauthorized)
    }

    let mut bench = Bench::new();
    let requester = Requester {
        host: None,
        authority: Authority::of("t", Rights::ALL),
    };
    let read = |path: &str| ReadEntity {
        path: path.to_owned(),
    };
    let list = |what| ListEntities {
        what,
        skip: 0,
        top: 1,
    };
    for (path, may) in [
        ("T", true),
        ("t/Subscriptions/a", true),
        ("q", false),
        ("none", false),
    ] {
        let allowed = is_allowed(&mut bench, &requester, read(path));
        assert_eq!(allowed, may, "{path}");
    }
    let subscriptions = list(Listed::Subscriptions("t".to_owned()));
    assert!(is_allowed(&mut bench, &requester, subscriptions));
    let topics = list(Listed::Topics(String::new()));
    assert!(!is_allowed(&mut bench, &requester, topics));
    assert!(!is_allowed(&mut bench, &requester, ReadNamespace));
    let topic = CreateEntity {
        path: "t2".to_owned(),
        is_topic: false,
        properties: Box::default(),
    };
    assert!(!is_allowed(&mut bench, &requester, topic));
}

#[test]
fn who_may_not_send_to_an_entity_forwards_nothing_to_it() {
    let mut bench = Bench::new();
    let vault = format!("{}vault", jitney_base::address::namespace_prefix("other"));
    bench.run(|gateway, cx| {
        gateway
            .ensure_entity(cx, &vault, Description::default())
            .unwrap();
    });
    let requester = Requester {
        host: None,
        authority: Authority::of("q", Rights::ALL),
    };
    let mut forward = |to: &str| {
        let properties = Box::new(Properties {
            forward_to: Some(to.to_owned()),
            ..Properties::default()
        });
        let operation = UpdateEntity {
            path: "q".to_owned(),
            kind: EntityKind::Queue,
            properties,
            revision: None,
        };
        bench.run(|gateway, cx| gateway.serve(cx, &requester, operation))
    };
    let refused = forward("t");
    assert!(
        matches!(
            refused,
            Err(Denied {
                kind: DeniedKind::Unauthorized,
                ..
            })
        ),
        "{refused:?}"
    );
    for way_out in [
        "%2F%2Fother%2Fvault",
        "sb://h/%2f%2fother/vault",
        "//other/vault",
        "a//b",
    ] {
        let refused = forward(way_out);
        assert!(refused.is_err(), "{way_out}: {refused:?}");
    }
    let description = bench.gateway.namespaces().description("q").unwrap();
    assert_eq!(description.forward_to, None);
}

#[test]
fn a_namespace_of_the_standard_tier_has_small_messages() {
    const STANDARD: u64 = 256 * 1024;
    let mut bench = Bench::new();
    let size = |bench: &Bench, path| {
        bench
            .gateway
            .namespaces()
            .description(path)
            .unwrap()
            .max_message_bytes
    };
    assert!(STANDARD < size(&bench, "q"));
    bench.run(|gateway, cx| gateway.set_tier(cx, "", Tier::Standard));
    assert_eq!((size(&bench, "q"), size(&bench, "t")), (STANDARD, STANDARD));
    let made = entity(create(&mut bench, "small", Properties::default())).description;
    assert_eq!(made.max_message_bytes, STANDARD);
    let kilobytes = |size| Properties {
        max_message_kilobytes: Some(size),
        ..Properties::default()
    };
    for (path, size) in [("large", 1024), ("q", 257)] {
        let refused = if path == "q" {
            update(&mut bench, path, kilobytes(size))
        } else {
            create(&mut bench, path, kilobytes(size))
        };
        check_refused(refused, "allowed: 1 to 256, as the namespace is Standard");
    }
    // Clients send back what they were told.
    let updated = entity(update(&mut bench, "q", kilobytes(256))).description;
    assert_eq!(updated.max_message_bytes, STANDARD);
    let large = Description {
        max_message_bytes: jitney_base::limits::MESSAGE_SIZE_MAX,
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "configured", large))
        .unwrap();
    assert_eq!(size(&bench, "configured"), STANDARD);
    let view = administer(&mut bench, ReadNamespace).unwrap();
    assert_eq!(view.tier, Tier::Standard);
}

#[test]
fn a_partitioned_entity_has_its_size_in_each_partition() {
    const MEGABYTE: u64 = 1024 * 1024;
    let mut bench = Bench::new();
    let sized = |size| Properties {
        max_size_megabytes: Some(size),
        partitioned: Some(true),
        ..Properties::default()
    };
    let made = entity(create(&mut bench, "p", sized(4096))).description;
    assert_eq!(made.max_bytes, 16 * 4096 * MEGABYTE);
    // What was told comes back, and what is another size is one of a partition again.
    let same = entity(update(&mut bench, "p", sized(16 * 4096))).description;
    assert_eq!(same.max_bytes, 16 * 4096 * MEGABYTE);
    let other = entity(update(&mut bench, "p", sized(2048))).description;
    assert_eq!(other.max_bytes, 16 * 2048 * MEGABYTE);
    let plain = of_size(&mut bench, "plain", 2048);
    assert_eq!(plain.max_bytes, 2048 * MEGABYTE);
}

fn of_size(bench: &mut Bench, path: &str, size: u64) -> Description {
    let properties = Properties {
        max_size_megabytes: Some(size),
        ..Properties::default()
    };
    entity(create(bench, path, properties)).description
}

#[test]
fn an_entity_may_forward_to_a_subscription_and_is_never_idle_then() {
    let mut bench = Bench::new();
    let forwards = Properties {
        forward_to: Some("t/Subscriptions/a".to_owned()),
        auto_delete_on_idle: Some(Millis::from_secs(300)),
        ..Properties::default()
    };
    let made = entity(create(&mut bench, "to-a", forwards)).description;
    assert_eq!(made.forward_to.as_deref(), Some("t/Subscriptions/a"));
    assert_eq!(made.auto_delete_on_idle, Millis::from_secs(300));
    assert_eq!(made.idle_deletion(), Millis::MAX);
    let dead = Properties {
        forward_dead_letters_to: Some("q".to_owned()),
        auto_delete_on_idle: Some(Millis::from_secs(300)),
        ..Properties::default()
    };
    let made = entity(create(&mut bench, "dead-to-q", dead)).description;
    assert_eq!(made.auto_delete_on_idle, Millis::from_secs(300));
    assert_eq!(made.idle_deletion(), Millis::MAX);
}

#[test]
fn a_forward_keeps_the_url_that_it_was_given_by() {
    let mut bench = Bench::new();
    for (written, kept) in [
        ("https://host.example/Q", Some("https://host.example/Q")),
        ("sb://host.example/q", Some("sb://host.example/q")),
        ("q", None),
    ] {
        let changed = entity(update(&mut bench, "one", forwarding_to(written))).description;
        assert_eq!(changed.forward_to.as_deref(), Some("q"));
        assert_eq!(changed.forward_to_address.as_deref(), kept);
    }
}

#[test]
fn who_lacks_a_right_is_told_which_in_the_service_s_words() {
    fn told<R: AdminRequest>(request: R) -> String {
        let rights = Rights {
            listen: true,
            ..Rights::default()
        };
        let requester = Requester {
            host: Some("ns.example".to_owned()),
            authority: Authority::of("", rights),
        };
        let done = Bench::new().run(|gateway, cx| gateway.serve(cx, &requester, request));
        done.unwrap_err().to_string()
    }

    let read = |path: &str| ReadEntity {
        path: path.to_owned(),
    };
    let claims = "Manage,EntityRead claims required for this operation.";
    assert_eq!(told(read("q")), claims);
    // Whether there is such a queue is not said.
    assert_eq!(told(read("none")), claims);
    assert_eq!(
        told(read("t/Subscriptions/a")),
        "SubCode=40100: Unauthorized : Unauthorized access for 'GetSubscription' operation on \
         endpoint 'sb://ns.example/t/Subscriptions/a'."
    );
    let delete = DeleteEntity {
        path: "q".to_owned(),
        revision: None,
    };
    assert_eq!(
        told(delete),
        "SubCode=40100: Unauthorized : Authorization failed for specified action: \
         Manage,EntityDelete."
    );
}

#[test]
fn so_many_entities_are_made_and_no_more() {
    let mut bench = Bench::new();
    let base = bench.id("q");
    // Names without queues: only their number matters here.
    let namespaces = bench.gateway.namespaces_mut();
    namespaces.fill_directory(jitney_broker::limits::ENTITIES_MAX - 1, base);
    assert!(create(&mut bench, "last", Properties::default()).is_ok());
    let refused = create(&mut bench, "one-more", Properties::default());
    assert!(
        matches!(
            refused,
            Err(Denied {
                kind: DeniedKind::Limit,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn one_of_several_namespaces_leaves_entities_to_the_others() {
    let max = jitney_broker::limits::ENTITIES_MAX;
    let mut bench = Bench::new();
    let base = bench.id("q");
    let namespaces = bench.gateway.namespaces_mut();
    namespaces.fill_directory(max - max / 3, base);
    assert!(namespaces.check_entity_count("another", None).is_ok());
    namespaces.set_namespaces(["first", "other"].into_iter());
    let refused = namespaces.check_entity_count("another", None).unwrap_err();
    assert_eq!(
        (refused.kind, refused.text.as_str()),
        (
            DeniedKind::Limit,
            "The namespace has 66667 entities, and 66667 are its share of the broker's 100000."
        )
    );
    assert!(namespaces.check_entity_count("//other/queue", None).is_ok());
    assert!(namespaces.check_entity_count("q", Some(base)).is_ok());
}

#[test]
fn a_topic_is_accessed_when_a_subscription_is_made_though_that_is_no_use_of_it() {
    let mut bench = Bench::new();
    let accessed = |bench: &mut Bench| {
        let path = "t".to_owned();
        entity(administer(bench, ReadEntity { path })).accessed_at
    };
    let before = accessed(&mut bench);
    bench.now = bench.now.after(Millis::from_secs(60));
    assert_eq!(
        accessed(&mut bench),
        before,
        "it is told of, and not accessed"
    );
    create(&mut bench, "t/Subscriptions/new", Properties::default()).unwrap();
    assert_eq!(accessed(&mut bench), Some(bench.now));
}

#[test]
fn changes_within_one_millisecond_have_times_of_their_own() {
    let mut bench = Bench::new();
    let about = |text: &str| Properties {
        user_metadata: Some(text.to_owned()),
        ..Properties::default()
    };
    let made = entity(create(&mut bench, "x", about("1")))
        .description
        .history;
    assert_eq!((made.created_at, made.updated_at), (bench.now, bench.now));
    let mut before = made.updated_at;
    for text in ["2", "3"] {
        let changed = entity(update(&mut bench, "x", about(text)));
        let history = changed.description.history;
        assert_eq!(history.created_at, made.created_at);
        assert!(before < history.updated_at, "they are compared");
        before = history.updated_at;
    }
    // The time of others is the clock's.
    let other = entity(create(&mut bench, "y", about("1")))
        .description
        .history;
    assert_eq!(other.created_at, bench.now);
    bench.now = bench.now.after(Millis::from_secs(1));
    let changed = entity(update(&mut bench, "x", about("4")));
    assert_eq!(changed.description.history.updated_at, bench.now);
}

#[test]
fn a_refusal_says_a_duration_as_it_is_written() {
    let mut bench = Bench::new();
    let second = Some(Millis::from_secs(1));
    for (properties, words) in [
        (
            Properties {
                auto_delete_on_idle: second,
                ..Properties::default()
            },
            "AutoDeleteOnIdle: found 'PT1S'; allowed: PT5M or more.",
        ),
        (
            Properties {
                duplicate_window: second,
                ..Properties::default()
            },
            "DuplicateDetectionHistoryTimeWindow: found 'PT1S'; allowed: PT20S to P7D.",
        ),
        (
            Properties {
                lock_duration: Some(Millis::MAX),
                ..Properties::default()
            },
            "LockDuration: found 'P10675199DT2H48M5.4775807S'; allowed: PT1S to PT5M.",
        ),
    ] {
        check_refused(create(&mut bench, "x", properties), words);
    }
}

#[test]
fn what_a_deleted_entity_has_counted_stays_in_the_counts_of_its_namespace() {
    let mut bench = Bench::new();
    let total = |bench: &mut Bench| {
        let now = bench.now;
        let found = bench.gateway.namespaces().statistics(now, 1_000);
        let mut all = MessageCounts::default();
        for entity in &found.entities {
            let main = entity
                .queues
                .iter()
                .filter(|(kind, _)| *kind == SubQueue::Main);
            main.for_each(|(_, queue)| all.add(queue));
        }
        (all, found.deleted.into_values().next())
    };
    for path in ["q", "q", "t"] {
        bench.send(path, message("m"));
    }
    let (before, deleted) = total(&mut bench);
    // The topic has two subscriptions.
    assert_eq!((before.arrived, deleted), (4, None));
    for path in ["q", "t"] {
        bench.run(|gateway, cx| gateway.namespaces_mut().delete_entity(cx, path));
    }
    let (after, deleted) = total(&mut bench);
    assert_eq!((after.arrived, deleted), (0, Some(before)));
}
