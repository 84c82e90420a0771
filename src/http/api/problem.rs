//! Errors of the JSON API: `application/problem+json` [RFC 9457].

use std::borrow::Cow;
use std::fmt::Display;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use jitney_api::problem::Problem as Body;
use jitney_broker::namespace::{Denied, DeniedKind};

/// An error answer: the body that gives the reason, and the headers that go with it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Problem {
    #[serde(flatten)]
    body: Box<Body>,
    /// The methods that are allowed, if another was used.
    #[serde(skip)]
    allowed: Option<Box<str>>,
    /// What would be right in the field, if that is known.
    #[serde(skip)]
    right: Option<Box<str>>,
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        Body::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> Cow<'static, str> {
        Body::name()
    }
}

impl Problem {
    pub(super) fn new(status: StatusCode, reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            body: Box::new(Body {
                status: status.as_u16(),
                title: status.canonical_reason().unwrap_or_default().into(),
                detail: detail.into(),
                reason: reason.into(),
                field: None,
            }),
            allowed: None,
            right: None,
        }
    }

    /// Says of a field of the properties in a body what was found in it, as it was given, and puts their name before its own.
    pub(super) fn of_properties(mut self, given: &serde_json::Value) -> Self {
        let Some(field) = self.body.field.take() else {
            return self;
        };
        let Some(found) = given.get(&field) else {
            self.body.field = Some(field);
            return self;
        };
        if let Some(right) = self.right.take() {
            self.body.detail = format!("properties.{field}: found {found}; allowed: {right}.");
        }
        self.body.field = Some(format!("properties.{field}"));
        self
    }

    /// Another method is right.
    pub(super) fn method(method: &str, allowed: &str) -> Self {
        let text = format!("{method} is not allowed here; {allowed} is.");
        Self {
            allowed: Some(allowed.into()),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "not_allowed", text)
        }
    }

    /// The request is malformed.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "argument", detail)
    }

    /// This parameter of the query, or field of the body, is wrong.
    pub(super) fn wrong(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let field: String = field.into();
        let is_known = !matches!(field.as_str(), "" | "." | "?");
        let problem = Self::bad_request(detail);
        if is_known {
            problem.about(&field)
        } else {
            problem
        }
    }

    /// There is nothing at this path.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// Names the field that is wrong.
    pub(super) fn about(mut self, field: &str) -> Self {
        self.body.field = Some(field.to_owned());
        self
    }

    /// Returns whether there is nothing at this path.
    pub(super) const fn is_not_found(&self) -> bool {
        self.body.status == StatusCode::NOT_FOUND.as_u16()
    }

    /// Returns whether the credentials are not good for it.
    pub(super) const fn is_unauthorized(&self) -> bool {
        self.body.status == StatusCode::UNAUTHORIZED.as_u16()
    }

    /// Says something else about it.
    pub(super) fn with_detail(mut self, detail: &str) -> Self {
        detail.clone_into(&mut self.body.detail);
        self
    }

    /// The server ends before the request is carried out; its result is unknown.
    pub(super) fn stopping() -> Self {
        let text = "The broker is stopping, another server serves the namespace now, or its database cannot be reached: try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "internal", text)
    }

    /// There is no room for the answer.
    pub(super) fn busy() -> Self {
        let text = "The answer has no room: other answers wait to be read, or it is too long. Ask again a little later, or for less.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text)
    }

    /// Returns whether it may be asked for again a little later.
    pub(super) const fn is_busy(&self) -> bool {
        self.body.status == StatusCode::SERVICE_UNAVAILABLE.as_u16()
    }

    /// A namespace that is not known, while some are not.
    pub(super) fn unknown_yet() -> Self {
        let text = "A database cannot be reached, and the namespace may be there: try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text)
    }
}

/// Returns what a parser says of a text in words for people.
pub(super) fn fault(error: &dyn Display) -> String {
    let text = error.to_string();
    let (said, place) = match text.rsplit_once(" at line ") {
        Some((said, place)) => (said, Some(place.replace(" column ", ", column "))),
        None => (text.as_str(), None),
    };
    let quoted = said.replace('`', "'");
    if let Some((found, allowed)) = quoted
        .strip_prefix("unknown variant ")
        .or_else(|| quoted.strip_prefix("unknown field "))
        .and_then(|rest| rest.split_once(", expected "))
    {
        let allowed = allowed.trim_start_matches("one of ").replace('\'', "");
        return format!("{found} is not known; allowed: {allowed}");
    }
    let found = quoted
        .strip_prefix("invalid type: ")
        .or_else(|| quoted.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    match (found, place) {
        (Some((found, allowed)), _) => format!("found {found}; allowed: {allowed}"),
        (None, Some(place)) if is_syntax(said) => {
            format!("not valid JSON at line {place}: {said}")
        }
        (None, _) => quoted,
    }
}

/// Returns whether a parser of JSON complains of the text itself, and not of what it says.
fn is_syntax(said: &str) -> bool {
    let faults = [
        "expected ",
        "EOF ",
        "trailing ",
        "invalid escape",
        "key must be",
        "control character",
        "lone ",
        "invalid number",
    ];
    faults.iter().any(|fault| said.starts_with(fault))
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let status = match denied.kind {
            // What a request asks for in vain is no fault of the connection.
            DeniedKind::Limit => StatusCode::TOO_MANY_REQUESTS,
            DeniedKind::Deleted => StatusCode::NOT_FOUND,
            DeniedKind::Argument
            | DeniedKind::Changed
            | DeniedKind::Decode
            | DeniedKind::Detached
            | DeniedKind::Disabled
            | DeniedKind::Exists
            | DeniedKind::Full
            | DeniedKind::InUse
            | DeniedKind::Internal
            | DeniedKind::InvalidField
            | DeniedKind::MessageNotFound
            | DeniedKind::MessageLockLost
            | DeniedKind::NotAllowed
            | DeniedKind::NotFound
            | DeniedKind::NotImplemented
            | DeniedKind::SessionCannotBeLocked
            | DeniedKind::SessionLockLost
            | DeniedKind::Timeout
            | DeniedKind::TooLarge
            | DeniedKind::TransactionRollback
            | DeniedKind::TransactionUnknown
            | DeniedKind::Unauthorized => {
                let status = StatusCode::from_u16(jitney_gateway::denied::http_status(denied.kind));
                status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        };
        let (field, right) = match denied.field {
            Some(field) => (Some(field.name.into_owned()), field.allowed),
            None => (None, None),
        };
        let mut problem = Self::new(status, denied.kind.name(), denied.text);
        problem.body.field = field;
        problem.right = right.map(String::into_boxed_str);
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.body).expect("texts are JSON");
        let kind = HeaderValue::from_static("application/problem+json");
        let allowed = self.allowed.as_deref();
        let allowed = allowed.and_then(|allowed| HeaderValue::from_str(allowed).ok());
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        let headers = response.headers_mut();
        if let Some(allowed) = allowed {
            headers.insert(header::ALLOW, allowed);
        }
        if status == StatusCode::UNAUTHORIZED {
            let schemes = HeaderValue::from_static("Bearer, SharedAccessSignature");
            headers.insert(header::WWW_AUTHENTICATE, schemes);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_broker::namespace::WrongField;

    #[test]
    fn what_a_parser_says_is_said_in_words_for_people() {
        for (theirs, ours) in [
            (
                "invalid type: string \"yes\", expected a boolean at line 1 column 54",
                "found string \"yes\"; allowed: a boolean",
            ),
            (
                "unknown variant `lockd`, expected one of `active`, `deferred`",
                "'lockd' is not known; allowed: active, deferred",
            ),
            (
                "unknown field `x`, expected `messages` at line 1 column 5",
                "'x' is not known; allowed: messages",
            ),
            (
                "expected ident at line 1 column 2",
                "not valid JSON at line 1, column 2: expected ident",
            ),
            (
                "missing field `entity` at line 1 column 2",
                "missing field 'entity'",
            ),
        ] {
            assert_eq!(fault(&theirs), ours);
        }
    }

    #[test]
    fn a_wrong_property_is_named_as_the_api_names_it_with_the_value_as_given() {
        let denied = Denied {
            field: Some(Box::new(WrongField {
                name: "lock_duration".into(),
                allowed: Some("PT5S to PT5M".to_owned()),
            })),
            ..Denied::new(
                DeniedKind::InvalidField,
                "LockDuration: found 'PT10M'; allowed: PT5S to PT5M.",
                "",
            )
        };
        let given = serde_json::json!({"lock_duration": "PT10M"});
        let problem = Problem::from(denied.clone()).of_properties(&given);
        assert_eq!(
            problem.body.field.as_deref(),
            Some("properties.lock_duration")
        );
        assert_eq!(
            problem.body.detail,
            "properties.lock_duration: found \"PT10M\"; allowed: PT5S to PT5M."
        );
        let other = Problem::from(denied).of_properties(&serde_json::json!({}));
        assert_eq!(other.body.field.as_deref(), Some("lock_duration"));
        assert!(other.body.detail.starts_with("LockDuration"));
    }
}
