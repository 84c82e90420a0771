//! Commands about the server itself, for its operator.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::json;

use super::arguments::ConsentArgs;
use super::error::CommandError;
use super::path::encoded;
use super::shell::Shell;
use super::{carry, table, words};
use jitney_api::namespaces::{Namespace, NamespaceList};
use jitney_api::server::Server;

/// Show the server.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {}

/// What can be done with namespaces.
#[derive(Debug, Subcommand)]
pub(super) enum NamespaceCommand {
    /// List them, with their shards.
    List,
    /// Create one. The root key is good in it, if the server has one.
    Create {
        /// Its name: letters, digits and hyphens.
        name: String,
        /// A Config.json, whose entities it has from the beginning.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// The name of the namespace in the file, if that has several.
        #[arg(long, value_name = "NAME", requires = "config")]
        from: Option<String>,
    },
    /// Delete one with all its entities and messages.
    Delete {
        /// Its name.
        name: String,
        #[command(flatten)]
        consent: ConsentArgs,
    },
}

impl Shell {
    pub(super) async fn server(&self, _: &ServerArgs) -> Result<ExitCode, CommandError> {
        self.show_one(&self.get::<Server>("server").await?);
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn namespaces(
        &self,
        command: &NamespaceCommand,
    ) -> Result<ExitCode, CommandError> {
        let path = |name: &str| format!("namespaces/{}", encoded(name));
        match command {
            NamespaceCommand::List => {
                let answer: NamespaceList = self.get("namespaces").await?;
                self.show(&answer, "namespaces", &table::NAMESPACES);
            }
            NamespaceCommand::Create { name, config, from } => {
                let from = from.iter().map(|from| format!("?from={}", encoded(from)));
                let path = path(name) + &from.collect::<String>();
                let text = config.as_deref().map(carry::read).transpose()?;
                let text = text.unwrap_or_default();
                let made: Namespace = self.client.send(Method::PUT, &path, text).await?;
                self.done(&made, &format!("Created the namespace {name}."));
            }
            NamespaceCommand::Delete { name, consent } => {
                let question =
                    format!("Delete the namespace {name} with all its entities and messages?");
                consent.confirm(&question)?;
                let began = Instant::now();
                self.remove(&path(name)).await?;
                let taken = words::taken(began.elapsed());
                let said =
                    format!("Deleted the namespace {name} with all its entities in {taken}.");
                self.done(&json!({"deleted": name}), &said);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
