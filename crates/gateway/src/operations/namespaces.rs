//! Namespaces that the operator makes and drops while the server runs.

use crate::limits;
use crate::request::{Request, Requester};
use crate::{Gateway, QueuedReply, Reply};
use jitney_amqp::{Condition, Refusal};
use jitney_base::ids::ConnectionId;
use jitney_base::rights::AuthorizationRule;
use jitney_broker::access::Authority;
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};

/// Make a namespace without entities, for the operator, unless it is there. It is not recorded here: the server knows which
/// namespaces a shard has.
#[derive(Debug)]
pub struct CreateNamespace {
    /// Its name.
    pub name: String,
    /// Its authorization rules.
    pub rules: Vec<AuthorizationRule>,
}

/// Take a step of the dropping of a namespace, for the operator: delete some of its entities, with their messages, close its
/// connections, and end its receives. If it has none of them left, it is gone.
#[derive(Debug)]
pub struct DeleteNamespace {
    /// Its name.
    pub name: String,
}

impl Request for CreateNamespace {
    type Answer = ();

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<(), Denied> {
        check_operator(&requester.authority)?;
        gateway.namespaces.add_namespace(&self.name);
        gateway.set_authorization(&self.name, self.rules);
        let prefix = gateway.namespaces.prefix_of(&self.name);
        gateway.audit(cx, requester, "create_namespace", &prefix, &self.name);
        Ok(())
    }
}

impl Request for DeleteNamespace {
    /// Whether it is gone.
    type Answer = bool;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<bool, Denied> {
        check_operator(&requester.authority)?;
        let name = &self.name;
        let prefix = gateway.namespaces.prefix_of(name);
        if prefix.is_empty() {
            return Ok(true);
        }
        for connection in gateway.connections_of(&prefix) {
            let refusal = Refusal {
                condition: Condition::ConnectionForced,
                description: "An operator has deleted the namespace.".to_owned(),
            };
            gateway.replies.push(QueuedReply {
                connection,
                durable_after: 0,
                reply: Reply::Close(refusal),
            });
        }
        gateway.end_receives(cx, |_, _, receive| {
            let text = "An operator has deleted the namespace.";
            let is_in = receive.prefix == prefix;
            is_in.then(|| Denied::new(DeniedKind::NotFound, text, ""))
        });
        let most = limits::DELETED_ENTITIES;
        let paths = gateway.namespaces.some_entities(name, most);
        for path in &paths {
            gateway.delete_entity(cx, path);
        }
        let has_clients =
            !gateway.connections_of(&prefix).is_empty() || gateway.receives.are_in(&prefix);
        if !paths.is_empty() || has_clients {
            return Ok(false);
        }
        gateway.audit(cx, requester, "delete_namespace", &prefix, name);
        gateway.set_authorization(name, Vec::new());
        gateway.namespaces.remove_namespace(name);
        Ok(true)
    }
}

impl Gateway {
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
