//! Commands for entities, rules, connections, message sessions and jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::arguments::{
    ConnectionCommand, ConsentArgs, EntityCommand, FirstRuleArgs, JobCommand, KeyCommand,
    RuleCommand, SessionCommand,
};
use super::error::CommandError;
use super::jobs::sentence;
use super::path::encoded;
use super::shell::{Output, Shell};
use super::table::to_json;
use super::{table, words};
use crate::system::print;
use jitney_api::authorization_rules::{AuthorizationRuleShown, AuthorizationRules};
use jitney_api::connections::{Connection, Connections};
use jitney_api::entities::{Entities, Entity, FirstRule, Kind};
use jitney_api::jobs::{Job, Jobs, RunState};
use jitney_api::namespaces::Access;
use jitney_api::receives::Receives;
use jitney_api::rule_tests::RuleTests;
use jitney_api::rules::{Rule, RuleFilter, RuleRequest, Rules};
use jitney_api::sessions::{Session, SessionStateRequest, Sessions};

/// How often a change is tried that others come before: each time it is made of what they have changed.
const CHANGE_ATTEMPTS: usize = 8;
/// What becomes of the properties that are not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Update {
    /// They stay as they are.
    Merge,
    /// They get their defaults.
    Replace,
}

/// Properties that a subscription has from its topic.
const OF_TOPIC: [&str; 5] = [
    "max_size_megabytes",
    "max_message_kilobytes",
    "requires_duplicate_detection",
    "duplicate_detection_window",
    "partitioned",
];

impl Shell {
    pub(super) async fn entities(
        &self,
        kind: Kind,
        command: &EntityCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            EntityCommand::List { topic } => {
                let mut query = format!("entities?kind={}", word(kind));
                match (kind, topic) {
                    (Kind::Subscription, Some(topic)) => {
                        query.push_str("&topic=");
                        query.push_str(&encoded(topic));
                    }
                    (Kind::Subscription, None) => {
                        return Err(CommandError::Usage(
                            "name the topic of the subscriptions".to_owned(),
                        ));
                    }
                    (Kind::Queue | Kind::Topic, Some(_)) => {
                        return Err(CommandError::Usage(
                            "only subscriptions have a topic".to_owned(),
                        ));
                    }
                    (Kind::Queue | Kind::Topic, None) => {}
                }
                let all = self.all_pages::<Entities>(&query).await?;
                self.show_list(&all, "entities", &table::ENTITIES);
            }
            EntityCommand::Show { path } => {
                self.show_one(&self.entity(kind, path).await?.0);
            }
            EntityCommand::Create {
                path,
                properties,
                rule,
            } => {
                let mut body = json!({"kind": kind, "properties": properties_of(properties)?});
                if let (Some(rule), Some(fields)) = (rule.rule(), body.as_object_mut()) {
                    if kind != Kind::Subscription {
                        let text = "only subscriptions have rules".to_owned();
                        return Err(CommandError::Usage(text));
                    }
                    fields.insert("rule".to_owned(), to_json(&rule));
                }
                let place = format!("entities/{}", encoded(path));
                let made = self.client.ask(Method::PUT, &place, Some(&body), &[]);
                let made: Entity = made.await?;
                self.done(&made, &format!("Created the {} {path}.", word(kind)));
            }
            EntityCommand::Update {
                path,
                properties,
                replace,
            } => {
                let how = if *replace {
                    Update::Replace
                } else {
                    Update::Merge
                };
                self.update(kind, path, properties_of(properties)?, how)
                    .await?;
            }
            EntityCommand::Delete { path, consent } => {
                self.delete(kind, path, consent).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Updates an entity, and says what has changed.
    async fn update(
        &self,
        kind: Kind,
        path: &str,
        given: Map<String, Value>,
        how: Update,
    ) -> Result<(), CommandError> {
        let (before, updated) = match how {
            Update::Merge => self.change(kind, path, &given).await?,
            Update::Replace => {
                let (before, _) = self.entity(kind, path).await?;
                (before, self.replace(kind, path, given).await?)
            }
        };
        let changes = changes(&before, &updated);
        let kind = word(kind);
        let said = if changes.is_empty() {
            format!("The {kind} {path} is as it was.")
        } else {
            format!("Updated the {kind} {path}: {}.", changes.join(", "))
        };
        self.done(&updated, &said);
        Ok(())
    }

    /// Deletes an entity, and says what it had.
    async fn delete(
        &self,
        kind: Kind,
        path: &str,
        consent: &ConsentArgs,
    ) -> Result<(), CommandError> {
        let (entity, _) = self.entity(kind, path).await?;
        let (contents, kind) = (contents(&entity), word(kind));
        consent.confirm(&format!("Delete the {kind} {path} with {contents}?"))?;
        let began = Instant::now();
        let place = format!("entities/{}", encoded(path));
        self.remove(&place).await?;
        let taken = words::taken(began.elapsed());
        let said = format!("Deleted the {kind} {path} with {contents} in {taken}.");
        self.done(&json!({"deleted": path, "entity": entity}), &said);
        Ok(())
    }

    /// Returns an entity of a kind, and its version. One of another kind is another entity.
    async fn entity(&self, kind: Kind, path: &str) -> Result<(Entity, String), CommandError> {
        let place = format!("entities/{}", encoded(path));
        let (entity, version) = self.client.versioned::<Entity>(&place).await?;
        if entity.kind == kind {
            return Ok((entity, version));
        }
        let command = match entity.kind {
            Kind::Queue => "queues",
            Kind::Topic => "topics",
            Kind::Subscription => "subscriptions",
        };
        let (kind, other) = (word(kind), word(entity.kind));
        Err(CommandError::NotFound(format!(
            "'{path}' is no {kind}, but a {other}: use `jitney {command}`."
        )))
    }

    /// Replaces the properties of an entity: what is not given gets its default.
    async fn replace(
        &self,
        kind: Kind,
        path: &str,
        mut given: Map<String, Value>,
    ) -> Result<Entity, CommandError> {
        given.retain(|_, value| value != "");
        let body = json!({"kind": kind, "properties": given});
        let path = format!("entities/{}", encoded(path));
        let any = [("if-match", "*")];
        self.client.ask(Method::PUT, &path, Some(&body), &any).await
    }

    /// Changes the given properties of an entity, and no other; returns the entity before and after it. What another client
    /// changes between the read and the write is not undone: it is read again.
    async fn change(
        &self,
        kind: Kind,
        path: &str,
        given: &Map<String, Value>,
    ) -> Result<(Entity, Entity), CommandError> {
        if given.is_empty() {
            let text = "Nothing to update: give --set NAME=VALUE, or --replace for the defaults.";
            return Err(CommandError::Usage(text.to_owned()));
        }
        let place = format!("entities/{}", encoded(path));
        let mut attempts = 1;
        loop {
            let (entity, version) = self.entity(kind, path).await?;
            let body = json!({"kind": kind, "properties": changed(&entity, given)});
            let read = [("if-match", version.as_str())];
            let written = self.client.ask(Method::PUT, &place, Some(&body), &read);
            match written.await {
                Err(CommandError::Changed(_)) if attempts < CHANGE_ATTEMPTS => attempts += 1,
                done => return Ok((entity, done?)),
            }
        }
    }

    pub(super) async fn rules(&self, command: &RuleCommand) -> Result<ExitCode, CommandError> {
        match command {
            RuleCommand::List { subscription } => {
                let path = format!("entities/{}/rules", encoded(subscription));
                let rules = self.all_pages::<Rules>(&path).await?;
                if self.output == Output::Json {
                    self.show_one(&json!({"rules": rules}));
                } else {
                    print::line(table::rules(&rules));
                }
            }
            RuleCommand::Create {
                subscription,
                name,
                filter,
                action,
            } => {
                let body = to_json(&RuleRequest {
                    filter: RuleFilter::Sql {
                        expression: filter.clone(),
                    },
                    action: action.clone(),
                });
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                let made = self.client.ask(Method::PUT, &path, Some(&body), &[]);
                let made: Rule = made.await?;
                let said = format!("Created the rule {name} of {subscription}.");
                self.done(&made, &said);
            }
            RuleCommand::Delete { subscription, name } => {
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                self.remove(&path).await?;
                let said = format!("Deleted the rule {name} of {subscription}.");
                self.done(
                    &json!({"deleted": name, "subscription": subscription}),
                    &said,
                );
            }
            RuleCommand::Test {
                entity,
                message,
                kept,
            } => {
                let body = tested(message.as_deref(), kept.as_deref())?;
                self.test_rules(entity, body).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Tests a message against all rules of a topic or a subscription.
    async fn test_rules(&self, entity: &str, mut body: Value) -> Result<(), CommandError> {
        let path = format!("entities/{}/rule-tests", encoded(entity));
        let (mut all, mut values) = (Vec::new(), BTreeMap::new());
        loop {
            let page = self.client.ask(Method::POST, &path, Some(&body), &[]);
            let mut page: RuleTests = page.await?;
            all.append(&mut page.subscriptions);
            values.append(&mut page.values);
            let (Some(next), Some(fields)) = (page.next_skip, body.as_object_mut()) else {
                break;
            };
            fields.insert("skip".to_owned(), next.into());
        }
        if self.output == Output::Json {
            self.show_one(&json!({"subscriptions": all, "values": values}));
        } else {
            print::line(table::rule_tests(&all, &values));
        }
        Ok(())
    }

    pub(super) async fn keys(&self, command: &KeyCommand) -> Result<ExitCode, CommandError> {
        let rule = |entity: &str, name: &str| {
            let (entity, name) = (encoded(entity), encoded(name));
            format!("entities/{entity}/authorization-rules/{name}")
        };
        match command {
            KeyCommand::List { entity } => {
                let path = format!("entities/{}/authorization-rules", encoded(entity));
                let answer: AuthorizationRules = self.get(&path).await?;
                self.show(&answer, "authorization_rules", &table::KEYS);
            }
            KeyCommand::Create {
                entity,
                name,
                rights,
            } => {
                let body = json!({"rights": rights});
                let path = rule(entity, name);
                let made = self.client.ask(Method::PUT, &path, Some(&body), &[]);
                let made: AuthorizationRuleShown = made.await?;
                self.show_one(&made);
                let access = self.get::<Access>("access").await;
                if access.is_ok_and(|access| access.open) {
                    print::complain(
                        "jitney: warning: this broker accepts any key for everything, and verifies none (--auth development): start it \
                         with --auth sas for keys to have an effect",
                    );
                }
            }
            KeyCommand::Rotate {
                entity,
                name,
                key,
                consent,
            } => {
                let question = format!(
                    "Replace the {key} key of {name} of {entity}? Clients that use it are disconnected."
                );
                consent.confirm(&question)?;
                let path = format!("{}/rotate", rule(entity, name));
                let body = json!({"key": key});
                let rotated = self.client.ask(Method::POST, &path, Some(&body), &[]);
                let rotated: AuthorizationRuleShown = rotated.await?;
                self.show_one(&rotated);
            }
            KeyCommand::Delete {
                entity,
                name,
                consent,
            } => {
                let question = format!("Delete the authorization rule {name} of {entity}?");
                consent.confirm(&question)?;
                self.remove(&rule(entity, name)).await?;
                let said =
                    format!("Deleted the authorization rule {name} of {entity}, and its keys.");
                self.done(&json!({"deleted": name, "entity": entity}), &said);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn connections(
        &self,
        command: &ConnectionCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            ConnectionCommand::List => {
                let all = self.all_pages::<Connections>("connections").await?;
                let all = joined(all);
                if self.output == Output::Json {
                    self.show_one(&json!({"connections": all}));
                } else {
                    print::line(table::connections(&all));
                }
            }
            ConnectionCommand::Receives => {
                let all = self.all_pages::<Receives>("receives").await?;
                self.show_list(&all, "receives", &table::RECEIVES);
            }
            ConnectionCommand::EndReceive { id } => {
                let path = format!("receives/{id}");
                self.remove(&path).await?;
                self.done(&json!({"ended": id}), &format!("Ended the receive {id}."));
            }
            ConnectionCommand::Close {
                id,
                link,
                keep_locks,
            } => {
                let locks = if *keep_locks { "?locks=stay" } else { "" };
                let path = match link {
                    Some(link) => format!("connections/{id}/links/{link}{locks}"),
                    None => format!("connections/{id}{locks}"),
                };
                self.remove(&path).await?;
                let said = match link {
                    Some(link) => format!("Closed the link {link} of connection {id}."),
                    None => format!("Closed connection {id}."),
                };
                self.done(&json!({"closed": id, "link": link}), &said);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn sessions(
        &self,
        command: &SessionCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            SessionCommand::List { entity } => {
                let path = format!("entities/{}/sessions", encoded(entity));
                let all = self.all_pages::<Sessions>(&path).await?;
                self.show_list(&all, "sessions", &table::SESSIONS);
            }
            SessionCommand::SetState { entity, id, state } => {
                let path = format!("entities/{}/sessions/{}", encoded(entity), encoded(id));
                let request = SessionStateRequest {
                    state_base64: state.as_ref().map(|state| STANDARD.encode(state)),
                };
                let body = to_json(&request);
                let set = self.client.ask::<()>(Method::PUT, &path, Some(&body), &[]);
                set.await?;
                let said = match state {
                    Some(state) => format!(
                        "Set the state of session {id} of {entity}: {}.",
                        words::size(words::whole(state.len()))
                    ),
                    None => format!("Cleared the state of session {id} of {entity}."),
                };
                let bytes = state.as_ref().map(String::len);
                self.done(&json!({"session": id, "state_bytes": bytes}), &said);
            }
            SessionCommand::Show { entity, id } => {
                let path = format!("entities/{}/sessions/{}", encoded(entity), encoded(id));
                self.show_one(&self.get::<Session>(&path).await?);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn jobs(&self, command: &JobCommand) -> Result<ExitCode, CommandError> {
        match command {
            JobCommand::List => {
                let all = self.all_pages::<Jobs>("jobs").await?;
                self.show_list(&all, "jobs", &table::JOBS);
            }
            JobCommand::Show { id } => {
                let job: Job = self.get(&format!("jobs/{id}")).await?;
                let fields = table::fields(&to_json(&job));
                self.done(&job, &format!("{}\n{fields}", sentence(&job)));
            }
            JobCommand::Cancel { id } => {
                let path = format!("jobs/{id}");
                let job: Job = self.get(&path).await?;
                let ended = match job.state {
                    RunState::Running => None,
                    RunState::Completed => Some("completed"),
                    RunState::Cancelled => Some("cancelled"),
                    RunState::Failed => Some("failed"),
                };
                if let Some(state) = ended {
                    let text = format!(
                        "Job {id} has ended already, and is {state}. {}",
                        sentence(&job)
                    );
                    return Err(CommandError::Refused(text));
                }
                let cancelled = self.client.ask(Method::DELETE, &path, None, &[]);
                let job: Job = cancelled.await?;
                self.done(&job, &sentence(&job));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl FirstRuleArgs {
    /// Returns the rule, as the API takes it.
    fn rule(&self) -> Option<FirstRule> {
        let filter = RuleFilter::Sql {
            expression: self.filter.clone()?,
        };
        Some(FirstRule {
            name: self.rule.clone()?,
            filter,
            action: self.action.clone(),
        })
    }
}

/// Returns the message of a test of rules, as the API takes it.
fn tested(message: Option<&str>, kept: Option<&str>) -> Result<Value, CommandError> {
    let wrong = |text: String| CommandError::Usage(text);
    match (message, kept) {
        (Some(text), _) => {
            let read: Result<Value, _> = serde_json::from_str(text);
            let read = read.map_err(|error| {
                let why = words::not_json(&error);
                wrong(format!(
                    "--message is {why}. An example is {{\"subject\": \"s\", \"properties\": {{\"color\": \"red\"}}}}"
                ))
            })?;
            Ok(json!({"message": read}))
        }
        (None, Some(text)) => {
            let split = text.rsplit_once(':');
            let read =
                split.and_then(|(entity, number)| Some((entity, number.parse::<u64>().ok()?)));
            let (entity, number) = read.ok_or_else(|| {
                wrong(format!(
                    "--kept is '{text}'; ENTITY:NUMBER is allowed, such as orders:7"
                ))
            })?;
            Ok(json!({"kept": {"entity": entity, "sequence_number": number}}))
        }
        (None, None) => Err(wrong(
            "give the message with --message or --kept".to_owned(),
        )),
    }
}

/// Returns the properties of an entity that was read, with those that are given. One without a value gets its default, which it has
/// when it is left out.
fn changed(entity: &Entity, given: &Map<String, Value>) -> Map<String, Value> {
    let mut properties = by_name(entity);
    if entity.kind == Kind::Subscription {
        properties.retain(|name, _| !OF_TOPIC.contains(&name.as_str()));
    }
    for (name, value) in given {
        if value == "" {
            properties.remove(name);
        } else {
            properties.insert(name.clone(), value.clone());
        }
    }
    properties
}

/// Properties that are true or false.
const BOOLEANS: [&str; 8] = [
    "requires_session",
    "requires_duplicate_detection",
    "dead_letter_on_expiration",
    "dead_letter_on_filter_error",
    "partitioned",
    "batched_operations",
    "supports_ordering",
    "express",
];
/// Properties that are whole numbers.
const NUMBERS: [&str; 3] = [
    "max_delivery_count",
    "max_size_megabytes",
    "max_message_kilobytes",
];

/// Reads properties: numbers and booleans are no texts, and durations become those of ISO 8601.
fn properties_of(given: &[String]) -> Result<Map<String, Value>, CommandError> {
    let mut properties = Map::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else {
            let text =
                format!("--set is '{pair}'; NAME=VALUE is allowed, such as lock_duration=30s");
            return Err(CommandError::Usage(text));
        };
        let wrong = |allowed: &str| {
            CommandError::Usage(format!("--set {name} is '{value}'; {allowed} is allowed"))
        };
        let whole = value.parse::<u64>().ok();
        let read = match (value, whole) {
            // It gets its default.
            ("", _) => Value::from(value),
            _ if table::DURATIONS.contains(&name) => {
                let iso = words::iso(value);
                if !iso.starts_with('P') {
                    return Err(wrong(
                        "a duration such as 30s, 10m, 1h, 14d or PT10M, or never,",
                    ));
                }
                iso.into()
            }
            ("true" | "false", _) => Value::Bool(value == "true"),
            _ if BOOLEANS.contains(&name) => return Err(wrong("true or false")),
            ("never" | "unlimited" | "no limit", _) if name == "max_delivery_count" => {
                i32::MAX.into()
            }
            (_, Some(whole)) => whole.into(),
            _ if NUMBERS.contains(&name) => return Err(wrong("a whole number such as 10")),
            _ => value.into(),
        };
        properties.insert(name.to_owned(), read);
    }
    Ok(properties)
}

/// Says which messages an entity has.
fn contents(entity: &Entity) -> String {
    let counts = &entity.counts;
    let messages = counts.active + counts.deferred + counts.scheduled;
    let mut text = words::count(words::whole(messages), "message");
    let further = [
        (counts.dead_letters, "dead letter"),
        (entity.subscriptions.unwrap_or_default(), "subscription"),
    ];
    for (count, thing) in further.into_iter().filter(|(count, _)| *count != 0) {
        text.push_str(" and ");
        text.push_str(&words::count(words::whole(count), thing));
    }
    text
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Queue => "queue",
        Kind::Topic => "topic",
        Kind::Subscription => "subscription",
    }
}

/// Returns the properties of an entity by their names.
fn by_name(entity: &Entity) -> Map<String, Value> {
    let Value::Object(properties) = to_json(&entity.properties) else {
        unreachable!("properties are an object")
    };
    properties
}

/// Returns what has changed between two states of an entity, in words for people.
fn changes(before: &Entity, after: &Entity) -> Vec<String> {
    let (before, after) = (by_name(before), by_name(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    let shown = |of: &Map<String, Value>, name: &str| match of.get(name) {
        None | Some(Value::Null) => "none".to_owned(),
        value => table::property(name, value),
    };
    changed
        .map(|name| format!("{name} {} → {}", shown(&before, name), shown(&after, name)))
        .collect()
}

/// Joins the parts of connections that have more links than a page.
fn joined(parts: Vec<Connection>) -> Vec<Connection> {
    let mut joined: Vec<Connection> = Vec::new();
    for mut part in parts {
        match joined.last_mut().filter(|last| last.id == part.id) {
            Some(known) => known.links.append(&mut part.links),
            None => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(kind: Kind, properties: &Value) -> Entity {
        let counts = json!({"active": 2, "deferred": 1, "locked": 0, "scheduled": 0, "dead_letters": 1, "transfer": 0,
            "transfer_dead_letters": 0});
        let entity = json!({"path": "q", "kind": kind, "properties": properties, "counts": counts, "size_bytes": 0,
            "created_at": "", "updated_at": ""});
        serde_json::from_value(entity).unwrap()
    }

    #[test]
    fn a_change_names_what_it_changes_and_nothing_else() {
        let properties = json!({"lock_duration": "PT30S", "max_delivery_count": 4, "forward_to": "other",
            "max_size_megabytes": 1024});
        let given = properties_of(&["max_delivery_count=7".to_owned(), "forward_to=".to_owned()]);
        let given = given.ok().unwrap();
        let wanted =
            json!({"lock_duration": "PT30S", "max_delivery_count": 7, "max_size_megabytes": 1024});
        let changed = |kind| Value::Object(changed(&entity(kind, &properties), &given));
        assert_eq!(changed(Kind::Queue), wanted);
        let wanted = json!({"lock_duration": "PT30S", "max_delivery_count": 7});
        assert_eq!(changed(Kind::Subscription), wanted);
    }

    #[test]
    fn properties_have_the_types_of_the_api() {
        let read = |pair: &str| properties_of(&[pair.to_owned()]);
        for (pair, wanted) in [
            ("lock_duration=30s", json!({"lock_duration": "PT30S"})),
            ("lock_duration=PT30S", json!({"lock_duration": "PT30S"})),
            (
                "auto_delete_on_idle=never",
                json!({"auto_delete_on_idle": words::NEVER}),
            ),
            ("auto_delete_on_idle=", json!({"auto_delete_on_idle": ""})),
            ("requires_session=true", json!({"requires_session": true})),
            ("max_delivery_count=7", json!({"max_delivery_count": 7})),
            ("forward_to=7", json!({"forward_to": 7})),
            ("forward_to=archive", json!({"forward_to": "archive"})),
        ] {
            assert_eq!(read(pair).ok().map(Value::Object), Some(wanted), "{pair}");
        }
        for (pair, said) in [
            (
                "requires_session=yes",
                "requires_session is 'yes'; true or false is allowed",
            ),
            ("max_delivery_count=many", "a whole number"),
            ("lock_duration=soon", "a duration such as 30s"),
            ("lock_duration", "NAME=VALUE"),
        ] {
            let text = read(pair).err().unwrap().to_string();
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn changes_and_contents_are_in_words() {
        let queue = |lock: &str, forward_to: Option<&str>| {
            let properties = json!({"lock_duration": lock, "forward_to": forward_to});
            entity(Kind::Queue, &properties)
        };
        let (before, after) = (queue("PT1M", None), queue("PT30S", Some("b")));
        let said = ["forward_to none → b", "lock_duration 1m → 30s"];
        assert_eq!(changes(&before, &after), said);
        assert_eq!(changes(&before, &before), [] as [String; 0]);
        assert_eq!(contents(&after), "3 messages and 1 dead letter");
    }
}
