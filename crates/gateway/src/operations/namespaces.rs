//! Namespaces that the operator makes and drops while the server runs.

use super::Operated;
use crate::limits;
use crate::{Gateway, Reply, Routed};
use jitney_amqp::{Condition, Refusal};
use jitney_base::ids::ConnectionId;
use jitney_base::rights::AuthorizationRule;
use jitney_broker::access::Authority;
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};

impl Gateway {
    /// Makes a namespace without entities, unless it is there.
    pub(super) fn make_namespace(
        &mut self,
        cx: &mut StepContext<'_>,
        authority: &Authority,
        name: &str,
        rules: Vec<AuthorizationRule>,
    ) -> Result<Operated, Denied> {
        check_operator(authority)?;
        self.namespaces.add_namespace(name);
        self.set_authorization(name, rules);
        let prefix = self.namespaces.prefix_of(name);
        self.audit(cx, authority, "make_namespace", &prefix, name);
        Ok(Operated::Done)
    }

    /// Deletes some entities of a namespace, closes its connections, and ends its receives; once it has none of them, it is gone.
    pub(super) fn drop_namespace(
        &mut self,
        cx: &mut StepContext<'_>,
        authority: &Authority,
        name: &str,
    ) -> Result<Operated, Denied> {
        check_operator(authority)?;
        let prefix = self.namespaces.prefix_of(name);
        if prefix.is_empty() {
            return Ok(Operated::Dropped(true));
        }
        for connection in self.connections_of(&prefix) {
            let refusal = Refusal {
                condition: Condition::ConnectionForced,
                description: "An operator has dropped the namespace.".to_owned(),
            };
            self.replies.push(Routed {
                connection,
                rests_on: 0,
                reply: Reply::Close(refusal),
            });
        }
        self.end_receives(cx, |_, _, receive| {
            let text = "An operator has dropped the namespace.";
            let is_in = receive.prefix == prefix;
            is_in.then(|| Denied::new(DeniedKind::NotFound, text, ""))
        });
        let most = limits::DROPPED_ENTITIES;
        let paths = self.namespaces.some_entities(name, most);
        for path in &paths {
            self.delete_entity(cx, path);
        }
        let has_clients = !self.connections_of(&prefix).is_empty() || self.receives.are_in(&prefix);
        if !paths.is_empty() || has_clients {
            return Ok(Operated::Dropped(false));
        }
        self.audit(cx, authority, "drop_namespace", &prefix, name);
        self.set_authorization(name, Vec::new());
        self.namespaces.remove_namespace(name);
        Ok(Operated::Dropped(true))
    }

    fn connections_of(&self, prefix: &str) -> Vec<ConnectionId> {
        let all = self.connections.iter();
        let own = all.filter(|(_, connection)| connection.prefix == prefix);
        own.map(|(id, _)| id).collect()
    }
}

pub(super) fn check_operator(authority: &Authority) -> Result<(), Denied> {
    if authority.is_operator() {
        return Ok(());
    }
    let text = "Namespaces are made and dropped by the operator.";
    Err(Denied::new(DeniedKind::Unauthorized, text, ""))
}
