//! `$cbs`: where peers put tokens (`cbs.md#tokens`).

use super::management::{Body, RequestMessage, Status};
use crate::Gateway;
use jitney_base::address::{Address, EntityAddress};
use jitney_base::ids::ConnectionId;
use jitney_broker::access::{Fault, audience_path};
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};

impl Gateway {
    /// Answers a request to `$cbs`. 202 for a token that was taken, as documented.
    pub(super) fn cbs_request(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        request: &RequestMessage,
    ) -> (Status, Body) {
        let audience = request.name.as_deref().unwrap_or_default();
        let status = match request.operation.as_str() {
            "put-token" => match (request.kind.as_deref(), request.body_text()) {
                (Some(kind), Some(token)) => {
                    match self.put_token(cx, connection, kind, audience, token) {
                        Ok(()) => match self.missing(connection, audience) {
                            None => Status::accepted(),
                            Some(denied) => {
                                self.delete_token(cx, connection, audience);
                                self.failed(cx.now, denied)
                            }
                        },
                        // It is to try again, and not to take its key for a wrong one.
                        Err(refused) if matches!(refused.fault, Fault::Throttled(_)) => {
                            Status::busy(refused.to_string())
                        }
                        Err(refused) if refused.fault == Fault::Full => {
                            let denied = Denied::new(DeniedKind::Limit, refused.to_string(), "");
                            self.failed(cx.now, denied)
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
                self.delete_token(cx, connection, audience);
                Status::accepted()
            }
            other => Status::invalid(&format!(
                "the operation '{other}' is not known to $cbs; 'put-token' and 'delete-token' are"
            )),
        };
        (status, Body::Empty)
    }

    /// Says that there is no entity that a token is for; who may not know has been refused before.
    pub(super) fn missing(&mut self, connection: ConnectionId, audience: &str) -> Option<Denied> {
        // The path for which the token was verified, read as it is: nothing is decoded again.
        let path = audience_path(audience, &self.host_of(connection));
        let Ok(Address::Entity(address)) = Address::of_path(&path) else {
            return None;
        };
        let within = EntityAddress {
            path: format!("{}{}", self.connection(connection).prefix, address.path),
            queue: address.queue,
        };
        if self.namespaces.resolve(&within).is_some()
            || self.may_create(connection, &address.path, &within.path)
        {
            return None;
        }
        let (host, text) = (self.host_of(connection), address.to_string());
        Some(Denied::not_found(&host, &text))
    }
}
