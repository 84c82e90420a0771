//! Messages, looked at in whatever state.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::call::{Answer, Call, from_number};
use super::decoding;
use super::entities::{limited, number};
use super::page::Page;
use super::problem::Problem;
use super::searches::{Chosen, Contents};
use super::selection::{compile, read_selection, state_of};
use crate::limits;
use jitney_api::messages::{
    BodyContent, BodyShown, DeadLetter, DeadLetterGroup, DeadLetterGroups, DecodedContent, Holder,
    Lock, MessageShown, Messages,
};
use jitney_api::selection::{MessageSelection, State};
use jitney_base::ids::SequenceNumber;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::{Selection, dead_letter_text};
use jitney_gateway::admin::{duration, time};
use jitney_gateway::operations::{HolderView, MessageView};
use jitney_gateway::rest::property_to_json;
use jitney_message::{Amendments, Field, Message, Scalar, render};
use jitney_queue::{Conditions, DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON};

/// Which messages a list has, and from where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MessagesQuery {
    /// The first sequence number to look at: `next` of the page before.
    #[serde(default)]
    from: u64,
    /// As many at most, 100 if it is not given.
    #[param(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    /// How much is shown of bodies: none of them, up to 4 KiB of each, or all. A page has 1 MiB of messages at most, as they
    /// are shown, or one message that is longer.
    #[serde(default)]
    body: BodyShown,
    /// Show the messages as AMQP encodes them, in base64, too.
    #[serde(default)]
    encoded: bool,
    /// States; none means all.
    #[serde(default)]
    state: Vec<State>,
    /// The message session.
    session_id: Option<String>,
    /// Enqueued at this time or later.
    enqueued_from: Option<String>,
    /// Enqueued before this time.
    enqueued_before: Option<String>,
    /// Scheduled for this time or later.
    scheduled_from: Option<String>,
    /// Scheduled for a time before this.
    scheduled_before: Option<String>,
    /// The message id.
    message_id: Option<String>,
    /// The correlation id.
    correlation_id: Option<String>,
    /// The reason of a dead letter.
    reason: Option<String>,
    /// Those that have no reason of a dead letter.
    #[serde(default)]
    without_reason: bool,
    /// The error description of a dead letter.
    description: Option<String>,
    /// Those that have no error description of a dead letter.
    #[serde(default)]
    without_description: bool,
    /// A SQL filter over properties, as rules have.
    filter: Option<String>,
    /// A text that the body contains.
    text: Option<String>,
    /// A `JSONPath` that finds something in the body.
    json_path: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// From where on dead letters are grouped.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GroupsQuery {
    /// The first sequence number to look at: `next` of the answer before.
    #[serde(default)]
    from: u64,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Looks at messages of one queue. Nothing changes.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/messages", operation_id = "list_messages", tag = "messages",
    params(("entity" = String, Path, description = "The path of a queue, a topic, a subscription, or one of their sub-queues: `orders/$DeadLetterQueue`, with slashes percent-encoded"), MessagesQuery),
    responses((status = 200, body = Messages), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>, entity: &str) -> Answer {
    let authority = call.authorize(entity).await?;
    let query: MessagesQuery = call.query()?;
    let limit = limited(query.limit)?;
    let selection = MessageSelection {
        states: query.state,
        numbers: Vec::new(),
        session_id: query.session_id,
        enqueued_from: query.enqueued_from,
        enqueued_before: query.enqueued_before,
        scheduled_from: query.scheduled_from,
        scheduled_before: query.scheduled_before,
        message_id: query.message_id,
        correlation_id: query.correlation_id,
        reason: query.reason,
        without_reason: query.without_reason,
        description: query.description,
        without_description: query.without_description,
        filter: query.filter,
        text: query.text,
        json_path: query.json_path,
    };
    let selector = compile(&read_selection(selection, "")?, "")?;
    let mut search = call.search(selector)?;
    let shown = Shown {
        body: query.body,
        encoded: query.encoded,
    };
    // A search looks at some pages, and then says where to continue.
    let needs_bytes = search.selector().needs_bytes();
    let mut pages = if needs_bytes {
        limits::SEARCHED_PAGES
    } else {
        1
    };
    let with_bytes = query.body != BodyShown::None || query.encoded || needs_bytes;
    let mut page = Page::begin(call, "messages").await?;
    let (mut next, mut undecided) = (Some(query.from), 0);
    while let Some(from) = next
        && 0 < pages
        && page.items() < limit
        && !page.is_full()
        && !search.is_over()
    {
        pages -= 1;
        let (from, most) = (from_number("from", from)?, limit - page.items());
        let conditions = &search.selector().conditions;
        let (view, bodies) = if with_bytes {
            call.inspect(&authority, entity, from, conditions, most)
                .await?
        } else {
            let view = call.look(&authority, entity, from, conditions, most);
            (view.await?, Vec::new())
        };
        let chosen = search.choose(view, bodies).await?;
        let filled = shown.fill(&mut page, chosen, |message| message)?;
        next = filled.next;
        undecided += filled.undecided;
    }
    let messages = Vec::new();
    page.respond(&Messages {
        messages,
        next,
        undecided,
    })
}

/// Looks at one message.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/messages/{number}", operation_id = "get_message", tag = "messages",
    params(("entity" = String, Path, description = "The path of a queue, a subscription, or one of their sub-queues"),
        ("number" = u64, Path, description = "Its sequence number")),
    responses((status = 200, body = MessageShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>, entity: &str, number: &str) -> Answer {
    let parsed = number.parse::<u64>();
    let parsed =
        parsed.map_err(|_| Problem::bad_request(format!("'{number}' is no sequence number.")))?;
    let authority = call.authorize(entity).await?;
    let selection = Selection {
        numbers: vec![parsed],
        ..Selection::default()
    };
    let selector = compile(&selection, "")?;
    let (from, conditions) = (SequenceNumber(0), &selector.conditions);
    let (view, bodies) = call
        .inspect(&authority, entity, from, conditions, 1)
        .await?;
    let shown = Shown {
        body: BodyShown::Full,
        encoded: true,
    };
    let found = view.messages.first();
    let found = found.map(|message| shown.of(message, bodies.first()));
    let missing = || Problem::not_found(format!("'{entity}' has no message {number}."));
    call.answer(StatusCode::OK, &found.ok_or_else(missing)?)
        .await
}

/// Groups dead letters by reason and description: up to 10,000 messages in one answer.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/dead-letters", operation_id = "group_dead_letters", tag = "messages",
    params(("entity" = String, Path, description = "The path of a queue or a subscription"), GroupsQuery),
    responses((status = 200, body = DeadLetterGroups), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn dead_letters(call: &Call<'_>, entity: &str) -> Answer {
    let query: GroupsQuery = call.query()?;
    let authority = call.authorize(entity).await?;
    let mut groups: BTreeMap<(Option<String>, Option<String>), DeadLetterGroup> = BTreeMap::new();
    let path = format!("{}/$DeadLetterQueue", entity.trim_matches('/'));
    // Each text is there twice while groups are looked for.
    call.reserve(2 * jitney_gateway::limits::ANSWER_PAGE_BYTES)
        .await?;
    let (mut messages, mut bytes, mut next) = (0, 0, Some(query.from));
    'pages: for _ in 0..limits::SEARCHED_PAGES {
        let Some(from) = next else { break };
        let (from, conditions) = (from_number("from", from)?, Conditions::default());
        let most = jitney_gateway::limits::INSPECTED_MAX;
        let view = call
            .look(&authority, &path, from, &conditions, most)
            .await?;
        next = view.next.map(|next| next.0);
        for message in view.messages {
            let number = message.inspected.number.0;
            let changed = message.inspected.stamps.amendments.as_deref();
            let text = |name| dead_letter_text(changed, name);
            let key = (text(DEAD_LETTER_REASON), text(DEAD_LETTER_DESCRIPTION));
            if !groups.contains_key(&key) {
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                bytes += length(&key.0) + length(&key.1) + size_of::<DeadLetterGroup>();
                if jitney_gateway::limits::ANSWER_PAGE_BYTES < bytes {
                    next = Some(number);
                    break 'pages;
                }
            }
            messages += 1;
            let group = groups
                .entry(key)
                .or_insert_with_key(|(reason, description)| DeadLetterGroup {
                    reason: reason.clone(),
                    description: description.clone(),
                    messages: 0,
                    first_number: number,
                    last_number: number,
                });
            group.messages += 1;
            group.last_number = number;
        }
    }
    let mut groups: Vec<DeadLetterGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.messages));
    call.answer(
        StatusCode::OK,
        &DeadLetterGroups {
            groups,
            messages,
            next,
        },
    )
    .await
}

/// What became of messages that were chosen for a page.
pub(super) struct Filled {
    /// The number at which the next page begins, if there are more.
    pub(super) next: Option<u64>,
    /// Messages before it of which it is not known whether they are meant.
    pub(super) undecided: u64,
}

/// How much is shown of messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) body: BodyShown,
    pub(super) encoded: bool,
}

impl Shown {
    /// Adds the messages that were chosen to a page, each as the item that `item` makes of it, until the page is full.
    pub(super) fn fill<T: Serialize>(
        self,
        page: &mut Page,
        chosen: Chosen,
        item: impl Fn(MessageShown) -> T,
    ) -> Result<Filled, Problem> {
        let mut next = chosen.next.map(|next| next.0);
        for it in chosen.messages {
            if page.is_full() {
                next = Some(it.view.inspected.number.0);
                break;
            }
            let shown = self.show(&it.view, &it.contents);
            page.push(&item(shown))?;
        }
        let passed = |number: &&SequenceNumber| next.is_none_or(|next| number.0 < next);
        let undecided = chosen.undecided.iter().filter(passed).count();
        Ok(Filled {
            next,
            undecided: u64::try_from(undecided).unwrap_or(u64::MAX),
        })
    }

    /// Returns a message, of whose bytes it is said if they were asked for.
    pub(super) fn of(self, view: &MessageView, bytes: Option<&Option<Bytes>>) -> MessageShown {
        self.show(view, &Contents::of(bytes))
    }

    fn show(self, view: &MessageView, contents: &Contents) -> MessageShown {
        let message = contents.message();
        let inspected = &view.inspected;
        let stamps = &inspected.stamps;
        let none = Amendments::default();
        let changed = stamps.amendments.as_deref().unwrap_or(&none);
        let field = |field| {
            let value = message.and_then(|message| changed.field_of(message, field))?;
            text_of(value)
        };
        let property = |name| {
            let value = message.and_then(|message| changed.property_of(message, name));
            value.and_then(|(_, value)| text_of(value))
        };
        let dead_letter = DeadLetter {
            reason: property(DEAD_LETTER_REASON),
            description: property(DEAD_LETTER_DESCRIPTION),
            source: stamps.dead_letter_source.as_deref().map(ToOwned::to_owned),
        };
        let is_dead = dead_letter.reason.is_some() || dead_letter.source.is_some();
        let enqueued = stamps.enqueued_sequence_number.cast_unsigned();
        MessageShown {
            sequence_number: inspected.number.0,
            enqueued_sequence_number: (enqueued != 0).then_some(enqueued),
            state: state_of(stamps.state),
            enqueued_at: time(stamps.enqueued_time),
            scheduled_for: inspected.due.map(time),
            expires_at: inspected.expires_at.map(time),
            lock: inspected.is_locked.then(|| Lock {
                until: stamps.locked_until.map(time),
                holder: view.holder.as_ref().map(holder_of),
            }),
            delivery_count: stamps.delivery_count,
            size_bytes: inspected.body.length,
            message_id: field(Field::MessageId)
                .or_else(|| message.map(|_| stamps.default_message_id_text())),
            correlation_id: field(Field::CorrelationId),
            session_id: inspected.message_session.as_deref().map(ToOwned::to_owned),
            subject: field(Field::Label),
            to: field(Field::To),
            reply_to: field(Field::ReplyTo),
            reply_to_session_id: field(Field::ReplyToSessionId),
            content_type: field(Field::ContentType),
            partition_key: message.and_then(|message| Some(message.partition_key()?.to_owned())),
            time_to_live: (stamps.time_to_live != Millis::MAX)
                .then(|| duration(stamps.time_to_live)),
            dead_letter: is_dead.then_some(dead_letter),
            properties: message.map(|message| {
                let all = changed.properties_of(message);
                let all = all.map(|(name, value)| {
                    (name.to_owned(), property_to_json(&Scalar::decode(value)))
                });
                all.collect()
            }),
            property_types: message.map(|message| {
                let all = changed.properties_of(message);
                all.map(|(name, value)| (name.to_owned(), type_name(value).into()))
                    .collect()
            }),
            body: message.and_then(|message| self.body(message)),
            encoded: message.filter(|_| self.encoded).map(|message| {
                let mut rendered = Vec::new();
                render(&mut rendered, message.bytes(), stamps);
                STANDARD.encode(rendered)
            }),
            damaged: matches!(contents, Contents::Damaged),
        }
    }

    fn body(self, message: &Message) -> Option<BodyContent> {
        let whole = message.plain_body();
        let shown = match self.body {
            BodyShown::None => return None,
            BodyShown::Preview => whole.get(..limits::PREVIEW_BYTES).unwrap_or(&whole),
            BodyShown::Full => &whole,
        };
        let shown = Excerpt {
            bytes: shown,
            truncated: shown.len() < whole.len(),
        };
        let (text, base64) = shown.text_or_base64();
        let decoded = (self.body == BodyShown::Full).then(|| {
            let decoded = decoding::decode(&whole, content_encoding(message).as_deref())?;
            let excerpt = Excerpt {
                bytes: &decoded.bytes,
                truncated: decoded.truncated,
            };
            let (text, base64) = excerpt.text_or_base64();
            Some(DecodedContent {
                format: decoded.format.into(),
                text,
                base64,
                truncated: decoded.truncated,
            })
        });
        Some(BodyContent {
            text,
            base64,
            size_bytes: whole.len(),
            truncated: shown.truncated,
            decoded: decoded.flatten(),
        })
    }
}

/// The bytes of a body that are shown.
struct Excerpt<'a> {
    bytes: &'a [u8],
    /// These are the first bytes only.
    truncated: bool,
}

impl Excerpt<'_> {
    /// Returns the bytes as a text if they are UTF-8, else in base64. A character that is cut through is no reason to show bytes.
    fn text_or_base64(&self) -> (Option<String>, Option<String>) {
        let text = match str::from_utf8(self.bytes) {
            Ok(text) => Some(text.to_owned()),
            Err(error) if self.truncated && error.error_len().is_none() => {
                let (good, _) = self.bytes.split_at(error.valid_up_to());
                str::from_utf8(good).ok().map(ToOwned::to_owned)
            }
            Err(_) => None,
        };
        let base64 = text.is_none().then(|| STANDARD.encode(self.bytes));
        (text, base64)
    }
}

/// Returns the name of the type of an encoded value [1.6]; `value` for a described one.
fn type_name(value: &[u8]) -> &'static str {
    match value.first().copied().unwrap_or_default() {
        0x40 => "null",
        0x41 | 0x42 | 0x56 => "boolean",
        0x50 => "ubyte",
        0x51 => "byte",
        0x60 => "ushort",
        0x61 => "short",
        0x43 | 0x52 | 0x70 => "uint",
        0x54 | 0x71 => "int",
        0x72 => "float",
        0x73 => "char",
        0x74 => "decimal32",
        0x44 | 0x53 | 0x80 => "ulong",
        0x55 | 0x81 => "long",
        0x82 => "double",
        0x83 => "timestamp",
        0x84 => "decimal64",
        0x94 => "decimal128",
        0x98 => "uuid",
        0xa0 | 0xb0 => "binary",
        0xa1 | 0xb1 => "string",
        0xa3 | 0xb3 => "symbol",
        0x45 | 0xc0 | 0xd0 => "list",
        0xc1 | 0xd1 => "map",
        0xe0 | 0xf0 => "array",
        _ => "value",
    }
}

/// Returns what a sender says of its body in an application-property: SDKs have no field for it.
fn content_encoding(message: &Message) -> Option<String> {
    let mut all = message.application_properties();
    let (_, value) = all.find(|(name, _)| name.eq_ignore_ascii_case("content-encoding"))?;
    text_of(value)
}

/// Returns a simple value as a text; `None` for null.
fn text_of(value: &[u8]) -> Option<String> {
    match property_to_json(&Scalar::decode(value)) {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text),
        other @ (serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_)) => Some(other.to_string()),
    }
}

pub(super) fn holder_of(view: &HolderView) -> Holder {
    Holder {
        connection: view.connection.0,
        container_id: view.container_id.clone(),
        peer: view.peer.to_string(),
    }
}

pub(super) fn lock_of(until: Timestamp, holder: Option<&HolderView>) -> Lock {
    Lock {
        until: Some(time(until)),
        holder: holder.map(holder_of),
    }
}
