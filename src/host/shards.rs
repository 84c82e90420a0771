//! The shards of this server, as connections and requests reach them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tokio::runtime::Handle;

use super::mailbox::Mailbox;
use super::owner_message::{Control, OwnerMessage, ShardReport};
use super::partials::{PartialBytes, Partials};
use super::vitals::Vitals;
use jitney_journal::LogEnd;
use jitney_shard::routing::{Routes, ShardIndex};
use jitney_shard::{Input, Pressure, Shortage};

/// All shards of this server.
#[derive(Debug)]
pub(crate) struct Shards {
    routes: ArcSwap<Routes>,
    members: ArcSwap<BTreeMap<ShardIndex, Arc<Member>>>,
    partials: PartialBytes,
}

/// A shard that runs.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its number in the data directory.
    pub(crate) number: u32,
    pub(crate) owner: Mailbox,
    /// The runtime of its owner and its connections.
    pub(crate) runtime: Handle,
    pub(crate) vitals: Arc<Vitals>,
}

impl Shards {
    /// Takes the shards in the order of their indexes in `routes`.
    pub(crate) fn new(routes: Routes, members: Vec<Member>, partials: PartialBytes) -> Self {
        let members = (0..).map(ShardIndex).zip(members.into_iter().map(Arc::new));
        Self {
            routes: ArcSwap::from_pointee(routes),
            members: ArcSwap::from_pointee(members.collect()),
            partials,
        }
    }

    /// Adds a shard that was taken over, whose index no other has had.
    pub(crate) fn add(&self, shard: ShardIndex, member: Member) {
        let member = Arc::new(member);
        self.members.rcu(|members| {
            let mut members = BTreeMap::clone(members);
            members.insert(shard, Arc::clone(&member));
            members
        });
    }

    /// Removes a shard that is served no longer.
    pub(crate) fn remove(&self, shard: ShardIndex) {
        self.members.rcu(|members| {
            let mut members = BTreeMap::clone(members);
            members.remove(&shard);
            members
        });
    }

    /// Returns which shard serves which namespace.
    pub(crate) fn routes(&self) -> Guard<Arc<Routes>> {
        self.routes.load()
    }

    /// Replaces the routes, after a namespace was made or dropped.
    pub(crate) fn set_routes(&self, routes: Routes) {
        self.routes.store(Arc::new(routes));
    }

    /// Changes the routes, after a namespace was taken over or given away.
    pub(crate) fn change_routes(&self, change: impl Fn(&Routes) -> Routes) {
        self.routes.rcu(|routes| change(routes));
    }

    /// Returns the number of a shard in the data directory, or of its namespace in the store.
    pub(crate) fn number(&self, shard: ShardIndex) -> Option<u32> {
        Some(self.member(shard)?.number)
    }

    /// Returns the shard with a number.
    pub(super) fn index_of(&self, number: u32) -> Option<ShardIndex> {
        let members = self.members.load();
        let found = members.iter().find(|(_, it)| it.number == number);
        found.map(|(shard, _)| *shard)
    }

    /// Returns where a shard's owner is reached, if it is served.
    pub(crate) fn owner(&self, shard: ShardIndex) -> Option<Mailbox> {
        Some(self.member(shard)?.owner.clone())
    }

    /// Returns the health of a shard, if it is served.
    pub(crate) fn vitals(&self, shard: ShardIndex) -> Option<Arc<Vitals>> {
        Some(Arc::clone(&self.member(shard)?.vitals))
    }

    /// Returns the runtime of a shard's owner and its connections, if it is served.
    pub(crate) fn runtime(&self, shard: ShardIndex) -> Option<Handle> {
        Some(self.member(shard)?.runtime.clone())
    }

    fn member(&self, shard: ShardIndex) -> Option<Arc<Member>> {
        self.members.load().get(&shard).cloned()
    }

    /// Returns the shards that run now.
    pub(crate) fn members(&self) -> Arc<BTreeMap<ShardIndex, Arc<Member>>> {
        self.members.load_full()
    }

    fn all(&self) -> Vec<Arc<Member>> {
        self.members.load().values().cloned().collect()
    }

    /// Returns the mailbox of the owner that serves a host; none if another server serves it, or if its store is away.
    pub(crate) fn owner_of(&self, host: &str) -> Option<Mailbox> {
        let member = self.member(self.routes.load().shard_of(Some(host))?)?;
        let is_away = member.vitals.suspended_for().is_some();
        (!is_away).then(|| member.owner.clone())
    }

    /// Returns the mailbox of an owner whose store is there, for a question that concerns no namespace that is served.
    pub(crate) fn some_owner(&self) -> Option<Mailbox> {
        let members = self.members.load();
        let mut there = members
            .values()
            .filter(|it| it.vitals.suspended_for().is_none());
        there.next().map(|member| member.owner.clone())
    }

    /// Returns the health of the shard that serves a host; none if another server serves it.
    pub(crate) fn vitals_of(&self, host: &str) -> Option<Arc<Vitals>> {
        self.vitals(self.routes.load().shard_of(Some(host))?)
    }

    /// Returns for how long the store of a shard has been away, if it is.
    pub(crate) fn suspended_for(&self, shard: ShardIndex) -> Option<Duration> {
        self.member(shard)?.vitals.suspended_for()
    }

    /// Returns a new connection's part of what all have of messages that are not whole yet.
    pub(crate) fn partials(&self) -> Partials {
        self.partials.part()
    }

    /// Returns the numbers of the shards in which no message would be taken, or not soon.
    pub(crate) fn stuck(&self) -> Vec<u32> {
        let all = self.all().into_iter();
        let stuck = all.filter(|member| !member.vitals.are_good());
        stuck.map(|member| member.number).collect()
    }

    /// Returns the shards that accept no messages because they lack something, by number.
    pub(crate) fn shortages(&self) -> Vec<(u32, Shortage)> {
        let all = self.all().into_iter();
        let lacking = all.filter_map(|it| Some((it.number, it.vitals.shortage()?)));
        lacking.collect()
    }

    /// Hands an input to every shard.
    pub(crate) async fn send_all(&self, input: impl Fn() -> Input) {
        for member in self.all() {
            // The owner has gone only when it has stopped.
            let _ = member.owner.send(OwnerMessage::Input(input())).await;
        }
    }

    /// Lets every shard keep to this much memory.
    pub(super) async fn press(&self, pressure: Pressure) {
        for member in self.all() {
            // The owner has gone only when it has stopped.
            let _ = member.owner.control(Control::Pressure(pressure)).await;
        }
    }

    /// Asks every shard what it has and has done, with so many entities one by one in each; returns that with the shards'
    /// numbers. A shard whose owner has stopped is left out.
    pub(crate) async fn reports(&self, most: usize) -> Vec<(u32, ShardReport)> {
        let mut found = Vec::new();
        for member in self.all() {
            let report = member.owner.report(most).await;
            found.extend(report.map(|report| (member.number, report)));
        }
        found
    }

    /// Asks every shard where its durable log ends; returns that with the shards' numbers. A shard whose owner has stopped is
    /// left out.
    pub(super) async fn log_ends(&self) -> Vec<(u32, LogEnd)> {
        let mut found = Vec::new();
        for member in self.all() {
            let end = member.owner.ask(OwnerMessage::LogEnd).await;
            found.extend(end.map(|end| (member.number, end)));
        }
        found
    }

    /// Waits until the owners of all shards have gone; for ever where namespaces come and go.
    pub(crate) async fn closed(&self) {
        if self.routes.load().is_shared() {
            return std::future::pending().await;
        }
        for member in self.all() {
            member.owner.closed().await;
        }
    }

    /// Returns how many shards there are; 1 at least.
    pub(crate) fn count(&self) -> usize {
        self.members.load().len().max(1)
    }
}

#[cfg(test)]
impl Shards {
    /// Makes shards of owners' mailboxes, each with the namespaces of its name.
    pub(crate) fn of(owners: Vec<(&str, tokio::sync::mpsc::Sender<OwnerMessage>)>) -> Self {
        let owners = owners.into_iter();
        Self::of_mailboxes(
            owners
                .map(|(name, mail)| (name, Mailbox::of_mail(mail)))
                .collect(),
        )
    }

    /// As [`Shards::of`], with the whole mailboxes.
    pub(super) fn of_mailboxes(owners: Vec<(&str, Mailbox)>) -> Self {
        let names = owners.iter().enumerate();
        let names = names.map(|(at, (name, _))| (*name, ShardIndex(at)));
        let routes = Routes::new(names);
        let members = (0..).zip(owners).map(|(number, (_, owner))| Member {
            number,
            owner,
            runtime: Handle::current(),
            vitals: Arc::new(Vitals::new()),
        });
        let partials = PartialBytes::new(usize::MAX);
        Self::new(routes, members.collect(), partials)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn one_shard_that_is_stuck_is_named() {
        let (mail, _owner) = mpsc::channel(1);
        let shards = Shards::of(vec![("a", mail.clone()), ("b", mail.clone()), ("c", mail)]);
        assert!(shards.stuck().is_empty());
        shards.all()[2]
            .vitals
            .set_shortage(Some(Shortage::Disk(None)));
        assert_eq!(shards.stuck(), [2]);
        shards.all()[0]
            .vitals
            .set_shortage(Some(Shortage::Disk(None)));
        assert_eq!(shards.stuck(), [0, 2]);
        shards.all()[2].vitals.set_shortage(None);
        assert_eq!(shards.stuck(), [0]);
        shards.all()[0].vitals.suspend();
        assert_eq!(shards.stuck(), [0]);
    }

    #[tokio::test]
    async fn every_shard_gets_its_own_input() {
        let (a, mut of_a) = mpsc::channel(1);
        let (b, mut of_b) = mpsc::channel(1);
        let shards = Shards::of(vec![("a", a), ("b", b)]);
        shards.send_all(|| Input::Stop).await;
        for owner in [&mut of_a, &mut of_b] {
            assert!(matches!(
                owner.recv().await,
                Some(OwnerMessage::Input(Input::Stop))
            ));
        }
    }
}
