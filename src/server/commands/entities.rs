//! Commands for entities, rules, connections, message sessions and jobs.

use std::process::ExitCode;

use hyper::Method;
use serde_json::{Map, Value, json};

use super::arguments::{ConnectionCommand, EntityCommand, JobCommand, RuleCommand, SessionCommand};
use super::client::{CommandError, encoded};
use super::jobs::confirm;
use super::{Output, Shell, table};
use crate::server::print;

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
            EntityCommand::Create { path, properties } => {
                let body = json!({"kind": kind, "properties": properties_of(properties)?});
                let path = format!("entities/{}", encoded(path));
                let made = self
                    .client
                    .ask(Method::PUT, &path, Some(&body), &[])
                    .await?;
                self.show_one(&made);
            }
            EntityCommand::Update { path, properties } => {
                let body = json!({"kind": kind, "properties": properties_of(properties)?});
                let path = format!("entities/{}", encoded(path));
                let any = [("if-match", "*")];
                let changed = self
                    .client
                    .ask(Method::PUT, &path, Some(&body), &any)
                    .await?;
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

    pub(super) async fn rules(&self, command: &RuleCommand) -> Result<ExitCode, CommandError> {
        match command {
            RuleCommand::List { subscription } => {
                let answer = self
                    .get(&format!("entities/{}/rules", encoded(subscription)))
                    .await?;
                self.show(&answer, "rules", &table::RULES);
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
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn connections(
        &self,
        command: &ConnectionCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            ConnectionCommand::List => {
                let answer = self.get("connections").await?;
                if self.output == Output::Json {
                    self.show_one(&answer);
                } else {
                    print::line(table::connections(&answer));
                }
            }
            ConnectionCommand::Close { id } => {
                self.client
                    .ask(Method::DELETE, &format!("connections/{id}"), None, &[])
                    .await?;
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
                let answer = self.get("jobs").await?;
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

/// Reads properties: numbers and booleans are no texts.
fn properties_of(given: &[String]) -> Result<Value, CommandError> {
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
    Ok(Value::Object(properties))
}
