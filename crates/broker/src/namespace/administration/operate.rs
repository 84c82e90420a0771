//! What requests do.

use super::{
    AdminRequest, Counts, EntityView, ListPage, Listed, More, NamespaceView, Properties, RuleView,
};
use crate::access::Authority;
use crate::limits;
use crate::namespace::{Denied, DeniedKind, Namespaces, StepContext};
use jitney_base::address;
use jitney_base::ids::EntityId;
use jitney_base::rights::Right;
use jitney_base::time::Timestamp;
use jitney_queue::{Description, EntityKind, Queue};
use jitney_rules::{Filter, Rule};

impl Namespaces {
    /// Carries a request out, in the namespace of a host name, for a client with these
    /// rights. The answer rests on the newest group of records.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    pub fn administer<R: AdminRequest>(
        &mut self,
        cx: &mut StepContext<'_>,
        host: Option<&str>,
        authority: &Authority,
        request: R,
    ) -> Result<R::Answer, Denied> {
        let prefix = self.directory.namespace_of(host);
        let denied = request.denied(host.unwrap_or_default());
        let resource = format!("{prefix}{}", request.resource());
        let checked = authority.check(&resource, Right::Manage);
        checked.map_err(|_| Denied::new(DeniedKind::Unauthorized, &denied, ""))?;
        request.run(&mut Administration {
            namespaces: self,
            cx,
            prefix,
            authority,
            denied,
        })
    }
}

/// The context of a request.
pub struct Administration<'a, 'b> {
    namespaces: &'a mut Namespaces,
    cx: &'a mut StepContext<'b>,
    prefix: String,
    authority: &'a Authority,
    /// The text for a client that lacks the right to the operation.
    denied: String,
}

impl Administration<'_, '_> {
    pub(super) fn namespace(&self) -> Result<NamespaceView, Denied> {
        self.check_right("")?;
        let name = if self.prefix.is_empty() {
            self.namespaces
                .directory
                .first_name()
                .unwrap_or_default()
                .to_owned()
        } else {
            self.prefix.trim_matches('/').to_owned()
        };
        let entities = self.namespaces.directory.entities();
        let made = entities.filter_map(|entity| {
            let description = self.namespaces.queue(entity.base)?.description();
            Some(description.history.created_at)
        });
        let created_at = made.min().unwrap_or(self.cx.now);
        let tier = self.namespaces.directory.tier_of(&self.prefix);
        Ok(NamespaceView {
            name,
            tier,
            created_at,
        })
    }

    pub(super) fn list(
        &mut self,
        what: &Listed,
        skip: usize,
        top: usize,
    ) -> Result<ListPage<EntityView>, Denied> {
        let top = top.min(limits::LISTED_MAX);
        let (kind, below, of) = match what {
            Listed::Queues(prefix) => (EntityKind::Queue, address::key(prefix), ""),
            Listed::Topics(prefix) => (EntityKind::Topic, address::key(prefix), ""),
            Listed::Subscriptions(topic) => {
                let base = self.find(topic)?;
                if self.kind(base) != Some(EntityKind::Topic) {
                    return Err(Denied::new(
                        DeniedKind::InvalidField,
                        format!("'{topic}' is not a topic, and has no subscriptions."),
                        "",
                    ));
                }
                let below = address::key(topic) + "/subscriptions/";
                (EntityKind::Subscription, below, topic.as_str())
            }
        };
        self.check_right(of)?;
        let start = format!("{}{below}", self.prefix);
        let directory = &self.namespaces.directory;
        let entities = directory.entities_of(&self.prefix, &start);
        let entities = entities.take_while(|(key, _)| key.starts_with(&start));
        let of_kind = entities.filter(|(_, entity)| entity.kind == kind);
        let mut found: Vec<EntityId> = of_kind
            .skip(skip)
            .take(top.saturating_add(1))
            .map(|(_, entity)| entity.base)
            .collect();
        let more = shorten(&mut found, top);
        let views = found.into_iter().map(|base| self.view(base));
        let entries = views.collect::<Result<_, _>>()?;
        Ok(ListPage { entries, more })
    }

    pub(super) fn list_rules(
        &mut self,
        subscription: &str,
        skip: usize,
        top: usize,
    ) -> Result<ListPage<RuleView>, Denied> {
        let top = top.min(limits::LISTED_MAX);
        let (topic, base) = self.subscription(subscription)?;
        let path = self.shown(base);
        let rules = self.namespaces.topic(topic).rules.rules_by_name(base.0);
        let rules = rules.skip(skip).take(top.saturating_add(1));
        let mut views: Vec<RuleView> = rules
            .map(|rule| RuleView {
                subscription: path.clone(),
                rule: rule.clone(),
            })
            .collect();
        let more = shorten(&mut views, top);
        Ok(ListPage {
            entries: views,
            more,
        })
    }

    pub(super) fn create(
        &mut self,
        path: &str,
        kind: EntityKind,
        properties: &Properties,
        rule: Option<Box<Rule>>,
    ) -> Result<EntityView, Denied> {
        self.check_right(path)?;
        self.check_room_for_change()?;
        let full = self.name_of_new(path, kind)?;
        if self.namespaces.resolve_path(&full).is_some() {
            let text = format!("The messaging entity '{path}' already exists.");
            return Err(Denied::new(DeniedKind::Exists, text, "").about("entity"));
        }
        self.namespaces.check_entity_count(&full, None)?;
        let mut description = properties
            .describe(kind, None, self.namespaces.directory.tier_of(&full))
            .map_err(Denied::from)?;
        let topic = self
            .namespaces
            .topic_of(&full, &description)
            .map_err(|error| {
                Denied::new(DeniedKind::NotFound, error.to_string(), "").about("topic")
            })?;
        if let Some(topic) = topic.and_then(|topic| self.namespaces.queue(topic)) {
            description.partitioned = topic.description().partitioned;
        }
        self.resolve_forwards(&full, &mut description)?;
        let rules = rule.into_iter().map(|rule| self.stamped(*rule));
        let rules = rules.collect();
        let made = self
            .namespaces
            .make_entity(self.cx, &full, description, rules);
        let base = made.map_err(Denied::from)?;
        self.namespaces.warn_of_forwards(base);
        let (described, _) = self.described(base)?;
        self.note(&full, None, Some(&described));
        self.view(base)
    }

    /// Adds to the audit log what became of an entity.
    fn note(&mut self, path: &str, before: Option<&Description>, after: Option<&Description>) {
        let actor = self.authority.actor();
        self.namespaces
            .audit_entity(self.cx, actor, path, before, after);
    }

    pub(super) fn update(
        &mut self,
        path: &str,
        kind: EntityKind,
        properties: &Properties,
        revision: Option<u64>,
    ) -> Result<EntityView, Denied> {
        let base = self.find(path)?;
        self.check_room_for_change()?;
        self.check_revision(base, revision)?;
        let (before, full) = self.described(base)?;
        if before.kind != kind {
            return Err(Denied::new(
                DeniedKind::InvalidField,
                format!(
                    "'{path}' is a {:?}, and a {kind:?}Description was sent.",
                    before.kind
                ),
                "",
            ));
        }
        let described = properties.describe(
            kind,
            Some(&before),
            self.namespaces.directory.tier_of(&full),
        );
        let mut description = described.map_err(Denied::from)?;
        self.resolve_forwards(&full, &mut description)?;
        self.replace(base, &full, &before, description)?;
        self.view(base)
    }

    /// Replaces the description of an entity, and notes the change in the audit log.
    pub(super) fn replace(
        &mut self,
        base: EntityId,
        full: &str,
        before: &Description,
        description: Description,
    ) -> Result<(), Denied> {
        let changed = self.namespaces.change_entity(self.cx, base, description);
        if changed.map_err(Denied::from)? {
            self.namespaces.warn_of_forwards(base);
            let (after, _) = self.described(base)?;
            self.note(full, Some(before), Some(&after));
        }
        Ok(())
    }

    /// Checks that there is memory for a changed entity.
    pub(super) fn check_room_for_change(&self) -> Result<(), Denied> {
        self.namespaces.check_room(&self.prefix, CHANGED)
    }

    /// Returns the time of the step.
    pub(super) fn now(&self) -> Timestamp {
        self.cx.now
    }

    pub(super) fn delete(&mut self, path: &str, revision: Option<u64>) -> Result<(), Denied> {
        let base = self.find(path)?;
        self.check_revision(base, revision)?;
        let (_, full) = self.described(base)?;
        self.namespaces.delete_entity(self.cx, &full);
        self.note(&full, None, None);
        Ok(())
    }

    pub(super) fn create_rule(
        &mut self,
        subscription: &str,
        rule: Rule,
    ) -> Result<RuleView, Denied> {
        let (topic, base) = self.subscription(subscription)?;
        self.check_room_for_change()?;
        let rule = self.stamped(rule);
        let name = rule.name.clone();
        let kept = self.namespaces.keep_rule(self.cx, topic, base, rule);
        kept.map_err(|why| Denied::rule(subscription, &name, why))?;
        self.note_rule("create_rule", topic, base, &name);
        self.rule(topic, base, &name)
    }

    fn note_rule(&mut self, operation: &str, topic: EntityId, base: EntityId, name: &str) {
        let actor = self.authority.actor();
        self.namespaces
            .audit_rule(self.cx, actor, operation, topic, base, name);
    }

    pub(super) fn update_rule(
        &mut self,
        subscription: &str,
        rule: Rule,
        version: Option<u64>,
    ) -> Result<RuleView, Denied> {
        let (topic, base) = self.subscription(subscription)?;
        self.check_room_for_change()?;
        let Some(old) = self.namespaces.topic(topic).rules.rule(base.0, &rule.name) else {
            return Err(no_rule(subscription, &rule.name));
        };
        check_version(subscription, old, version)?;
        // It stays the rule that it was, at its place among the others.
        let rule = Rule {
            name: old.name.clone(),
            created_at: old.created_at,
            ..rule
        };
        let name = rule.name.clone();
        let put = self.namespaces.put_rule(self.cx, topic, base, rule);
        put.map_err(|why| Denied::rule(subscription, &name, why))?;
        self.note_rule("update_rule", topic, base, &name);
        self.rule(topic, base, &name)
    }

    pub(super) fn delete_rule(
        &mut self,
        subscription: &str,
        name: &str,
        version: Option<u64>,
    ) -> Result<(), Denied> {
        let (topic, base) = self.subscription(subscription)?;
        if let Some(old) = self.namespaces.topic(topic).rules.rule(base.0, name) {
            check_version(subscription, old, version)?;
        }
        if self.namespaces.drop_rule(self.cx, topic, base, name) {
            self.note_rule("delete_rule", topic, base, name);
            return Ok(());
        }
        Err(no_rule(subscription, name))
    }

    pub(super) fn rule(
        &mut self,
        topic: EntityId,
        base: EntityId,
        name: &str,
    ) -> Result<RuleView, Denied> {
        let subscription = self.shown(base);
        match self.namespaces.topic(topic).rules.rule(base.0, name) {
            Some(rule) => Ok(RuleView {
                subscription,
                rule: rule.clone(),
            }),
            None => Err(no_rule(&subscription, name)),
        }
    }

    /// Notes when a rule is made.
    fn stamped(&self, rule: Rule) -> Rule {
        Rule {
            created_at: self.cx.now,
            ..rule
        }
    }

    /// Checks the name of an entity that is to be, and returns its path.
    fn name_of_new(&self, path: &str, kind: EntityKind) -> Result<String, Denied> {
        let wrong = |name: &str, allowed: &str| {
            let text = format!("The name of the entity: found '{name}'; allowed: {allowed}.");
            Err(Denied::new(DeniedKind::InvalidField, text, "").about("entity"))
        };
        if kind != EntityKind::Subscription {
            if !address::is_entity_name(path) {
                return wrong(path, address::ENTITY_NAME_RULE);
            }
            return Ok(format!("{}{path}", self.prefix));
        }
        let parts = address::split_subscription(path);
        let Some((topic, name)) = parts.filter(|(_, name)| address::is_part_name(name)) else {
            let allowed = format!("a topic, and a subscription of {}", address::PART_NAME_RULE);
            return wrong(path, &allowed);
        };
        let base = self.find(topic).map_err(|denied| denied.about("topic"))?;
        let (_, topic) = self.described(base)?;
        Ok(address::subscription(&topic, name))
    }

    /// Finds out where an entity is to forward to, and that it may.
    fn resolve_forwards(&self, path: &str, description: &mut Description) -> Result<(), Denied> {
        let existing = self.namespaces.description(path);
        let ways = [
            (
                &mut description.forward_to,
                &mut description.forward_to_address,
                existing.and_then(|it| it.forward_to.as_deref()),
                "forward_to",
            ),
            (
                &mut description.forward_dead_letters_to,
                &mut description.forward_dead_letters_to_address,
                existing.and_then(|it| it.forward_dead_letters_to.as_deref()),
                "forward_dead_letters_to",
            ),
        ];
        for (way, address, before, field) in ways {
            let Some(written) = way else { continue };
            // Java makes an address of an address that it has read.
            let mut target = written.as_str();
            while address::behind_scheme(target).is_some() {
                target = address::without_authority(target);
            }
            let target = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
            let target = target.trim_matches('/');
            // No path has an empty part, and none leads out of its namespace.
            if target.split('/').any(str::is_empty) {
                let text = format!(
                    "ForwardTo: found '{written}'; allowed: the path or the address of a queue or a \
                     topic."
                );
                return Err(Denied::new(DeniedKind::InvalidField, text, "").about(field));
            }
            let target = format!("{}{target}", self.prefix);
            let stays = before.is_some_and(|before| address::key(before) == address::key(&target));
            if !stays {
                let checked = self.authority.check_target(&target);
                checked
                    .map_err(|text| Denied::new(DeniedKind::Unauthorized, text, "").about(field))?;
            }
            self.namespaces
                .check_target(path, &target)
                .map_err(|refused| Denied::from(refused).about(field))?;
            let found = self.namespaces.resolve_path(&target);
            let node = found.and_then(|id| self.namespaces.node(id));
            let is_kept =
                written.contains("://") && written.len() <= limits::FORWARD_ADDRESS_BYTES_MAX;
            *address = is_kept.then(|| written.clone());
            *way = node.map(|node| node.address.path.clone());
        }
        Ok(())
    }

    pub(super) fn find(&self, path: &str) -> Result<EntityId, Denied> {
        self.check_right(path)?;
        let full = format!("{}{path}", self.prefix);
        self.namespaces.resolve_path(&full).ok_or_else(|| {
            Denied::new(
                DeniedKind::NotFound,
                format!("Entity '{path}' was not found."),
                "",
            )
        })
    }

    pub(super) fn subscription(&self, path: &str) -> Result<(EntityId, EntityId), Denied> {
        let base = self.find(path)?;
        let (description, full) = self.described(base)?;
        match self.namespaces.topic_of(&full, &description) {
            Ok(Some(topic)) => Ok((topic, base)),
            Ok(None) | Err(_) => Err(Denied::new(
                DeniedKind::InvalidField,
                format!("'{path}' is not a subscription, and has no rules."),
                "",
            )),
        }
    }

    fn kind(&self, base: EntityId) -> Option<EntityKind> {
        Some(self.namespaces.queue(base)?.description().kind)
    }

    pub(super) fn described(&self, base: EntityId) -> Result<(Description, String), Denied> {
        let node = self.namespaces.node(base).ok_or_else(|| Denied::gone(""))?;
        Ok((node.queue.description().clone(), node.address.path.clone()))
    }

    /// Returns an entity's path as its clients know it.
    fn shown(&self, base: EntityId) -> String {
        let node = self.namespaces.node(base);
        let path = node.map_or("", |node| &node.address.path);
        address::without_namespace(path).to_owned()
    }

    pub(super) fn view(&self, base: EntityId) -> Result<EntityView, Denied> {
        let node = self.namespaces.node(base).ok_or_else(|| Denied::gone(""))?;
        let mut description = node.queue.description().clone();
        for way in [
            &mut description.forward_to,
            &mut description.forward_dead_letters_to,
        ] {
            *way = way
                .take()
                .map(|path| address::without_namespace(&path).to_owned());
        }
        let length = |id: EntityId| self.namespaces.queue(id).map_or(0, Queue::len);
        let scheduled = node.queue.scheduled();
        let waiting = node.queue.len() - scheduled;
        let forwards = node.forwards_to.is_some();
        let topic = self.namespaces.topics.get(&base);
        let rules = topic.into_iter().flat_map(|topic| {
            let subscriptions = topic.subscriptions.iter();
            subscriptions.flat_map(|subscription| topic.rules.rules(subscription.0))
        });
        let (mut correlation_filters, mut sql_filters) = (0, 0);
        for rule in rules {
            match rule.filter {
                Filter::Correlation(_) => correlation_filters += 1,
                Filter::Sql(_) | Filter::True | Filter::False => sql_filters += 1,
            }
        }
        Ok(EntityView {
            path: address::without_namespace(&node.address.path).to_owned(),
            accessed_at: node.accessed_at,
            counts: Counts {
                active: if forwards { 0 } else { waiting },
                deferred: if forwards { 0 } else { node.queue.deferred() },
                locked: node.queue.locked(),
                dead_letters: length(base.dead_letters()),
                scheduled,
                transfer: if forwards { waiting } else { 0 },
                transfer_dead_letters: length(base.transfer_dead_letters()),
            },
            bytes: self.namespaces.held_bytes(base),
            subscriptions: topic.map_or(0, |topic| topic.subscriptions.len()),
            sql_filters,
            correlation_filters,
            description,
        })
    }

    /// Checks that the asker's key may manage what is at a path, and below it. What its token is for
    /// was checked for the operation as a whole.
    fn check_right(&self, path: &str) -> Result<(), Denied> {
        let path = format!("{}{path}", self.prefix);
        let checked = self.authority.check_above(&path, Right::Manage);
        checked.map_err(|_| Denied::new(DeniedKind::Unauthorized, &self.denied, ""))
    }

    fn check_revision(&self, base: EntityId, wanted: Option<u64>) -> Result<(), Denied> {
        let (description, path) = self.described(base)?;
        match wanted {
            Some(wanted) if wanted != description.history.revision => Err(Denied::new(
                DeniedKind::Changed,
                format!(
                    "'{}' has changed since: its ETag is \"{}\".",
                    address::without_namespace(&path),
                    description.history.revision
                ),
                "",
            )),
            _ => Ok(()),
        }
    }
}

fn check_version(subscription: &str, rule: &Rule, wanted: Option<u64>) -> Result<(), Denied> {
    let version = rule.version();
    if wanted.is_none_or(|wanted| wanted == version) {
        return Ok(());
    }
    let text = format!(
        "The rule '{}' of '{subscription}' has changed since: its ETag is \"{version}\".",
        rule.name
    );
    Err(Denied::new(DeniedKind::Changed, text, ""))
}

/// The effect of a lack of room, for people.
const CHANGED: &str = "nothing is made or changed until there is room again";

/// The claims that the service names where something may not be read.
pub const READ_CLAIMS: &str = "Manage,EntityRead";

/// Cuts a list that is one longer than it may be.
fn shorten<T>(list: &mut Vec<T>, top: usize) -> More {
    if list.len() <= top {
        return More::No;
    }
    list.truncate(top);
    More::Yes
}

fn no_rule(subscription: &str, name: &str) -> Denied {
    Denied::new(
        DeniedKind::NotFound,
        format!("Entity '{subscription}/Rules/{name}' was not found."),
        "",
    )
}
