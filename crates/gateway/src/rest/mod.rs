//! The REST interface to messages: sends, receives and locks as requests of HTTP.
//!
//! A request's line is read first ([`RequestLine::read`]); its content is made into messages of AMQP
//! ([`draft`], [`batch`]), and a delivered message into headers and a body ([`deliver`]). Any fault
//! on the way is a [`RestError`].
//!
//! Leaves to others: HTTP, the wait of a receive and authorization to the server, the operations to
//! the broker.

mod broker_properties;
mod refusal;
mod send;
#[cfg(test)]
mod tests;
mod times;
mod values;

use bytes::Bytes;
use percent_encoding::percent_decode_str;

use crate::limits;
use jitney_base::ids::LockToken;
use jitney_base::time::Millis;
use jitney_message::{Amendments, Field, Message, Scalar};
use jitney_queue::{Handover, ReceiveMode};

pub use refusal::RestError;
pub use send::{Content, batch, content, draft};
pub use values::{of_json as property_of_json, to_json as property_to_json, uuid};

/// An action on a locked message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAction {
    /// It is done with, and goes.
    Complete,
    /// It is locked for longer.
    Renew,
    /// It is given back, and the delivery counts as failed.
    Unlock,
}

/// The operation in a request's line. Paths are encoded as they are in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestLine {
    /// An operation on a locked message.
    Locked {
        /// The path of the entity.
        path: String,
        /// The lock. The number or the message-id before it is ignored.
        token: LockToken,
        /// The operation.
        action: LockAction,
    },
    /// Receive a message.
    Receive {
        /// The path of the entity.
        path: String,
        /// How.
        mode: ReceiveMode,
        /// How long to wait for one.
        wait: Millis,
    },
    /// Send messages.
    Send {
        /// The path of the entity.
        path: String,
    },
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestResponse {
    /// The status.
    pub status: u16,
    /// Names and values, of which some may be impossible in a header.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl RestResponse {
    /// Returns an answer with a status only.
    #[must_use]
    pub const fn plain(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }
}

impl RequestLine {
    /// Reads the line of a request; `None` if it is not about messages.
    ///
    /// # Errors
    ///
    /// [`RestError`] if the address has no such operation.
    pub fn read(method: &str, path: &str, query: Option<&str>) -> Result<Option<Self>, RestError> {
        let path = path.trim_matches('/');
        let (rest, last) = parent(path);
        let is_messages = |part: &str| part.eq_ignore_ascii_case("messages");
        if is_messages(last) && method == "POST" && !rest.is_empty() {
            let path = rest.to_owned();
            return Ok(Some(Self::Send { path }));
        }
        let (above, before) = parent(rest);
        if last.eq_ignore_ascii_case("head") && is_messages(before) && !above.is_empty() {
            let mode = match method {
                "DELETE" => ReceiveMode::ReceiveAndDelete,
                "POST" => ReceiveMode::PeekLock,
                _ => return Ok(None),
            };
            return Ok(Some(Self::Receive {
                path: above.to_owned(),
                mode,
                wait: wait(query)?,
            }));
        }
        let (entity, messages) = parent(above);
        let action = match method {
            "DELETE" => LockAction::Complete,
            "POST" => LockAction::Renew,
            "PUT" => LockAction::Unlock,
            _ => return Ok(None),
        };
        let token = uuid(&percent_decode_str(last).decode_utf8_lossy());
        match token {
            Some(token) if is_messages(messages) && !entity.is_empty() => Ok(Some(Self::Locked {
                path: entity.to_owned(),
                token: LockToken::from_uuid(token),
                action,
            })),
            _ => Ok(None),
        }
    }

    /// Returns the path of the entity.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Locked { path, .. } | Self::Receive { path, .. } | Self::Send { path } => path,
        }
    }
}

/// Splits the last segment off a path.
fn parent(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Reads how long a receive is to wait: seconds.
fn wait(query: Option<&str>) -> Result<Millis, RestError> {
    let pairs = query.unwrap_or_default().split('&');
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    let Some((_, text)) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("timeout")) else {
        return Ok(limits::REST_WAIT_MAX);
    };
    let Ok(seconds) = text.parse::<u32>() else {
        return Err(RestError::Malformed(format!(
            "timeout must be a number of seconds, and '{}' was found",
            text.chars()
                .take(jitney_broker::limits::LOGGED_MAX)
                .collect::<String>()
        )));
    };
    Ok(Millis::from_secs(seconds).min(limits::REST_WAIT_MAX))
}

/// Returns the answer with a delivered message; with a lock, `entity` is the URL of the entity in
/// the request, and the base of the lock's URL.
#[must_use]
pub fn deliver(handover: &Handover, bytes: Bytes, entity: &str) -> RestResponse {
    let Ok(message) = Message::parse(bytes.clone()) else {
        // Accepted messages have been parsed before.
        return RestResponse {
            body: bytes,
            ..RestResponse::plain(200)
        };
    };
    let none = Amendments::default();
    let amended = handover.stamps.amendments.as_deref().unwrap_or(&none);
    let mut headers = Vec::new();
    let status = match handover.mode {
        ReceiveMode::PeekLock => {
            let number = handover.stamps.sequence_number;
            let token = jitney_rules::hyphenated(handover.token.to_uuid());
            let location = format!("{entity}/messages/{number}/{token}");
            headers.push(("Location".to_owned(), location));
            201
        }
        ReceiveMode::ReceiveAndDelete => 200,
    };
    let content_type = amended.field_of(&message, Field::ContentType);
    if let Some(Scalar::Text(text)) = content_type.map(Scalar::decode) {
        headers.push(("Content-Type".to_owned(), text.into_owned()));
    }
    let properties = broker_properties::write(&message, amended, handover);
    headers.push(("BrokerProperties".to_owned(), properties));
    for (name, value) in amended.properties_of(&message) {
        if let Some(value) = values::write(&Scalar::decode(value))
            && send::is_property(name)
        {
            headers.push((name.to_owned(), value));
        }
    }
    let body = match message.plain_body() {
        std::borrow::Cow::Borrowed([]) => Bytes::new(),
        std::borrow::Cow::Borrowed(slice) => message.bytes().slice_ref(slice),
        std::borrow::Cow::Owned(whole) => whole.into(),
    };
    RestResponse {
        status,
        headers,
        body,
    }
}
