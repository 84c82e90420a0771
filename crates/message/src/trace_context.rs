//! The trace that a message is part of: W3C Trace Context, as the SDKs write it into messages.

use super::{Message, Scalar};

/// The span that a message was sent in (W3C Trace Context, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; not all zeros.
    pub trace_id: [u8; 16],
    /// The span in it; not all zeros.
    pub span_id: [u8; 8],
}

/// The application-property that has it (`messaging.md#tracing`).
const NEWER: &str = "traceparent";
/// The one that older SDKs write.
const OLDER: &str = "Diagnostic-Id";

/// The bit of the flags that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// `00-` and the two ids and the flags, in hexadecimal digits, with a hyphen between two parts.
const LENGTH: usize = 55;

impl Message {
    /// Returns the span that the message was sent in, if its trace is recorded. A value of another form, as the
    /// hierarchical ids of early SDKs, counts as none.
    #[must_use]
    pub fn trace_context(&self) -> Option<TraceContext> {
        let (mut newer, mut older) = (None, None);
        for (name, value) in self.application_properties() {
            let found = match name {
                NEWER => &mut newer,
                OLDER => &mut older,
                _ => continue,
            };
            if let Scalar::Text(text) = Scalar::decode(value) {
                *found = TraceContext::parse(&text);
            }
        }
        newer.or(older)
    }
}

impl TraceContext {
    /// Reads the value of the header `traceparent`; `None` if it is no such value, or if the trace is not recorded.
    fn parse(text: &str) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let (version, trace_id) = (parts.next()?, parts.next()?);
        let (span_id, flags) = (parts.next()?, parts.next()?);
        let [version] = hex(version)?;
        let [flags] = hex(flags)?;
        // A later version may have more parts.
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let context = Self {
            trace_id: hex(trace_id)?,
            span_id: hex(span_id)?,
        };
        let is_valid = context.trace_id != [0; 16] && context.span_id != [0; 8];
        (is_whole && is_valid && flags & SAMPLED != 0).then_some(context)
    }
}

/// Reads lower-case hexadecimal digits, two for each byte.
fn hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let mut bytes = [0; N];
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const OTHER: &str = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01";

    fn context(text: &str) -> Option<TraceContext> {
        TraceContext::parse(text)
    }

    #[test]
    fn a_recorded_trace_is_read() {
        let read = context(GOOD).unwrap();
        assert_eq!(read.trace_id[..3], [0x0a, 0xf7, 0x65]);
        assert_eq!(
            read.span_id,
            [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]
        );
        // Unknown flags and what later versions append are ignored.
        assert_eq!(context(&GOOD.replace("-01", "-ff")), Some(read));
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(context(&later), Some(read));
        assert_eq!(context(&format!("{later}-what-comes")), Some(read));
    }

    #[test]
    fn anything_else_is_no_context() {
        for wrong in [
            "",
            "00",
            "|7e9f3a.1.",
            &GOOD.to_uppercase(),
            &GOOD.replace("-01", "-00"),
            &GOOD.replacen("00", "ff", 1),
            &format!("{GOOD}-more"),
            &format!("{}.", GOOD.replacen("00", "cc", 1)),
            &GOOD.replace('-', "_"),
            &GOOD.replace("b7ad6b7169203331", "0000000000000000"),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b71", "b7ad6b-1"),
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\u{e9}-1",
        ] {
            assert_eq!(context(wrong), None, "{wrong}");
        }
    }

    /// A message with these application-properties, as strings.
    fn message(properties: &[(&str, &str)]) -> Message {
        let mut map = vec![u8::try_from(properties.len() * 2).unwrap()];
        for text in properties.iter().flat_map(|(name, value)| [name, value]) {
            map.extend([0xa1, u8::try_from(text.len()).unwrap()]);
            map.extend(text.as_bytes());
        }
        let mut bytes = vec![0x00, 0x53, 0x74, 0xc1, u8::try_from(map.len()).unwrap()];
        bytes.extend(map);
        bytes.extend(super::super::EMPTY);
        Message::parse(Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn the_property_traceparent_counts_more_than_diagnostic_id() {
        let both = message(&[("Diagnostic-Id", OTHER), ("x", "y"), ("traceparent", GOOD)]);
        assert_eq!(both.trace_context(), context(GOOD));
        let old = message(&[("Diagnostic-Id", OTHER)]);
        assert_eq!(old.trace_context(), context(OTHER));
        let half = message(&[("traceparent", "|1."), ("Diagnostic-Id", OTHER)]);
        assert_eq!(half.trace_context(), context(OTHER));
        assert_eq!(message(&[("x", GOOD)]).trace_context(), None);
        assert_eq!(message(&[]).trace_context(), None);
    }
}
