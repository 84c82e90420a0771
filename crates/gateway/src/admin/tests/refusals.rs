//! Refused requests, and the answers to them.

use super::super::AdminError;
use super::{asked, entry, operation, put};
use crate::Tracking;
use crate::limits;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Denied, DeniedKind};

fn check<T: std::fmt::Debug>(refused: Result<T, AdminError>, status: u16, text: &str) {
    let refusal = refused.unwrap_err();
    let tracking = Tracking {
        id: "id-1",
        system: "contoso",
        at: Timestamp::from_millis(1_600_000_000_123),
    };
    let answer = refusal.render(&tracking);
    assert_eq!(answer.status, status, "{refusal}");
    assert!(
        refusal.to_string().contains(text),
        "{refusal}\nhas no {text}"
    );
}

/// Checks that a description is refused, and which of its elements is named.
fn check_element(content: &str, text: &str) {
    check(
        put("/q", None, &entry("QueueDescription", content)),
        400,
        text,
    );
}

fn check_rule(content: &str, text: &str) {
    let body = entry("RuleDescription", content);
    check(put("/t/Subscriptions/s/Rules/r", None, &body), 400, text);
}

#[test]
fn paths_and_queries_that_name_nothing_are_refused() {
    check(operation("GET", "/"), 400, "the path: found '/'");
    check(operation("GET", "/a//b"), 400, "the path: found '/a//b'");
    check(operation("GET", "/%ff"), 400, "percent-encoded UTF-8");
    check(
        operation("GET", "/$Resources/rules"),
        404,
        "'/$Resources/rules'",
    );
    check(operation("GET", "/$cbs"), 404, "'/$cbs'");
    check(
        operation("GET", &format!("/{}", "a".repeat(9000))),
        400,
        "longer than",
    );
    let list = |query: &str| operation("GET", &format!("/$Resources/Queues?{query}"));
    check(list("$skip=-1"), 400, "$skip: found '-1'");
    check(list("%24top=x"), 400, "$top: found 'x'");
    check(list("$top=0"), 400, "$top: found '0'");
    check(
        list("$skip=99999999999999999999999"),
        400,
        "$skip: found '999",
    );
    check(list("$filter=endswith(path,'a')"), 400, "$filter: found");
}

#[test]
fn methods_are_refused_where_they_make_no_sense() {
    check(operation("POST", "/q"), 405, "'POST'");
    check(asked("PUT", "/$Resources/Queues", None), 405, "'PUT'");
    check(asked("DELETE", "/$namespaceinfo", None), 405, "'DELETE'");
    check(asked("DELETE", "/t/Subscriptions/", None), 405, "'DELETE'");
}

#[test]
fn versions_that_are_none_of_ours_are_not_there() {
    check(
        asked("DELETE", "/q", Some("\"abc\"")),
        412,
        "If-Match: found '\"abc\"'",
    );
    check(asked("PUT", "/q", Some("")), 412, "If-Match: found ''");
}

#[test]
fn wrong_values_are_told_with_their_elements() {
    check_element(
        "<LockDuration>1 minute</LockDuration>",
        "LockDuration: found '1 minute'",
    );
    for text in [
        "", "P", "PT", "P1", "P1S", "PT1D", "PT1S1M", "-PT1M", "PT1.S", "P1DT",
    ] {
        let content = format!("<AutoDeleteOnIdle>{text}</AutoDeleteOnIdle>");
        check_element(&content, "AutoDeleteOnIdle: found");
    }
    check_element(
        "<RequiresSession>yes</RequiresSession>",
        "RequiresSession: found 'yes'",
    );
    check_element(
        "<MaxDeliveryCount>-1</MaxDeliveryCount>",
        "MaxDeliveryCount: found '-1'",
    );
    check_element(
        "<MaxDeliveryCount>4294967296</MaxDeliveryCount>",
        "MaxDeliveryCount: found '4294967296'",
    );
    check_element(
        "<Status>active</Status>",
        "Status: found 'active'; allowed: Active,",
    );
    check_element(
        "<Status>Active</Status><Status>Active</Status>",
        "Status: found twice; allowed: once in QueueDescription",
    );
}

#[test]
fn descriptions_belong_where_they_are_sent() {
    let queue = entry("QueueDescription", "");
    check(
        put("/t/Subscriptions/s", None, &queue),
        400,
        "found 'QueueDescription'",
    );
    check(
        put("/t/Subscriptions/s/Rules/r", None, &queue),
        400,
        "allowed: RuleDescription",
    );
    let subscription = entry("SubscriptionDescription", "");
    check(
        put("/q", None, &subscription),
        400,
        "allowed: QueueDescription or TopicDescription",
    );
    check(put("/q", None, ""), 400, "there is no element");
    check(
        put("/q", None, "<QueueDescription/>"),
        400,
        "the body: found 'QueueDescription'",
    );
    check(put("/q", None, "<entry/>"), 400, "content: found nothing");
    check(
        put("/q", None, "<entry><content/></entry>"),
        400,
        "content: found ''",
    );
}

#[test]
fn authorization_rules_need_a_name_a_key_and_rights() {
    let rules = |content: &str| {
        format!(
            "<AuthorizationRules><AuthorizationRule>{content}</AuthorizationRule>\
             </AuthorizationRules>"
        )
    };
    let name = "<KeyName>k</KeyName>";
    let key = "<PrimaryKey>p</PrimaryKey>";
    let rights = "<Rights><AccessRights>Send</AccessRights></Rights>";
    let whole = rules(&format!("{name}{key}{rights}"));
    assert!(put("/q", None, &entry("QueueDescription", &whole)).is_ok());
    check_element(&rules(&format!("{key}{rights}")), "KeyName: found nothing");
    check_element(
        &rules(&format!("{name}{rights}")),
        "PrimaryKey: found nothing",
    );
    check_element(&rules(&format!("{name}{key}")), "Rights: found nothing");
    let wrong = rights.replace("Send", "Read");
    check_element(
        &rules(&format!("{name}{key}{wrong}")),
        "AccessRights: found 'Read'",
    );
}

#[test]
fn rules_that_cannot_be_are_refused_with_the_place() {
    let sql = |class: &str, tag: &str, text: &str| {
        format!("<{tag} i:type='{class}'><SqlExpression>{text}</SqlExpression></{tag}>")
    };
    check_rule(
        &sql("SqlFilter", "Filter", "a = = 1"),
        "SqlExpression of Filter:",
    );
    check_rule(&sql("SqlFilter", "Filter", "a = = 1"), "character 5");
    check_rule(
        &sql("SqlRuleAction", "Action", "SET"),
        "SqlExpression of Action:",
    );
    check_rule(
        "<Filter i:type='SqlFilter'/>",
        "SqlExpression: found nothing",
    );
    check_rule(
        "<Filter i:type='JsonFilter'/>",
        "Filter: found 'JsonFilter'",
    );
    check_rule("<Filter/>", "Filter: found ''");
    check_rule("<Action i:type='x'/>", "Action: found 'x'");
    check_rule(
        "<Filter i:type='CorrelationFilter'/>",
        "at least one property",
    );
    let values = |content: &str| {
        format!("<Filter i:type='CorrelationFilter'><Properties>{content}</Properties></Filter>")
    };
    let pair = |class: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>k</Key><Value i:type='x:{class}'>{text}</Value>\
             </KeyValueOfstringanyType>"
        )
    };
    for (class, text) in [
        ("int", "2147483648"),
        ("byte", "128"),
        ("long", "1.0"),
        ("double", "one"),
        ("double", "1e999"),
        ("boolean", "maybe"),
        ("dateTime", "yesterday"),
        ("duration", "1"),
        ("guid", "1"),
        ("char", "55296"),
        ("unknown", "1"),
    ] {
        check_rule(&values(&pair(class, text)), "Value: found");
    }
    let twice = pair("int", "1").repeat(2);
    check_rule(&values(&twice), "Key: found 'k'; allowed: each name once");
    let nameless = "<KeyValueOfstringanyType><Value/></KeyValueOfstringanyType>";
    check_rule(&values(nameless), "Key: found nothing");
}

#[test]
fn a_body_that_is_too_long_is_not_read() {
    check(
        put("/q", None, &" ".repeat(limits::ADMIN_BODY_BYTES_MAX + 1)),
        413,
        "too long",
    );
}

#[test]
fn refusals_are_told_as_clients_look_for_them() {
    let text = || "The messaging entity 'a<b' is so.".to_owned();
    let told = |refusal: AdminError| {
        refusal.render(&Tracking {
            id: "id-1",
            system: "contoso",
            at: Timestamp::from_millis(1_600_000_000_123),
        })
    };
    for (kind, status, code) in [
        (DeniedKind::InvalidField, 400, "40000"),
        (DeniedKind::Unauthorized, 401, "40100"),
        (DeniedKind::Limit, 403, "40300"),
        (DeniedKind::NotFound, 404, "40400"),
        (DeniedKind::Exists, 409, "40900"),
        (DeniedKind::Changed, 412, "41200"),
        (DeniedKind::Full, 503, "50004"),
    ] {
        let is_busy = kind == DeniedKind::Full;
        let answer = told(Denied::new(kind, text(), "").into());
        assert_eq!(answer.status, status);
        assert_eq!(answer.retry_after_seconds.is_some(), is_busy);
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{status}</Code>\
             <Detail>SubCode={code}. The messaging entity 'a&lt;b' is so. TrackingId:id-1, \
             SystemTracker:contoso, Timestamp:2020-09-13T12:26:40.123Z</Detail></Error>"
        );
        assert_eq!(answer.body, expected);
    }
    let own = Denied::new(
        DeniedKind::Unauthorized,
        "SubCode=40103. The signature is wrong",
        "",
    );
    let own = told(own.into()).body;
    assert!(
        own.contains("<Detail>SubCode=40103. The signature is wrong. Tracking"),
        "{own}"
    );
}

#[test]
fn what_is_newer_than_the_version_of_a_client_is_refused() {
    let body = |size| {
        let size = format!("<MaxMessageSizeInKilobytes>{size}</MaxMessageSizeInKilobytes>");
        entry("QueueDescription", &size)
    };
    for version in ["2017-04", "2014-01"] {
        let refused = put(&format!("/q?api-version={version}"), None, &body(1024));
        let text = "MaxMessageSizeInKilobytes: found '1024'; allowed: nothing before \
                    api-version=2021-05";
        check(refused, 400, text);
    }
    for target in ["/q?api-version=2021-05", "/q?api-version=2024-05", "/q"] {
        assert!(put(target, None, &body(1024)).is_ok(), "{target}");
    }
}

#[test]
fn the_words_about_a_right_are_the_service_s() {
    let told = |text: &str| {
        let refusal = AdminError::from(Denied::new(DeniedKind::Unauthorized, text, ""));
        refusal.render(&Tracking {
            id: "id-1",
            system: "contoso",
            at: Timestamp::from_millis(1_600_000_000_123),
        })
    };
    let read = told("Manage,EntityRead claims required for this operation.");
    let begins = "<Detail>Manage,EntityRead claims required for this operation. TrackingId:id-1";
    assert!(read.body.contains(begins), "{}", read.body);
    assert_eq!(read.reason, None);
    let get = told("SubCode=40100: Unauthorized : Unauthorized access for 'GetSubscription'.");
    let reason = get.reason.unwrap();
    assert!(
        reason.starts_with("SubCode=40100: Unauthorized : Unauthorized access for 'GetSub"),
        "{reason}"
    );
    let queue = told("SubCode=40100: Unauthorized : Authorization failed for specified action.");
    assert_eq!(queue.reason, None);
}
