//! Refusals of requests about messages, and their answers.

use std::fmt::Write as _;

use super::{RestResponse, times};
use crate::Tracking;
use jitney_broker::namespace::{Denied, DeniedKind};

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestError {
    /// The request is malformed; the text names the fault.
    #[error("{0}")]
    Malformed(String),
    /// The body exceeds its bound.
    #[error("the body has more than {0} bytes, and no message may")]
    TooLong(usize),
    /// The broker refused the operation.
    #[error(transparent)]
    Denied(#[from] Denied),
}

impl RestError {
    /// Returns the refusal in the form for clients. A text in the service's form stays as it is.
    #[must_use]
    pub fn render(&self, tracking: &Tracking<'_>) -> RestResponse {
        let status = self.status();
        let mut detail = self.to_string();
        if !detail.contains("TrackingId:") {
            let Tracking { id, system, at } = tracking;
            let at = times::http(*at);
            detail.truncate(detail.trim_end_matches('.').len());
            let _ = write!(
                detail,
                ". TrackingId:{id}, SystemTracker:{system}, Timestamp:{at}"
            );
        }
        let mut body = format!("<Error><Code>{status}</Code><Detail>");
        for c in detail.chars() {
            match c {
                '&' => body.push_str("&amp;"),
                '<' => body.push_str("&lt;"),
                '>' => body.push_str("&gt;"),
                // No document of XML can hold these, however they are written.
                c if c.is_control() && !c.is_ascii_whitespace() => body.push('\u{fffd}'),
                c => body.push(c),
            }
        }
        body.push_str("</Detail></Error>");
        let kind = "application/xml; charset=utf-8";
        let mut headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        if status == 503 {
            headers.push(("Retry-After".to_owned(), "2".to_owned()));
        }
        RestResponse {
            status,
            headers,
            body: body.into(),
        }
    }

    const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooLong(_) => 403,
            // So says the service of an entity that is missing.
            Self::Denied(Denied {
                kind: DeniedKind::NotFound,
                ..
            }) => 410,
            // The request was good, and may be made again.
            Self::Denied(Denied {
                kind: DeniedKind::Detached,
                ..
            }) => 503,
            Self::Denied(denied) => crate::denied::http_status(denied.kind),
        }
    }
}
