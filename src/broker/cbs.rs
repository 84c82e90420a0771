//! `$cbs`: where peers put tokens (`protocol.md` §2).

use super::management::{Body, Request, Status};
use super::{Broker, ConnectionId, Fault, Surroundings};

impl Broker {
    /// Answers a request to `$cbs`. 202 for a token that was taken, as documented.
    pub(super) fn cbs_request(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        request: &Request,
    ) -> (Status, Body) {
        let audience = request.name.as_deref().unwrap_or_default();
        let status = match request.operation.as_str() {
            "put-token" => match (request.kind.as_deref(), request.body_text()) {
                (Some(kind), Some(token)) => {
                    match self.put_token(around, connection, kind, audience, &token) {
                        Ok(()) => Status::accepted(),
                        // It is to try again, and not to take its key for a wrong one.
                        Err(refused) if matches!(refused.fault, Fault::Throttled(_)) => {
                            Status::busy(refused.to_string())
                        }
                        Err(refused) => Status::unauthorized(refused.to_string()),
                    }
                }
                (None, _) => Status::invalid("the application-property 'type' is missing"),
                (_, None) => Status::invalid(
                    "the body must be an amqp-value that holds the token as a string",
                ),
            },
            "delete-token" => {
                self.delete_token(around, connection, audience);
                Status::accepted()
            }
            other => Status::invalid(&format!(
                "the operation '{other}' is not known to $cbs; 'put-token' and 'delete-token' are"
            )),
        };
        (status, Body::Empty)
    }
}
