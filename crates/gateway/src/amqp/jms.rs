//! Entities that are made by an attach and deleted by themselves: temporary nodes, subscriptions of JMS, entities
//! that a client of JMS names.
//!
//! A temporary node lives as long as the link that asked for it (AMQP's dynamic nodes, 3.5.9). To a
//! client that says it brings JMS 2.0, a topic can be received from: each receiver has a subscription
//! then, `NAME$CLIENT$D` or `NAME$CLIENT$ND`, that is made for it. Durable ones stay until their client
//! unsubscribes; others are deleted with the last of their receivers.
//!
//! Making and deleting them needs the right to manage, as for an administrator. The log marks entities that are
//! deleted by themselves as temporary; they are deleted at a restart.

use super::filters::selector_of;
use super::links::{capabilities, receive_mode, receiver_accept};
use super::{Link, consumer_id, link_of};
use crate::Gateway;
use jitney_amqp::{Accept, Attach, Capability, DynamicNode, LinkId};
use jitney_base::address::{self, Address, EntityAddress, SubQueue};
use jitney_base::ids::{ConnectionId, EntityId};
use jitney_base::limits;
use jitney_base::rights::Right;
use jitney_broker::namespace::administration::Properties;
use jitney_broker::namespace::{Denied, DeniedKind, StepContext, Tier};
use jitney_queue::{Description, EntityKind, Queue};
use jitney_rules::{Filter, Rule, SqlFilter};

/// What the name of a durable subscription ends with.
const DURABLE: &str = "$D";
const NON_DURABLE: &str = "$ND";

/// An entity that ends, or does not, with a link.
#[derive(Debug)]
pub(crate) enum LinkEntity {
    /// The entity at this path is deleted with the link.
    Temporary(String),
    /// The subscription at this path is deleted with the last of its receivers.
    SharedTemporary(String),
    /// A durable subscription, which has no other receiver.
    Exclusive,
    /// The durable subscription from which the client unsubscribes: it is deleted when the peer detaches the link.
    Unsubscribing(EntityId, String),
}

/// How a receiver comes to its subscription.
enum Joining {
    /// The subscription is there.
    Known(EntityId),
    /// The subscription is to be made.
    New,
    /// The subscription is to be made in the place of this one, which takes other messages and has no
    /// receiver.
    Replacing(EntityId),
}

/// How a receiver subscribes to a topic.
struct Subscribing {
    path: String,
    is_durable: bool,
    is_shared: bool,
    is_global: bool,
    selector: Option<SqlFilter>,
}

/// The name of a new subscription's only rule.
const RULE: &str = "$Default";

impl Gateway {
    /// Makes the node that a peer asks for without naming it, for as long as its link lives; returns
    /// what it is called.
    pub(super) fn make_dynamic(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        node: DynamicNode,
    ) -> Result<String, Denied> {
        // No entity can be made by such a name, so that what is gone stays gone.
        let (high, low) = (self.namespaces.random_bits(), self.namespaces.random_bits());
        let name = format!("$temporary-{high:016x}{low:016x}");
        let path = format!("{}{name}", self.connection(connection).prefix);
        self.check_right(connection, &path, Some(Right::Manage))?;
        let kind = match node {
            DynamicNode::Queue => EntityKind::Queue,
            DynamicNode::Topic => EntityKind::Topic,
        };
        let description = Description {
            temporary: true,
            ..default_description(kind)?
        };
        self.namespaces.check_entity_count(&path, None)?;
        self.make_for(cx, &path, description, Vec::new())?;
        self.add_link_entity(connection, link, LinkEntity::Temporary(path));
        Ok(name)
    }

    /// Makes the entity that a client of JMS names, if it is not there and the client may make it.
    pub(super) fn make_named(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        text: Option<&str>,
        attach: &Attach,
    ) -> Result<(), Denied> {
        if !self.connection(connection).brings_jms {
            return Ok(());
        }
        let kind = if attach.has_capability(Capability::Queue) {
            EntityKind::Queue
        } else if attach.has_capability(Capability::Topic) {
            EntityKind::Topic
        } else {
            return Ok(());
        };
        let Ok(Address::Entity(address)) = Address::parse(text.unwrap_or_default()) else {
            return Ok(());
        };
        let path = format!("{}{}", self.connection(connection).prefix, address.path);
        let is_new = address.queue == SubQueue::Main
            && address::is_entity_name(&address.path)
            && self.namespaces.resolve_path(&path).is_none();
        if is_new && self.may(connection, &path, Some(Right::Manage)) {
            let description = default_description(kind)?;
            self.namespaces.check_entity_count(&path, None)?;
            self.make_for(cx, &path, description, Vec::new())?;
        }
        Ok(())
    }

    /// Returns whether a receiver of this topic gets a subscription of its own.
    pub(super) fn can_subscribe(&mut self, connection: ConnectionId, topic: EntityId) -> bool {
        let brings_jms = self.connection(connection).brings_jms;
        self.namespaces.queue(topic).is_some_and(|queue| {
            let description = queue.description();
            description.kind == EntityKind::Topic && (brings_jms || description.temporary)
        })
    }

    /// Lets a receiver in to a topic, by a subscription.
    pub(super) fn subscribe(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
        base: EntityId,
        address: &EntityAddress,
    ) -> Result<(Link, Option<Accept>), Denied> {
        let mode = receive_mode(attach);
        if attach.is_no_local() {
            let text = "A subscription cannot leave out what its own connection sends (no-local).";
            return Err(Denied::new(DeniedKind::NotImplemented, text, &address.path));
        }
        let mut wanted = self.subscribing(connection, attach, address)?;
        wanted.selector = selector_of(address, attach)?;
        let selects = wanted.selector.is_some();
        let joining = match self.namespaces.resolve_path(&wanted.path) {
            Some(known) => self.join(known, base, &wanted)?,
            None => Joining::New,
        };
        let queue = match joining {
            Joining::Known(queue) => {
                self.namespaces.check_receivable(queue, address)?;
                self.namespaces.check_without_session(queue, address)?;
                queue
            }
            Joining::New => self.make_subscription(cx, connection, base, &wanted, None)?,
            Joining::Replacing(old) => {
                self.make_subscription(cx, connection, base, &wanted, Some(old))?
            }
        };
        let consumer = consumer_id(connection, link);
        self.with_queue(cx, queue, |queue, cx| {
            queue.add_consumer(consumer, mode);
            queue.note_attached(cx.now, consumer);
        });
        let accept = Accept {
            selects,
            capabilities: self.subscription_capabilities(base, &wanted),
            is_durable: wanted.is_durable,
            ..receiver_accept()
        };
        let entity = match (wanted.is_durable, wanted.is_shared) {
            (true, true) => None,
            (true, false) => Some(LinkEntity::Exclusive),
            (false, true) => Some(LinkEntity::SharedTemporary(wanted.path)),
            (false, false) => Some(LinkEntity::Temporary(wanted.path)),
        };
        if let Some(entity) = entity {
            self.add_link_entity(connection, link, entity);
        }
        let name = None;
        Ok((Link::Receiver { queue, name }, Some(accept)))
    }

    /// Returns what a topic and a receiver's subscription to it have of the capabilities that may be asked
    /// for.
    fn subscription_capabilities(&self, topic: EntityId, wanted: &Subscribing) -> Vec<Capability> {
        let description = self.namespaces.queue(topic).map(Queue::description);
        let of_topic = description.map(capabilities).into_iter().flatten();
        let shared = wanted.is_shared.then_some(Capability::Shared);
        let global = wanted.is_global.then_some(Capability::Global);
        of_topic.chain(shared).chain(global).collect()
    }

    /// Reads which subscription a receiver wants. Its name is the link's. Of a shared one it is the part
    /// before a `|`: several of its links can be in one connection.
    fn subscribing(
        &mut self,
        connection: ConnectionId,
        attach: &Attach,
        topic: &EntityAddress,
    ) -> Result<Subscribing, Denied> {
        let is_durable = attach.has_durable_source();
        let is_shared = attach.has_capability(Capability::Shared);
        let is_global = is_shared && attach.has_capability(Capability::Global);
        let client = self.connection(connection).container_id.clone();
        let name = if !is_durable && !is_shared {
            let (high, low) = (self.namespaces.random_bits(), self.namespaces.random_bits());
            format!("{high:016x}{low:016x}$$ND")
        } else {
            let name = match attach.name.split_once('|') {
                Some((name, _)) if is_shared => name,
                _ => &attach.name,
            };
            let client = if is_global { "" } else { client.as_str() };
            let kind = if is_durable { DURABLE } else { NON_DURABLE };
            format!("{name}${client}{kind}")
        };
        if !is_name(&name) {
            let text = format!(
                "'{name}' cannot be the name of a subscription: it is made of the subscription's name \
                 and the client id, has {} characters at most, and no '/'.",
                limits::PATH_LENGTH_MAX
            );
            return Err(Denied::new(DeniedKind::InvalidField, &text, &topic.path));
        }
        Ok(Subscribing {
            path: address::subscription(&topic.path, &name),
            is_durable,
            is_shared,
            is_global,
            selector: None,
        })
    }

    /// Checks that a receiver may have a subscription that is there. One that asks for other messages
    /// than it has gets a new one in its place, as JMS wants it.
    fn join(
        &mut self,
        subscription: EntityId,
        topic: EntityId,
        wanted: &Subscribing,
    ) -> Result<Joining, Denied> {
        let receivers: Vec<_> = self
            .namespaces
            .queue(subscription)
            .into_iter()
            .flat_map(Queue::consumers)
            .map(link_of)
            .collect();
        let is_alone = receivers.iter().any(|(connection, link)| {
            matches!(
                self.link_entity(*connection, *link),
                Some(LinkEntity::Exclusive)
            )
        });
        let is_same = self.has_selector(topic, subscription, wanted.selector.as_ref());
        let why = if receivers.is_empty() {
            return Ok(if is_same {
                Joining::Known(subscription)
            } else {
                Joining::Replacing(subscription)
            });
        } else if is_alone || !wanted.is_shared {
            "it has a receiver already, and is not shared"
        } else if !is_same {
            "its receivers have another selector"
        } else {
            return Ok(Joining::Known(subscription));
        };
        let shown = address::without_namespace(&wanted.path);
        let text = format!("The subscription '{shown}' cannot be received from: {why}.");
        Err(Denied::new(DeniedKind::InUse, &text, &wanted.path))
    }

    fn has_selector(
        &mut self,
        topic: EntityId,
        subscription: EntityId,
        selector: Option<&SqlFilter>,
    ) -> bool {
        let mut rules = self.namespaces.topic(topic).rules.rules(subscription.0);
        let first = rules.next().map(|rule| &rule.filter);
        let is_only = rules.next().is_none();
        is_only
            && match (first, selector) {
                (Some(Filter::Sql(filter)), Some(selector)) => filter == selector,
                (Some(Filter::True), None) => true,
                _ => false,
            }
    }

    /// Makes a subscription, in the place of one that is deleted. Everything is checked first: who is
    /// refused has deleted nothing.
    fn make_subscription(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        topic: EntityId,
        wanted: &Subscribing,
        replaced: Option<EntityId>,
    ) -> Result<EntityId, Denied> {
        self.check_right(connection, &wanted.path, Some(Right::Manage))?;
        let partitioned = self
            .namespaces
            .queue(topic)
            .is_some_and(|topic| topic.description().partitioned);
        let description = Description {
            partitioned,
            temporary: !wanted.is_durable,
            ..default_description(EntityKind::Subscription)?
        };
        let filter = match &wanted.selector {
            Some(selector) => Filter::Sql(selector.clone()),
            None => Filter::True,
        };
        let rule = Rule {
            name: RULE.to_owned(),
            filter,
            action: None,
            created_at: cx.now,
        };
        self.namespaces.check_entity_count(&wanted.path, replaced)?;
        let rules = &self.namespaces.topic(topic).rules;
        if let Err(why) = rules.check_room(&rule.filter, replaced.map(|id| id.0)) {
            return Err(Denied::rule(&wanted.path, &rule.name, why));
        }
        if replaced.is_some() {
            self.delete_entity(cx, &wanted.path);
        }
        self.make_for(cx, &wanted.path, description, vec![rule])
    }

    /// Lets a link in by which a durable subscription is given up: its name is the subscription's, and
    /// it has no source. The answer tells the subscription's topic.
    pub(super) fn unsubscribe(
        &mut self,
        connection: ConnectionId,
        link: LinkId,
        attach: &Attach,
    ) -> Result<(Link, Option<Accept>), Denied> {
        let (name, _) = attach.name.split_once('|').unwrap_or((&attach.name, ""));
        let state = self.connection(connection);
        let (client, prefix) = (state.container_id.clone(), state.prefix.clone());
        let client = match attach.name.split_once('|') {
            Some((_, kind)) if kind.contains("global") => "",
            _ => client.as_str(),
        };
        let name = format!("{name}${client}{DURABLE}");
        let topics = self.namespaces.topics().filter_map(|topic| {
            let topic = &self.namespaces.node(topic)?.address.path;
            let path = address::subscription(topic, &name);
            let is_here = address::namespace_of(topic) == prefix;
            let queue = self.namespaces.resolve_path(&path).filter(|_| is_here)?;
            Some((queue, address::without_namespace(topic).to_owned(), path))
        });
        let Some((queue, topic, path)) = { topics }.next() else {
            let text = format!("There is no durable subscription '{name}'.");
            return Err(Denied::new(DeniedKind::NotFound, &text, &name));
        };
        self.check_right(connection, &path, Some(Right::Manage))?;
        if self
            .namespaces
            .queue(queue)
            .is_some_and(|queue| 0 < queue.receivers())
        {
            let text = format!("The subscription '{name}' has a receiver, and cannot be given up.");
            return Err(Denied::new(DeniedKind::InUse, &text, &path));
        }
        self.add_link_entity(connection, link, LinkEntity::Unsubscribing(queue, path));
        let accept = Accept {
            address: Some(topic),
            ..receiver_accept()
        };
        let name = None;
        Ok((Link::Receiver { queue, name }, Some(accept)))
    }

    /// Deletes what a link had for itself that was detached.
    pub(super) fn end_link_entity(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        entity: &LinkEntity,
    ) {
        let has_gone = |base: EntityId| {
            let queue = self.namespaces.queue(base);
            queue.is_some_and(|queue| queue.receivers() == 0)
        };
        let (path, goes) = match entity {
            LinkEntity::Temporary(path) => (path, true),
            LinkEntity::SharedTemporary(path) => (
                path,
                self.namespaces.resolve_path(path).is_some_and(has_gone),
            ),
            // A token may have ended, and a receiver may have been attached, since the link was accepted.
            LinkEntity::Unsubscribing(base, path) => {
                let is_it = self.namespaces.resolve_path(path) == Some(*base);
                let may = self.may(connection, path, Some(Right::Manage));
                (path, is_it && may && has_gone(*base))
            }
            LinkEntity::Exclusive => return,
        };
        if goes {
            self.delete_entity(cx, path);
        }
    }

    /// Keeps a subscription that a link was to give up: it is the broker that ends the link, and not
    /// the peer.
    pub(super) fn keep_subscription(&mut self, connection: ConnectionId, link: LinkId) {
        if let Some(LinkEntity::Unsubscribing(..)) = self.link_entity(connection, link) {
            self.connection(connection).take_link_entity(link);
        }
    }

    /// Deletes what links had for themselves whose connection has gone. What was to be given up in
    /// order is not.
    pub(super) fn end_link_entities(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link_entities: impl IntoIterator<Item = LinkEntity>,
    ) {
        for entity in link_entities {
            if !matches!(entity, LinkEntity::Unsubscribing(..)) {
                self.end_link_entity(cx, connection, &entity);
            }
        }
    }

    fn add_link_entity(&mut self, connection: ConnectionId, link: LinkId, entity: LinkEntity) {
        self.connection(connection).add_link_entity(link, entity);
    }

    fn link_entity(&self, connection: ConnectionId, link: LinkId) -> Option<&LinkEntity> {
        self.connections.get(connection)?.link_entity(link)
    }

    /// Makes an entity for a peer.
    pub(crate) fn make_for(
        &mut self,
        cx: &mut StepContext<'_>,
        path: &str,
        description: Description,
        rules: Vec<Rule>,
    ) -> Result<EntityId, Denied> {
        self.namespaces
            .make_entity(cx, path, description, rules)
            .map_err(|refused| Denied {
                entity: path.to_owned(),
                ..Denied::from(refused)
            })
    }
}

fn is_name(name: &str) -> bool {
    name.chars().count() <= limits::PATH_LENGTH_MAX
        && !name.starts_with('$')
        && !name.contains(|c: char| c.is_control() || "/\\?#".contains(c))
}

/// Returns the properties that an administrator's entity has without a word about them.
pub(crate) fn default_description(kind: EntityKind) -> Result<Description, Denied> {
    Properties::default()
        .describe(kind, None, Tier::default())
        .map_err(|wrong| Denied {
            kind: DeniedKind::Internal,
            ..Denied::from(wrong)
        })
}
