//! Authorization of connections: for what, and for how long.

use crate::limits;
use base64::Engine as _;
use bytes::Bytes;
use jitney_amqp::Identity;
use jitney_base::address;
use jitney_base::rights::AuthorizationRule;
use jitney_base::rights::Right;
use jitney_base::rights::Rights;
use jitney_base::secret::Secret;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Access;
use jitney_broker::access::Attempt;
use jitney_broker::access::Authority;
use jitney_broker::access::FailedAttempts;
use jitney_broker::access::Fault;
use jitney_broker::access::Inquiry;
use jitney_broker::access::Origin;
use jitney_broker::access::PeerAddress;
use jitney_broker::access::Profile;
use jitney_broker::namespace::DeniedKind;

use super::*;
use crate::Report;
use crate::amqp::tests::{Bench, inquiry};
use jitney_amqp::{
    Attach, DeliveryId, Event, IncomingTransfer, LinkRole, LinkTarget, Outcome, SessionId,
};
use jitney_base::memory::{Budget, Memory, Purpose};
use jitney_base::rights::Key;

pub(super) const NOW: i64 = 1_800_000_000;
pub(super) const GUEST: ConnectionId = ConnectionId(7);

fn rule(name: &str, key: &str, rights: &str) -> AuthorizationRule {
    AuthorizationRule {
        name: name.to_owned(),
        rights: Rights {
            send: rights.contains('S'),
            listen: rights.contains('L'),
            manage: rights.contains('M'),
        },
        primary_key: Key::new(key.to_owned()),
        secondary_key: Some(Key::new(format!("{key}2"))),
        created_at: None,
        modified_at: None,
    }
}

pub(super) fn sas(resource: &str, name: &str, key: &str, ends: i64) -> String {
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let resource = encode(resource);
    let mac = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, key.as_bytes());
    let tag = aws_lc_rs::hmac::sign(&mac, format!("{resource}\n{ends}").as_bytes());
    let signature = base64::engine::general_purpose::STANDARD.encode(tag.as_ref());
    let signature = encode(&signature);
    format!("SharedAccessSignature sr={resource}&sig={signature}&se={ends}&skn={name}")
}

/// A broker that verifies, with rules `root` and `ears` on the namespace, `mouth` on the queue `q`
/// and `news` on the topic `t`.
pub(super) fn guarded() -> Bench {
    let mut bench = Bench::new();
    bench.now = Timestamp::from_millis(NOW * 1000);
    bench.gateway.access = Access::new(Profile::Verified);
    let rules = vec![rule("root", "r", "SLM"), rule("ears", "e", "L")];
    bench.gateway.set_authorization("", rules);
    for (path, rule) in [
        ("q", rule("mouth", "m", "S")),
        ("t", rule("news", "n", "L")),
    ] {
        let mut description = bench
            .gateway
            .namespaces()
            .description(path)
            .unwrap()
            .clone();
        description.authorization.push(rule);
        bench.run(|gateway, cx| gateway.ensure_entity(cx, path, description).unwrap());
    }
    bench
}

pub(super) fn put(bench: &mut Bench, audience: &str, token: &str) -> Result<(), Fault> {
    let kind = "servicebus.windows.net:sastoken";
    let put = bench.run(|gateway, cx| gateway.put_token(cx, GUEST, kind, audience, token));
    put.map_err(|refused| refused.fault)
}

fn rights(bench: &Bench, path: &str) -> String {
    let all = [
        ("S", Right::Send),
        ("L", Right::Listen),
        ("M", Right::Manage),
    ];
    let may = all
        .into_iter()
        .filter(|(_, right)| bench.gateway.may(GUEST, path, Some(*right)));
    may.map(|(letter, _)| letter).collect()
}

#[test]
fn a_token_gives_what_its_key_gives_where_it_is_for() {
    let mut bench = guarded();
    let ends = NOW + 60;
    for (resource, name, key, given) in [
        ("sb://h/q", "root", "r", "SLM"),
        ("sb://h/", "root", "r2", "SLM"),
        ("https://h/Q/", "ears", "e", "L"),
        ("sb://h/q", "mouth", "m", "S"),
        ("amqps://h:5671/q", "mouth", "m2", "S"),
    ] {
        let token = sas(resource, name, key, ends);
        assert_eq!(
            put(&mut bench, "sb://h/q", &token),
            Ok(()),
            "{resource} {name}"
        );
        assert_eq!(rights(&bench, "q"), given, "{resource} {name}");
        assert_eq!(rights(&bench, "two"), "", "{resource} {name}");
    }
    let token = sas("sb://h/t", "news", "n", ends);
    assert_eq!(
        put(&mut bench, "amqp://h/t/Subscriptions/a/$management", &token),
        Ok(())
    );
    assert_eq!(rights(&bench, "t/Subscriptions/a"), "L");
    assert_eq!(rights(&bench, "t/Subscriptions/b"), "");
}

#[test]
fn a_token_that_is_not_right_gives_nothing() {
    let mut bench = guarded();
    let ends = NOW + 60;
    let good = sas("sb://h/q", "root", "r", ends);
    for (token, fault) in [
        (sas("sb://h/q", "root", "guess", ends), Fault::Signature),
        (sas("sb://h/q", "unknown", "r", ends), Fault::Signature),
        (sas("sb://h/two", "mouth", "m", ends), Fault::Signature),
        (sas("sb://h/", "mouth", "m", ends), Fault::Signature),
        (sas("sb://h/q", "root", "r", NOW), Fault::Expired),
        (sas("sb://h/two", "root", "r", ends), Fault::Audience),
        (sas("sb://h/q1", "root", "r", ends), Fault::Audience),
        (
            sas("sb://h/q/Subscriptions/x", "root", "r", ends),
            Fault::Audience,
        ),
        (good.replace("&se=1", "&se=2"), Fault::Signature),
        (good.replace("sig=", "sig=%41"), Fault::Signature),
        (good.replace("&sig=", "&gis="), Fault::Malformed),
        ("a.b.c".to_owned(), Fault::Malformed),
    ] {
        assert_eq!(put(&mut bench, "sb://h/q", &token), Err(fault), "{token}");
        assert_eq!(rights(&bench, "q"), "", "{token}");
    }
}

#[test]
fn a_refusal_names_the_rule_that_the_token_gives_and_nothing_of_its_signature() {
    let mut bench = guarded();
    let mut refused = |token: &str| {
        let kind = "servicebus.windows.net:sastoken";
        let put = bench.run(|gateway, cx| gateway.put_token(cx, GUEST, kind, "sb://h/q", token));
        put.unwrap_err()
    };
    let long = "n".repeat(2 * jitney_broker::limits::LOGGED_MAX);
    for (token, rule) in [
        (
            sas("sb://h/q", "unknown", "guess", NOW + 60),
            Some("unknown"),
        ),
        (sas("sb://h/two", "root", "r", NOW + 60), Some("root")),
        (sas("sb://h/q", "root", "r", NOW), Some("root")),
        (
            sas("sb://h/q", &long, "r", NOW + 60),
            Some(&long[..jitney_broker::limits::LOGGED_MAX]),
        ),
        ("a.b.c".to_owned(), None),
    ] {
        let told = refused(&token);
        assert_eq!(told.rule.as_deref(), rule, "{token}");
        let signature = token
            .split("sig=")
            .nth(1)
            .and_then(|it| it.split('&').next());
        let all = format!("{told:?}");
        assert!(signature.is_none_or(|it| !all.contains(it)), "{all}");
    }
}

#[test]
fn failures_are_bounded_and_others_are_let_in() {
    let mut bench = guarded();
    bench.gateway.connected(
        GUEST,
        Origin {
            peer: PeerAddress(1),
            ..Origin::default()
        },
    );
    let bad = sas("sb://h/q", "root", "guess", NOW + 600);
    for _ in 0..jitney_broker::limits::AUTHENTICATION_FAILURES_MAX {
        assert_eq!(put(&mut bench, "sb://h/q", &bad), Err(Fault::Signature));
    }
    let throttled = put(&mut bench, "sb://h/q", &bad);
    assert!(
        matches!(throttled, Err(Fault::Throttled(_))),
        "{throttled:?}"
    );
    // A client with the key is admitted all the same, and one that guesses is not told more afterwards.
    let good = sas("sb://h/q", "root", "r", NOW + 600);
    assert_eq!(put(&mut bench, "sb://h/q", &good), Ok(()));
    let throttled = put(&mut bench, "sb://h/q", &bad);
    assert!(
        matches!(throttled, Err(Fault::Throttled(_))),
        "{throttled:?}"
    );
    let others = sas("sb://h/q", "ears", "guess", NOW + 600);
    assert_eq!(put(&mut bench, "sb://h/q", &others), Err(Fault::Signature));
    bench.gateway.connected(
        GUEST,
        Origin {
            peer: PeerAddress(2),
            ..Origin::default()
        },
    );
    assert_eq!(put(&mut bench, "sb://h/q", &bad), Err(Fault::Signature));
}

#[test]
fn failures_count_for_the_name_that_the_token_gives() {
    let guess = |number: i64| sas("sb://h/q", "root", "guess", NOW + 600 + number);
    // The parser reads another name in these, or none.
    let decoys: [fn(&str) -> String; 4] = [
        |token| token.replace("&sig=", "& skn=decoy&sig="),
        |token| token.replace("Signature sr=", "Signature a& skn=decoy&sr="),
        |token| token.replace("skn=root", "skn=%72oot"),
        |token| token.replace("skn=root", "skn=%2572oot"),
    ];
    for decoy in decoys {
        let mut bench = guarded();
        for number in 0..jitney_broker::limits::AUTHENTICATION_FAILURES_MAX {
            let put = put(&mut bench, "sb://h/q", &decoy(&guess(number)));
            assert_eq!(put, Err(Fault::Signature));
        }
        let next = put(&mut bench, "sb://h/q", &guess(-1));
        assert!(matches!(next, Err(Fault::Throttled(_))), "{next:?}");
    }
    // What is malformed gives no name, and counts for the address.
    let mut bench = guarded();
    for number in 0..jitney_broker::limits::AUTHENTICATION_FAILURES_MAX {
        let malformed = guess(number).replace("skn=root", &format!("skn=root&skn={number}"));
        let put = put(&mut bench, "sb://h/q", &malformed);
        assert_eq!(put, Err(Fault::Malformed));
    }
    let next = put(&mut bench, "sb://h/q", &guess(0).replace("&se=", "&es="));
    assert!(matches!(next, Err(Fault::Throttled(_))), "{next:?}");
    assert_eq!(
        put(&mut bench, "sb://h/q", &guess(0)),
        Err(Fault::Signature)
    );
}

#[test]
fn a_namespace_that_is_not_there_is_answered_as_one_whose_key_the_client_has_not() {
    let mut bench = guarded();
    let names = ["one", "two"].into_iter();
    bench.gateway.namespaces_mut().set_namespaces(names);
    let good = sas("sb://h/", "root", "r", NOW + 60);
    let bad = sas("sb://h/", "root", "guess", NOW + 60);
    let expired = sas("sb://h/", "root", "r", NOW - 60);
    let malformed = good.replace("&sig=", "&gis=");
    for token in [
        None,
        Some(&good),
        Some(&bad),
        Some(&expired),
        Some(&malformed),
    ] {
        let token = token.map(String::as_str);
        let there = inquiry(Some("two"), token, "/q");
        let nowhere = Inquiry {
            nowhere: Some("three".to_owned()),
            ..inquiry(Some("three"), token, "/q")
        };
        let [there, nowhere] = [there, nowhere].map(|inquiry| {
            let refused = bench.gateway.authorize(bench.now, &inquiry).map(drop);
            refused.unwrap_err().to_string()
        });
        assert_eq!(there, nowhere);
    }
}

#[test]
fn a_guess_in_a_supplementary_token_counts_as_one() {
    let mut bench = guarded();
    let main = sas("sb://h/q", "root", "r", NOW + 60);
    for number in 0..jitney_broker::limits::AUTHENTICATION_FAILURES_MAX {
        let guess = sas("sb://h/two", "ears", "guess", NOW + 60 + number);
        let inquiry = Inquiry {
            supplementary: vec![Secret::new(guess)],
            ..inquiry(Some("h"), Some(&main), "/q")
        };
        assert!(bench.gateway.authorize(bench.now, &inquiry).is_ok());
    }
    let next = sas("sb://h/q", "ears", "guess", NOW + 60);
    let next = authorize(&mut bench, &next, "/q").map(drop);
    assert!(matches!(next, Err(Fault::Throttled(_))), "{next:?}");
}

fn plain(name: &str, password: &str) -> Identity {
    Identity::Plain {
        user: name.to_owned(),
        password: Secret::new(password),
    }
}

/// Hands a report to a gateway, and returns whether the identity in it was accepted.
fn authenticate(bench: &mut Bench, report: Report) -> bool {
    bench.run(|gateway, cx| gateway.apply(cx, GUEST, report));
    match bench.told.pop().map(|routed| routed.reply) {
        Some(Reply::Authenticated(is_genuine)) => is_genuine,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_identity_that_several_shards_are_asked_about_fails_once() {
    let mut shards = [guarded(), guarded()];
    let attempts = FailedAttempts::default();
    for shard in &mut shards {
        shard.gateway.share_failed_attempts(attempts.clone());
    }
    let wrong = || plain("root", "guess");
    let right = || Report::TryIdentity(plain("root", "r"));
    // The other shard may have these keys, but no peer may try any number at once.
    for _ in 0..jitney_broker::limits::AUTHENTICATION_FAILURES_MAX {
        assert!(authenticate(&mut shards[0], right()));
        assert!(!authenticate(&mut shards[0], Report::TryIdentity(wrong())));
    }
    let must_wait = |now| attempts.wait(now, PeerAddress::default(), "root").is_some();
    for shard in &mut shards {
        assert!(must_wait(shard.now), "one too many at once");
        assert!(authenticate(shard, right()), "a good key is accepted");
        shard.now = shard.now.after(Millis::from_secs(1));
    }
    for _ in 0..jitney_broker::limits::AUTHENTICATION_FAILURES_MAX {
        assert!(authenticate(&mut shards[0], right()));
        assert!(!authenticate(&mut shards[0], Report::TryIdentity(wrong())));
        let last = Event::Authenticating { identity: wrong() };
        assert!(!authenticate(&mut shards[1], Report::Event(last)));
    }
    for shard in &mut shards {
        assert!(must_wait(shard.now), "the peer must wait everywhere");
        assert!(authenticate(shard, right()));
        assert!(must_wait(shard.now), "it has not become a good peer");
    }
    for shard in &mut shards {
        shard.now = shard
            .now
            .after(jitney_broker::limits::AUTHENTICATION_FAILURE_LEAK);
        assert!(!must_wait(shard.now));
    }
}

pub(super) fn attach(bench: &mut Bench, link: u32, role: LinkRole, path: &str) {
    use fe2o3_amqp_types::messaging::Target;
    let target = LinkTarget::Node(Some(Target::builder().address(path).build()));
    attach_from(bench, link, role, path, target);
}

fn attach_to(bench: &mut Bench, link: u32, role: LinkRole, target: LinkTarget) {
    attach_from(bench, link, role, "me", target);
}

pub(super) fn attach_from(
    bench: &mut Bench,
    link: u32,
    role: LinkRole,
    path: &str,
    target: LinkTarget,
) {
    use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
    use fe2o3_amqp_types::messaging::Source;
    let attach = Attach {
        name: format!("link {link}"),
        role,
        session: SessionId(0),
        source: Some(Source::builder().address(path).build()),
        target,
        snd_settle_mode: SenderSettleMode::default(),
        rcv_settle_mode: ReceiverSettleMode::default(),
        message_size_max: 0,
        properties: None,
    };
    let event = Event::AttachRequested(LinkId(link), Box::new(attach));
    bench.run(|gateway, cx| gateway.apply(cx, GUEST, Report::Event(event)));
}

/// Returns what links were told: `+1` for accepted, `-1` for refused, `!1` for detached.
pub(super) fn told(bench: &mut Bench) -> Vec<String> {
    let told = std::mem::take(&mut bench.told).into_iter();
    let told = told.filter_map(|routed| match routed.reply {
        Reply::AcceptLink(link, _) => Some(format!("+{}", link.0)),
        Reply::RefuseLink(link, why) => {
            assert_eq!(why.kind, DeniedKind::Unauthorized);
            Some(format!("-{}", link.0))
        }
        Reply::Detach(link, why) => {
            assert_eq!(why.kind, DeniedKind::Unauthorized);
            assert!(why.text.contains("ExpiredToken"), "{}", why.text);
            Some(format!("!{}", link.0))
        }
        _ => None,
    });
    told.collect()
}

/// Lets time pass.
pub(super) fn later(bench: &mut Bench, time: Millis) {
    bench.now = bench.now.after(time);
    bench.run(|_, _| ());
}

#[test]
fn links_end_with_the_token_that_they_need_unless_it_is_renewed() {
    let mut bench = guarded();
    for path in ["q", "two"] {
        let token = sas(&format!("sb://h/{path}"), "root", "r", NOW + 60);
        put(&mut bench, &format!("sb://h/{path}"), &token).unwrap();
    }
    bench.told.clear();
    attach(&mut bench, 1, LinkRole::Incoming, "q");
    attach(&mut bench, 2, LinkRole::Outgoing, "q");
    attach(&mut bench, 3, LinkRole::Incoming, "q/$management");
    attach(&mut bench, 4, LinkRole::Incoming, "two");
    assert_eq!(told(&mut bench), ["+1", "+2", "+3", "+4"]);
    let renewed = sas("sb://h/two", "root", "r", NOW + 120);
    put(&mut bench, "sb://h/two", &renewed).unwrap();
    bench.now = Timestamp::from_millis(NOW * 1000 + 60_000);
    assert_eq!(bench.gateway.poll_timeout(), Some(bench.now));
    bench.run(|_, _| ());
    assert_eq!(told(&mut bench), ["!1", "!2", "!3"]);
    // One that gives less ends what it does not give.
    let token = sas("sb://h/q", "mouth", "m", NOW + 300);
    put(&mut bench, "sb://h/q", &token).unwrap();
    attach(&mut bench, 5, LinkRole::Incoming, "q");
    attach(&mut bench, 6, LinkRole::Outgoing, "q");
    assert_eq!(told(&mut bench), ["+5", "-6"]);
    bench.now = Timestamp::from_millis(NOW * 1000 + 120_000);
    bench.run(|_, _| ());
    assert_eq!(told(&mut bench), ["!4"]);
}

#[test]
fn an_unauthenticated_peer_learns_nothing_of_what_there_is() {
    let mut bench = guarded();
    attach(&mut bench, 1, LinkRole::Incoming, "q");
    attach(&mut bench, 2, LinkRole::Outgoing, "nothing");
    assert_eq!(told(&mut bench), ["-1", "-2"]);
    // The attaches to management nodes wait for a token, whether there is such a node or not.
    attach(&mut bench, 3, LinkRole::Incoming, "nothing/$management");
    attach(&mut bench, 4, LinkRole::Outgoing, "q/$management");
    assert!(told(&mut bench).is_empty());
    later(&mut bench, limits::EARLY_ATTACH_WAIT);
    assert_eq!(told(&mut bench), ["-3", "-4"]);
    for link in 10..20 {
        attach(&mut bench, link, LinkRole::Outgoing, "$cbs");
    }
    let told = told(&mut bench);
    let admit = ["+10", "+11", "+12", "+13", "+14", "+15", "-16"];
    assert_eq!(told[..7], admit);
}

/// Declares a transaction, and returns whether it was declared.
fn declares(bench: &mut Bench, link: u32) -> bool {
    let event = Event::Transfer(IncomingTransfer {
        link: LinkId(link),
        delivery: DeliveryId(0),
        payload: Bytes::from_static(&[0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45]),
        message_format: 0,
        settled: false,
        transaction: None,
    });
    bench.told.clear();
    bench.run(|gateway, cx| gateway.apply(cx, GUEST, Report::Event(event)));
    let told = std::mem::take(&mut bench.told);
    told.iter().any(|routed| {
        let Reply::SettleIncoming { outcome, .. } = &routed.reply else {
            return false;
        };
        matches!(outcome, Outcome::Declared(_))
    })
}

#[test]
fn an_unauthenticated_peer_declares_a_bounded_number_of_transactions() {
    let mut bench = guarded();
    attach_to(&mut bench, 1, LinkRole::Incoming, LinkTarget::Coordinator);
    assert_eq!(told(&mut bench), ["+1"]);
    for _ in 0..limits::UNAUTHENTICATED_TRANSACTIONS_MAX {
        assert!(declares(&mut bench, 1));
    }
    assert!(!declares(&mut bench, 1), "one more than the bound");
    let token = sas("sb://h/q", "root", "r", NOW + 60);
    put(&mut bench, "sb://h/q", &token).unwrap();
    assert!(declares(&mut bench, 1), "a right was proved");
    // The token ends, and the coordinator needs none.
    bench.now = Timestamp::from_millis(NOW * 1000 + 60_000);
    bench.told.clear();
    bench.run(|_, _| ());
    assert!(told(&mut bench).is_empty());
    assert!(!declares(&mut bench, 1), "there are more than the bound");
    for link in 2..=limits::UNAUTHENTICATED_LINKS_MAX {
        let link = u32::try_from(link).unwrap();
        attach_to(
            &mut bench,
            link,
            LinkRole::Incoming,
            LinkTarget::Coordinator,
        );
    }
    attach_to(&mut bench, 99, LinkRole::Incoming, LinkTarget::Coordinator);
    assert_eq!(told(&mut bench).last().unwrap(), "-99");
}

#[test]
fn cbs_is_opened_once_on_a_connection() {
    let mut bench = guarded();
    attach(&mut bench, 1, LinkRole::Incoming, "$cbs");
    attach(&mut bench, 2, LinkRole::Outgoing, "$cbs");
    assert_eq!(told(&mut bench), ["+1", "+2"]);
    attach(&mut bench, 3, LinkRole::Incoming, "$cbs");
    let refused = bench.told.iter().any(|routed| {
        let Reply::RefuseLink(LinkId(3), why) = &routed.reply else {
            return false;
        };
        why.kind == DeniedKind::NotAllowed
    });
    assert!(refused);
}

#[test]
fn a_key_in_sasl_is_as_good_as_a_token() {
    let mut bench = guarded();
    for (user, password, of_q, of_two) in [
        ("root", "r", "SLM", "SLM"),
        ("ears", "e2", "L", "L"),
        ("mouth", "m", "S", ""),
        ("mouth", "r", "", ""),
        ("unknown", "r", "", ""),
    ] {
        let identity = Identity::Plain {
            user: user.to_owned(),
            password: Secret::new(password),
        };
        bench.run(|gateway, cx| gateway.authenticate(cx.now, GUEST, &identity, Attempt::Last));
        let genuine = bench
            .told
            .iter()
            .any(|routed| matches!(routed.reply, Reply::Authenticated(true)));
        bench.told.clear();
        assert_eq!(genuine, !of_q.is_empty(), "{user}");
        assert_eq!(rights(&bench, "q"), of_q, "{user}");
        assert_eq!(rights(&bench, "two"), of_two, "{user}");
    }
    let certificate = Some("ears".to_owned());
    bench.gateway.connected(
        GUEST,
        Origin {
            certificate,
            ..Origin::default()
        },
    );
    bench
        .run(|gateway, cx| gateway.authenticate(cx.now, GUEST, &Identity::External, Attempt::Last));
    assert_eq!(rights(&bench, "q"), "L");
}

#[test]
fn namespaces_do_not_share_keys() {
    let mut bench = guarded();
    bench
        .gateway
        .namespaces_mut()
        .set_namespaces(["one", "other"].into_iter());
    bench
        .gateway
        .set_authorization("other", vec![rule("root", "o", "SLM")]);
    let path = format!("{}q", address::namespace_prefix("other"));
    bench.run(|gateway, cx| {
        let description = jitney_queue::Description::default();
        gateway.ensure_entity(cx, &path, description).unwrap();
    });
    let (mine, others) = (
        sas("sb://h/q", "root", "r", NOW + 9),
        sas("sb://h/q", "root", "o", NOW + 9),
    );
    assert_eq!(put(&mut bench, "sb://h/q", &others), Err(Fault::Signature));
    bench.run(|gateway, _| gateway.opened(GUEST, Some("other.example.com")));
    assert_eq!(put(&mut bench, "sb://h/q", &mine), Err(Fault::Signature));
    assert_eq!(put(&mut bench, "sb://h/q", &others), Ok(()));
    assert_eq!(rights(&bench, &path), "SLM");
    assert_eq!(rights(&bench, "q"), "");
}

#[test]
fn what_goes_on_to_another_entity_ends_with_the_token_for_that() {
    let mut bench = guarded();
    for (path, ends) in [("q", NOW + 600), ("two", NOW + 60)] {
        let resource = format!("sb://h/{path}");
        let token = sas(&resource, "root", "r", ends);
        put(&mut bench, &resource, &token).unwrap();
    }
    bench.told.clear();
    let link = Link::Sender {
        deliveries: 0,
        queue: bench.gateway.namespaces().resolve_path("q").unwrap(),
        destination: Some("two".into()),
        group: None,
    };
    bench
        .gateway
        .connection(GUEST)
        .links
        .insert(LinkId(1), link);
    bench.now = Timestamp::from_millis(NOW * 1000 + 60_000);
    bench.run(|_, _| ());
    assert_eq!(told(&mut bench), ["!1"]);
}

#[test]
fn a_namespace_has_its_keys_however_its_name_is_written() {
    let mut bench = guarded();
    bench
        .gateway
        .namespaces_mut()
        .set_namespaces(["First", "MyNs"].into_iter());
    bench
        .gateway
        .set_authorization("First", vec![rule("root", "f", "SLM")]);
    bench
        .gateway
        .set_authorization("MyNs", vec![rule("root", "m", "SLM")]);
    for (host, key) in [
        ("first.example.com", "f"),
        ("MYNS.example.com", "m"),
        ("x", "f"),
    ] {
        bench.run(|gateway, _| gateway.opened(GUEST, Some(host)));
        let token = sas("sb://h/q", "root", key, NOW + 9);
        assert_eq!(put(&mut bench, "sb://h/q", &token), Ok(()), "{host}");
    }
}

fn authorize(bench: &mut Bench, token: &str, path: &str) -> Result<Authority, Fault> {
    let gateway = &mut bench.gateway;
    let authorized = gateway.authorize(bench.now, &inquiry(Some("h"), Some(token), path));
    authorized.map_err(|refused| refused.fault)
}

#[test]
fn a_request_may_what_its_token_is_for_and_not_what_its_key_is_for() {
    let mut bench = guarded();
    let sends = |authority: &Authority, entity| authority.check_messages(entity, Right::Send);
    for (resource, path, good, bad) in [
        ("sb://h/q", "/q/messages", "q", "two"),
        ("https://h/q/messages/head", "/q/messages/head", "q", "two"),
        ("https://h/q/messages", "/q/messages/head", "Q", "q2"),
        ("sb://h/q", "/q/x://h/two/messages", "q/below", "two"),
    ] {
        let token = sas(resource, "root", "r", NOW + 60);
        let authority = authorize(&mut bench, &token, path).unwrap();
        assert_eq!(sends(&authority, good), Ok(()), "{resource}");
        assert!(sends(&authority, bad).is_err(), "{resource}");
        assert!(sends(&authority, "").is_err(), "{resource}");
    }
    // A subscription is made with a token for that alone, and its topic is looked at for it.
    let token = sas("https://h/t/Subscriptions/new", "root", "r", NOW + 60);
    let authority = authorize(&mut bench, &token, "/t/Subscriptions/new").unwrap();
    let manages = |path| authority.check(path, Right::Manage).is_ok();
    assert!(manages("t/Subscriptions/new") && !manages("t") && !manages("q"));
    assert_eq!(authority.check_above("t", Right::Manage), Ok(()));
}

#[test]
fn a_name_without_a_scheme_is_not_the_namespace() {
    let mut bench = guarded();
    for name in ["q", "orders.v1", "two"] {
        let token = sas(name, "root", "r", NOW + 60);
        assert_eq!(put(&mut bench, "sb://h/q", &token), Err(Fault::Malformed));
        assert_eq!(put(&mut bench, name, &token), Err(Fault::Malformed));
        let authorized = authorize(&mut bench, &token, "/two").map(drop);
        assert_eq!(authorized, Err(Fault::Malformed), "{name}");
    }
    // JavaScript signs the host like that for the entity that another forwards to.
    let main = sas("sb://h/q", "root", "r", NOW + 60);
    for (name, reaches) in [("h", true), ("H", true), ("other", false), ("two", false)] {
        let token = sas(name, "root", "r", NOW + 60);
        let host = if name == "two" { "two" } else { "h:5300" };
        let gateway = &mut bench.gateway;
        let inquiry = Inquiry {
            supplementary: vec![Secret::new(token)],
            ..inquiry(Some(host), Some(&main), "/q")
        };
        let authority = gateway.authorize(bench.now, &inquiry);
        let checked = authority.unwrap().check_target("two");
        assert_eq!(checked.is_ok(), reaches, "{name}");
    }
}

#[test]
fn the_bare_name_of_the_client_s_host_is_the_namespace() {
    let mut bench = guarded();
    bench.gateway.connection(GUEST).host = "Bus.example.org".to_owned();
    let token = sas("bus.example.org", "root", "r", NOW + 60);
    assert_eq!(put(&mut bench, "sb://bus.example.org/q", &token), Ok(()));
    assert_eq!(put(&mut bench, "bus.example.org", &token), Ok(()));
    assert_eq!(rights(&bench, "two"), "SLM");
    let mut authorize = |host: &str, token: &str| {
        let (now, token) = (bench.now, Some(token));
        let authorized = bench
            .gateway
            .authorize(now, &inquiry(Some(host), token, "/two"));
        authorized.map(drop).map_err(|refused| refused.fault)
    };
    assert_eq!(authorize("bus.example.org:443", &token), Ok(()));
    let other = authorize("other.example.org", &token);
    assert_eq!(other, Err(Fault::Malformed));
    // A container's name has no dot.
    let plain = sas("bus-emulator", "root", "r", NOW + 60);
    assert_eq!(authorize("bus-emulator:5672", &plain), Ok(()));
    assert_eq!(authorize("bus", &plain), Err(Fault::Malformed));
    // The name of an entity is not the host's.
    let queue = sas("q", "root", "r", NOW + 60);
    assert_eq!(authorize("q", &queue), Err(Fault::Malformed));
    let entity = sas("orders.v1", "root", "r", NOW + 60);
    assert_eq!(authorize("orders.v1", &entity), Ok(()));
    let description = bench.gateway.namespaces().description("q").unwrap().clone();
    bench.run(|gateway, cx| {
        let made = gateway.ensure_entity(cx, "orders.v1", description);
        made.unwrap();
    });
    let mut authorize = |host: &str| {
        let authorized = bench
            .gateway
            .authorize(bench.now, &inquiry(Some(host), Some(&entity), "/two"));
        authorized.map(drop).map_err(|refused| refused.fault)
    };
    assert_eq!(authorize("orders.v1"), Err(Fault::Malformed));
}

#[test]
fn an_audience_tells_nothing_of_entities_beside_it() {
    let mut bench = guarded();
    let token = sas("sb://h/q", "root", "r", NOW + 60);
    for audience in [
        "sb://h/q/x://h/two",
        "sb://h/q/x://h/nothing",
        "sb://h/q/x%3A%2F%2Fh%2Ftwo",
        "sb://h/q/x%253A%252F%252Fh/two",
    ] {
        assert_eq!(put(&mut bench, audience, &token), Ok(()), "{audience}");
        let missing = bench.run(|gateway, _| gateway.missing(GUEST, audience));
        assert!(missing.is_some(), "{audience}");
    }
    let missing = bench.run(|gateway, _| gateway.missing(GUEST, "sb://h/Q"));
    assert_eq!(missing, None);
}

#[test]
fn what_is_kept_of_links_and_tokens_is_counted_and_bounded() {
    let mut bench = guarded();
    let before = bench.gateway.namespaces.memory().counted();
    let ends = NOW + 60;
    let token = sas("sb://h/", "root", "r", ends);
    let below = "b".repeat(300);
    let audience = |number: usize| format!("sb://h/q/{below}{number:05}");
    assert_eq!(put(&mut bench, "sb://h/q", &token), Ok(()));
    let mut refused = None;
    for number in 0..limits::GRANTS_MAX {
        refused = put(&mut bench, &audience(number), &token).err();
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(
        refused,
        Some(Fault::Full),
        "there are as many as there may be"
    );
    let kept = bench.gateway.namespaces.memory().counted() - before;
    assert!(limits::GRANTS_MAX * 300 < kept && kept <= limits::CONNECTION_KEPT_BYTES_MAX);
    let long = format!("sb://h/q/{}", "b".repeat(limits::AUDIENCE_LENGTH_MAX));
    assert_eq!(put(&mut bench, &long, &token), Err(Fault::Audience));
    bench.run(|gateway, cx| gateway.closed(cx, GUEST, &[]));
    assert_eq!(bench.gateway.namespaces.memory().counted(), before);
}

#[test]
fn while_memory_is_full_a_connection_has_few_links_and_tokens() {
    let mut bench = guarded();
    let budget = Budget {
        total: 1024 * 1024,
        ..Budget::default()
    };
    let memory = Memory::new(budget, None);
    bench.gateway.namespaces.replace_memory(memory);
    let memory = bench.gateway.namespaces.memory().clone();
    let mut others = memory.hold(Purpose::Other, 1024 * 1024);
    let token = sas("sb://h/", "root", "r", NOW + 60);
    let below = "b".repeat(300);
    let mut taken = 0;
    let audience = |number: usize| format!("sb://h/q/{below}{number:05}");
    while put(&mut bench, &audience(taken), &token).is_ok() {
        taken += 1;
    }
    assert!((10..100).contains(&taken), "{taken}");
    let next = audience(taken);
    assert_eq!(put(&mut bench, &next, &token), Err(Fault::Full));
    assert!(memory.counted() - others.bytes() <= limits::CONNECTION_KEPT_BYTES_FULL);
    let address = format!("q{}", "/".repeat(1_000));
    attach(&mut bench, 1, LinkRole::Incoming, &address);
    let refused = std::mem::take(&mut bench.told).pop();
    let Some(Reply::RefuseLink(_, why)) = refused.map(|routed| routed.reply) else {
        panic!("a link was accepted")
    };
    assert_eq!(why.kind, DeniedKind::Limit);
    others.resize(0);
    assert_eq!(put(&mut bench, &next, &token), Ok(()));
    attach(&mut bench, 1, LinkRole::Outgoing, "$cbs");
    assert_eq!(told(&mut bench), ["+1"]);
}

#[test]
fn a_link_that_has_gone_is_counted_no_more() {
    let mut bench = guarded();
    let token = sas("sb://h/q", "root", "r", NOW + 60);
    put(&mut bench, "sb://h/q", &token).unwrap();
    let before = bench.gateway.namespaces.memory().counted();
    let address = format!("q{}", "/".repeat(1_000));
    attach(&mut bench, 1, LinkRole::Outgoing, "$cbs");
    attach(&mut bench, 2, LinkRole::Incoming, &address);
    assert_eq!(told(&mut bench), ["+1", "+2"]);
    assert!(before < bench.gateway.namespaces.memory().counted());
    for link in [1, 2] {
        let link = LinkId(link);
        let event = Event::Detached {
            link,
            error: None,
            unsent: Vec::new(),
        };
        bench.run(|gateway, cx| gateway.apply(cx, GUEST, Report::Event(event)));
    }
    assert_eq!(bench.gateway.namespaces.memory().counted(), before);
}
