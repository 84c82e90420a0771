//! Why the broker refused something, or did not answer.

use std::fmt::Display;

use fe2o3_amqp::link::{
    LinkStateError, ReceiverAttachError, RecvError, SendError, SenderAttachError,
};
use fe2o3_amqp::types::definitions;

use crate::cli::error::CommandError;
use crate::cli::words;

/// Makes an error of what the broker said.
pub(super) fn refusal(condition: &str, text: &str) -> CommandError {
    let (said, is_missing) = words::said(text);
    match condition {
        _ if is_missing => CommandError::NotFound(said),
        "amqp:not-found" | "com.microsoft:message-not-found" => {
            CommandError::NotFound(format!("{said} ({condition})"))
        }
        _ => CommandError::Refused(format!("{said} ({condition})")),
    }
}

fn from_broker(error: &definitions::Error) -> CommandError {
    let condition = serde_json::to_value(&error.condition).ok();
    let condition = condition.as_ref().and_then(serde_json::Value::as_str);
    let text = error.description.as_deref().unwrap_or_default();
    refusal(condition.unwrap_or("amqp:error"), text)
}

fn other(place: &str, error: impl Display) -> CommandError {
    CommandError::Unreachable(format!("{place}: {error}"))
}

/// Makes an error of a failed attach of a sender.
pub(super) fn of_sender(place: &str, error: &SenderAttachError) -> CommandError {
    if let SenderAttachError::RemoteClosedWithError(error) = error {
        return from_broker(error);
    }
    other(place, error)
}

/// Makes an error of a failed attach of a receiver.
pub(super) fn of_receiver(place: &str, error: &ReceiverAttachError) -> CommandError {
    if let ReceiverAttachError::RemoteClosedWithError(error) = error {
        return from_broker(error);
    }
    other(place, error)
}

fn of_link(place: &str, error: &LinkStateError) -> CommandError {
    if let LinkStateError::RemoteClosedWithError(error)
    | LinkStateError::RemoteDetachedWithError(error) = error
    {
        return from_broker(error);
    }
    other(place, error)
}

/// Makes an error of a failed send.
pub(super) fn of_send(place: &str, error: &SendError) -> CommandError {
    if let SendError::LinkStateError(error) = error {
        return of_link(place, error);
    }
    // Else the message cannot be sent: it is too large, for example.
    CommandError::Refused(format!("{place}: {error}"))
}

/// Makes an error of a failed receive.
pub(super) fn of_recv(place: &str, error: &RecvError) -> CommandError {
    if let RecvError::LinkStateError(error) = error {
        return of_link(place, error);
    }
    other(place, error)
}

/// Makes an error of the state that a send ended in.
pub(super) fn of_rejection(place: &str, error: Option<&definitions::Error>) -> CommandError {
    match error {
        Some(error) => from_broker(error),
        None => CommandError::Refused(format!("{place}: the message is not accepted")),
    }
}
