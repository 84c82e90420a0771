//! Commands for entities, rules, connections, message sessions and jobs.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::arguments::{
    ConnectionCommand, EntityCommand, FirstRuleArgs, JobCommand, KeyCommand, RuleCommand,
    SessionCommand,
};
use super::error::CommandError;
use super::jobs::{confirm, sentence};
use super::path::encoded;
use super::shell::{Output, Shell};
use super::{table, words};
use crate::system::print;

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
        kind: &str,
        command: &EntityCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            EntityCommand::List { topic } => {
                let mut query = format!("entities?kind={kind}");
                match (kind, topic) {
                    ("subscription", Some(topic)) => {
                        query.push_str("&topic=");
                        query.push_str(&encoded(topic));
                    }
                    ("subscription", None) => {
                        return Err(CommandError::Usage(
                            "name the topic of the subscriptions".to_owned(),
                        ));
                    }
                    (_, Some(_)) => {
                        return Err(CommandError::Usage(
                            "only subscriptions have a topic".to_owned(),
                        ));
                    }
                    (_, None) => {}
                }
                let answer = self.all_pages(&query, "entities").await?;
                self.show(&answer, "entities", &table::ENTITIES);
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
                if let (Some(rule), Some(fields)) = (rule.to_json(), body.as_object_mut()) {
                    if kind != "subscription" {
                        let text = "only subscriptions have rules".to_owned();
                        return Err(CommandError::Usage(text));
                    }
                    fields.insert("rule".to_owned(), rule);
                }
                let place = format!("entities/{}", encoded(path));
                let made = self.client.ask(Method::PUT, &place, Some(&body), &[]);
                let made = made.await?;
                self.done(&made, &format!("Created the {kind} {path}."));
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
            EntityCommand::Delete { path, yes } => {
                self.delete(kind, path, *yes).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Updates an entity, and says what has changed.
    async fn update(
        &self,
        kind: &str,
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
        let said = if changes.is_empty() {
            format!("The {kind} {path} is as it was.")
        } else {
            format!("Updated the {kind} {path}: {}.", changes.join(", "))
        };
        self.done(&updated, &said);
        Ok(())
    }

    /// Deletes an entity, and says what it had.
    async fn delete(&self, kind: &str, path: &str, yes: bool) -> Result<(), CommandError> {
        let (entity, _) = self.entity(kind, path).await?;
        let contents = contents(&entity);
        confirm(yes, &format!("Delete the {kind} {path} with {contents}?"))?;
        let began = Instant::now();
        let place = format!("entities/{}", encoded(path));
        self.client.ask(Method::DELETE, &place, None, &[]).await?;
        let taken = words::taken(began.elapsed());
        let said = format!("Deleted the {kind} {path} with {contents} in {taken}.");
        self.done(&json!({"deleted": path, "entity": entity}), &said);
        Ok(())
    }

    /// Returns an entity of a kind, and its version. One of another kind is another entity.
    async fn entity(&self, kind: &str, path: &str) -> Result<(Value, String), CommandError> {
        let place = format!("entities/{}", encoded(path));
        let (entity, version) = self.client.versioned(&place).await?;
        match entity.get("kind").and_then(Value::as_str) {
            Some(other) if other != kind => {
                let command = match other {
                    "queue" => "queues",
                    "topic" => "topics",
                    _ => "subscriptions",
                };
                Err(CommandError::NotFound(format!(
                    "'{path}' is no {kind}, but a {other}: use `jitney {command}`."
                )))
            }
            Some(_) | None => Ok((entity, version)),
        }
    }

    /// Replaces the properties of an entity: what is not given gets its default.
    async fn replace(
        &self,
        kind: &str,
        path: &str,
        mut given: Map<String, Value>,
    ) -> Result<Value, CommandError> {
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
        kind: &str,
        path: &str,
        given: &Map<String, Value>,
    ) -> Result<(Value, Value), CommandError> {
        if given.is_empty() {
            let text = "Nothing to update: give --set NAME=VALUE, or --replace for the defaults.";
            return Err(CommandError::Usage(text.to_owned()));
        }
        let place = format!("entities/{}", encoded(path));
        let mut attempts = 1;
        loop {
            let (entity, version) = self.entity(kind, path).await?;
            let body = json!({"kind": kind, "properties": changed(kind, &entity, given)});
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
                let answer = self.all_pages(&path, "rules").await?;
                if self.output == Output::Json {
                    self.show_one(&answer);
                } else {
                    print::line(table::rules(&answer));
                }
            }
            RuleCommand::Create {
                subscription,
                name,
                filter,
                action,
            } => {
                let mut body = json!({"filter": {"kind": "sql", "expression": filter}});
                if let (Some(action), Some(fields)) = (action, body.as_object_mut()) {
                    fields.insert("action".to_owned(), action.as_str().into());
                }
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                let made = self.client.ask(Method::PUT, &path, Some(&body), &[]);
                let said = format!("Created the rule {name} of {subscription}.");
                self.done(&made.await?, &said);
            }
            RuleCommand::Delete { subscription, name } => {
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
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
        let (mut all, mut values) = (Vec::new(), Map::new());
        loop {
            let mut page = self
                .client
                .ask(Method::POST, &path, Some(&body), &[])
                .await?;
            let found = page.get_mut("subscriptions").and_then(Value::as_array_mut);
            all.append(found.unwrap_or(&mut Vec::new()));
            let found = page.get_mut("values").and_then(Value::as_object_mut);
            values.extend(found.map(std::mem::take).unwrap_or_default());
            let (Some(next), Some(fields)) = (page.get("next_skip"), body.as_object_mut()) else {
                break;
            };
            fields.insert("skip".to_owned(), next.clone());
        }
        let answer = json!({"subscriptions": all, "values": values});
        if self.output == Output::Json {
            self.show_one(&answer);
        } else {
            print::line(table::rule_tests(&answer));
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
                let answer = self.get(&path).await?;
                self.show(&answer, "authorization_rules", &table::KEYS);
            }
            KeyCommand::Create {
                entity,
                name,
                rights,
            } => {
                let body = json!({"rights": rights});
                let made = self
                    .client
                    .ask(Method::PUT, &rule(entity, name), Some(&body), &[])
                    .await?;
                self.show_one(&made);
                let access = self.get("access").await;
                let is_open = access.is_ok_and(|access| access.get("open") == Some(&true.into()));
                if is_open {
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
                yes,
            } => {
                let question = format!(
                    "Replace the {key} key of {name} of {entity}? Clients that use it are disconnected."
                );
                confirm(*yes, &question)?;
                let path = format!("{}/rotate", rule(entity, name));
                let body = json!({"key": key});
                let rotated = self
                    .client
                    .ask(Method::POST, &path, Some(&body), &[])
                    .await?;
                self.show_one(&rotated);
            }
            KeyCommand::Delete { entity, name, yes } => {
                let question = format!("Delete the authorization rule {name} of {entity}?");
                confirm(*yes, &question)?;
                self.client
                    .ask(Method::DELETE, &rule(entity, name), None, &[])
                    .await?;
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
                let mut answer = self.all_pages("connections", "connections").await?;
                join_connections(&mut answer);
                if self.output == Output::Json {
                    self.show_one(&answer);
                } else {
                    print::line(table::connections(&answer));
                }
            }
            ConnectionCommand::Receives => {
                let answer = self.all_pages("receives", "receives").await?;
                self.show(&answer, "receives", &table::RECEIVES);
            }
            ConnectionCommand::EndReceive { id } => {
                let path = format!("receives/{id}");
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
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
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
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
                let answer = self.all_pages(&path, "sessions").await?;
                self.show(&answer, "sessions", &table::SESSIONS);
            }
            SessionCommand::SetState { entity, id, state } => {
                let path = format!("entities/{}/sessions/{}", encoded(entity), encoded(id));
                let body =
                    json!({"state_base64": state.as_ref().map(|state| STANDARD.encode(state))});
                self.client
                    .ask(Method::PUT, &path, Some(&body), &[])
                    .await?;
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
                self.show_one(&self.get(&path).await?);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn jobs(&self, command: &JobCommand) -> Result<ExitCode, CommandError> {
        match command {
            JobCommand::List => {
                let answer = self.all_pages("jobs", "jobs").await?;
                self.show(&answer, "jobs", &table::JOBS);
            }
            JobCommand::Show { id } => {
                let job = self.get(&format!("jobs/{id}")).await?;
                self.done(
                    &job,
                    &format!("{}\n{}", sentence(&job), table::fields(&job)),
                );
            }
            JobCommand::Cancel { id } => {
                let path = format!("jobs/{id}");
                let job = self.get(&path).await?;
                let state = job.get("state").and_then(Value::as_str);
                if let Some(state) = state.filter(|state| *state != "running") {
                    let text = format!(
                        "Job {id} has ended already, and is {state}. {}",
                        sentence(&job)
                    );
                    return Err(CommandError::Refused(text));
                }
                let job = self.client.ask(Method::DELETE, &path, None, &[]).await?;
                self.done(&job, &sentence(&job));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl FirstRuleArgs {
    /// Returns the rule, as the API takes it.
    fn to_json(&self) -> Option<Value> {
        let (name, filter) = (self.rule.as_ref()?, self.filter.as_ref()?);
        let mut rule = json!({"name": name, "filter": {"kind": "sql", "expression": filter}});
        if let (Some(action), Some(fields)) = (&self.action, rule.as_object_mut()) {
            fields.insert("action".to_owned(), action.as_str().into());
        }
        Some(rule)
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
fn changed(kind: &str, entity: &Value, given: &Map<String, Value>) -> Map<String, Value> {
    let read = entity.get("properties").and_then(Value::as_object);
    let mut properties = read.cloned().unwrap_or_default();
    if kind == "subscription" {
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
fn contents(entity: &Value) -> String {
    let count = |name: &str| {
        let count = entity.pointer(&format!("/counts/{name}"));
        count.and_then(Value::as_u64).unwrap_or_default()
    };
    let messages = count("active") + count("deferred") + count("scheduled");
    let mut text = words::count(messages, "message");
    if count("dead_letters") != 0 {
        text.push_str(" and ");
        text.push_str(&words::count(count("dead_letters"), "dead letter"));
    }
    let subscriptions = entity.get("subscriptions").and_then(Value::as_u64);
    if let Some(subscriptions) = subscriptions.filter(|count| *count != 0) {
        text.push_str(" and ");
        text.push_str(&words::count(subscriptions, "subscription"));
    }
    text
}

/// Returns what has changed between two states of an entity, in words for people.
fn changes(before: &Value, after: &Value) -> Vec<String> {
    let of = |entity: &Value| {
        let properties = entity.get("properties").and_then(Value::as_object);
        properties.cloned().unwrap_or_default()
    };
    let (before, after) = (of(before), of(after));
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
fn join_connections(answer: &mut Value) {
    let all = answer.get_mut("connections").and_then(Value::as_array_mut);
    let Some(all) = all else { return };
    let mut joined: Vec<Value> = Vec::new();
    for mut connection in all.drain(..) {
        let last = joined.last_mut();
        let last = last.filter(|last| last.get("id") == connection.get("id"));
        let known = last.and_then(|last| last.get_mut("links")?.as_array_mut());
        let further = connection.get_mut("links").and_then(Value::as_array_mut);
        match (known, further) {
            (Some(known), Some(further)) => known.append(further),
            _ => joined.push(connection),
        }
    }
    all.append(&mut joined);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_what_it_changes_and_nothing_else() {
        let entity = json!({"path": "q", "properties": {
            "lock_duration": "PT30S", "max_delivery_count": 4, "forward_to": "other", "max_size_megabytes": 1024}});
        let given = properties_of(&["max_delivery_count=7".to_owned(), "forward_to=".to_owned()]);
        let given = given.ok().unwrap();
        let wanted =
            json!({"lock_duration": "PT30S", "max_delivery_count": 7, "max_size_megabytes": 1024});
        assert_eq!(Value::Object(changed("queue", &entity, &given)), wanted);
        let wanted = json!({"lock_duration": "PT30S", "max_delivery_count": 7});
        assert_eq!(
            Value::Object(changed("subscription", &entity, &given)),
            wanted
        );
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
        let entity = |lock: &str, more: Value| {
            json!({"properties": {"lock_duration": lock, "forward_to": more},
                "counts": {"active": 2, "deferred": 1, "scheduled": 0, "dead_letters": 1}})
        };
        let (before, after) = (entity("PT1M", Value::Null), entity("PT30S", "b".into()));
        let said = ["forward_to none → b", "lock_duration 1m → 30s"];
        assert_eq!(changes(&before, &after), said);
        assert_eq!(changes(&before, &before), [] as [String; 0]);
        assert_eq!(contents(&after), "3 messages and 1 dead letter");
    }
}
