//! Commands for entities, rules, connections, message sessions and jobs.

use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::{Map, Value, json};

use super::arguments::{
    ConnectionCommand, EntityCommand, FirstRuleArgs, JobCommand, KeyCommand, RuleCommand,
    SessionCommand,
};
use super::client::{CommandError, encoded};
use super::jobs::confirm;
use super::{Output, Shell, table};
use crate::server::print;

/// How often a change is tried that others come before: each time it is made of what they have changed.
const CHANGE_ATTEMPTS: usize = 8;
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
                self.show_one(&self.get(&format!("entities/{}", encoded(path))).await?);
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
                let path = format!("entities/{}", encoded(path));
                let made = self
                    .client
                    .ask(Method::PUT, &path, Some(&body), &[])
                    .await?;
                self.show_one(&made);
            }
            EntityCommand::Update {
                path,
                properties,
                replace,
            } => {
                let given = properties_of(properties)?;
                let changed = if *replace {
                    self.replace(kind, path, given).await?
                } else {
                    self.change(kind, path, &given).await?
                };
                self.show_one(&changed);
            }
            EntityCommand::Delete { path, yes } => {
                confirm(*yes, &format!("Delete {path} with all its messages?"))?;
                let path = format!("entities/{}", encoded(path));
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
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

    /// Changes the given properties of an entity, and no other. What another client changes between the read and the write is not
    /// undone: it is read again.
    async fn change(
        &self,
        kind: &str,
        path: &str,
        given: &Map<String, Value>,
    ) -> Result<Value, CommandError> {
        if given.is_empty() {
            let text = "nothing to change: give --set NAME=VALUE, or --replace for the defaults";
            return Err(CommandError::Usage(text.to_owned()));
        }
        let path = format!("entities/{}", encoded(path));
        let mut attempts = 1;
        loop {
            let (entity, version) = self.client.versioned(&path).await?;
            let body = json!({"kind": kind, "properties": changed(kind, &entity, given)});
            let read = [("if-match", version.as_str())];
            match self
                .client
                .ask(Method::PUT, &path, Some(&body), &read)
                .await
            {
                Err(CommandError::Changed(_)) if attempts < CHANGE_ATTEMPTS => attempts += 1,
                done => return done,
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
                self.show_one(
                    &self
                        .client
                        .ask(Method::PUT, &path, Some(&body), &[])
                        .await?,
                );
            }
            RuleCommand::Delete { subscription, name } => {
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
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
            }
            KeyCommand::Rotate {
                entity,
                name,
                key,
                yes,
            } => {
                let question = format!("Replace the {key} key of {name}? Clients that use it end.");
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
                confirm(*yes, &format!("Delete {name} with its keys?"))?;
                self.client
                    .ask(Method::DELETE, &rule(entity, name), None, &[])
                    .await?;
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
                let state = state.as_ref().map(|state| STANDARD.encode(state));
                let body = json!({"state_base64": state});
                self.client
                    .ask(Method::PUT, &path, Some(&body), &[])
                    .await?;
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
            JobCommand::Show { id } => self.show_one(&self.get(&format!("jobs/{id}")).await?),
            JobCommand::Cancel { id } => {
                let path = format!("jobs/{id}");
                self.show_one(&self.client.ask(Method::DELETE, &path, None, &[]).await?);
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
            let read = read.map_err(|error| wrong(format!("--message: {error}")))?;
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

/// Reads properties: numbers and booleans are no texts.
fn properties_of(given: &[String]) -> Result<Map<String, Value>, CommandError> {
    let mut properties = Map::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else {
            let text =
                format!("--set is '{pair}'; NAME=VALUE is allowed, such as lock_duration=PT30S");
            return Err(CommandError::Usage(text));
        };
        let read = match value {
            "true" | "false" => Value::Bool(value == "true"),
            _ => value
                .parse::<u64>()
                .map_or_else(|_| Value::from(value), Value::from),
        };
        properties.insert(name.to_owned(), read);
    }
    Ok(properties)
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
}
