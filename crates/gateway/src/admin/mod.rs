//! The administration API: ATOM/XML over HTTP, as `ServiceBusAdministrationClient` speaks it
//! (`administration.md#administration-over-http`).
//!
//! A request's head is read first ([`AdminRequest::read`]), then its body ([`AdminRequest::operation`]); the
//! broker does the operation, and its answer is written in the same terms ([`AdminRequest::render`]). Any
//! fault on the way is an [`AdminError`].
//!
//! Leaves to others: HTTP and authorization to the server, the operations and the allowed values of
//! an entity to the broker.

mod description;
mod entry;
mod operation;
mod refusal;
mod rule;
mod target;
#[cfg(test)]
mod tests;
mod text;
mod write;
mod xml;

use crate::limits;
use jitney_broker::limits::LISTED_MAX;
use jitney_broker::namespace::administration::{
    CreateEntity, CreateRule, CreateSubscription, DeleteEntity, DeleteRule, EntityView,
    ListEntities, ListPage, ListRules, Listed, More, Properties, ReadEntity, ReadNamespace,
    ReadRule, UpdateEntity, UpdateRule,
};
use jitney_queue::EntityKind;
use jitney_rules::limits::RULE_BYTES_MAX;

pub use operation::{AdminAnswer, AdminOperation};
pub use refusal::AdminError;
pub use text::{duration, parse_duration, parse_time, status, time};

use entry::Resource;
use target::Target;
use xml::{Element, wrong};

/// The first version of the API that has `MaxMessageSizeInKilobytes`.
const MESSAGE_SIZE_SINCE: &str = "2021-05";

/// A request without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, encoded as it is in the request.
    pub path: &'a str,
    /// The query after the question mark, likewise.
    pub query: Option<&'a str>,
    /// The host that the client addresses: the value of `Host`.
    pub host: &'a str,
    /// The value of `If-Match`.
    pub if_match: Option<&'a str>,
}

/// The resource and the operation of a request's head.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminRequest {
    wanted: RequestBody,
    place: BaseUrl,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminResponse {
    /// The status.
    pub status: u16,
    /// The reason phrase of the status, if it is not the usual one.
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
enum RequestBody {
    /// The body is ignored.
    Operation(AdminOperation),
    /// The body describes the resource to create or update.
    Put(Described, Precondition),
}

/// The kind of resource that a body describes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Described {
    /// A queue or a topic, by its path.
    Entity(String),
    /// A rule, by its subscription's path and its name.
    Rule(String, String),
    /// A subscription, by its path.
    Subscription(String),
}

/// The version that must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precondition {
    /// Nothing.
    Absent,
    /// This version, or any.
    Present(Option<u64>),
}

/// The base of the URLs in the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BaseUrl {
    host: String,
    path: String,
    query: String,
}

impl AdminRequest {
    /// Reads the head of a request.
    ///
    /// # Errors
    ///
    /// [`AdminError`] if the address has no such operation.
    pub fn read(request: &RequestHead<'_>) -> Result<Self, AdminError> {
        let target = Target::read(request.path, request.query)?;
        let wanted = match request.method {
            "GET" => RequestBody::Operation(get(target)),
            "PUT" => {
                let condition = match request.if_match {
                    Some(version) => Precondition::Present(revision(version)?),
                    None => Precondition::Absent,
                };
                RequestBody::Put(put(target)?, condition)
            }
            "DELETE" => {
                let revision = request.if_match.map(revision).transpose()?.flatten();
                RequestBody::Operation(delete(target, revision)?)
            }
            method => return Err(AdminError::Method(xml::excerpt(method))),
        };
        Ok(Self {
            wanted,
            place: BaseUrl {
                host: request.host.to_owned(),
                path: request.path.to_owned(),
                query: request.query.unwrap_or_default().to_owned(),
            },
        })
    }

    /// Returns whether the operation is described in the body.
    #[must_use]
    pub const fn needs_body(&self) -> bool {
        matches!(self.wanted, RequestBody::Put(..))
    }

    /// Returns the operation of the request. The body is parsed only if it is needed.
    ///
    /// # Errors
    ///
    /// [`AdminError`] names the wrong element, and the values it may have.
    pub fn operation(&self, body: &[u8]) -> Result<AdminOperation, AdminError> {
        match &self.wanted {
            RequestBody::Operation(operation) => Ok(operation.clone()),
            RequestBody::Put(described, condition) => {
                described.operation(*condition, &self.place, body)
            }
        }
    }

    /// Returns the answer to a request.
    #[must_use]
    pub fn render(&self, answer: &AdminAnswer) -> AdminResponse {
        const ENTRY: &str = "application/atom+xml;type=entry;charset=utf-8";
        const FEED: &str = "application/atom+xml;type=feed;charset=utf-8";
        let place = &self.place;
        let (content_type, body) = match answer {
            AdminAnswer::Namespace(view) => (ENTRY, entry::entry(place, view)),
            AdminAnswer::Entity(view) => (ENTRY, entry::entry(place, view.as_ref())),
            AdminAnswer::Rule(view) => (ENTRY, entry::entry(place, view.as_ref())),
            AdminAnswer::Entities(page) => (FEED, self.feed(page)),
            AdminAnswer::Rules(page) => (FEED, self.feed(page)),
            AdminAnswer::Deleted => (ENTRY, String::new()),
        };
        let etag = if let AdminAnswer::Entity(view) = answer {
            Some(etag(view))
        } else {
            None
        };
        let status = match self.wanted {
            RequestBody::Put(_, Precondition::Absent) => 201,
            RequestBody::Put(_, Precondition::Present(_)) | RequestBody::Operation(_) => 200,
        };
        AdminResponse {
            status,
            reason: None,
            content_type,
            etag,
            retry_after_seconds: None,
            body,
        }
    }

    /// Returns whether the request changes nothing, so that it can be refused after the owner has answered.
    #[must_use]
    pub fn is_read(&self) -> bool {
        match &self.wanted {
            RequestBody::Operation(operation) => matches!(
                operation,
                AdminOperation::ListEntities(_)
                    | AdminOperation::ListRules(_)
                    | AdminOperation::ReadNamespace(_)
                    | AdminOperation::ReadEntity(_)
                    | AdminOperation::ReadRule(_)
            ),
            RequestBody::Put(..) => false,
        }
    }

    /// Returns the bytes that the answer of the owner may have: they are to be reserved before it is asked.
    #[must_use]
    pub fn source_bytes(&self) -> usize {
        match &self.wanted {
            RequestBody::Operation(AdminOperation::ListEntities(list)) => {
                limits::ENTITY_BYTES_MAX * list.top.min(LISTED_MAX)
            }
            RequestBody::Operation(AdminOperation::ListRules(list)) => {
                RULE_BYTES_MAX * list.top.min(LISTED_MAX)
            }
            RequestBody::Operation(_) | RequestBody::Put(..) => RULE_BYTES_MAX,
        }
    }

    /// Returns the bytes that the body of a response has, without making more of it than one entry at a time: they are to be
    /// reserved before [`AdminRequest::render`].
    #[must_use]
    pub fn rendered_bytes(&self, answer: &AdminAnswer) -> usize {
        fn all<T: Resource>(place: &BaseUrl, views: &[T]) -> usize {
            let entries = views.iter().map(|view| entry::entry(place, view).len());
            entries.sum()
        }
        let place = &self.place;
        let entries = match answer {
            AdminAnswer::Namespace(view) => all(place, std::slice::from_ref(view)),
            AdminAnswer::Entity(view) => all(place, std::slice::from_ref(&**view)),
            AdminAnswer::Rule(view) => all(place, std::slice::from_ref(&**view)),
            AdminAnswer::Entities(page) => all(place, &page.entries),
            AdminAnswer::Rules(page) => all(place, &page.entries),
            AdminAnswer::Deleted => 0,
        };
        entries + limits::FEED_BYTES
    }

    fn feed<T: Resource>(&self, page: &ListPage<T>) -> String {
        let resources = page.entries.as_slice();
        let has_more = page.more == More::Yes;
        let next = |skip, top| has_more.then(|| self.place.page(skip + resources.len(), top));
        let (title, next) = match &self.wanted {
            RequestBody::Operation(AdminOperation::ListEntities(list)) => {
                let title = match list.what {
                    Listed::Queues(_) => "Queues",
                    Listed::Topics(_) => "Topics",
                    Listed::Subscriptions(_) => "Subscriptions",
                };
                (title, next(list.skip, list.top))
            }
            RequestBody::Operation(AdminOperation::ListRules(list)) => {
                ("Rules", next(list.skip, list.top))
            }
            RequestBody::Operation(_) | RequestBody::Put(..) => ("Entities", None),
        };
        entry::feed(&self.place, title, resources, next.as_deref())
    }
}

fn get(target: Target) -> AdminOperation {
    match target {
        Target::Entity(path) | Target::Subscription(path) => {
            AdminOperation::ReadEntity(ReadEntity { path })
        }
        Target::List { what, skip, top } => {
            AdminOperation::ListEntities(ListEntities { what, skip, top })
        }
        Target::Rules {
            subscription,
            skip,
            top,
        } => AdminOperation::ListRules(ListRules {
            subscription,
            skip,
            top,
        }),
        Target::Namespace => AdminOperation::ReadNamespace(ReadNamespace),
        Target::Rule(subscription, name) => {
            AdminOperation::ReadRule(ReadRule { subscription, name })
        }
    }
}

fn put(target: Target) -> Result<Described, AdminError> {
    match target {
        Target::Entity(path) => Ok(Described::Entity(path)),
        Target::Rule(subscription, name) => Ok(Described::Rule(subscription, name)),
        Target::Subscription(path) => Ok(Described::Subscription(path)),
        Target::List { .. } | Target::Rules { .. } | Target::Namespace => {
            Err(AdminError::Method("PUT".to_owned()))
        }
    }
}

fn delete(target: Target, revision: Option<u64>) -> Result<AdminOperation, AdminError> {
    match target {
        Target::Entity(path) | Target::Subscription(path) => {
            Ok(AdminOperation::DeleteEntity(DeleteEntity {
                path,
                revision,
            }))
        }
        Target::Rule(subscription, name) => match revision {
            None => Ok(AdminOperation::DeleteRule(DeleteRule {
                subscription,
                name,
                version: None,
            })),
            Some(version) => Err(AdminError::Version(version.to_string())),
        },
        Target::List { .. } | Target::Rules { .. } | Target::Namespace => {
            Err(AdminError::Method("DELETE".to_owned()))
        }
    }
}

impl Described {
    fn operation(
        &self,
        condition: Precondition,
        place: &BaseUrl,
        body: &[u8],
    ) -> Result<AdminOperation, AdminError> {
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
                    Precondition::Absent => {
                        AdminOperation::CreateRule(CreateRule { subscription, rule })
                    }
                    Precondition::Present(None) => AdminOperation::UpdateRule(UpdateRule {
                        subscription,
                        rule,
                        version: None,
                    }),
                    // Rules have no versions in this protocol, so none is there.
                    Precondition::Present(Some(version)) => {
                        return Err(AdminError::Version(version.to_string()));
                    }
                })
            }
            Self::Entity(path) | Self::Subscription(path) => {
                let kind = self.kind(described)?;
                let path = path.clone();
                let properties = Box::new(description::read(described)?);
                check_version(&properties, place)?;
                Ok(match (condition, kind) {
                    (Precondition::Present(revision), _) => {
                        AdminOperation::UpdateEntity(UpdateEntity {
                            path,
                            kind,
                            properties,
                            revision,
                        })
                    }
                    (Precondition::Absent, EntityKind::Subscription) => {
                        let rule = described.child("DefaultRuleDescription")?;
                        let rule = rule.map(rule::read_default).transpose()?;
                        AdminOperation::CreateSubscription(CreateSubscription {
                            path,
                            properties,
                            rule: rule.map(Box::new),
                        })
                    }
                    (Precondition::Absent, EntityKind::Queue | EntityKind::Topic) => {
                        AdminOperation::CreateEntity(CreateEntity {
                            path,
                            is_topic: kind == EntityKind::Topic,
                            properties,
                        })
                    }
                })
            }
        }
    }

    /// Returns the kind of entity that a description is of, if such a path may have that kind.
    fn kind(&self, described: &Element) -> Result<EntityKind, AdminError> {
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
fn content(entry: &Element) -> Result<&Element, AdminError> {
    if entry.name != "entry" {
        return Err(wrong("the body", &entry.name, "an entry"));
    }
    let content = entry.child("content")?;
    let content = content.ok_or_else(|| entry.missing("content"))?;
    content
        .first()
        .ok_or_else(|| wrong("content", "", "a description"))
}

/// Checks that a description has no element that the client's version of the API lacks.
fn check_version(properties: &Properties, place: &BaseUrl) -> Result<(), AdminError> {
    match properties.max_message_kilobytes {
        Some(size) if place.is_before(MESSAGE_SIZE_SINCE) => {
            let allowed = format!("nothing before api-version={MESSAGE_SIZE_SINCE}");
            let element = "MaxMessageSizeInKilobytes";
            Err(wrong(element, &size.to_string(), &allowed))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reads `If-Match`: the version that must exist, or `None` for any.
fn revision(if_match: &str) -> Result<Option<u64>, AdminError> {
    let text = if_match.trim();
    if text == "*" {
        return Ok(None);
    }
    let number = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let number = number.unwrap_or(text).parse().map(Some);
    number.map_err(|_| AdminError::Version(xml::excerpt(text)))
}

fn etag(view: &EntityView) -> String {
    format!("\"{}\"", view.description.history.revision)
}

impl BaseUrl {
    /// Returns the host that the client addressed.
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

    /// Returns the version of the API in the request, if it has one.
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

    /// Returns the URL of an encoded path, with the version of the API in the request: old ones cut
    /// names out of URLs.
    fn url(&self, path: &str) -> String {
        let version = self.version();
        let version = version.map(|version| format!("?api-version={version}"));
        format!(
            "https://{}/{path}{}",
            self.host,
            version.unwrap_or_default()
        )
    }

    /// Returns the URL of the requested resource, as the client spelled it: clients look for their
    /// own `/subscriptions/` or `/Subscriptions/` in it.
    fn spelled_url(&self) -> String {
        self.url(&target::normal(self.path.trim_matches('/')))
    }

    /// Returns the URL of one of the resources in the requested list.
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

    /// Returns the URL of another page of the requested list.
    fn page(&self, skip: usize, top: usize) -> String {
        let url = self.url(self.path.trim_matches('/'));
        let mark = if url.contains('?') { '&' } else { '?' };
        let is_filter = |(name, _): &(&str, &str)| target::is_filter(name);
        let filter = target::pairs(&self.query).find(is_filter);
        let filter = filter.map(|(_, filter)| format!("&%24filter={filter}"));
        let filter = filter.unwrap_or_default();
        format!("{url}{mark}%24skip={skip}&%24top={top}{filter}")
    }
}
