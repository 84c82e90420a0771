//! What every command over the API has: a client, and the form of the output.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hyper::Method;
use serde_json::{Value, json};

use super::client::{Client, ClientArgs};
use super::error::CommandError;
use super::path::encoded;
use super::table::{self, Table};
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
pub(crate) struct Common {
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
    pub(super) fn new(common: &Common) -> Result<Self, CommandError> {
        Ok(Self {
            client: Client::new(&common.client)?,
            output: common.output,
        })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, CommandError> {
        self.client.ask(Method::GET, path, None, &[]).await
    }

    /// Shows an answer: as it is, or the list in it as a table.
    pub(super) fn show(&self, answer: &Value, list: &str, table: &Table) {
        match self.output {
            Output::Json => print::json(answer),
            Output::Table => {
                let rows = answer.get(list).and_then(Value::as_array);
                print::line(table.render(rows.map(Vec::as_slice).unwrap_or_default()));
            }
        }
    }

    /// Shows what a command has done: a sentence for people, and the answer for programs.
    pub(super) fn done(&self, answer: &Value, sentence: &str) {
        match self.output {
            Output::Json => print::json(answer),
            Output::Table => print::line(sentence),
        }
    }

    /// Shows one thing, with a line for each of its fields.
    pub(super) fn show_one(&self, answer: &Value) {
        match self.output {
            Output::Json => print::json(answer),
            Output::Table => print::line(table::fields(answer)),
        }
    }

    /// Returns a list with the entries of all its pages.
    pub(super) async fn all_pages(&self, query: &str, list: &str) -> Result<Value, CommandError> {
        let separator = if query.contains('?') { '&' } else { '?' };
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let mut page = self.get(&format!("{query}{next}")).await?;
            let found = page.get_mut(list).and_then(Value::as_array_mut);
            all.append(found.unwrap_or(&mut Vec::new()));
            let places = [
                ("next_skip", "skip"),
                ("next_after", "after"),
                ("next_before", "before"),
                ("next", "from"),
            ];
            let mut further = places.iter().filter_map(|(told, asked)| {
                let place = match page.get(told)? {
                    Value::String(text) => encoded(text),
                    place @ (Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => place.to_string(),
                };
                Some(format!("{separator}{asked}={place}"))
            });
            next = match further.next() {
                Some(further) => further,
                None => return Ok(json!({ list: all })),
            };
        }
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
