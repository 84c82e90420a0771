//! A connection's place in a shard, from the moment the shard is known to the connection's end.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::mailbox::{Mail, Mailbox};
use super::outbox::Outbox;
use super::shards::Shards;
use crate::access::Origin;
use crate::amqp::Event;
use crate::ids::ConnectionId;
use crate::shard::Report;
use crate::shard::routing::ShardIndex;

/// A connection that a shard's owner knows. It is taken out of the shard when this is dropped, also by
/// a panic: its links would keep their messages and message sessions for ever.
#[derive(Debug)]
pub(super) struct Membership {
    id: ConnectionId,
    shard: ShardIndex,
    owner: Mailbox,
    outbox: Arc<Outbox>,
    has_left: bool,
}

impl Membership {
    /// Tells a shard's owner of a connection; `None` if the owner has gone.
    pub(super) async fn enter(
        shards: &Shards,
        shard: ShardIndex,
        id: ConnectionId,
        origin: Origin,
    ) -> Option<Self> {
        let owner = shards.owner(shard)?;
        let outbox = Arc::new(Outbox::default());
        let mail = Mail::Connected(id, Arc::clone(&outbox), origin);
        owner.send(mail).await?;
        Some(Self {
            id,
            shard,
            owner,
            outbox,
            has_left: false,
        })
    }

    /// Returns the shard.
    pub(super) fn shard(&self) -> ShardIndex {
        self.shard
    }

    /// Returns where the shard leaves what it has for the connection.
    pub(super) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Hands in what the connection has read, of so many bytes; `None` if the owner has gone.
    pub(super) async fn report(&self, reports: Vec<Report>, bytes: usize) -> Option<()> {
        self.owner.send_reports(self.id, reports, bytes).await
    }

    /// Hands something else in; `None` if the owner has gone.
    pub(super) async fn send(&self, mail: Mail) -> Option<()> {
        self.owner.send(mail).await
    }

    /// Ends the membership with the last reports of the connection, whose engine has ended.
    pub(super) async fn leave(mut self, reports: Vec<Report>) {
        self.has_left = true;
        leave(self.id, &self.owner, reports).await;
    }

    /// Ends it although the connection continues in another shard, or has no engine.
    pub(super) async fn leave_early(self) {
        self.leave(vec![closed()]).await;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let (id, owner) = (self.id, self.owner.clone());
        // Without a runtime the process ends, and the owner with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { leave(id, &owner, vec![closed()]).await });
        }
    }
}

async fn leave(id: ConnectionId, owner: &Mailbox, reports: Vec<Report>) {
    // The owner is gone only when the server stops.
    let _ = owner.send_reports(id, reports, 0).await;
    let _ = owner.send(Mail::Disconnected(id)).await;
}

fn closed() -> Report {
    Report::Event(Event::Closed {
        error: None,
        unsent: Vec::new(),
    })
}
