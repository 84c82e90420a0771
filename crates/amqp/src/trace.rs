//! Frames in words, for `RUST_LOG=jitney::amqp::frame=trace`: both directions, without bodies of
//! messages and without secrets.

use std::fmt::Write as _;

use super::frame::FrameKind;
use crate::codec::{Encoded, descriptor, value_length};
use crate::limits;

#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    In,
    Out,
}

pub(super) fn frame(direction: Direction, kind: FrameKind, channel: u16, body: &[u8]) {
    if !tracing::enabled!(target: "jitney::amqp::frame", tracing::Level::TRACE) {
        return;
    }
    let arrow = match direction {
        Direction::In => "<-",
        Direction::Out => "->",
    };
    let layer = match kind {
        FrameKind::Amqp => "",
        FrameKind::Sasl => "sasl ",
    };
    tracing::trace!(target: "jitney::amqp::frame", "{arrow} {layer}ch={channel} {}", words(body));
}

pub(super) fn header(direction: Direction, header: &[u8]) {
    let arrow = match direction {
        Direction::In => "<-",
        Direction::Out => "->",
    };
    tracing::trace!(target: "jitney::amqp::frame", "{arrow} header {header:?}");
}

/// Returns a frame's body as text: its performative with the fields that are set, and the number of
/// payload bytes after it.
#[must_use]
pub fn words(body: &[u8]) -> String {
    let mut text = String::new();
    if body.is_empty() {
        return "empty".to_owned();
    }
    match value_length(body)
        .ok()
        .and_then(|length| body.split_at_checked(length))
    {
        Some((performative, payload)) => {
            value(&mut text, Encoded::new(performative));
            if !payload.is_empty() {
                let _ = write!(text, " payload={}B", payload.len());
            }
        }
        None => text.push_str("malformed"),
    }
    text
}

/// Returns the names of a type's fields; `!` is written for one whose value is secret.
fn fields_of(code: u64) -> &'static str {
    match code {
        descriptor::OPEN => {
            "container-id hostname max-frame-size channel-max idle-time-out outgoing-locales incoming-locales offered desired properties"
        }
        descriptor::BEGIN => {
            "remote-channel next-outgoing-id incoming-window outgoing-window handle-max offered desired properties"
        }
        descriptor::ATTACH => {
            "name handle role snd-settle-mode rcv-settle-mode source target unsettled incomplete-unsettled initial-delivery-count max-message-size offered desired properties"
        }
        descriptor::FLOW => {
            "next-incoming-id incoming-window next-outgoing-id outgoing-window handle delivery-count link-credit available drain echo properties"
        }
        descriptor::TRANSFER => {
            "handle delivery-id delivery-tag message-format settled more rcv-settle-mode state resume aborted batchable"
        }
        descriptor::DISPOSITION => "role first last settled state batchable",
        descriptor::DETACH => "handle closed error",
        descriptor::END | descriptor::CLOSE | descriptor::REJECTED => "error",
        descriptor::ERROR => "condition description info",
        descriptor::RECEIVED => "section-number section-offset",
        descriptor::MODIFIED => "delivery-failed undeliverable-here annotations",
        descriptor::SOURCE => {
            "address durable expiry-policy timeout dynamic dynamic-node-properties distribution-mode filter default-outcome outcomes capabilities"
        }
        descriptor::TARGET => {
            "address durable expiry-policy timeout dynamic dynamic-node-properties capabilities"
        }
        descriptor::COORDINATOR => "capabilities",
        descriptor::DECLARED => "txn-id",
        descriptor::TRANSACTIONAL_STATE => "txn-id outcome",
        descriptor::SASL_MECHANISMS => "mechanisms",
        descriptor::SASL_INIT => "mechanism ! hostname",
        descriptor::SASL_OUTCOME => "code additional-data",
        _ => "",
    }
}

/// Appends a value that was checked for its shape.
fn value(text: &mut String, encoded: Encoded<'_>) {
    if let Some((code, inner)) = encoded.described() {
        described(text, code, inner);
    } else if encoded.is_described() {
        text.push_str("described");
    } else if encoded.is_null() {
        text.push_str("null");
    } else if let Some(boolean) = encoded.boolean() {
        let _ = write!(text, "{boolean}");
    } else if let Some(integer) = encoded.any_integer() {
        let _ = write!(text, "{integer}");
    } else if let Some(at) = encoded.timestamp() {
        let _ = write!(text, "{}", at.as_millis());
    } else if let Some(bytes) = encoded.binary() {
        hex(text, bytes);
    } else if let Some(string) = encoded.text() {
        let short: String = string.chars().take(limits::TRACE_TEXT_MAX).collect();
        if encoded.is_symbol() {
            text.push_str(&short);
        } else {
            let _ = write!(text, "{short:?}");
        }
    } else if encoded.is_map() {
        map(text, encoded);
    } else if encoded.items().is_some() {
        list(text, encoded, "");
    } else {
        hex(text, encoded.data());
    }
}

fn described(text: &mut String, code: u64, inner: Encoded<'_>) {
    if let Some(name) = descriptor::name(code) {
        text.push_str(name);
        list(text, inner, fields_of(code));
    } else {
        let _ = write!(text, "described({code:#x}) ");
        value(text, inner);
    }
}

/// Appends the elements of a list or an array with the names of its fields; nulls of named fields are left out.
fn list(text: &mut String, list: Encoded<'_>, names: &str) {
    let mut names = names.split_ascii_whitespace();
    text.push('[');
    let start = text.len();
    for item in list.items().into_iter().flatten() {
        let name = names.next();
        if name.is_some() && item.is_null() {
            continue;
        }
        if text.len() > start {
            text.push(' ');
        }
        match name {
            Some("!") => text.push_str("response=***"),
            Some(name) => {
                let _ = write!(text, "{name}=");
                value(text, item);
            }
            None => value(text, item),
        }
    }
    text.push(']');
}

fn map(text: &mut String, map: Encoded<'_>) {
    text.push('{');
    for (index, (key, item)) in map.entries().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        value(text, key);
        text.push_str(": ");
        value(text, Encoded::new(item));
    }
    text.push('}');
}

fn hex(text: &mut String, bytes: &[u8]) {
    text.push_str("0x");
    for byte in bytes.iter().take(limits::TRACE_TEXT_MAX / 2) {
        let _ = write!(text, "{byte:02x}");
    }
}
