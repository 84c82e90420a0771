//! Commands for operators and for tests: over the JSON API of a broker that runs, and over AMQP.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::arguments::{
    ActivateArgs, AuditArgs, ConnectionCommand, DeadLetterArgs, EntityCommand, ExportCommand,
    HistoryArgs, ImportCommand, JobCommand, KeyCommand, MessageCommand, MoveArgs, PurgeArgs,
    RedriveArgs, RescheduleArgs, RuleCommand, ScheduledArgs, SearchArgs, SessionCommand,
};
use super::error::CommandError;
use super::shell::{ApiArgs, Shell, block_on, ended};
use super::{amqp, attention, backup, locks, server, stats, top};
use jitney_api::entities::Kind;

/// A command for a broker that runs.
#[derive(Debug, Subcommand)]
pub(super) enum BrokerCommand {
    /// Queues.
    Queues(Remote<Sub<EntityCommand>>),
    /// Topics.
    Topics(Remote<Sub<EntityCommand>>),
    /// Subscriptions of a topic.
    Subscriptions(Remote<Sub<EntityCommand>>),
    /// Rules of a subscription.
    Rules(Remote<Sub<RuleCommand>>),
    /// Authorization rules of queues and topics, and their keys.
    Keys(Remote<Sub<KeyCommand>>),
    /// Connections and their links.
    Connections(Remote<Sub<ConnectionCommand>>),
    /// Message sessions of an entity.
    Sessions(Remote<Sub<SessionCommand>>),
    /// Jobs: changes of many messages.
    Jobs(Remote<Sub<JobCommand>>),
    /// List messages by state, property or body, or show one; nothing changes.
    Messages(Remote<Sub<MessageCommand>>),
    /// Search messages in all queues of the namespace, dead letters among them.
    Search(Remote<SearchArgs>),
    /// Count scheduled messages by the time when they become active.
    Scheduled(Remote<ScheduledArgs>),
    /// Show the last hour: messages that came, were completed and were dead-lettered.
    History(Remote<HistoryArgs>),
    /// Show what needs attention: stuck receivers, dead letters, full entities and more. The exit code is 1 if an alarm is among it.
    Attention(Remote<attention::AttentionArgs>),
    /// Show the last administrative operations.
    Audit(Remote<AuditArgs>),
    /// Write entities as a Config.json, or messages as JSON lines.
    Export(Remote<Sub<ExportCommand>>),
    /// Read entities from a Config.json, or send messages of JSON lines.
    Import(Remote<Sub<ImportCommand>>),
    /// Count dead letters by reason.
    DeadLetters(Remote<EntityArgs>),
    /// Delete messages: all, those of a state, or those that a filter selects.
    Purge(Remote<PurgeArgs>),
    /// Move messages to another entity.
    Move(Remote<MoveArgs>),
    /// Send dead letters again, to where they were dead-lettered or to another entity.
    Redrive(Remote<RedriveArgs>),
    /// Send messages to the dead-letter queue, such as the rest of a message session.
    DeadLetter(Remote<DeadLetterArgs>),
    /// Make deferred or scheduled messages active.
    Activate(Remote<ActivateArgs>),
    /// Change the time at which scheduled messages become active.
    Reschedule(Remote<RescheduleArgs>),
    /// Lock messages by their sequence numbers, and show them with their lock tokens.
    Lock(Remote<locks::LockArgs>),
    /// Settle locked messages, whichever client has locked them.
    Settle(Remote<locks::SettleLocksArgs>),
    /// Namespaces of the server, for its operator.
    Namespaces(Remote<Sub<server::NamespaceCommand>>),
    /// Show the server: its version, its process and its shards, for its operator.
    Server(Remote<server::ServerArgs>),
    /// Count the messages of entities by state: active (locked ones among them), locked, deferred, scheduled, dead letters.
    Stats(Remote<stats::StatsArgs>),
    /// Show entities, their messages and their rates, live in the terminal.
    Top(Remote<top::TopArgs>),
    /// Back up a broker that runs. One whose namespaces are in a store refuses it: the database is backed up, or a namespace is
    /// exported by `jitney store export`.
    Backup(Remote<backup::BackupArgs>),
    #[command(flatten)]
    Amqp(amqp::AmqpCommand),
}

/// A command over the JSON API.
#[derive(Debug, Args)]
pub(super) struct Remote<T: Args> {
    #[command(flatten)]
    command: T,
    #[command(flatten)]
    common: ApiArgs,
}

/// A command of several.
#[derive(Debug, Args)]
pub(super) struct Sub<T: Subcommand> {
    #[command(subcommand)]
    command: T,
}

/// An entity.
#[derive(Debug, Args)]
pub(super) struct EntityArgs {
    /// The queue or the subscription.
    entity: String,
}

/// Carries a command out. The exit code is 0 if it is done, 1 if the broker refuses it or a job leaves messages, 2 if it was
/// called wrongly, 3 if the broker cannot be reached, and 4 if what it names is not there.
pub(crate) fn run(command: &BrokerCommand) -> ExitCode {
    ended(block_on(command.carry_out()))
}

impl BrokerCommand {
    async fn carry_out(&self) -> Result<ExitCode, CommandError> {
        let of = Shell::new;
        match self {
            Self::Queues(it) => {
                of(&it.common)?
                    .entities(Kind::Queue, &it.command.command)
                    .await
            }
            Self::Topics(it) => {
                of(&it.common)?
                    .entities(Kind::Topic, &it.command.command)
                    .await
            }
            Self::Subscriptions(it) => {
                let shell = of(&it.common)?;
                shell
                    .entities(Kind::Subscription, &it.command.command)
                    .await
            }
            Self::Rules(it) => of(&it.common)?.rules(&it.command.command).await,
            Self::Keys(it) => of(&it.common)?.keys(&it.command.command).await,
            Self::Search(it) => of(&it.common)?.search(&it.command).await,
            Self::Scheduled(it) => of(&it.common)?.scheduled(&it.command).await,
            Self::History(it) => of(&it.common)?.history(&it.command).await,
            Self::Attention(it) => of(&it.common)?.attention(&it.command).await,
            Self::Audit(it) => of(&it.common)?.audit(&it.command).await,
            Self::Export(it) => of(&it.common)?.export(&it.command.command).await,
            Self::Import(it) => of(&it.common)?.import(&it.command.command).await,
            Self::Connections(it) => of(&it.common)?.connections(&it.command.command).await,
            Self::Sessions(it) => of(&it.common)?.sessions(&it.command.command).await,
            Self::Jobs(it) => of(&it.common)?.jobs(&it.command.command).await,
            Self::Messages(it) => of(&it.common)?.messages(&it.command.command).await,
            Self::DeadLetters(it) => of(&it.common)?.dead_letters(&it.command.entity).await,
            Self::Purge(it) => of(&it.common)?.purge(&it.command).await,
            Self::Move(it) => of(&it.common)?.move_messages(&it.command).await,
            Self::Redrive(it) => of(&it.common)?.redrive(&it.command).await,
            Self::DeadLetter(it) => of(&it.common)?.dead_letter(&it.command).await,
            Self::Activate(it) => of(&it.common)?.activate(&it.command).await,
            Self::Reschedule(it) => of(&it.common)?.reschedule(&it.command).await,
            Self::Lock(it) => of(&it.common)?.lock(&it.command).await,
            Self::Settle(it) => of(&it.common)?.settle(&it.command).await,
            Self::Namespaces(it) => of(&it.common)?.namespaces(&it.command.command).await,
            Self::Server(it) => of(&it.common)?.server(&it.command).await,
            Self::Stats(it) => of(&it.common)?.stats(&it.command).await,
            Self::Top(it) => of(&it.common)?.top(&it.command).await,
            Self::Backup(it) => of(&it.common)?.back_up(&it.command).await,
            Self::Amqp(command) => Box::pin(command.carry_out()).await,
        }
    }
}
