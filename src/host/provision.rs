//! Provisioning: creates the entities of the configuration, and sets the properties that it gives
//! them.
//!
//! The configuration wins for everything that it names, at each start. Everything else stays as it
//! is: other entities, properties that the file cannot express, authorization rules of an entity
//! for which it has none. Of a subscription, the rules that it names are created or replaced, and
//! others stay.

use std::sync::Arc;

use tracing::info;

use super::owner_message::{Reload, Reloaded};
use jitney_base::address;
use jitney_broker::access::{Actor, Profile};

use jitney_base::memory::Memory;
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{EntityRefused, StepContext, Tier};
use jitney_config::{
    Configuration, ConfiguredAuthorizationRule, ConfiguredRight, ConfiguredStatus, ConfiguredTopic,
    Namespace, Position, QueueProperties, Sku, Subscription,
};
use jitney_gateway::Gateway;
use jitney_journal::memory::MemoryDisk;
use jitney_queue::{Description, EntityKind, Status};
use jitney_rules::Rule;
use jitney_shard::Recovering;

/// Provisions the entities of the namespaces that one shard has. If it has the configuration's first
/// namespace, that is the first here.
///
/// # Errors
///
/// A line for each thing that is impossible, with its place in the file. None of the changes is durable then.
pub(crate) fn provision(
    gateway: &mut Gateway,
    cx: &mut StepContext<'_>,
    namespaces: &[&Namespace],
    first: FirstNamespace,
    root_key: Option<&Key>,
) -> Result<(), String> {
    let mut refused = entities(gateway, cx, namespaces, first, root_key);
    for namespace in namespaces {
        let prefix = gateway.namespaces().prefix_of(&namespace.name);
        refused.extend(check_forwards(gateway, &prefix, namespace));
    }
    if refused.is_empty() {
        Ok(())
    } else {
        Err(refused.join("\n"))
    }
}

/// Where the configuration's first namespace is, which has no prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstNamespace {
    /// In this shard.
    Here,
    Elsewhere,
}

/// Provisions entities, and returns a line for each that is refused.
fn entities(
    gateway: &mut Gateway,
    cx: &mut StepContext<'_>,
    namespaces: &[&Namespace],
    first: FirstNamespace,
    root_key: Option<&Key>,
) -> Vec<String> {
    let names = namespaces.iter().map(|namespace| &namespace.name[..]);
    let absent = (first == FirstNamespace::Elsewhere).then_some("");
    gateway
        .namespaces_mut()
        .set_namespaces(absent.into_iter().chain(names));
    for namespace in namespaces {
        describe_namespace(gateway, cx, namespace, root_key);
    }
    let mut refused = Vec::new();
    for namespace in namespaces {
        let mut scope = NamespaceScope::new(gateway, cx, namespace, None);
        scope.provision(namespace);
        refused.extend(scope.done.refused);
    }
    refused
}

/// Provisions the entities of a configuration in an empty broker that is thrown away; returns a line for each that a start would
/// refuse. Forwarding targets that are absent are not among them.
pub(super) fn rehearse(config: &Configuration) -> Vec<String> {
    let gateway = Gateway::new(0, Profile::Development);
    let disk = Arc::new(MemoryDisk::new());
    let recovering = match Recovering::recover(gateway, disk, jitney_journal::Options::new(0)) {
        Ok(recovering) => recovering,
        Err(error) => return vec![error.to_string()],
    };
    let namespaces: Vec<&Namespace> = config.namespaces.iter().collect();
    let begun = recovering.begin(
        Timestamp::EPOCH,
        Memory::default(),
        jitney_shard::limits::IN_FLIGHT_BYTES_MIN,
        |gateway, cx| match entities(gateway, cx, &namespaces, FirstNamespace::Here, None) {
            refused if refused.is_empty() => Ok(()),
            refused => Err(refused),
        },
    );
    begun.err().unwrap_or_default()
}

/// Provisions the namespace of a shard that was taken over. What cannot be done is left out: a line of a file is no reason to give
/// up a namespace that servers share.
pub(crate) fn take_over(
    gateway: &mut Gateway,
    cx: &mut StepContext<'_>,
    reload: &Reload,
) -> Reloaded {
    let names = reload.namespaces.iter().map(|it| &it.name[..]);
    gateway.namespaces_mut().set_namespaces(names);
    self::reload(gateway, cx, reload)
}

/// Provisions the entities of namespaces while they are in use. What cannot be done is left out.
pub(crate) fn reload(gateway: &mut Gateway, cx: &mut StepContext<'_>, reload: &Reload) -> Reloaded {
    let mut done = Reloaded::default();
    for namespace in &reload.namespaces {
        if reload.new.contains(&namespace.name) {
            create_namespace(gateway, cx, &namespace.name, &reload.actor);
        }
        if let Some(keys) = &reload.keys {
            describe_namespace(gateway, cx, namespace, keys.root_key.as_ref());
        }
        let mut scope = NamespaceScope::new(gateway, cx, namespace, Some(&reload.actor));
        scope.done = done;
        scope.provision(namespace);
        done = scope.done;
        let prefix = gateway.namespaces().prefix_of(&namespace.name);
        done.refused
            .extend(check_forwards(gateway, &prefix, namespace));
    }
    for (namespace, path) in &reload.deleted {
        let prefix = gateway.namespaces().prefix_of(namespace);
        let path = format!("{prefix}{path}");
        let before = gateway.namespaces().description(&path).cloned();
        if gateway.delete_entity(cx, &path) {
            let namespaces = gateway.namespaces_mut();
            namespaces.audit_entity(cx, &reload.actor, &path, before.as_ref(), None);
            done.deleted += 1;
        }
    }
    done
}

/// Makes a namespace that the configuration names since it was read again.
fn create_namespace(gateway: &mut Gateway, cx: &mut StepContext<'_>, name: &str, actor: &Actor) {
    let namespaces = gateway.namespaces_mut();
    namespaces.add_namespace(name);
    let prefix = namespaces.prefix_of(name);
    namespaces.audit(cx, actor, "create_namespace", &prefix, name);
}

/// Sets the keys and the tier of a namespace.
fn describe_namespace(
    gateway: &mut Gateway,
    cx: &mut StepContext<'_>,
    namespace: &Namespace,
    root_key: Option<&Key>,
) {
    let rules = namespace.authorization.iter();
    let mut rules: Vec<_> = rules.map(authorization_rule).collect();
    if rules.is_empty() {
        rules.extend(root_key.map(root_rule));
    }
    gateway.set_authorization(&namespace.name, rules);
    let tier = match namespace.sku {
        Sku::Standard => Tier::Standard,
        Sku::Premium => Tier::Premium,
    };
    gateway.set_tier(cx, &namespace.name, tier);
}

/// Checks the forwarding targets in the file; returns a line for each that is wrong. Entities that administrators made are not
/// checked: if a target is deleted, messages go to dead letters.
fn check_forwards(gateway: &Gateway, prefix: &str, namespace: &Namespace) -> Vec<String> {
    let queues = namespace.queues.iter();
    let queues = queues.map(|queue| (queue.position, queue.name.clone()));
    let subscriptions = namespace.topics.iter().flat_map(|topic| {
        let of = |subscription: &Subscription| {
            let path = address::subscription(&topic.name, &subscription.name);
            (subscription.position, path)
        };
        topic.subscriptions.iter().map(of)
    });
    let checked = queues.chain(subscriptions).filter_map(|(position, path)| {
        let checked = gateway
            .namespaces()
            .check_forwards(&format!("{prefix}{path}"));
        Some(format!("{position}{}", checked.err()?))
    });
    checked.collect()
}

struct NamespaceScope<'a, 'b> {
    gateway: &'a mut Gateway,
    cx: &'a mut StepContext<'b>,
    prefix: String,
    /// The one who changes entities while the broker runs; at the start there is none.
    actor: Option<&'a Actor>,
    done: Reloaded,
}

impl<'a, 'b> NamespaceScope<'a, 'b> {
    fn new(
        gateway: &'a mut Gateway,
        cx: &'a mut StepContext<'b>,
        namespace: &Namespace,
        actor: Option<&'a Actor>,
    ) -> Self {
        Self {
            prefix: gateway.namespaces().prefix_of(&namespace.name),
            gateway,
            cx,
            actor,
            done: Reloaded::default(),
        }
    }
}

impl NamespaceScope<'_, '_> {
    fn provision(&mut self, namespace: &Namespace) {
        for topic in &namespace.topics {
            let description = self.describe_topic(topic);
            let rules = topic.authorization.as_deref();
            self.ensure(topic.position, &topic.name, description, rules);
        }
        for queue in &namespace.queues {
            let description = self.describe(&queue.properties, EntityKind::Queue);
            let rules = queue.authorization.as_deref();
            self.ensure(queue.position, &queue.name, description, rules);
        }
        for topic in &namespace.topics {
            for subscription in &topic.subscriptions {
                self.subscription(topic, subscription);
            }
        }
    }

    fn ensure(
        &mut self,
        position: Position,
        path: &str,
        mut description: Description,
        rules: Option<&[ConfiguredAuthorizationRule]>,
    ) {
        let path = format!("{}{path}", self.prefix);
        self.keep_unnamed(&path, &mut description);
        if let Some(rules) = rules {
            description.authorization = rules.iter().map(authorization_rule).collect();
        }
        let before = self.described(&path);
        let ensured = self.gateway.ensure_entity(self.cx, &path, description);
        self.note(position, &path, before.as_ref(), ensured);
    }

    fn described(&self, path: &str) -> Option<Description> {
        self.gateway.namespaces().description(path).cloned()
    }

    /// Keeps properties that the file cannot express.
    fn keep_unnamed(&self, path: &str, description: &mut Description) {
        if let Some(existing) = self.gateway.namespaces().description(path) {
            description
                .user_metadata
                .clone_from(&existing.user_metadata);
            description.batched_operations = existing.batched_operations;
            description.supports_ordering = existing.supports_ordering;
            description.express = existing.express;
            description
                .authorization
                .clone_from(&existing.authorization);
        }
    }

    /// Counts and logs the outcome; `before` describes the entity if it was there.
    fn note(
        &mut self,
        position: Position,
        path: &str,
        before: Option<&Description>,
        ensured: Result<bool, EntityRefused>,
    ) {
        match ensured {
            Ok(true) => {
                self.done.made += usize::from(before.is_none());
                self.done.changed += usize::from(before.is_some());
                let after = self.described(path).unwrap_or_default();
                if let Some(actor) = self.actor {
                    let namespaces = self.gateway.namespaces_mut();
                    namespaces.audit_entity(self.cx, actor, path, before, Some(&after));
                } else if before.is_some() {
                    let path = address::without_namespace(path);
                    info!(path, "changed to match the configuration");
                }
            }
            Ok(false) => {}
            Err(error) => self.done.refused.push(format!("{position}{error}")),
        }
    }

    fn subscription(&mut self, topic: &ConfiguredTopic, subscription: &Subscription) {
        let path = address::subscription(&topic.name, &subscription.name);
        let position = subscription.position;
        let rules = subscription.rules.iter().map(|rule| {
            let made = rule.compile(self.cx.now);
            made.map_err(|error| format!("{position}the rule '{}' of '{path}': {error}", rule.name))
        });
        let rules: Vec<Rule> = match rules.collect::<Result<_, _>>() {
            Ok(rules) => rules,
            Err(error) => return self.done.refused.push(error),
        };
        let mut description = self.describe(&subscription.properties, EntityKind::Subscription);
        // The size of a subscription counts to its topic, which refuses messages when it is full.
        description.max_bytes = u64::MAX;
        description.max_message_bytes = jitney_base::limits::MESSAGE_SIZE_MAX;
        description.partitioned = topic.properties.enable_partitioning;
        let path = format!("{}{path}", self.prefix);
        self.keep_unnamed(&path, &mut description);
        let before = self.described(&path);
        let ensured = self
            .gateway
            .ensure_subscription(self.cx, &path, description, rules);
        self.note(position, &path, before.as_ref(), ensured);
    }

    fn describe_topic(&self, topic: &ConfiguredTopic) -> Description {
        let properties = &topic.properties;
        let all = QueueProperties {
            default_time_to_live: properties.default_time_to_live,
            max_size_megabytes: properties.max_size_megabytes,
            max_message_size_kilobytes: properties.max_message_size_kilobytes,
            status: properties.status,
            requires_duplicate_detection: properties.requires_duplicate_detection,
            duplicate_detection_window: properties.duplicate_detection_window,
            enable_partitioning: properties.enable_partitioning,
            auto_delete_on_idle: properties.auto_delete_on_idle,
            ..QueueProperties::default()
        };
        self.describe(&all, EntityKind::Topic)
    }

    fn describe(&self, properties: &QueueProperties, kind: EntityKind) -> Description {
        let message_bytes = properties.max_message_size_kilobytes;
        let message_bytes = message_bytes.map(|kilobytes| kilobytes * 1024);
        let path = |name: &Option<String>| {
            let name = name.as_deref()?;
            Some(format!("{}{name}", self.prefix))
        };
        Description {
            kind,
            lock_duration: properties.lock_duration,
            default_time_to_live: properties.default_time_to_live,
            max_delivery_count: properties.max_delivery_count,
            dead_letter_on_expiration: properties.dead_lettering_on_expiration,
            dead_letter_on_filter_error: properties.dead_lettering_on_filter_evaluation,
            max_bytes: max_bytes(properties),
            max_message_bytes: message_bytes
                .unwrap_or(jitney_message::limits::MESSAGE_SIZE_DEFAULT),
            status: match properties.status {
                ConfiguredStatus::Active => Status::Active,
                ConfiguredStatus::Disabled => Status::Disabled,
                ConfiguredStatus::ReceiveDisabled => Status::ReceiveDisabled,
                ConfiguredStatus::SendDisabled => Status::SendDisabled,
            },
            requires_session: properties.requires_session,
            detects_duplicates: properties.requires_duplicate_detection,
            duplicate_window: properties.duplicate_detection_window,
            partitioned: properties.enable_partitioning,
            auto_delete_on_idle: properties.auto_delete_on_idle,
            forward_to: path(&properties.forward_to),
            forward_dead_letters_to: path(&properties.forward_dead_lettered_to),
            ..Description::default()
        }
    }
}

/// Returns the size of an entity: that of each of its partitions.
fn max_bytes(properties: &QueueProperties) -> u64 {
    let times = if properties.enable_partitioning {
        jitney_broker::limits::PARTITIONED_SIZES
    } else {
        1
    };
    let bytes = properties.max_size_megabytes.saturating_mul(1024 * 1024);
    bytes.saturating_mul(times)
}

fn authorization_rule(rule: &ConfiguredAuthorizationRule) -> AuthorizationRule {
    let has = |right| rule.rights.contains(&right);
    AuthorizationRule {
        name: rule.name.clone(),
        rights: Rights {
            send: has(ConfiguredRight::Send),
            listen: has(ConfiguredRight::Listen),
            manage: has(ConfiguredRight::Manage),
        },
        primary_key: Key::new(rule.primary_key.0.clone()),
        secondary_key: rule
            .secondary_key
            .as_ref()
            .map(|key| Key::new(key.0.clone())),
        created_at: None,
        modified_at: None,
    }
}

/// Returns the rule of the root key, for the namespaces without rules.
pub(super) fn root_rule(key: &Key) -> AuthorizationRule {
    AuthorizationRule {
        name: super::root_key::ROOT.to_owned(),
        rights: Rights::ALL,
        primary_key: key.clone(),
        secondary_key: None,
        created_at: None,
        modified_at: None,
    }
}
