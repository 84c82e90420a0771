//! The requests of administrators, each with its answer, what a token must be for, and the text for who lacks the right.

use std::borrow::Cow;
use std::fmt;

use super::operate::{Administration, READ_CLAIMS};
use super::{
    AuthorizationChange, EntityView, ListPage, Listed, NamespaceView, Properties, RuleView,
};
use crate::namespace::Denied;
use jitney_base::address;
use jitney_queue::EntityKind;
use jitney_rules::Rule;

/// A request of one kind. Paths are as clients of the namespace write them, decoded: `orders`,
/// `news/Subscriptions/eu`; their case does not matter.
pub trait AdminRequest: fmt::Debug + Send + 'static {
    /// What is answered.
    type Answer: fmt::Debug + Send + 'static;

    /// Returns the path of what it is about, as it is in the URL of its request: that is what a
    /// token must be for.
    fn resource(&self) -> Cow<'_, str>;

    /// Returns the text for a client that lacks the right to it, and calls the namespace by this host.
    fn denied(&self, host: &str) -> String;

    /// Carries it out.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    fn run(self, administration: &mut Administration<'_, '_>) -> Result<Self::Answer, Denied>;
}

/// Tell of the namespace itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadNamespace;

/// Tell of a queue, a topic or a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEntity {
    /// Its path.
    pub path: String,
}

/// Tell of many entities, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntities {
    /// Which of them.
    pub what: Listed,
    /// The number of entities to skip.
    pub skip: usize,
    /// The most entities to return; the broker may return fewer at a time.
    pub top: usize,
}

/// Make a queue or a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateEntity {
    /// Its path.
    pub path: String,
    /// A topic, and not a queue.
    pub is_topic: bool,
    /// Its properties.
    pub properties: Box<Properties>,
}

/// Make a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSubscription {
    /// Its path.
    pub path: String,
    /// Its properties.
    pub properties: Box<Properties>,
    /// Its first rule, instead of `$Default`, which takes all messages. Its time of making is
    /// the broker's to set.
    pub rule: Option<Box<Rule>>,
}

/// Replace the properties of a queue, a topic or a subscription; what is not given gets its
/// default, but for what cannot be changed and for authorization rules, which stay.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateEntity {
    /// Its path.
    pub path: String,
    /// The description that was sent is of this kind.
    pub kind: EntityKind,
    /// Its properties.
    pub properties: Box<Properties>,
    /// The version that must be there: any, if `None`.
    pub revision: Option<u64>,
}

/// Delete a queue, a topic with its subscriptions, or a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteEntity {
    /// Its path.
    pub path: String,
    /// The version that must be there: any, if `None`.
    pub revision: Option<u64>,
}

/// Make, change or delete an authorization rule of a queue or a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeAuthorization {
    /// The entity's path.
    pub path: String,
    /// The rule's name.
    pub name: String,
    /// The change.
    pub change: Box<AuthorizationChange>,
}

/// Tell of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRule {
    /// Its subscription's path.
    pub subscription: String,
    /// Its name.
    pub name: String,
}

/// Tell of the rules of a subscription, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRules {
    /// The subscription's path.
    pub subscription: String,
    /// The number of rules to skip.
    pub skip: usize,
    /// The most rules to return; the broker may return fewer at a time.
    pub top: usize,
}

/// Make a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRule {
    /// Its subscription's path.
    pub subscription: String,
    /// The rule. Its time of making is the broker's to set.
    pub rule: Box<Rule>,
}

/// Replace a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateRule {
    /// Its subscription's path.
    pub subscription: String,
    /// The rule, which has the name of the one that it replaces.
    pub rule: Box<Rule>,
    /// The version that must be there: any, if `None`.
    pub version: Option<u64>,
}

/// Delete a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRule {
    /// Its subscription's path.
    pub subscription: String,
    /// Its name.
    pub name: String,
    /// The version that must be there: any, if `None`.
    pub version: Option<u64>,
}

impl AdminRequest for ReadNamespace {
    type Answer = NamespaceView;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed("$namespaceinfo")
    }

    fn denied(&self, _host: &str) -> String {
        read_claims()
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<NamespaceView, Denied> {
        administration.namespace()
    }
}

impl AdminRequest for ReadEntity {
    type Answer = EntityView;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn denied(&self, host: &str) -> String {
        if is_part(&self.path) {
            return of_part("GetSubscription", host, &self.path);
        }
        read_claims()
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<EntityView, Denied> {
        let base = administration.find(&self.path)?;
        administration.view(base)
    }
}

impl AdminRequest for ListEntities {
    type Answer = ListPage<EntityView>;

    fn resource(&self) -> Cow<'_, str> {
        match &self.what {
            Listed::Queues(_) => Cow::Borrowed("$Resources/Queues"),
            Listed::Topics(_) => Cow::Borrowed("$Resources/Topics"),
            Listed::Subscriptions(topic) => Cow::Owned(format!("{topic}/Subscriptions")),
        }
    }

    fn denied(&self, host: &str) -> String {
        match &self.what {
            Listed::Queues(_) | Listed::Topics(_) => read_claims(),
            Listed::Subscriptions(topic) => of_part("EnumerateSubscriptions", host, topic),
        }
    }

    fn run(
        self,
        administration: &mut Administration<'_, '_>,
    ) -> Result<ListPage<EntityView>, Denied> {
        administration.list(&self.what, self.skip, self.top)
    }
}

impl AdminRequest for ListRules {
    type Answer = ListPage<RuleView>;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Owned(format!("{}/Rules", self.subscription))
    }

    fn denied(&self, host: &str) -> String {
        of_part("EnumerateRules", host, &self.subscription)
    }

    fn run(
        self,
        administration: &mut Administration<'_, '_>,
    ) -> Result<ListPage<RuleView>, Denied> {
        administration.list_rules(&self.subscription, self.skip, self.top)
    }
}

impl AdminRequest for CreateEntity {
    type Answer = EntityView;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn denied(&self, _host: &str) -> String {
        of_entity("EntityWrite")
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<EntityView, Denied> {
        let kind = if self.is_topic {
            EntityKind::Topic
        } else {
            EntityKind::Queue
        };
        administration.create(&self.path, kind, &self.properties, None)
    }
}

impl AdminRequest for CreateSubscription {
    type Answer = EntityView;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn denied(&self, host: &str) -> String {
        of_part("CreateOrUpdateSubscription", host, &self.path)
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<EntityView, Denied> {
        administration.create(
            &self.path,
            EntityKind::Subscription,
            &self.properties,
            self.rule,
        )
    }
}

impl AdminRequest for UpdateEntity {
    type Answer = EntityView;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn denied(&self, host: &str) -> String {
        if is_part(&self.path) {
            return of_part("CreateOrUpdateSubscription", host, &self.path);
        }
        of_entity("EntityWrite")
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<EntityView, Denied> {
        administration.update(&self.path, self.kind, &self.properties, self.revision)
    }
}

impl AdminRequest for DeleteEntity {
    type Answer = ();

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn denied(&self, host: &str) -> String {
        if is_part(&self.path) {
            return of_part("DeleteSubscription", host, &self.path);
        }
        of_entity("EntityDelete")
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<(), Denied> {
        administration.delete(&self.path, self.revision)
    }
}

impl AdminRequest for ChangeAuthorization {
    type Answer = EntityView;

    fn resource(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn denied(&self, _host: &str) -> String {
        of_entity("EntityWrite")
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<EntityView, Denied> {
        administration.change_authorization(&self.path, &self.name, *self.change)
    }
}

impl AdminRequest for ReadRule {
    type Answer = RuleView;

    fn resource(&self) -> Cow<'_, str> {
        of_rule(&self.subscription, &self.name)
    }

    fn denied(&self, host: &str) -> String {
        of_part("GetRule", host, &self.subscription)
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<RuleView, Denied> {
        let (topic, base) = administration.subscription(&self.subscription)?;
        administration.rule(topic, base, &self.name)
    }
}

impl AdminRequest for CreateRule {
    type Answer = RuleView;

    fn resource(&self) -> Cow<'_, str> {
        of_rule(&self.subscription, &self.rule.name)
    }

    fn denied(&self, host: &str) -> String {
        of_part("CreateOrUpdateRule", host, &self.subscription)
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<RuleView, Denied> {
        administration.create_rule(&self.subscription, *self.rule)
    }
}

impl AdminRequest for UpdateRule {
    type Answer = RuleView;

    fn resource(&self) -> Cow<'_, str> {
        of_rule(&self.subscription, &self.rule.name)
    }

    fn denied(&self, host: &str) -> String {
        of_part("CreateOrUpdateRule", host, &self.subscription)
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<RuleView, Denied> {
        administration.update_rule(&self.subscription, *self.rule, self.version)
    }
}

impl AdminRequest for DeleteRule {
    type Answer = ();

    fn resource(&self) -> Cow<'_, str> {
        of_rule(&self.subscription, &self.name)
    }

    fn denied(&self, host: &str) -> String {
        of_part("DeleteRule", host, &self.subscription)
    }

    fn run(self, administration: &mut Administration<'_, '_>) -> Result<(), Denied> {
        administration.delete_rule(&self.subscription, &self.name, self.version)
    }
}

/// Returns the path of a rule.
fn of_rule(subscription: &str, name: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{subscription}/Rules/{name}"))
}

fn is_part(path: &str) -> bool {
    address::split_subscription(path).is_some()
}

fn read_claims() -> String {
    format!("{READ_CLAIMS} claims required for this operation.")
}

/// Returns the service's text for who lacks the right to an operation on a subscription or its rules: the same whether there is such
/// an entity or not.
fn of_part(operation: &str, host: &str, path: &str) -> String {
    format!(
        "SubCode=40100: Unauthorized : Unauthorized access for '{operation}' operation on endpoint \
         'sb://{host}/{path}'."
    )
}

/// Returns the service's text for who lacks a claim on queues and topics.
fn of_entity(claim: &str) -> String {
    format!(
        "SubCode=40100: Unauthorized : Authorization failed for specified action: \
         Manage,{claim}."
    )
}
