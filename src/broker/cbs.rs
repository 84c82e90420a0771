//! `$cbs`: where peers put tokens (`protocol.md` §2).

use super::Broker;
use super::management::{Body, Request, Status};

impl Broker {
    /// Answers a request to `$cbs`. 202 for a token that was taken, as documented.
    pub(super) fn cbs_request(&self, request: &Request) -> (Status, Body) {
        let status = match request.operation.as_str() {
            "put-token" => match (request.kind.as_deref(), request.body_text()) {
                (Some(kind), Some(token)) => match self.profile.check_token(kind, &token) {
                    Ok(()) => Status::accepted(),
                    Err(text) => Status::unauthorized(text),
                },
                (None, _) => Status::invalid("the application-property 'type' is missing"),
                (_, None) => Status::invalid(
                    "the body must be an amqp-value that holds the token as a string",
                ),
            },
            // Nothing rests on a token in this profile, so there is nothing to take away.
            "delete-token" => Status::accepted(),
            other => Status::invalid(&format!(
                "the operation '{other}' is not known to $cbs; 'put-token' and 'delete-token' are"
            )),
        };
        (status, Body::Empty)
    }
}
