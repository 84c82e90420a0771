//! Commands that send, receive and manage messages over AMQP, in any namespace of this protocol.

mod arguments;
mod connection;
mod management;
mod message;
mod receive;
mod refusal;
mod send;
mod shown;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::error::CommandError;
use arguments::{
    AmqpArgs, CancelArgs, DeferredArgs, PeekArgs, ReceiveArgs, ScheduleArgs, SendArgs,
};
use connection::Connected;

/// A command over AMQP.
#[derive(Debug, Subcommand)]
pub(super) enum AmqpCommand {
    /// Send messages.
    Send(OverAmqp<SendArgs>),
    /// Schedule messages: print their sequence numbers.
    Schedule(OverAmqp<ScheduleArgs>),
    /// Cancel scheduled messages.
    Cancel(OverAmqp<CancelArgs>),
    /// Receive messages, print them, and settle them.
    Receive(OverAmqp<ReceiveArgs>),
    /// Receive deferred messages by their sequence numbers, print them, and settle them.
    Deferred(OverAmqp<DeferredArgs>),
    /// Show messages without a lock; nothing changes. `jitney messages list` selects by state, property or body.
    Peek(OverAmqp<PeekArgs>),
}

/// A command, and where it is carried out.
#[derive(Debug, Args)]
pub(super) struct OverAmqp<T: Args> {
    #[command(flatten)]
    command: T,
    #[command(flatten)]
    amqp: AmqpArgs,
}

impl AmqpCommand {
    pub(in crate::cli) async fn carry_out(&self) -> Result<ExitCode, CommandError> {
        match self {
            Self::Send(it) => {
                let messages = send::messages(&it.command.message)?;
                let mut to = Connected::open(&it.amqp, &it.command.message.entity).await?;
                let sent = send::send(&mut to, messages, it.amqp.output).await;
                to.close(sent).await
            }
            Self::Schedule(it) => {
                let at = it.command.time()?;
                let messages = send::messages(&it.command.message)?;
                let mut to = Connected::open(&it.amqp, &it.command.message.entity).await?;
                let done = send::schedule(&mut to, messages, at, it.amqp.output).await;
                to.close(done).await
            }
            Self::Cancel(it) => {
                let mut to = Connected::open(&it.amqp, &it.command.entity).await?;
                let done = send::cancel(&mut to, &it.command.numbers, it.amqp.output).await;
                to.close(done).await
            }
            Self::Receive(it) => {
                it.command.settling.check()?;
                let entity = it.command.place();
                let mut from = Connected::open(&it.amqp, &entity).await?;
                let done = receive::receive(&mut from, &it.command, it.amqp.output).await;
                from.close(done).await
            }
            Self::Deferred(it) => {
                it.command.settling.check()?;
                let mut from = Connected::open(&it.amqp, &it.command.place()).await?;
                let done = receive::deferred(&mut from, &it.command, it.amqp.output).await;
                from.close(done).await
            }
            Self::Peek(it) => {
                let mut from = Connected::open(&it.amqp, &it.command.place()).await?;
                let done = receive::peek(&mut from, &it.command, it.amqp.output).await;
                from.close(done).await
            }
        }
    }
}
