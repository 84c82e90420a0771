//! What needs attention, with the clients that it is about.

use std::sync::Arc;

use super::connections::cut;
use crate::Gateway;
use crate::amqp::link_of;
use crate::messages::is_receive;
use crate::request::{Request, Requester};
use jitney_amqp::LinkId;
use jitney_base::ids::ConnectionId;
use jitney_base::rights::Right;
use jitney_broker::namespace::{Attention, AttentionItem, Denied, StepContext};
use jitney_queue::ConsumerId;

/// Tell what needs attention in the namespace, or with one entity of it.
#[derive(Debug)]
pub struct ReadAttention {
    /// The path of the entity; without one, the namespace is meant.
    pub path: Option<String>,
}

/// What needs attention.
#[derive(Debug)]
pub struct AttentionView {
    /// What was found.
    pub found: Arc<Attention>,
    /// The links of its items' receivers, as many as there are items.
    pub links: Vec<Option<LinkOfItem>>,
}

/// The link of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOfItem {
    /// Its connection.
    pub connection: ConnectionId,
    /// Its id on its connection.
    pub link: LinkId,
    /// The container-id of its connection.
    pub container_id: String,
}

impl Request for ReadAttention {
    type Answer = AttentionView;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<AttentionView, Denied> {
        let found = match self.path {
            None => {
                let prefix = gateway.check_namespace(requester, Right::Listen)?;
                gateway.namespaces.attention(cx.now, &prefix)
            }
            Some(path) => {
                let (queue, _) = gateway.at_path(requester, &path, Right::Listen)?;
                Arc::new(gateway.namespaces.attention_of(cx.now, queue))
            }
        };
        let links = found.items.iter();
        let links = links.map(|item| gateway.link_of_item(item));
        Ok(AttentionView {
            links: links.collect(),
            found,
        })
    }
}

impl Gateway {
    fn link_of_item(&self, item: &AttentionItem) -> Option<LinkOfItem> {
        // A receive over HTTP has no link.
        let of_link = |receiver: &ConsumerId| !is_receive(*receiver);
        let (connection, link) = link_of(item.receiver.filter(of_link)?);
        let container_id = &self.connections.get(connection)?.container_id;
        Some(LinkOfItem {
            connection,
            link,
            container_id: cut(container_id),
        })
    }
}
