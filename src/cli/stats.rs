//! `jitney stats`: messages of entities by state.

use std::process::ExitCode;

use clap::Args;

use super::error::CommandError;
use super::path::encoded;
use super::shell::Shell;
use super::table;
use jitney_api::entities::{Entities, Entity, Kind};

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
                let entity: Entity = self.get(&format!("entities/{}", encoded(path))).await?;
                let is_topic = entity.kind == Kind::Topic;
                let mut all = vec![entity];
                if is_topic {
                    all.extend(self.subscriptions(path).await?);
                }
                all
            }
        };
        self.show_list(&entities, "entities", &table::STATS);
        Ok(ExitCode::SUCCESS)
    }

    /// Returns queues, topics, and their subscriptions behind them.
    pub(super) async fn every_entity(&self) -> Result<Vec<Entity>, CommandError> {
        let mut all = Vec::new();
        for kind in ["queue", "topic"] {
            let path = format!("entities?kind={kind}");
            for entity in self.all_pages::<Entities>(&path).await? {
                let topic = (entity.kind == Kind::Topic).then(|| entity.path.clone());
                all.push(entity);
                if let Some(topic) = topic {
                    all.extend(self.subscriptions(&topic).await?);
                }
            }
        }
        Ok(all)
    }

    async fn subscriptions(&self, topic: &str) -> Result<Vec<Entity>, CommandError> {
        let query = format!("entities?kind=subscription&topic={}", encoded(topic));
        self.all_pages::<Entities>(&query).await
    }
}
