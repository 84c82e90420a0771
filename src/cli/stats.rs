//! `jitney stats`: messages of entities by state.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::error::CommandError;
use super::path::encoded;
use super::shell::Shell;
use super::table;

/// Count messages.
#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// A queue, a topic with its subscriptions, or a subscription. The default is all.
    entity: Option<String>,
}

impl Shell {
    pub(super) async fn stats(&self, args: &StatsArgs) -> Result<ExitCode, CommandError> {
        let entities = match &args.entity {
            None => self.every_entity().await?,
            Some(path) => {
                let entity = self.get(&format!("entities/{}", encoded(path))).await?;
                let mut all = vec![entity];
                if all.iter().any(is_topic) {
                    all.extend(self.subscriptions(path).await?);
                }
                all
            }
        };
        self.show(&json!({"entities": entities}), "entities", &table::STATS);
        Ok(ExitCode::SUCCESS)
    }

    /// Returns queues, topics, and their subscriptions behind them.
    pub(super) async fn every_entity(&self) -> Result<Vec<Value>, CommandError> {
        let mut all = Vec::new();
        for kind in ["queue", "topic"] {
            let answer = self
                .all_pages(&format!("entities?kind={kind}"), "entities")
                .await?;
            for entity in list(answer) {
                let topic = entity.get("path").and_then(Value::as_str);
                let topic = topic.filter(|_| is_topic(&entity)).map(ToOwned::to_owned);
                all.push(entity);
                if let Some(topic) = topic {
                    all.extend(self.subscriptions(&topic).await?);
                }
            }
        }
        Ok(all)
    }

    async fn subscriptions(&self, topic: &str) -> Result<Vec<Value>, CommandError> {
        let query = format!("entities?kind=subscription&topic={}", encoded(topic));
        Ok(list(self.all_pages(&query, "entities").await?))
    }
}

fn is_topic(entity: &Value) -> bool {
    entity.get("kind").and_then(Value::as_str) == Some("topic")
}

fn list(mut answer: Value) -> Vec<Value> {
    let found = answer.get_mut("entities").and_then(Value::as_array_mut);
    found.map(std::mem::take).unwrap_or_default()
}
