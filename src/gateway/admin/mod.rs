//! The administration API: ATOM/XML over HTTP, as `ServiceBusAdministrationClient` speaks it
//! (`administration.md#administration-over-http`).
//!
//! A request's head is read first ([`Asked::read`]), then its body ([`Asked::operation`]); the
//! broker does the operation, and its answer is written in the same terms ([`Asked::render`]).
//! Whatever is wrong on the way is a [`Refusal`].
//!
//! Leaves to others: HTTP itself and who is asking to the server, what an operation does and which
//! values an entity may have to the broker.

mod description;
mod entry;
mod limits;
mod refusal;
mod rule;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod write;
mod xml;

use crate::namespace::administration::{Answer, EntityView, Listed, More, Operation, Properties};
use crate::queue::EntityKind;

pub use limits::BODY_BYTES_MAX;
pub use refusal::Refusal;

use entry::Told;
use target::Target;
use xml::{Element, wrong};

/// The first version of the API that has `MaxMessageSizeInKilobytes`.
const MESSAGE_SIZE_SINCE: &str = "2021-05";

/// All of a request but its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, encoded as it is in the request.
    pub path: &'a str,
    /// What stands behind the question mark, likewise.
    pub query: Option<&'a str>,
    /// Whom the client believes to be asking: the value of `Host`.
    pub host: &'a str,
    /// The value of `If-Match`.
    pub if_match: Option<&'a str>,
}

/// What a request asks for, as far as its head tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    wanted: Wanted,
    place: Place,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The words behind the status, if they are not the usual ones.
    pub reason: Option<String>,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The value of `ETag`.
    pub etag: Option<String>,
    /// The value of `Retry-After`.
    pub retry_after_seconds: Option<u32>,
    /// The body.
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// The body adds nothing.
    Operation(Operation),
    /// The body describes what is to be made or changed.
    Put(Described, Condition),
}

/// What a body can describe.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Described {
    /// A queue or a topic, by its path.
    Entity(String),
    /// A rule, by its subscription's path and its name.
    Rule(String, String),
    /// A subscription, by its path.
    Subscription(String),
}

/// What must be there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// Nothing.
    Absent,
    /// This version, or any.
    Present(Option<u64>),
}

/// Where a request went: what the URLs of its answer begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    host: String,
    path: String,
    query: String,
}

impl Asked {
    /// Reads all of a request but its body.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if nothing can be asked for in this way.
    pub fn read(request: &Request<'_>) -> Result<Self, Refusal> {
        let target = Target::read(request.path, request.query)?;
        let wanted = match request.method {
            "GET" => Wanted::Operation(get(target)),
            "PUT" => {
                let condition = match request.if_match {
                    Some(version) => Condition::Present(revision(version)?),
                    None => Condition::Absent,
                };
                Wanted::Put(put(target)?, condition)
            }
            "DELETE" => {
                let revision = request.if_match.map(revision).transpose()?.flatten();
                Wanted::Operation(delete(target, revision)?)
            }
            method => return Err(Refusal::Method(xml::shown(method))),
        };
        Ok(Self {
            wanted,
            place: Place {
                host: request.host.to_owned(),
                path: request.path.to_owned(),
                query: request.query.unwrap_or_default().to_owned(),
            },
        })
    }

    /// Returns whether the body says what to do.
    #[must_use]
    pub const fn needs_body(&self) -> bool {
        matches!(self.wanted, Wanted::Put(..))
    }

    /// Returns the operation that is asked for. The body is looked at only if it is needed.
    ///
    /// # Errors
    ///
    /// [`Refusal`] says which element is wrong, and what would be right.
    pub fn operation(&self, body: &[u8]) -> Result<Operation, Refusal> {
        match &self.wanted {
            Wanted::Operation(operation) => Ok(operation.clone()),
            Wanted::Put(described, condition) => described.operation(*condition, &self.place, body),
        }
    }

    /// Returns the answer to what was asked for.
    #[must_use]
    pub fn render(&self, answer: &Answer) -> Response {
        const ENTRY: &str = "application/atom+xml;type=entry;charset=utf-8";
        const FEED: &str = "application/atom+xml;type=feed;charset=utf-8";
        let place = &self.place;
        let (content_type, body) = match answer {
            Answer::Namespace(view) => (ENTRY, entry::entry(place, view)),
            Answer::Entity(view) => (ENTRY, entry::entry(place, view.as_ref())),
            Answer::Rule(view) => (ENTRY, entry::entry(place, view.as_ref())),
            Answer::Entities(views, more) => (FEED, self.feed(views, *more)),
            Answer::Rules(views, more) => (FEED, self.feed(views, *more)),
            Answer::Deleted => (ENTRY, String::new()),
        };
        let etag = match answer {
            Answer::Entity(view) => Some(etag(view)),
            _ => None,
        };
        let status = match self.wanted {
            Wanted::Put(_, Condition::Absent) => 201,
            Wanted::Put(_, Condition::Present(_)) | Wanted::Operation(_) => 200,
        };
        Response {
            status,
            reason: None,
            content_type,
            etag,
            retry_after_seconds: None,
            body,
        }
    }

    fn feed<T: Told>(&self, told: &[T], more: More) -> String {
        let (title, next) = match &self.wanted {
            Wanted::Operation(Operation::List { what, skip, top }) => {
                let title = match what {
                    Listed::Queues => "Queues",
                    Listed::Topics => "Topics",
                    Listed::Subscriptions(_) => "Subscriptions",
                    Listed::Rules(_) => "Rules",
                };
                let next = (more == More::Yes).then(|| self.place.page(skip + told.len(), *top));
                (title, next)
            }
            Wanted::Operation(_) | Wanted::Put(..) => ("Entities", None),
        };
        entry::feed(&self.place, title, told, next.as_deref())
    }
}

fn get(target: Target) -> Operation {
    match target {
        Target::Entity(path) | Target::Subscription(path) => Operation::Read { path },
        Target::List { what, skip, top } => Operation::List { what, skip, top },
        Target::Namespace => Operation::Namespace,
        Target::Rule(subscription, name) => Operation::ReadRule { subscription, name },
    }
}

fn put(target: Target) -> Result<Described, Refusal> {
    match target {
        Target::Entity(path) => Ok(Described::Entity(path)),
        Target::Rule(subscription, name) => Ok(Described::Rule(subscription, name)),
        Target::Subscription(path) => Ok(Described::Subscription(path)),
        Target::List { .. } | Target::Namespace => Err(Refusal::Method("PUT".to_owned())),
    }
}

fn delete(target: Target, revision: Option<u64>) -> Result<Operation, Refusal> {
    match target {
        Target::Entity(path) | Target::Subscription(path) => {
            Ok(Operation::Delete { path, revision })
        }
        Target::Rule(subscription, name) => match revision {
            None => Ok(Operation::DeleteRule { subscription, name }),
            Some(version) => Err(Refusal::Version(version.to_string())),
        },
        Target::List { .. } | Target::Namespace => Err(Refusal::Method("DELETE".to_owned())),
    }
}

impl Described {
    fn operation(
        &self,
        condition: Condition,
        place: &Place,
        body: &[u8],
    ) -> Result<Operation, Refusal> {
        let entry = xml::read(body)?;
        let described = content(&entry)?;
        match self {
            Self::Rule(subscription, name) => {
                if described.name != "RuleDescription" {
                    return Err(wrong("content", &described.name, "RuleDescription"));
                }
                let subscription = subscription.clone();
                let rule = Box::new(rule::read(described, name.clone())?);
                Ok(match condition {
                    Condition::Absent => Operation::CreateRule { subscription, rule },
                    Condition::Present(None) => Operation::UpdateRule { subscription, rule },
                    // Rules have no versions, so none is there.
                    Condition::Present(Some(version)) => {
                        return Err(Refusal::Version(version.to_string()));
                    }
                })
            }
            Self::Entity(path) | Self::Subscription(path) => {
                let kind = self.kind(described)?;
                let path = path.clone();
                let properties = Box::new(description::read(described)?);
                check_version(&properties, place)?;
                Ok(match (condition, kind) {
                    (Condition::Present(revision), _) => Operation::Update {
                        path,
                        kind,
                        properties,
                        revision,
                    },
                    (Condition::Absent, EntityKind::Subscription) => {
                        let rule = described.child("DefaultRuleDescription")?;
                        let rule = rule.map(rule::read_default).transpose()?;
                        Operation::CreateSubscription {
                            path,
                            properties,
                            rule: rule.map(Box::new),
                        }
                    }
                    (Condition::Absent, EntityKind::Queue | EntityKind::Topic) => {
                        Operation::CreateEntity {
                            path,
                            is_topic: kind == EntityKind::Topic,
                            properties,
                        }
                    }
                })
            }
        }
    }

    /// Returns the kind of entity that a description is of, if it may be one at such a path.
    fn kind(&self, described: &Element) -> Result<EntityKind, Refusal> {
        let is_part = matches!(self, Self::Subscription(_));
        let kind = description::kind(described);
        let kind = kind.filter(|kind| (*kind == EntityKind::Subscription) == is_part);
        kind.ok_or_else(|| {
            let allowed = if is_part {
                "SubscriptionDescription"
            } else {
                "QueueDescription or TopicDescription"
            };
            wrong("content", &described.name, allowed)
        })
    }
}

/// Returns the description in an entry.
fn content(entry: &Element) -> Result<&Element, Refusal> {
    if entry.name != "entry" {
        return Err(wrong("the body", &entry.name, "an entry"));
    }
    let content = entry.child("content")?;
    let content = content.ok_or_else(|| entry.missing("content"))?;
    content
        .first()
        .ok_or_else(|| wrong("content", "", "a description"))
}

/// Checks that a description has nothing that the client's version of the API does not know.
fn check_version(properties: &Properties, place: &Place) -> Result<(), Refusal> {
    match properties.max_message_kilobytes {
        Some(size) if place.is_before(MESSAGE_SIZE_SINCE) => {
            let allowed = format!("nothing before api-version={MESSAGE_SIZE_SINCE}");
            let element = "MaxMessageSizeInKilobytes";
            Err(wrong(element, &size.to_string(), &allowed))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reads `If-Match`: the version that is wanted, or `None` for any.
fn revision(if_match: &str) -> Result<Option<u64>, Refusal> {
    let text = if_match.trim();
    if text == "*" {
        return Ok(None);
    }
    let number = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let number = number.unwrap_or(text).parse().map(Some);
    number.map_err(|_| Refusal::Version(xml::shown(text)))
}

fn etag(view: &EntityView) -> String {
    format!("\"{}\"", view.description.history.revision)
}

impl Place {
    /// Returns whom the client asked.
    fn host(&self) -> &str {
        &self.host
    }

    /// Returns the name of the namespace, as far as a client knows one: the first part of the host,
    /// but for hosts that are numbers.
    fn namespace(&self) -> &str {
        let host = match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.host,
        };
        let is_number = host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        match host.split_once('.') {
            Some((first, _)) if !is_number => first,
            _ => host,
        }
    }

    /// Returns the version of the API that the client speaks, if it says so.
    fn version(&self) -> Option<&str> {
        let version = target::pairs(&self.query).find(|(name, _)| *name == "api-version");
        version.map(|(_, version)| version)
    }

    /// Returns whether the client speaks an older version of the API than this one, `YYYY-MM`.
    fn is_before(&self, version: &str) -> bool {
        let is_one = |said: &&str| {
            let mut at = said.bytes().enumerate();
            said.len() == version.len()
                && at.all(|(at, byte)| byte.is_ascii_digit() || at == 4 && byte == b'-')
        };
        self.version()
            .filter(is_one)
            .is_some_and(|said| said < version)
    }

    /// Returns the URL of an encoded path, with the version of the API that the client said: old
    /// ones cut names out of URLs.
    fn url(&self, path: &str) -> String {
        let version = self.version();
        let version = version.map(|version| format!("?api-version={version}"));
        format!(
            "https://{}/{path}{}",
            self.host,
            version.unwrap_or_default()
        )
    }

    /// Returns the URL of what was asked for, as the client spelled it: clients look for their own
    /// `/subscriptions/` or `/Subscriptions/` in it.
    fn spelled_url(&self) -> String {
        self.url(&target::normal(self.path.trim_matches('/')))
    }

    /// Returns the URL of one of the things in the list that was asked for.
    fn url_in_list(&self, path: &str, name: &str) -> String {
        if self.path.trim_start_matches('/').starts_with('$') {
            return self.url(&target::encode(path));
        }
        let list = target::normal(self.path.trim_matches('/'));
        self.url(&format!("{list}/{}", target::encode(name)))
    }

    /// Returns the URL of the request itself.
    fn own_url(&self) -> String {
        let path = self.path.trim_start_matches('/');
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("https://{}/{path}{mark}{}", self.host, self.query)
    }

    /// Returns the URL of another page of the list that was asked for.
    fn page(&self, skip: usize, top: usize) -> String {
        let url = self.url(self.path.trim_matches('/'));
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}%24skip={skip}&%24top={top}")
    }
}
