//! The requests that this protocol can make, and their answers.

use crate::Gateway;
use crate::request::{Request, Requester};
use jitney_broker::namespace::administration::{
    CreateEntity, CreateRule, CreateSubscription, DeleteEntity, DeleteRule, EntityView,
    ListEntities, ListPage, ListRules, NamespaceView, ReadEntity, ReadNamespace, ReadRule,
    RuleView, UpdateEntity, UpdateRule,
};
use jitney_broker::namespace::{Denied, StepContext};

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub enum AdminOperation {
    /// For the namespace.
    ReadNamespace(ReadNamespace),
    /// For an entity.
    ReadEntity(ReadEntity),
    /// For some entities.
    ListEntities(ListEntities),
    /// For a new queue or topic.
    CreateEntity(CreateEntity),
    /// For a new subscription.
    CreateSubscription(CreateSubscription),
    /// For other properties of an entity.
    UpdateEntity(UpdateEntity),
    /// For the end of an entity.
    DeleteEntity(DeleteEntity),
    /// For a rule.
    ReadRule(ReadRule),
    /// For some rules.
    ListRules(ListRules),
    /// For a new rule.
    CreateRule(CreateRule),
    /// For another filter or action of a rule.
    UpdateRule(UpdateRule),
    /// For the end of a rule.
    DeleteRule(DeleteRule),
}

/// An answer.
#[derive(Debug, PartialEq)]
pub enum AdminAnswer {
    /// The namespace.
    Namespace(NamespaceView),
    /// A queue, a topic or a subscription, as it is now.
    Entity(Box<EntityView>),
    /// A rule, as it is now.
    Rule(Box<RuleView>),
    /// Entities.
    Entities(ListPage<EntityView>),
    /// Rules.
    Rules(ListPage<RuleView>),
    /// It is gone.
    Deleted,
}

impl Request for AdminOperation {
    type Answer = AdminAnswer;

    fn run(
        self,
        gateway: &mut Gateway,
        cx: &mut StepContext<'_>,
        requester: &Requester,
    ) -> Result<AdminAnswer, Denied> {
        let entity = |view| AdminAnswer::Entity(Box::new(view));
        let rule = |view| AdminAnswer::Rule(Box::new(view));
        let deleted = |()| AdminAnswer::Deleted;
        match self {
            Self::ReadNamespace(it) => it.run(gateway, cx, requester).map(AdminAnswer::Namespace),
            Self::ReadEntity(it) => it.run(gateway, cx, requester).map(entity),
            Self::ListEntities(it) => it.run(gateway, cx, requester).map(AdminAnswer::Entities),
            Self::CreateEntity(it) => it.run(gateway, cx, requester).map(entity),
            Self::CreateSubscription(it) => it.run(gateway, cx, requester).map(entity),
            Self::UpdateEntity(it) => it.run(gateway, cx, requester).map(entity),
            Self::DeleteEntity(it) => it.run(gateway, cx, requester).map(deleted),
            Self::ReadRule(it) => it.run(gateway, cx, requester).map(rule),
            Self::ListRules(it) => it.run(gateway, cx, requester).map(AdminAnswer::Rules),
            Self::CreateRule(it) => it.run(gateway, cx, requester).map(rule),
            Self::UpdateRule(it) => it.run(gateway, cx, requester).map(rule),
            Self::DeleteRule(it) => it.run(gateway, cx, requester).map(deleted),
        }
    }
}
