//! Arguments of the commands over AMQP.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use crate::cli::arguments::EntityQueue;
use crate::cli::error::CommandError;
use crate::cli::shell::Output;
use crate::cli::words;
use jitney_base::secret::Secret;

/// Which namespace, with which credential.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct AmqpArgs {
    /// A connection string: the broker and the key. The default is a broker on this machine, with the root key of --data-dir.
    #[arg(
        long,
        value_name = "STRING",
        env = "SERVICEBUS_CONNECTION_STRING",
        hide_env_values = true
    )]
    pub(super) connection: Option<Secret>,
    /// The broker's address, such as `http://localhost:5300`, if there is no connection string: each of its ports takes AMQP.
    #[arg(long, value_name = "URL", env = "JITNEY_URL")]
    pub(super) url: Option<String>,
    /// The data directory of a broker on this machine, whose root key is used if there is no connection string.
    #[arg(long, value_name = "DIR", default_value = "jitney-data")]
    pub(super) data_dir: PathBuf,
    /// A file with the certificates of the authorities to trust, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// The format of the output; JSON has one line for a message.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: Output,
}

/// What is sent.
#[derive(Debug, Args)]
pub(in crate::cli) struct MessageArgs {
    /// The queue or the topic.
    pub(super) entity: String,
    /// The body. Without --body and --file it is read from standard input.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub(super) body: Option<String>,
    /// A file with the body.
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Send each line as a message of its own.
    #[arg(long, conflicts_with = "body")]
    pub(super) lines: bool,
    /// How many times it is sent.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) count: usize,
    /// The message id.
    #[arg(long, value_name = "ID")]
    pub(super) message_id: Option<String>,
    /// The correlation id.
    #[arg(long, value_name = "ID")]
    pub(super) correlation_id: Option<String>,
    /// The message session.
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// The subject, also called label.
    #[arg(long, value_name = "TEXT")]
    pub(super) subject: Option<String>,
    /// The property `to`.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) to: Option<String>,
    /// The address for replies.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) reply_to: Option<String>,
    /// The content type, such as application/json.
    #[arg(long, value_name = "TYPE")]
    pub(super) content_type: Option<String>,
    /// The partition key.
    #[arg(long, value_name = "KEY")]
    pub(super) partition_key: Option<String>,
    /// The time to live, such as 10m or PT10M.
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(super) ttl: Option<SignedDuration>,
    /// An application property; it may be given several times. true and false are booleans, 7 is a
    /// long, 7.5 and 1e3 are doubles, all else is a string; so is what is in double quotes, as in 'NAME="7"'.
    #[arg(long = "property", value_name = "NAME=VALUE")]
    pub(super) properties: Vec<String>,
}

/// Send messages.
#[derive(Debug, Args)]
pub(in crate::cli) struct SendArgs {
    #[command(flatten)]
    pub(super) message: MessageArgs,
}

/// Schedule messages.
#[derive(Debug, Args)]
pub(in crate::cli) struct ScheduleArgs {
    #[command(flatten)]
    pub(super) message: MessageArgs,
    /// When they are enqueued, such as 2030-01-01T12:00:00Z.
    #[arg(long, value_name = "TIME", conflicts_with = "after", required_unless_present = "after", value_parser = words::time)]
    at: Option<Timestamp>,
    /// After which time they are enqueued, such as 10m or PT10M.
    #[arg(long = "in", value_name = "DURATION", value_parser = words::duration)]
    after: Option<SignedDuration>,
}

impl ScheduleArgs {
    pub(super) fn time(&self) -> Result<Timestamp, CommandError> {
        let after = self.after.unwrap_or_default();
        let at = self.at.unwrap_or_else(Timestamp::now).checked_add(after);
        at.map_err(|error| CommandError::Usage(format!("--in is too long: {error}")))
    }
}

/// Cancel scheduled messages.
#[derive(Debug, Args)]
pub(in crate::cli) struct CancelArgs {
    /// The queue or the topic.
    pub(super) entity: String,
    /// Their sequence numbers.
    #[arg(required = true, value_name = "NUMBER")]
    pub(super) numbers: Vec<i64>,
}

/// What becomes of a message that was received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Outcome {
    /// It is removed.
    #[default]
    Complete,
    /// It is unlocked, and can be received again.
    Abandon,
    /// It becomes a dead letter.
    DeadLetter,
    /// It is deferred; `jitney deferred` receives it.
    Defer,
    /// Nothing: its lock ends at its time.
    None,
}

/// How messages that were received are settled.
#[derive(Debug, Args)]
pub(in crate::cli) struct SettleArgs {
    /// What becomes of the messages.
    #[arg(long, value_enum, default_value_t, alias = "settle")]
    pub(super) outcome: Outcome,
    /// The reason of --outcome dead-letter.
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// The description of --outcome dead-letter.
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Receive and delete: the broker removes a message when it sends it, and it is lost if this command fails.
    #[arg(long, conflicts_with_all = ["outcome", "reason", "description"])]
    pub(super) delete: bool,
}

impl SettleArgs {
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let has_reason = self.reason.is_some() || self.description.is_some();
        if has_reason && self.outcome != Outcome::DeadLetter {
            let text = "--reason and --description are given; they need --outcome dead-letter";
            return Err(CommandError::Usage(text.to_owned()));
        }
        Ok(())
    }
}

/// Receive messages.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReceiveArgs {
    /// The queue, or the subscription: TOPIC/Subscriptions/NAME.
    entity: String,
    /// Receive its dead letters.
    #[arg(long)]
    dead_letters: bool,
    /// Receive from a message session.
    #[arg(long, value_name = "ID", conflicts_with = "next_session")]
    pub(super) session: Option<String>,
    /// Receive from the next message session that has messages and no receiver.
    #[arg(long)]
    pub(super) next_session: bool,
    /// The limit of how many are received.
    #[arg(long, value_name = "N", default_value_t = 1, alias = "count")]
    pub(super) limit: usize,
    /// End after this time without a message, such as 30s or PT30S.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = words::wait)]
    pub(super) wait: Duration,
    #[command(flatten)]
    pub(super) settling: SettleArgs,
}

/// Receive deferred messages.
#[derive(Debug, Args)]
pub(in crate::cli) struct DeferredArgs {
    /// The queue, or the subscription: TOPIC/Subscriptions/NAME.
    entity: String,
    /// Their sequence numbers; one that is no deferred message fails all.
    #[arg(required = true, value_name = "NUMBER")]
    pub(super) numbers: Vec<i64>,
    /// They are dead letters.
    #[arg(long)]
    dead_letters: bool,
    #[command(flatten)]
    pub(super) settling: SettleArgs,
}

/// Show messages.
#[derive(Debug, Args)]
pub(in crate::cli) struct PeekArgs {
    /// The queue, or the subscription: TOPIC/Subscriptions/NAME.
    entity: String,
    /// Show its dead letters.
    #[arg(long)]
    dead_letters: bool,
    /// Show the messages of a message session.
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// The first sequence number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) from: i64,
    /// The limit of how many are shown.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) limit: usize,
}

impl ReceiveArgs {
    pub(super) fn place(&self) -> String {
        let place = EntityQueue {
            entity: &self.entity,
            dead_letters: self.dead_letters,
        };
        place.path()
    }
}

impl DeferredArgs {
    pub(super) fn place(&self) -> String {
        let place = EntityQueue {
            entity: &self.entity,
            dead_letters: self.dead_letters,
        };
        place.path()
    }
}

impl PeekArgs {
    pub(super) fn place(&self) -> String {
        let place = EntityQueue {
            entity: &self.entity,
            dead_letters: self.dead_letters,
        };
        place.path()
    }
}
