//! `jitney lock` and `jitney settle`: messages received by their numbers over the JSON API, and settled.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hyper::Method;
use serde_json::{Value, json};

use super::arguments::EntityQueue;
use super::error::CommandError;
use super::path::encoded;
use super::shell::Shell;
use super::table::{self, to_json};
use jitney_api::locks::{LockRequest, Outcome, Received, Settlements};

/// Lock messages by their sequence numbers, and show them with their lock tokens.
#[derive(Debug, Args)]
pub(super) struct LockArgs {
    /// The queue or the subscription.
    entity: String,
    /// The sequence numbers of active or deferred messages.
    #[arg(required = true)]
    numbers: Vec<u64>,
    /// Its dead letters, and not its messages.
    #[arg(long)]
    dead_letters: bool,
}

/// Settle locked messages, whichever client has locked them.
#[derive(Debug, Args)]
pub(super) struct SettleLocksArgs {
    /// The queue or the subscription.
    entity: String,
    /// The lock tokens.
    #[arg(required = true)]
    tokens: Vec<String>,
    /// Its dead letters, and not its messages.
    #[arg(long)]
    dead_letters: bool,
    /// What becomes of them.
    #[arg(long, value_enum)]
    outcome: OutcomeArg,
    /// Why they are dead-lettered.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// More about that.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// `--outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutcomeArg {
    /// They are removed.
    Complete,
    /// They are given back, and the deliveries count as failed.
    Abandon,
    /// They go to the dead-letter queue.
    DeadLetter,
    /// They can be received by their numbers only.
    Defer,
}

impl OutcomeArg {
    const fn outcome(self) -> Outcome {
        match self {
            Self::Complete => Outcome::Complete,
            Self::Abandon => Outcome::Abandon,
            Self::DeadLetter => Outcome::DeadLetter,
            Self::Defer => Outcome::Defer,
        }
    }
}

impl LockArgs {
    fn place(&self) -> String {
        let place = EntityQueue {
            entity: &self.entity,
            dead_letters: self.dead_letters,
        };
        place.path()
    }
}

impl SettleLocksArgs {
    fn place(&self) -> String {
        let place = EntityQueue {
            entity: &self.entity,
            dead_letters: self.dead_letters,
        };
        place.path()
    }
}

impl Shell {
    pub(super) async fn lock(&self, args: &LockArgs) -> Result<ExitCode, CommandError> {
        let place = encoded(&args.place());
        let request = LockRequest {
            sequence_numbers: args.numbers.clone(),
        };
        let body = to_json(&request);
        let path = format!("entities/{place}/lock");
        let locked = self.client.ask(Method::POST, &path, Some(&body), &[]);
        let locked: Received = locked.await?;
        self.show(&locked, "messages", &table::LOCKED);
        Ok(ExitCode::SUCCESS)
    }

    /// Settles messages; the exit code says whether all were.
    pub(super) async fn settle(&self, args: &SettleLocksArgs) -> Result<ExitCode, CommandError> {
        let place = encoded(&args.place());
        let settlements = args.tokens.iter().map(|token| {
            let mut settlement = json!({"lock_token": token, "outcome": args.outcome.outcome()});
            let texts = [("reason", &args.reason), ("description", &args.description)];
            for (name, text) in texts {
                if let (Some(text), Some(fields)) = (text, settlement.as_object_mut()) {
                    fields.insert(name.to_owned(), text.as_str().into());
                }
            }
            settlement
        });
        let settlements: Vec<Value> = settlements.collect();
        let body = json!({"settlements": settlements});
        let path = format!("entities/{place}/settle");
        let done = self.client.ask(Method::POST, &path, Some(&body), &[]);
        let done: Settlements = done.await?;
        self.show(&done, "results", &table::SETTLED);
        Ok(if done.results.iter().all(|result| result.settled) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
