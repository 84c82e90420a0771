//! Entities that are created when a client first uses them (`--create-on-use`): for tests, whose programs expect entities that no
//! file names.
//!
//! A path of the form `TOPIC/Subscriptions/NAME` is a subscription, and its topic is created with it. Any other path is a queue.
//! A receiver that asks for a message session gets an entity that requires sessions. All other properties are the service's
//! defaults. Who may not manage the path creates nothing: it does not exist for them.

use super::Gateway;
use super::request::Requester;
use jitney_base::address::{self, Address, SubQueue};
use jitney_base::ids::ConnectionId;
use jitney_base::rights::Right;
use jitney_broker::access::Actor;
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};
use jitney_queue::{Description, EntityKind};

/// Whether an entity that is created on use requires message sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstUse {
    /// A sender, or a receiver that asks for no message session.
    Plain,
    /// A receiver of a message session.
    InSession,
}

impl Gateway {
    /// Lets clients create entities by using them.
    pub fn create_on_use(&mut self) {
        self.creates_on_use = true;
    }

    /// Returns whether a client would create an entity by using it. `path` is the name with the prefix of the namespace.
    pub(super) fn may_create(&self, connection: ConnectionId, name: &str, path: &str) -> bool {
        self.creates_on_use && is_name(name) && self.may(connection, path, Some(Right::Manage))
    }

    /// Creates the entity that a link names by the address of its node or of its management node, if it does not exist and the
    /// client may create it.
    ///
    /// # Errors
    ///
    /// The limit of entities is reached, or the path is below something that is no topic.
    pub(super) fn create_for_link(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        text: Option<&str>,
        used: FirstUse,
    ) -> Result<(), Denied> {
        if !self.creates_on_use {
            return Ok(());
        }
        let Ok(Address::Entity(address) | Address::Management(address)) =
            Address::parse(text.unwrap_or_default())
        else {
            return Ok(());
        };
        let path = format!("{}{}", self.connection(connection).prefix, address.path);
        if !self.may_create(connection, &address.path, &path) {
            return Ok(());
        }
        let actor = self.actor(connection, &path, Right::Manage);
        self.create_used(cx, &actor, &path, used)
    }

    /// Creates the queue that a request over HTTP sends to, if it does not exist and the client may create it.
    ///
    /// # Errors
    ///
    /// As [`Gateway::create_for_link`].
    pub(super) fn create_for_request(
        &mut self,
        cx: &mut StepContext<'_>,
        requester: &Requester,
        path: &str,
    ) -> Result<(), Denied> {
        if !self.creates_on_use {
            return Ok(());
        }
        let authority = &requester.authority;
        let prefix = self
            .namespaces
            .directory()
            .namespace_of(requester.host.as_deref());
        let Ok(Address::Entity(address)) = Address::parse_path(path) else {
            return Ok(());
        };
        let is_main = address.queue == SubQueue::Main && is_name(&address.path);
        let path = format!("{prefix}{}", address.path);
        if !is_main || authority.check(&path, Right::Manage).is_err() {
            return Ok(());
        }
        self.create_used(cx, authority.actor(), &path, FirstUse::Plain)
    }

    fn create_used(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        path: &str,
        used: FirstUse,
    ) -> Result<(), Denied> {
        if self.namespaces.resolve_path(path).is_some() {
            return Ok(());
        }
        let kind = match address::split_subscription(path) {
            None => EntityKind::Queue,
            Some((topic, _)) => {
                match self.namespaces.resolve_path(topic) {
                    None => self.create_one(cx, actor, topic, EntityKind::Topic, used)?,
                    Some(_) if !is_topic(self.namespaces.description(topic)) => {
                        let name = address::without_namespace(topic);
                        let text = format!(
                            "'{name}' is a queue, because a sender used it first. Create it as a topic before, or let a receiver \
                             of a subscription be the first (--create-on-use)."
                        );
                        return Err(Denied::new(DeniedKind::NotAllowed, text, topic));
                    }
                    Some(_) => {}
                }
                EntityKind::Subscription
            }
        };
        self.create_one(cx, actor, path, kind, used)
    }

    fn create_one(
        &mut self,
        cx: &mut StepContext<'_>,
        actor: &Actor,
        path: &str,
        kind: EntityKind,
        used: FirstUse,
    ) -> Result<(), Denied> {
        let mut description = super::amqp::default_description(kind)?;
        description.requires_session = used == FirstUse::InSession && kind != EntityKind::Topic;
        self.namespaces.check_entity_count(path, None)?;
        self.make_for(cx, path, description, Vec::new())?;
        self.namespaces
            .audit(cx, actor, "create", path, "on first use");
        Ok(())
    }
}

fn is_topic(description: Option<&Description>) -> bool {
    description.is_some_and(|it| it.kind == EntityKind::Topic)
}

/// Returns whether an entity may have this path, which is that of a queue or of a subscription.
fn is_name(path: &str) -> bool {
    match address::split_subscription(path) {
        Some((topic, name)) => address::is_entity_name(topic) && address::is_entity_name(name),
        None => address::is_entity_name(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::tests::Bench;

    const CONNECTION: ConnectionId = ConnectionId(7);

    fn bench() -> Bench {
        let mut bench = Bench::new();
        bench.gateway.create_on_use();
        bench
    }

    fn uses(bench: &mut Bench, address: &str, used: FirstUse) -> Result<(), Denied> {
        bench.run(|gateway, cx| gateway.create_for_link(cx, CONNECTION, Some(address), used))
    }

    /// The kind of an entity, and whether it requires sessions.
    fn found(bench: &Bench, path: &str) -> Option<(EntityKind, bool)> {
        let description = bench.gateway.namespaces().description(path)?;
        Some((description.kind, description.requires_session))
    }

    #[test]
    fn a_queue_is_created_by_any_of_its_addresses_once() {
        for address in [
            "orders",
            "orders/$management",
            "orders/$DeadLetterQueue",
            "/orders",
        ] {
            let mut bench = bench();
            uses(&mut bench, address, FirstUse::Plain).unwrap();
            assert_eq!(
                found(&bench, "orders"),
                Some((EntityKind::Queue, false)),
                "{address}"
            );
            uses(&mut bench, "ORDERS", FirstUse::InSession).unwrap();
            assert_eq!(found(&bench, "orders"), Some((EntityKind::Queue, false)));
            bench.check_replay();
        }
    }

    #[test]
    fn a_subscription_is_created_with_its_topic_and_takes_every_message() {
        let mut bench = bench();
        uses(&mut bench, "news/Subscriptions/eu", FirstUse::InSession).unwrap();
        assert_eq!(found(&bench, "news"), Some((EntityKind::Topic, false)));
        let subscription = found(&bench, "news/Subscriptions/eu");
        assert_eq!(subscription, Some((EntityKind::Subscription, true)));
        uses(&mut bench, "news/Subscriptions/us", FirstUse::Plain).unwrap();
        let subscription = found(&bench, "news/Subscriptions/us");
        assert_eq!(subscription, Some((EntityKind::Subscription, false)));
        bench.check_replay();
    }

    #[test]
    fn a_subscription_of_what_is_a_queue_is_refused_with_what_helps() {
        let mut bench = bench();
        uses(&mut bench, "news", FirstUse::Plain).unwrap();
        let refused = uses(&mut bench, "news/Subscriptions/eu", FirstUse::Plain).unwrap_err();
        assert_eq!(refused.kind, DeniedKind::NotAllowed);
        assert!(
            refused.text.contains("'news' is a queue"),
            "{}",
            refused.text
        );
    }

    #[test]
    fn what_is_no_name_of_an_entity_is_not_created() {
        let mut bench = bench();
        let before = bench.gateway.namespaces.next_id();
        for address in [
            "",
            "$cbs",
            "a b",
            "news/Subscriptions/",
            "$temp",
            "a//b",
            "x/Subscriptions/y/z",
        ] {
            uses(&mut bench, address, FirstUse::Plain).unwrap();
        }
        let after = bench.gateway.namespaces.next_id();
        assert_eq!(before, after);
    }

    #[test]
    fn without_the_option_nothing_is_created() {
        let mut bench = Bench::new();
        uses(&mut bench, "orders", FirstUse::Plain).unwrap();
        assert_eq!(found(&bench, "orders"), None);
    }

    #[test]
    fn who_may_not_manage_creates_nothing() {
        let mut bench = bench();
        bench.gateway.access =
            jitney_broker::access::Access::new(jitney_broker::access::Profile::Verified);
        uses(&mut bench, "orders", FirstUse::Plain).unwrap();
        assert_eq!(found(&bench, "orders"), None);
    }
}
