//! Why a request is not done, and how that is told (`administration.md#errors`).

use super::limits::BUSY_SECONDS;
use super::write::Writer;
use super::{Response, text};
use crate::broker::Tracking;
use crate::broker::administration::{OperationRefused, READ_CLAIMS};

/// Why a request is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request makes no sense; the text names the element, or the part of the address.
    #[error("{0}")]
    Malformed(String),
    /// There is nothing that could be asked for at such an address.
    #[error("{0}")]
    Unknown(String),
    /// That cannot be done at this address.
    #[error("the method '{0}' is not allowed here; allowed: GET, PUT, DELETE")]
    Method(String),
    /// The body is longer than any that is understood.
    #[error(
        "the body is too long; allowed: {} bytes",
        super::limits::BODY_BYTES_MAX
    )]
    TooLong,
    /// The version that must be there, by `If-Match`, is none of ours.
    #[error("If-Match: found '{0}'; allowed: * or an ETag of an earlier answer")]
    Version(String),
    /// The broker refused it.
    #[error(transparent)]
    Operation(#[from] OperationRefused),
}

impl Refusal {
    /// Returns the refusal as the clients understand it. A text that has its sub-code keeps it.
    #[must_use]
    pub fn render(&self, tracking: &Tracking<'_>) -> Response {
        let (status, sub_code) = self.codes();
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
        // Clients of Go show the status line: the service has the refusal of a right in it, too.
        let reason = detail
            .starts_with("SubCode=40100: ")
            .then(|| detail.clone());
        let mut out = Writer::document();
        out.within("Error", "", |out| {
            out.leaf("Code", status);
            out.leaf("Detail", detail);
        });
        let busy = matches!(self, Self::Operation(OperationRefused::Busy(_)));
        Response {
            status,
            reason,
            content_type: "application/xml; charset=utf-8",
            etag: None,
            retry_after_seconds: busy.then_some(BUSY_SECONDS),
            body: out.finish(),
        }
    }

    /// Returns the status, and the sub-code by which clients tell what a status leaves open: 40301
    /// and 40901 would mean something else to them.
    const fn codes(&self) -> (u16, u32) {
        match self {
            Self::Malformed(_) | Self::Operation(OperationRefused::Invalid(_)) => (400, 40_000),
            Self::Operation(OperationRefused::Unauthorized(_)) => (401, 40_100),
            Self::Operation(OperationRefused::QuotaExceeded(_)) => (403, 40_300),
            Self::Unknown(_) | Self::Operation(OperationRefused::NotFound(_)) => (404, 40_400),
            Self::Method(_) => (405, 40_500),
            Self::Operation(OperationRefused::Exists(_)) => (409, 40_900),
            Self::Version(_) | Self::Operation(OperationRefused::Changed(_)) => (412, 41_200),
            Self::TooLong => (413, 41_300),
            Self::Operation(OperationRefused::Busy(_)) => (503, 50_004),
        }
    }
}
