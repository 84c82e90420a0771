//! What clients are told when something cannot be, in the service's words: some SDKs match them.

use std::sync::Arc;

use crate::amqp::{Outcome, Refusal, Rejection};
use crate::limits;
use crate::time::Timestamp;

/// What makes a refusal recognizable in logs.
#[derive(Debug, Clone, Copy)]
pub struct Tracking<'a> {
    /// A name that no other refusal has.
    pub id: &'a str,
    /// Who refused: the broker, and perhaps the entity.
    pub system: &'a str,
    /// When.
    pub at: Timestamp,
}

/// Returns the host by which texts name a namespace: the one that its client named, without a port.
pub(super) fn host_shown(named: Option<&str>) -> &str {
    let host = named.unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    if host.is_empty() || limits::HOST_NAME_BYTES_MAX < host.len() {
        return "localhost";
    }
    host
}

/// Makes the outcome that says no.
pub(super) fn rejected(refusal: Refusal) -> Outcome {
    Outcome::Rejected(Some(Arc::new(Rejection {
        refusal,
        info: None,
    })))
}

/// A time as the service prints it: `11/21/2026 5:26:14 AM`.
pub(super) fn stamp(now: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(now.as_millis())
        .map(|at| {
            at.to_zoned(jiff::tz::TimeZone::UTC)
                .strftime("%-m/%-d/%Y %-I:%M:%S %p")
                .to_string()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_called_as_its_client_calls_it() {
        assert_eq!(host_shown(Some("ns.example.org")), "ns.example.org");
        assert_eq!(host_shown(Some("127.0.0.1:5672")), "127.0.0.1");
        assert_eq!(host_shown(Some("[::1]:5672")), "[::1]");
        assert_eq!(host_shown(Some("[::1]")), "[::1]");
        assert_eq!(host_shown(None), "localhost");
        assert_eq!(host_shown(Some(&"h".repeat(256))), "localhost");
    }
}
