//! Receives over HTTP that wait for a message: an operator sees them, and may end them.

use super::Operated;
use crate::Gateway;
use crate::limits;
use crate::request_log::shown_actor;
use jitney_base::ids::RequestId;
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_broker::access::{Actor, Authority};
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};
use jitney_queue::ReceiveMode;

/// A receive over HTTP that waits for a message.
#[derive(Debug, Clone)]
pub struct ReceiveView {
    /// Its request.
    pub id: RequestId,
    /// The address of the queue.
    pub entity: String,
    /// How it receives.
    pub mode: ReceiveMode,
    /// The host by which its client calls the namespace.
    pub host: String,
    /// Its client.
    pub client: Actor,
    /// When it came.
    pub began: Timestamp,
    /// Until when it waits.
    pub until: Timestamp,
}

impl Gateway {
    /// Lists receives of a namespace that wait, in the order of their numbers.
    pub(super) fn list_receives(
        &self,
        host: Option<&str>,
        authority: &Authority,
        after: Option<RequestId>,
        most: usize,
    ) -> Result<Operated, Denied> {
        let prefix = self.check_namespace(host, authority, Right::Listen)?;
        let most = most.clamp(1, limits::INSPECTED_MAX);
        let waiting = self.receives.waiting();
        let found = waiting.filter(|(request, receive)| {
            receive.prefix == prefix && after.is_none_or(|after| after < *request)
        });
        let views = found.take(most + 1).map(|(id, receive)| ReceiveView {
            id,
            entity: self.shown(receive.queue),
            mode: receive.mode,
            host: receive.host.clone(),
            client: receive.client.clone(),
            began: receive.began,
            until: receive.until,
        });
        let mut views: Vec<ReceiveView> = views.collect();
        let has_more = most < views.len();
        views.truncate(most);
        let next = views.last().filter(|_| has_more).map(|view| view.id);
        Ok(Operated::Receives(views, next))
    }

    /// Ends a receive that waits. Its client may receive again.
    pub(super) fn end_receive_for_operator(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        id: RequestId,
    ) -> Result<Operated, Denied> {
        let prefix = self.check_namespace(host, authority, Right::Manage)?;
        let receive = self.receives.get(id);
        let receive = receive.filter(|receive| receive.waits() && receive.prefix == prefix);
        let Some(receive) = receive else {
            let text = format!("No receive {} waits for a message.", id.0);
            return Err(Denied::new(DeniedKind::NotFound, text, ""));
        };
        let entity = self.shown(receive.queue);
        let detail = format!("receive {}: {}", id.0, shown_actor(&receive.client));
        let path = format!("{prefix}{entity}");
        self.audit(cx, authority, "end_receive", &path, &detail);
        self.end_receives(cx, |_, request, _| {
            let text = "An operator has ended the receive.";
            (request == id).then(|| Denied::new(DeniedKind::Detached, text, &entity))
        });
        Ok(Operated::Done)
    }
}
