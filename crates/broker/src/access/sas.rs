//! Shared access signatures: tokens that prove a key without showing it
//! (`cbs.md#shared-access-signatures`).

use std::borrow::Cow;

use aws_lc_rs::hmac;
use percent_encoding::percent_decode_str;

use super::{Fault, TokenRefused};
use crate::limits;
use jitney_base::address;
use jitney_base::rights::Key;
use jitney_base::time::Timestamp;

const SCHEME: &str = "SharedAccessSignature ";

/// Returns whether text claims to be such a token.
pub(super) fn is_sas(token: &str) -> bool {
    let scheme = token.get(..SCHEME.len());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// `SharedAccessSignature sr=..&sig=..&se=..&skn=..`, taken apart and not yet believed.
pub(super) struct SasToken<'a> {
    /// The signed text: resource and expiry as they are in the token, because clients encode them
    /// each in their own way.
    signed: String,
    signature: Vec<u8>,
    names: Vec<Cow<'a, str>>,
    /// The resource of the token.
    pub(super) resource: Resource,
    /// When it ends.
    pub(super) expires_at: Timestamp,
}

impl<'a> SasToken<'a> {
    /// Takes a token apart; its fields may come in any order.
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenRefused> {
        let malformed = |what: &str| {
            Err(TokenRefused::new(
                Fault::Malformed,
                format!("The SAS token is malformed: {what}."),
            ))
        };
        if limits::TOKEN_BYTES_MAX < token.len() {
            return malformed("it is too long");
        }
        let Some(fields) = token.get(SCHEME.len()..).filter(|_| is_sas(token)) else {
            return malformed("it does not begin with 'SharedAccessSignature '");
        };
        let mut found: [Option<&str>; 4] = [None; 4];
        for field in fields.trim().split('&') {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            let Some(slot) = NAMES.iter().position(|known| *known == name) else {
                continue;
            };
            if let Some(slot) = found.get_mut(slot)
                && slot.replace(value).is_some()
            {
                return malformed(&format!("the field '{name}' is given twice"));
            }
        }
        for (name, value) in NAMES.iter().zip(found) {
            if value.is_none_or(str::is_empty) {
                return malformed(&format!("the field '{name}' is missing"));
            }
        }
        let [resource, signature, expiry, name] = found.map(Option::unwrap_or_default);
        // Encoding makes it three times as long. What is longer is not even decoded.
        if 3 * limits::TOKEN_RESOURCE_BYTES_MAX < resource.len() {
            return malformed(&too_long_a_resource());
        }
        let Ok(seconds) = expiry.parse::<i64>() else {
            return malformed("the field 'se' is not a number of seconds");
        };
        // Text that is not base64 is no key's signature.
        let signature = decode_base64(signature).unwrap_or_default();
        let Some(decoded) = decode_form(resource) else {
            return malformed("the field 'sr' is not a URL");
        };
        if limits::TOKEN_RESOURCE_BYTES_MAX < decoded.len() {
            return malformed(&too_long_a_resource());
        }
        let of = Resource::read(&decoded);
        if let Resource::Path(path) = &of
            && limits::TOKEN_RESOURCE_SLASHES_MAX < path.matches('/').count()
        {
            let most = limits::TOKEN_RESOURCE_SLASHES_MAX;
            return malformed(&format!(
                "the path in the field 'sr' has more than {most} slashes"
            ));
        }
        Ok(Self {
            signed: format!("{resource}\n{expiry}"),
            signature,
            names: names(name),
            resource: of,
            expires_at: Timestamp::from_millis(seconds.saturating_mul(1000)),
        })
    }

    /// Returns whether a key's name is the one that the token gives. Python encodes it twice.
    pub(super) fn names(&self, rule: &str) -> bool {
        self.names.iter().any(|name| name == rule)
    }

    /// Returns the name by which failed attempts with the token's key are counted: the same however often the token encodes it.
    pub(super) fn counted_name(&self) -> &str {
        self.names.last().map_or("", |name| name)
    }

    /// Returns whether the token was signed with a key, in a time that does not depend on how much
    /// of it is right.
    pub(super) fn is_signed_with(&self, key: &Key) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
        hmac::verify(&key, self.signed.as_bytes(), &self.signature).is_ok()
    }
}

/// Says that a token is for more than any address.
fn too_long_a_resource() -> String {
    let most = limits::TOKEN_RESOURCE_BYTES_MAX;
    format!("the field 'sr' has more than {most} bytes, which no URL of an entity has")
}

/// The fields of a token.
const NAMES: [&str; 4] = ["sr", "sig", "se", "skn"];

/// The resource that a token names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// The entity at this path, in the form that compares without case, and all below it; empty for a
    /// whole namespace.
    Path(String),
    /// A name without a scheme, which may be that of a host or that of an entity.
    Unclear(String),
}

impl Resource {
    /// Reads what a token says to be for. Scheme, host, port, query and the management node are not
    /// looked at (`cbs.md#audiences`).
    ///
    /// Without a scheme the first part counts as a host only where it can be nothing else: a token
    /// for `orders` must not be one for everything on a host of that name.
    fn read(text: &str) -> Self {
        if let Some(rest) = address::behind_scheme(text) {
            return Self::Path(path_behind_host(rest));
        }
        let host = text.split_once('/').map_or(text, |(host, _)| host);
        if is_host(host) || (host.len() < text.len() && host.contains('.')) {
            return Self::Path(path_behind_host(text));
        }
        Self::Unclear(text.to_owned())
    }
}

/// Returns whether a name without a scheme is that of a host, and of no entity: it has a port, is a
/// loopback name, an address, or one of the service's.
fn is_host(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let numbers = name.split('.').map(str::parse::<u8>);
    let is_address = numbers.clone().count() == 4 && numbers.flatten().count() == 4;
    let is_local = name == "localhost" || is_address;
    name.contains(':') || is_local || SERVICE_HOSTS.iter().any(|it| name.ends_with(it))
}

/// The domains of the service's namespaces in its clouds.
const SERVICE_HOSTS: [&str; 3] = [
    ".servicebus.windows.net",
    ".servicebus.chinacloudapi.cn",
    ".servicebus.usgovcloudapi.net",
];

/// Finds the path in what a client that calls its namespace by a host calls an audience. It only
/// chooses a part of what a token is for, so that another name without a scheme is the entity's.
#[must_use]
pub fn audience_path(text: &str, host: &str) -> String {
    match Resource::read(text) {
        Resource::Path(path) => path,
        Resource::Unclear(text) if text.eq_ignore_ascii_case(host) => String::new(),
        Resource::Unclear(text) if text.contains('/') => path_behind_host(&text),
        Resource::Unclear(text) => path_key(&text),
    }
}

/// Finds the path in a URL without its scheme.
fn path_behind_host(text: &str) -> String {
    let path = text.split_once('/').map_or("", |(_, path)| path);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    // A URL inside of the token is encoded once more.
    let key = path_key(path);
    match key.strip_suffix("$management") {
        Some("") => String::new(),
        Some(entity) if entity.ends_with('/') => entity.trim_end_matches('/').to_owned(),
        Some(_) | None => key,
    }
}

/// Returns the form of an encoded path that compares without case. It has no slash at its ends, not an
/// encoded one either: what begins with two is a path of another namespace.
pub(super) fn path_key(path: &str) -> String {
    let path = percent_decode_str(path).decode_utf8_lossy();
    address::key(path.trim_matches('/'))
}

/// The name as it is, decoded, and decoded once more.
fn names(text: &str) -> Vec<Cow<'_, str>> {
    let mut names = vec![Cow::Borrowed(text)];
    if let Some(once) = decode_form(text) {
        let twice = decode_form(&once).map(|twice| Cow::Owned(twice.into_owned()));
        names.push(Cow::Owned(once.into_owned()));
        names.extend(twice);
    }
    names
}

/// Decodes what a form would hold: a plus sign is a blank.
fn decode_form(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('+') {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8().ok()?;
        return Some(Cow::Owned(decoded.into_owned()));
    }
    percent_decode_str(text).decode_utf8().ok()
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let text = percent_decode_str(text).decode_utf8().ok()?;
    base64::engine::general_purpose::STANDARD
        .decode(text.as_bytes())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: &str, expected: Result<&str, &str>) {
        match (SasToken::parse(token), expected) {
            (Ok(token), Ok(resource)) => {
                assert_eq!(token.resource, Resource::Path(resource.to_owned()));
            }
            (Err(found), Err(expected)) => {
                assert!(found.to_string().contains(expected), "{found}");
            }
            (found, expected) => panic!("{token}: {:?}, {expected:?}", found.map(|it| it.signed)),
        }
    }

    #[test]
    fn a_token_has_four_fields_in_any_order() {
        check(
            "SharedAccessSignature sr=h.x%2fa&sig=YmI%3D&se=1&skn=k",
            Ok("a"),
        );
        check(
            "sharedaccesssignature skn=k&se=1&sig=YmI=&sr=localhost",
            Ok(""),
        );
        check(
            "SharedAccessSignature sr=a&sig=YmI=&se=1",
            Err("'skn' is missing"),
        );
        check(
            "SharedAccessSignature sr=a&sr=a&sig=YmI=&se=1&skn=k",
            Err("'sr' is given twice"),
        );
        check(
            "SharedAccessSignature sr=a&sig=YmI=&se=x&skn=k",
            Err("'se' is not a number"),
        );
        check("Bearer x", Err("does not begin"));
        let long = format!(
            "SharedAccessSignature sr={}",
            "a".repeat(limits::TOKEN_BYTES_MAX)
        );
        check(&long, Err("too long"));
    }

    #[test]
    fn a_resource_is_no_longer_than_a_url_of_an_entity() {
        let token =
            |resource: &str| format!("SharedAccessSignature sr={resource}&sig=YmI=&se=1&skn=k");
        let fits = "a".repeat(limits::TOKEN_RESOURCE_BYTES_MAX - "sb://h/".len());
        check(&token(&format!("sb%3A%2F%2Fh%2F{fits}")), Ok(&fits));
        let segments = "a/".repeat(limits::TOKEN_BYTES_MAX / 2 - 50);
        for long in [format!("{fits}a"), segments, "%2F".repeat(1_020)] {
            check(&token(&format!("sb://h/{long}")), Err("'sr' has more than"));
        }
        // Each slash is a lookup, also one that is encoded twice.
        let fits = "a/".repeat(limits::TOKEN_RESOURCE_SLASHES_MAX) + "a";
        check(&token(&format!("sb://h/{fits}")), Ok(&fits));
        for slash in ["/", "%2F", "%252F"] {
            let long = format!("a{slash}").repeat(limits::TOKEN_RESOURCE_SLASHES_MAX + 1);
            check(&token(&format!("sb://h/{long}a")), Err("slashes"));
        }
    }

    #[test]
    fn a_name_is_counted_as_one_however_it_is_encoded() {
        for name in [
            "Root Key/x",
            "Root+Key/x",
            "Root%20Key%2Fx",
            "Root%2520Key%252Fx",
        ] {
            let token = format!("SharedAccessSignature sr=sb://h&sig=YmI=&se=1&skn={name}");
            let token = SasToken::parse(&token).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(token.counted_name(), "Root Key/x", "{name}");
        }
    }

    #[test]
    fn what_a_token_is_for_is_found_in_whatever_form() {
        for (text, path) in [
            ("sb://host/Queue1", "queue1"),
            ("amqps://host:5671/q%201/$management", "q 1"),
            ("https://host", ""),
            ("https://host/", ""),
            ("host.x/topic/Subscriptions/eu", "topic/subscriptions/eu"),
            ("https://host/q1?api-version=2021-05", "q1"),
            ("sb://host/$management", ""),
            ("sb://host/q$management", "q$management"),
            ("sb://host/q/x://host/other", "q/x://host/other"),
            ("sb://host/%2F%2fother%2Fq", "other/q"),
            ("localhost", ""),
            ("127.0.0.29", ""),
            ("host:5671", ""),
            ("ns.ServiceBus.windows.net", ""),
            ("127.0.0.1:5671/q", "q"),
        ] {
            assert_eq!(Resource::read(text), Resource::Path(path.to_owned()));
            assert_eq!(audience_path(text, "h"), path, "{text}");
        }
    }

    #[test]
    fn a_name_without_a_scheme_is_not_taken_for_a_host() {
        for (text, as_audience) in [
            ("queue1", "queue1"),
            ("orders.created", "orders.created"),
            ("orders.1.2.3", "orders.1.2.3"),
            ("team/queue1", "queue1"),
            ("q/x://host/other", "x://host/other"),
            ("", ""),
        ] {
            assert_eq!(Resource::read(text), Resource::Unclear(text.to_owned()));
            assert_eq!(audience_path(text, "h"), as_audience, "{text}");
        }
    }

    /// A token of each SDK, made by that SDK for the key `key!` and far in the future.
    #[test]
    fn signatures_of_all_encodings_are_found_right() {
        let key = Key::new("key!".to_owned());
        let other = Key::new("key?".to_owned());
        let sign = |resource: &str| {
            use base64::Engine as _;
            let mac = hmac::Key::new(hmac::HMAC_SHA256, b"key!");
            let tag = hmac::sign(&mac, format!("{resource}\n4102444800").as_bytes());
            let text = base64::engine::general_purpose::STANDARD.encode(tag.as_ref());
            percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
        };
        for resource in [
            "sb%3A%2F%2Flocalhost%3A5672%2Fq",
            "sb%3a%2f%2flocalhost%2fq",
            "https%3a%2f%2flocalhost%2fq%3fapi-version%3d2021-05",
            "amqp%3A%2F%2Flocalhost%2Fq",
        ] {
            let signature = sign(resource);
            let token = format!(
                "SharedAccessSignature sr={resource}&sig={signature}&se=4102444800&skn=Root%2BKey%252Fx"
            );
            let token = SasToken::parse(&token).unwrap_or_else(|error| panic!("{error}"));
            assert!(token.is_signed_with(&key), "{resource}");
            assert!(!token.is_signed_with(&other), "{resource}");
            assert_eq!(token.resource, Resource::Path("q".to_owned()));
            assert!(token.names("Root Key/x"), "{:?}", token.names);
        }
    }
}
