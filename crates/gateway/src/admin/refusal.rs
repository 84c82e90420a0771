//! Refusals of requests, and their answers (`administration.md#errors`).

use super::write::Writer;
use super::{AdminResponse, text};
use crate::Tracking;
use crate::limits;
use jitney_broker::namespace::administration::READ_CLAIMS;
use jitney_broker::namespace::{Denied, DeniedKind};

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The request is malformed; the text names the element, or the part of the address.
    #[error("{0}")]
    Malformed(String),
    /// No resource can have such an address.
    #[error("{0}")]
    Unknown(String),
    /// The method is not allowed at this address.
    #[error("the method '{0}' is not allowed here; allowed: GET, PUT, DELETE")]
    Method(String),
    /// The body exceeds its bound.
    #[error(
        "the body is too long; allowed: {} bytes",
        limits::ADMIN_BODY_BYTES_MAX
    )]
    TooLong,
    /// `If-Match` requires a version that does not exist.
    #[error("If-Match: found '{0}'; allowed: * or an ETag of an earlier answer")]
    Version(String),
    /// The broker refused the operation.
    #[error(transparent)]
    Denied(#[from] Denied),
}

impl AdminError {
    /// Returns the refusal in the form for clients. A text that has its sub-code keeps it.
    #[must_use]
    pub fn render(&self, tracking: &Tracking<'_>) -> AdminResponse {
        let status = self.status();
        let sub_code = sub_code(status);
        let text = self.to_string();
        // The service's sentence about a right to read has no sub-code.
        let sub_code = if text.starts_with("SubCode=") || text.starts_with(READ_CLAIMS) {
            String::new()
        } else {
            format!("SubCode={sub_code}. ")
        };
        let text = text.trim_end_matches('.');
        let Tracking { id, system, at } = tracking;
        let at = text::time(*at);
        let detail =
            format!("{sub_code}{text}. TrackingId:{id}, SystemTracker:{system}, Timestamp:{at}");
        // Clients of Go show the status line: the service has the refusal of a right to a subscription or a rule in it,
        // and the usual words for a queue or a topic.
        let reason = detail
            .starts_with(PART_UNAUTHORIZED)
            .then(|| detail.clone());
        let mut out = Writer::document();
        out.within("Error", "", |out| {
            out.leaf("Code", status);
            out.leaf("Detail", detail);
        });
        let busy = matches!(self, Self::Denied(denied) if denied.kind == DeniedKind::Full);
        AdminResponse {
            status,
            reason,
            content_type: "application/xml; charset=utf-8",
            etag: None,
            retry_after_seconds: busy.then_some(limits::BUSY_RETRY_SECONDS),
            body: out.finish(),
        }
    }

    const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Unknown(_) => 404,
            Self::Method(_) => 405,
            Self::Version(_) => 412,
            Self::TooLong => 413,
            Self::Denied(denied) => crate::denied::http_status(denied.kind),
        }
    }
}

/// Begins the refusal of a right to a subscription or a rule.
const PART_UNAUTHORIZED: &str = "SubCode=40100: Unauthorized : Unauthorized access for";

/// Returns the sub-code by which clients distinguish refusals with the same status: 40301 and 40901
/// would mean something else to them.
const fn sub_code(status: u16) -> u32 {
    match status {
        503 => 50_004,
        status => status as u32 * 100,
    }
}
