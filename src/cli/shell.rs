//! What every command over the API has: a client, and the form of the output.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::{Client, ClientArgs};
use super::error::CommandError;
use super::pages::ListPage;
use super::path::encoded;
use super::table::{self, Table, to_json};
use crate::system::print;

/// The format of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns for people.
    #[default]
    Table,
    /// JSON.
    Json,
}

/// What every command over the API has.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApiArgs {
    /// The format of the output.
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Output,
    /// Which broker, with which credential.
    #[command(flatten)]
    client: ClientArgs,
}

/// A client, and the form of the output.
pub(super) struct Shell {
    pub(super) client: Client,
    pub(super) output: Output,
}

impl Shell {
    pub(super) fn new(common: &ApiArgs) -> Result<Self, CommandError> {
        Ok(Self {
            client: Client::new(&common.client)?,
            output: common.output,
        })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        self.client.ask(Method::GET, path, None, &[]).await
    }

    /// Deletes or ends what a path names.
    pub(super) async fn remove(&self, path: &str) -> Result<(), CommandError> {
        self.client.ask(Method::DELETE, path, None, &[]).await
    }

    /// Shows an answer: as it is, or the list in it as a table.
    pub(super) fn show(&self, answer: &impl Serialize, list: &str, table: &Table) {
        let answer = to_json(answer);
        match self.output {
            Output::Json => print::json(&answer),
            Output::Table => {
                let rows = answer.get(list).and_then(Value::as_array);
                print::line(table.render(rows.map(Vec::as_slice).unwrap_or_default()));
            }
        }
    }

    /// Shows what a command has done: a sentence for people, and the answer for programs.
    pub(super) fn done(&self, answer: &impl Serialize, sentence: &str) {
        match self.output {
            Output::Json => print::json(&to_json(answer)),
            Output::Table => print::line(sentence),
        }
    }

    /// Shows one thing, with a line for each of its fields.
    pub(super) fn show_one(&self, answer: &impl Serialize) {
        let answer = to_json(answer);
        match self.output {
            Output::Json => print::json(&answer),
            Output::Table => print::line(table::fields(&answer)),
        }
    }

    /// Returns the entries of all pages of a list.
    pub(super) async fn all_pages<P: ListPage>(
        &self,
        query: &str,
    ) -> Result<Vec<P::Entry>, CommandError> {
        let separator = if query.contains('?') { '&' } else { '?' };
        let mut all = Vec::new();
        let mut place = String::new();
        loop {
            let page: P = self.get(&format!("{query}{place}")).await?;
            let next = page.next();
            all.append(&mut page.into_entries());
            let Some(next) = next else { return Ok(all) };
            place = format!("{separator}{}={}", P::FROM, encoded(&next));
        }
    }

    /// Shows the entries of a list.
    pub(super) fn show_list(&self, entries: &[impl Serialize], list: &str, table: &Table) {
        self.show(&json!({ list: entries }), list, table);
    }
}

/// Runs a future on a runtime of this thread.
///
/// # Errors
///
/// The system's, if there can be no runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future))
}

/// Returns the exit code of a command, and says why it has failed.
pub(super) fn ended(done: std::io::Result<Result<ExitCode, CommandError>>) -> ExitCode {
    match done.unwrap_or_else(|error| Err(CommandError::Unreachable(error.to_string()))) {
        Ok(code) => code,
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
