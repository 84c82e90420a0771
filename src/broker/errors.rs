//! What clients are told when something cannot be, in the service's words: some SDKs match them.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::amqp::{Condition, Outcome, Refusal, Rejection};
use crate::ids::Random;
use crate::limits;
use crate::queue::SendRefused;
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

/// Makes a refusal whose description ends as the service's do (`errors.md#texts`).
pub(super) fn refusal(
    condition: Condition,
    text: &str,
    entity: &str,
    now: Timestamp,
    random: &mut Random,
) -> Refusal {
    let mut description = text.to_owned();
    let (high, low) = (random.next_u64(), random.next_u64());
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    let (d, e) = (low >> 48, low & 0xffff_ffff_ffff);
    let _ = write!(
        description,
        " TrackingId:{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}, SystemTracker:{entity}, Timestamp:{}",
        stamp(now)
    );
    Refusal {
        condition,
        description,
    }
}

/// Says that there is no such entity; JavaScript and Java match the first sentence.
pub(super) fn not_found(host: &str, address: &str, now: Timestamp, random: &mut Random) -> Refusal {
    let text = format!(
        "The messaging entity 'sb://{host}/{address}' could not be found. To know more visit \
         https://aka.ms/sbResourceMgrExceptions. "
    );
    refusal(Condition::NotFound, text.trim_end(), address, now, random)
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

/// The condition and sentence for a message that a queue does not take.
pub(super) fn send_refused(reason: SendRefused, entity: &str) -> (Condition, String) {
    match reason {
        SendRefused::Disabled => (
            Condition::EntityDisabled,
            format!("Messaging entity '{entity}' is currently disabled."),
        ),
        SendRefused::Full { bytes, max_bytes } => (
            Condition::ResourceLimitExceeded,
            format!(
                "The maximum entity size has been reached or exceeded for Queue: '{entity}'. Size \
                 of entity in bytes:{bytes}, Max entity size in bytes:{max_bytes}."
            ),
        ),
        SendRefused::SessionMissing => (
            Condition::NotAllowed,
            "The SessionId was not set on a message, and it cannot be sent to the entity. Entities \
             that have session support enabled can only receive messages that have the SessionId \
             set to a valid value."
                .to_owned(),
        ),
        SendRefused::TooLarge { bytes, max_bytes } => (
            Condition::MessageSizeExceeded,
            format!(
                "The received message (size:{bytes} bytes) exceeds the limit ({max_bytes} bytes) \
                 currently allowed on the entity."
            ),
        ),
    }
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

    #[test]
    fn a_description_ends_as_the_service_s_do() {
        let now = Timestamp::from_millis(1_795_238_774_000);
        let refusal = not_found("ns.example.org", "nope", now, &mut Random::new(1));
        assert!(refusal.description.starts_with(
            "The messaging entity 'sb://ns.example.org/nope' could not be found. To know more visit \
             https://aka.ms/sbResourceMgrExceptions. TrackingId:"
        ));
        assert!(
            refusal
                .description
                .ends_with(", SystemTracker:nope, Timestamp:11/21/2026 5:26:14 AM"),
            "{}",
            refusal.description
        );
    }
}
