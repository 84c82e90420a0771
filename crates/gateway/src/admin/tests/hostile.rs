//! Bodies and addresses that mean harm, or are broken: each is an error, and none takes long.

use proptest::prelude::*;

use super::super::{AdminError, AdminRequest};
use super::{asked, entry};
use crate::limits;

const REQUESTS: [&str; 4] = [
    include_str!("requests/python-queue-create.txt"),
    include_str!("requests/javascript-subscription-create.txt"),
    include_str!("requests/go-subscription-create.txt"),
    include_str!("requests/java-queue-update.txt"),
];

fn wanted() -> AdminRequest {
    asked("PUT", "/t/Subscriptions/s/Rules/r", None).unwrap()
}

fn check(body: impl AsRef<[u8]>, text: &str) {
    let refused = wanted().operation(body.as_ref()).unwrap_err();
    assert!(
        refused.to_string().contains(text),
        "{refused}\nhas no {text}"
    );
}

fn of_length(text: &str, length: usize) -> String {
    text.repeat(length / text.len() + 1)
}

#[test]
fn a_document_that_is_cut_off_anywhere_is_refused() {
    for request in REQUESTS {
        let (_, body) = request.split_once("\n\n").unwrap();
        let body = body.trim_end();
        for end in 0..body.len() {
            let refused = wanted().operation(&body.as_bytes()[..end]);
            assert!(
                matches!(refused, Err(AdminError::Malformed(_))),
                "{end} of {body}"
            );
        }
    }
}

#[test]
fn there_are_no_document_types_and_no_entities_of_ones_own() {
    let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>\
                  <entry>&b;</entry>";
    check(laughs, "document types are not allowed");
    check(
        "<!DOCTYPE entry SYSTEM \"file:///etc/passwd\"><entry/>",
        "document types",
    );
    check("<entry>&b;</entry>", "the entity 'b' is not known");
    check("<entry a='&b;'/>", "the body is no XML");
    check("<entry>&#0;</entry>", "the body is no XML");
    check("<entry>&#x1;</entry>", "a character that XML does not have");
    check("<entry>&#xFFFFFFFF;</entry>", "the body is no XML");
    check("<entry>\u{1}</entry>", "a character that XML does not have");
}

#[test]
fn other_encodings_are_refused() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    check(utf16(&entry("RuleDescription", "")), "it is not UTF-8");
    check(b"<entry>\xc3\x28</entry>", "it is not UTF-8");
    check(b"\x00\x00\xfe\xff<entry/>", "it is not UTF-8");
}

#[test]
fn what_is_too_much_is_refused() {
    let deep = format!(
        "{}{}",
        "<a>".repeat(limits::XML_DEPTH_MAX + 1),
        "</a>".repeat(limits::XML_DEPTH_MAX + 1)
    );
    check(&deep, "nested more than");
    check(
        "<a>".repeat(limits::ADMIN_BODY_BYTES_MAX / 3),
        "nested more than",
    );
    check(
        format!("<a>{}</a>", "<b/>".repeat(limits::XML_ELEMENTS_MAX)),
        "more than 4096 elements",
    );
    check(
        format!("<a b='{}'/>", "x".repeat(200_000)),
        "too many attributes",
    );
    check(format!("<a b='{}'/>", "x".repeat(1_000_000)), "too long");
    let many = (0..=limits::XML_ATTRIBUTES_MAX).map(|at| format!(" b{at}='x'"));
    let many = many.collect::<Vec<_>>().concat();
    check(format!("<a{many}/>"), "too many attributes");
    let spaces = (0..5_000).map(|at| format!(" xmlns:b{at}='urn:{at}'"));
    let spaces = spaces.collect::<Vec<_>>().concat();
    check(format!("<a{spaces}/>"), "the body is no XML");
    check(
        format!("<a>{}</a>", "x".repeat(limits::XML_TEXT_BYTES_MAX + 1)),
        "a text is longer",
    );
    check(
        format!(
            "<a>{}</a>",
            of_length("&amp;", limits::XML_TEXT_BYTES_MAX * 5 + 5)
        ),
        "a text is longer",
    );
    check(
        format!("<a>{}</a>", of_length("<![CDATA[x]]>", 250_000)),
        "the body",
    );
    check(of_length("<!-- -->", 250_000), "there is no element");
    check("<a><b></a></b>", "the body is no XML");
    check("<a/><a/>", "there is a second element");
    check("<a/>b", "text outside");
    check("<a b='1' b='2'/>", "the body is no XML");
    check("<x:a/>", "the prefix 'x' is not bound");
}

#[test]
fn what_was_sent_is_told_in_part_only() {
    let long = "x".repeat(10_000);
    let content = format!("<Filter i:type='{}'/>", &long[..1000]);
    let refused = wanted().operation(entry("RuleDescription", &content).as_bytes());
    assert!(refused.unwrap_err().to_string().len() < 300);
    let refused = wanted().operation(format!("<a></{long}>").as_bytes());
    assert!(refused.unwrap_err().to_string().len() < 300);
    let refused = asked(&long, &format!("/$Resources/{}", &long[..5000]), None);
    assert!(refused.unwrap_err().to_string().len() < 300);
}

proptest! {
    #[test]
    fn no_bytes_do_harm(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = wanted().operation(&body);
    }

    #[test]
    fn no_text_that_looks_like_xml_does_harm(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "<", ">", "</", "/>", "<entry", "<content>", "</content>", "</entry>", "xmlns", ":",
                "='", "'", "\"", "&", ";", "#", "x", "<![CDATA[", "]]>", "<!--", "-->", "<?", "?>",
                "<!DOCTYPE", "<RuleDescription>", "</RuleDescription>", " ", "\u{e9}", "\r", "]",
                "<Filter i:type='SqlFilter'>", "</Filter>", "<SqlExpression>", "&amp;", "&#65;",
            ]),
            0..40,
        ),
    ) {
        let _ = wanted().operation(parts.concat().as_bytes());
    }

    #[test]
    fn no_change_of_a_byte_does_harm(
        which in 0..REQUESTS.len(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let (_, body) = REQUESTS[which].split_once("\n\n").unwrap();
        let mut body = body.as_bytes().to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        let _ = wanted().operation(&body);
        let subscription = asked("PUT", "/t/Subscriptions/s", None).unwrap();
        let _ = subscription.operation(&body);
        let queue = asked("PUT", "/q", Some("*")).unwrap();
        let _ = queue.operation(&body);
    }

    #[test]
    fn no_address_does_harm(
        method in "GET|PUT|DELETE|[A-Z]{0,3}", target in "[/$%?&=#.a-z0-9\u{e9}]{0,60}",
    ) {
        if let Ok(asked) = asked(&method, &target, None) {
            prop_assert!(asked.needs_body() || asked.operation(b"").is_ok());
        }
    }
}
