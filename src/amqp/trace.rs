//! Frames in words, for `RUST_LOG=jitney::amqp::frame=trace`: both directions, without bodies of
//! messages and without secrets.

use std::fmt::Write as _;

use super::frame::FrameKind;
use super::wire::descriptor;
use crate::limits;
use crate::shape::value_length;

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
            value(&mut text, performative);
            if !payload.is_empty() {
                let _ = write!(text, " payload={}B", payload.len());
            }
        }
        None => text.push_str("malformed"),
    }
    text
}

/// Names and fields of the types in frames.
fn fields_of(code: u64) -> (&'static str, &'static str) {
    match code {
        0x10 => (
            "open",
            "container-id hostname max-frame-size channel-max idle-time-out outgoing-locales incoming-locales offered desired properties",
        ),
        0x11 => (
            "begin",
            "remote-channel next-outgoing-id incoming-window outgoing-window handle-max offered desired properties",
        ),
        0x12 => (
            "attach",
            "name handle role snd-settle-mode rcv-settle-mode source target unsettled incomplete-unsettled initial-delivery-count max-message-size offered desired properties",
        ),
        0x13 => (
            "flow",
            "next-incoming-id incoming-window next-outgoing-id outgoing-window handle delivery-count link-credit available drain echo properties",
        ),
        0x14 => (
            "transfer",
            "handle delivery-id delivery-tag message-format settled more rcv-settle-mode state resume aborted batchable",
        ),
        0x15 => ("disposition", "role first last settled state batchable"),
        0x16 => ("detach", "handle closed error"),
        0x17 => ("end", "error"),
        0x18 => ("close", "error"),
        0x1d => ("error", "condition description info"),
        0x23 => ("received", "section-number section-offset"),
        0x24 => ("accepted", ""),
        0x25 => ("rejected", "error"),
        0x26 => ("released", ""),
        0x27 => ("modified", "delivery-failed undeliverable-here annotations"),
        0x28 => (
            "source",
            "address durable expiry-policy timeout dynamic dynamic-node-properties distribution-mode filter default-outcome outcomes capabilities",
        ),
        0x29 => (
            "target",
            "address durable expiry-policy timeout dynamic dynamic-node-properties capabilities",
        ),
        0x30 => ("coordinator", "capabilities"),
        0x33 => ("declared", "txn-id"),
        0x34 => ("transactional-state", "txn-id outcome"),
        0x40 => ("sasl-mechanisms", "mechanisms"),
        0x41 => ("sasl-init", "mechanism ! hostname"),
        0x44 => ("sasl-outcome", "code additional-data"),
        _ => ("described", ""),
    }
}

/// Appends a value that was checked for its shape.
fn value(text: &mut String, bytes: &[u8]) {
    let Some((&code, rest)) = bytes.split_first() else {
        return;
    };
    match code {
        0x00 => described(text, bytes),
        0x40 => text.push_str("null"),
        0x41 => text.push_str("true"),
        0x42 => text.push_str("false"),
        0x43 | 0x44 => text.push('0'),
        0x45 => text.push_str("[]"),
        0x56 => text.push_str(if rest == [0] { "false" } else { "true" }),
        0x50 | 0x52 | 0x53 | 0x60 | 0x70 | 0x80 => {
            let number = rest
                .iter()
                .fold(0_u64, |all, &byte| all << 8 | u64::from(byte));
            let _ = write!(text, "{number}");
        }
        0x51 | 0x54 | 0x55 | 0x61 | 0x71 | 0x81 | 0x83 => {
            let negative = rest.first().is_some_and(|&byte| byte >= 0x80);
            let start = if negative { u64::MAX } else { 0 };
            let bits = rest
                .iter()
                .fold(start, |all, &byte| all << 8 | u64::from(byte));
            let _ = write!(text, "{}", bits.cast_signed());
        }
        0xa1 => quoted(text, rest.get(1..)),
        0xa3 => symbol(text, rest.get(1..)),
        0xb1 => quoted(text, rest.get(4..)),
        0xb3 => symbol(text, rest.get(4..)),
        0xa0 => hex(text, rest.get(1..)),
        0xb0 => hex(text, rest.get(4..)),
        0xc0 | 0xe0 => elements(text, rest.get(2..), "", code == 0xe0),
        0xd0 | 0xf0 => elements(text, rest.get(8..), "", code == 0xf0),
        0xc1 => map(text, rest.get(2..)),
        0xd1 => map(text, rest.get(8..)),
        _ => hex(text, Some(rest)),
    }
}

fn described(text: &mut String, bytes: &[u8]) {
    let Ok((code, inner)) = descriptor(bytes) else {
        return text.push_str("described");
    };
    let (name, fields) = fields_of(code);
    text.push_str(name);
    if name == "described" {
        let _ = write!(text, "({code:#x}) ");
        return value(text, inner);
    }
    let list = match inner.first() {
        Some(0xc0) => inner.get(3..),
        Some(0xd0) => inner.get(9..),
        _ => None,
    };
    elements(text, list, fields, false);
}

/// Appends a list's elements with the names of its fields; nulls of named fields are left out.
fn elements(text: &mut String, bytes: Option<&[u8]>, names: &str, array: bool) {
    let mut rest = bytes.unwrap_or_default();
    let mut names = names.split_ascii_whitespace();
    text.push('[');
    let start = text.len();
    if array {
        let _ = write!(text, "array of {}B", rest.len());
        rest = &[];
    }
    while let Some((item, after)) = value_length(rest)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
    {
        rest = after;
        let name = names.next();
        if name.is_some() && item == [0x40] {
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

fn map(text: &mut String, bytes: Option<&[u8]>) {
    let mut rest = bytes.unwrap_or_default();
    text.push('{');
    let mut count = 0;
    while let Some((item, after)) = value_length(rest)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
    {
        rest = after;
        if count > 0 {
            text.push_str(if count % 2 == 0 { ", " } else { ": " });
        }
        count += 1;
        value(text, item);
    }
    text.push('}');
}

fn quoted(text: &mut String, bytes: Option<&[u8]>) {
    let string = String::from_utf8_lossy(bytes.unwrap_or_default());
    let short: String = string.chars().take(limits::TRACE_TEXT_MAX).collect();
    let _ = write!(text, "{short:?}");
}

fn symbol(text: &mut String, bytes: Option<&[u8]>) {
    let string = String::from_utf8_lossy(bytes.unwrap_or_default());
    text.extend(string.chars().take(limits::TRACE_TEXT_MAX));
}

fn hex(text: &mut String, bytes: Option<&[u8]>) {
    let bytes = bytes.unwrap_or_default();
    text.push_str("0x");
    for byte in bytes.iter().take(limits::TRACE_TEXT_MAX / 2) {
        let _ = write!(text, "{byte:02x}");
    }
}
