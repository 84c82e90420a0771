//! The resource that the address of a request names (`administration.md#requests`).
//!
//! A path is split at its slashes first and decoded then: `a%2Fb` is one segment of a path, and
//! names the same queue as `a/b`. The fixed segments compare without case.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::refusal::AdminError;
use super::xml::{excerpt, wrong};
use crate::limits;
use jitney_base::address;
use jitney_broker::namespace::administration::Listed;

/// The resource that an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A queue or a topic.
    Entity(String),
    /// A page of a list.
    List {
        what: Listed,
        skip: usize,
        top: usize,
    },
    /// A page of a subscription's rules.
    Rules {
        subscription: String,
        skip: usize,
        top: usize,
    },
    /// The namespace.
    Namespace,
    /// A rule, by its subscription's path and its name.
    Rule(String, String),
    /// A subscription.
    Subscription(String),
}

/// The characters of a path that are encoded: those that would end it. JavaScript shows the rest to
/// its users as it is.
const PATH: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

impl Target {
    /// Reads a path and a query, as they are in the request.
    pub(super) fn read(path: &str, query: Option<&str>) -> Result<Self, AdminError> {
        if limits::ADMIN_TARGET_BYTES_MAX < path.len() + query.map_or(0, str::len) {
            let problem = format!(
                "the address is longer than {} bytes",
                limits::ADMIN_TARGET_BYTES_MAX
            );
            return Err(AdminError::Malformed(problem));
        }
        let parts = path.trim_matches('/').split('/');
        let parts: Vec<String> = parts.map(decode).collect::<Result<_, _>>()?;
        // An encoded slash counts as one, and two leading slashes are the prefix of another
        // namespace.
        if parts
            .iter()
            .flat_map(|part| part.split('/'))
            .any(str::is_empty)
        {
            return Err(wrong(
                "the path",
                path,
                "the name of an entity, such as /orders or /news/Subscriptions/eu",
            ));
        }
        let words: Vec<&str> = parts.iter().map(String::as_str).collect();
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        match words.as_slice() {
            [info] if is(info, "$namespaceinfo") => Ok(Self::Namespace),
            [resources, kind] if is(resources, "$Resources") => match () {
                () if is(kind, "Queues") => Self::of_entities(query, Listed::Queues),
                () if is(kind, "Topics") => Self::of_entities(query, Listed::Topics),
                () => Err(unknown(path)),
            },
            // Other reserved names of the service, which no entity has.
            [first, ..] if first.starts_with('$') => Err(unknown(path)),
            [topic @ .., subscriptions, name, rules, rule]
                if !topic.is_empty()
                    && is(subscriptions, "Subscriptions")
                    && is(rules, "Rules") =>
            {
                let subscription = address::subscription(&topic.join("/"), name);
                Ok(Self::Rule(subscription, (*rule).to_owned()))
            }
            [topic @ .., subscriptions, name, rules]
                if !topic.is_empty()
                    && is(subscriptions, "Subscriptions")
                    && is(rules, "Rules") =>
            {
                let subscription = address::subscription(&topic.join("/"), name);
                Self::of_parts(query, |skip, top| Self::Rules {
                    subscription,
                    skip,
                    top,
                })
            }
            [topic @ .., subscriptions, name]
                if !topic.is_empty() && is(subscriptions, "Subscriptions") =>
            {
                let subscription = address::subscription(&topic.join("/"), name);
                Ok(Self::Subscription(subscription))
            }
            [topic @ .., subscriptions]
                if !topic.is_empty() && is(subscriptions, "Subscriptions") =>
            {
                let what = Listed::Subscriptions(topic.join("/"));
                Self::of_parts(query, |skip, top| Self::List { what, skip, top })
            }
            // No entity: the service calls the request wrong, and .NET makes an ArgumentException of that alone.
            [.., queue] if is(queue, "$DeadLetterQueue") => Err(wrong(
                "the path",
                path,
                "the name of an entity, without that of a sub-queue",
            )),
            entity => Ok(Self::Entity(entity.join("/"))),
        }
    }
}

impl Target {
    /// Reads the query of a list of queues or topics.
    fn of_entities(query: Option<&str>, what: fn(String) -> Listed) -> Result<Self, AdminError> {
        let Page { skip, top, prefix } = page(query.unwrap_or_default())?;
        let what = what(prefix.unwrap_or_default());
        Ok(Self::List { what, skip, top })
    }

    /// Reads the query of a list of subscriptions or rules, which has no filter.
    fn of_parts(
        query: Option<&str>,
        target: impl FnOnce(usize, usize) -> Self,
    ) -> Result<Self, AdminError> {
        let Page { skip, top, prefix } = page(query.unwrap_or_default())?;
        match prefix {
            None => Ok(target(skip, top)),
            Some(prefix) => Err(wrong(
                "$filter",
                &prefix,
                "no filter but of queues and topics",
            )),
        }
    }
}

fn unknown(path: &str) -> AdminError {
    AdminError::Unknown(format!("there is nothing at '{}'", excerpt(path)))
}

/// The part of a list that a query asks for.
struct Page {
    skip: usize,
    top: usize,
    /// How the paths begin, if there is a filter.
    prefix: Option<String>,
}

/// Reads the part of a list that a query asks for.
fn page(query: &str) -> Result<Page, AdminError> {
    let mut page = Page {
        skip: 0,
        top: jitney_broker::limits::LISTED_MAX,
        prefix: None,
    };
    for (name, value) in pairs(query) {
        let name = decode(name)?.to_ascii_lowercase();
        let number = || {
            let value = decode(value)?;
            let number = value.parse::<usize>();
            number.map_err(|_| wrong(&name, &value, "a whole number, not negative"))
        };
        match name.as_str() {
            "$skip" => page.skip = number()?,
            // An empty page would link to itself.
            "$top" => match number()? {
                0 => return Err(wrong("$top", "0", "a whole number from 1 on")),
                wanted => page.top = wanted.min(jitney_broker::limits::LISTED_MAX),
            },
            "$filter" => {
                let text = decode(&value.replace('+', " "))?;
                let prefix = prefix(&text)
                    .ok_or_else(|| wrong("$filter", &text, "startswith(path, 'PREFIX') eq true"))?;
                page.prefix = Some(prefix);
            }
            _ => {}
        }
    }
    Ok(page)
}

/// Returns how the paths begin that a filter is for: `startswith(path, 'text')`, with or without `eq true`. The service knows
/// no other filter (azure-service-bus#16, #667).
fn prefix(filter: &str) -> Option<String> {
    let rest = after_word(filter, "startswith")?.strip_prefix('(')?;
    let rest = after_word(rest, "path")?.strip_prefix(',')?;
    let mut rest = rest.trim_start().strip_prefix('\'')?;
    let mut prefix = String::new();
    loop {
        let (text, tail) = rest.split_once('\'')?;
        prefix.push_str(text);
        // A quotation mark in a text is written twice.
        match tail.strip_prefix('\'') {
            Some(_) => prefix.push('\''),
            None => {
                rest = tail;
                break;
            }
        }
        rest = tail.get(1..)?;
    }
    let rest = rest.trim_start().strip_prefix(')')?;
    let is_all = rest.trim().is_empty() || {
        let value = after_word(rest, "eq")?;
        value.trim().eq_ignore_ascii_case("true")
    };
    is_all.then_some(prefix)
}

/// Returns what comes after a word, which compares without case, and the space around it.
fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let text = text.trim_start();
    let (found, rest) = text.split_at_checked(word.len())?;
    found.eq_ignore_ascii_case(word).then(|| rest.trim_start())
}

/// Returns the names and values of a query, encoded.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Returns whether a name in a query, encoded, is that of the filter.
pub(super) fn is_filter(name: &str) -> bool {
    percent_decode_str(name).eq(b"$filter".iter().copied())
}

/// Decodes a part of a path or a query.
fn decode(text: &str) -> Result<String, AdminError> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| wrong("the address", text, "percent-encoded UTF-8"))?;
    Ok(decoded.into_owned())
}

/// Encodes a path as in all URLs here: clients differ in the characters they encode.
pub(super) fn normal(path: &str) -> String {
    encode(&percent_decode_str(path).decode_utf8_lossy())
}

/// Encodes a path for a URL.
pub(super) fn encode(path: &str) -> String {
    utf8_percent_encode(path, &PATH).to_string()
}
