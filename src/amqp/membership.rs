//! A connection's place in a shard, from the moment the shard is known to the connection's end.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::host::mailbox::Mailbox;
use crate::host::outbox::Outbox;
use crate::host::owner_message::OwnerMessage;
use crate::host::quota::Quota;
use crate::host::shards::Shards;
use crate::host::vitals::Vitals;
use jitney_amqp::Event;
use jitney_base::ids::ConnectionId;
use jitney_broker::access::Origin;
use jitney_shard::Report;
use jitney_shard::routing::ShardIndex;

/// A connection that a shard's owner knows. It is taken out of the shard when this is dropped, also by
/// a panic: its links would keep their messages and message sessions for ever.
#[derive(Debug)]
pub(super) struct Membership {
    id: ConnectionId,
    shard: ShardIndex,
    owner: Mailbox,
    outbox: Arc<Outbox>,
    vitals: Arc<Vitals>,
    /// AMQP sessions of the connection, as the shard counts them.
    sessions: usize,
    has_left: bool,
}

impl Membership {
    /// Tells a shard's owner of a connection; `None` if the owner has gone.
    pub(crate) async fn enter(
        shards: &Shards,
        shard: ShardIndex,
        id: ConnectionId,
        origin: Origin,
    ) -> Option<Self> {
        let owner = shards.owner(shard)?;
        let outbox = Arc::new(Outbox::default());
        let mail = OwnerMessage::Connected(id, Arc::clone(&outbox), origin);
        owner.send(mail).await?;
        Some(Self {
            id,
            shard,
            owner,
            outbox,
            vitals: shards.vitals(shard)?,
            sessions: 0,
            has_left: false,
        })
    }

    /// Returns the shard.
    pub(crate) fn shard(&self) -> ShardIndex {
        self.shard
    }

    /// Returns what the clients of the shard may send.
    pub(crate) fn quota(&self) -> &Quota {
        self.vitals.quota()
    }

    /// Returns where the shard leaves what it has for the connection.
    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Takes how many AMQP sessions the connection has now.
    pub(super) fn set_sessions(&mut self, count: usize) {
        if count != self.sessions {
            self.vitals.change_sessions(self.sessions, count);
            self.sessions = count;
        }
    }

    /// Hands in what the connection has read, of so many bytes; `None` if the owner has gone.
    pub(crate) async fn report(&self, reports: Vec<Report>, bytes: usize) -> Option<()> {
        self.owner.send_reports(self.id, reports, bytes).await
    }

    /// Ends the membership with the last reports of the connection, whose engine has ended.
    pub(crate) async fn leave(mut self, reports: Vec<Report>) {
        self.has_left = true;
        leave(self.id, &self.owner, reports).await;
    }

    /// Ends it although the connection continues in another shard.
    pub(super) async fn leave_early(self) {
        self.leave(vec![closed()]).await;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.set_sessions(0);
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
    let _ = owner.send(OwnerMessage::Disconnected(id)).await;
}

fn closed() -> Report {
    Report::Event(Event::Closed {
        error: None,
        unsent: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn the_sessions_of_a_connection_count_to_its_shard_until_it_ends() {
        let (mail, mut owner) = mpsc::channel(8);
        let shards = Shards::of(vec![("a", mail.clone()), ("b", mail)]);
        let enter = |at, id| Membership::enter(&shards, ShardIndex(at), id, Origin::default());
        let counts = || [0, 1].map(|at| shards.vitals(ShardIndex(at)).unwrap().sessions());
        let mut one = enter(0, ConnectionId(1)).await.unwrap();
        let mut two = enter(0, ConnectionId(2)).await.unwrap();
        one.set_sessions(2);
        two.set_sessions(3);
        one.set_sessions(1);
        assert_eq!(counts(), [4, 0]);
        two.leave_early().await;
        assert_eq!(counts(), [1, 0]);
        drop(one);
        assert_eq!(counts(), [0, 0]);
        owner.close();
    }
}
