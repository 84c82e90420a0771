//! Receives over HTTP that wait for a message: an operator sees them, and may end them.

use crate::Gateway;
use crate::limits;
use crate::request::{Request, Requester};
use crate::request_log::shown_actor;
use jitney_base::ids::RequestId;
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_broker::access::Actor;
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

/// List receives over HTTP of the namespace that wait for a message, in the order of their ids.
#[derive(Debug)]
pub struct ListReceives {
    /// Those behind this id; all if it is not given.
    pub after: Option<RequestId>,
    /// As many at most.
    pub most: usize,
}

/// End a receive over HTTP that waits for a message. Its client may receive again.
#[derive(Debug)]
pub struct EndReceive(pub RequestId);

/// Some receives.
#[derive(Debug)]
pub struct ReceivesPage {
    /// The receives.
    pub receives: Vec<ReceiveView>,
    /// The id behind which there are more; `None` at the end.
    pub next_after: Option<RequestId>,
}

impl Request for ListReceives {
    type Answer = ReceivesPage;

    fn run(
        self,
        gateway: &mut Gateway,
        _cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<ReceivesPage, Denied> {
        let prefix = gateway.check_namespace(requester, Right::Listen)?;
        let most = self.most.clamp(1, limits::INSPECTED_MAX);
        let waiting = gateway.receives.waiting();
        let found = waiting.filter(|(request, receive)| {
            receive.prefix == prefix && self.after.is_none_or(|after| after < *request)
        });
        let views = found.take(most + 1).map(|(id, receive)| ReceiveView {
            id,
            entity: gateway.shown(receive.queue),
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
        Ok(ReceivesPage {
            receives: views,
            next_after: next,
        })
    }
}

impl Request for EndReceive {
    type Answer = ();

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<(), Denied> {
        let prefix = gateway.check_namespace(requester, Right::Manage)?;
        let Self(id) = self;
        let receive = gateway.receives.get(id);
        let receive = receive.filter(|receive| receive.waits() && receive.prefix == prefix);
        let Some(receive) = receive else {
            let text = format!("No receive {} waits for a message.", id.0);
            return Err(Denied::new(DeniedKind::NotFound, text, ""));
        };
        let entity = gateway.shown(receive.queue);
        let detail = format!("receive {}: {}", id.0, shown_actor(&receive.client));
        let path = format!("{prefix}{entity}");
        gateway.audit(cx, requester, "end_receive", &path, &detail);
        gateway.end_receives(cx, |_, request, _| {
            let text = "An operator has ended the receive.";
            (request == id).then(|| Denied::new(DeniedKind::Detached, text, &entity))
        });
        Ok(())
    }
}
