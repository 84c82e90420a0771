//! Sending, scheduling, and cancelling what is scheduled.

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Instant;

use fe2o3_amqp::link::Sender;
use fe2o3_amqp::types::messaging::message::__private::Serializable;
use fe2o3_amqp::types::messaging::{MessageId, Outcome};
use fe2o3_amqp::types::primitives::{Array, Binary, OrderedMap, Timestamp as AmqpTime, Value};
use jiff::Timestamp;
use serde_json::json;

use super::arguments::MessageArgs;
use super::connection::Connected;
use super::management::{elements, field, patiently, unique, whole};
use super::message::{AnyMessage, annotate, message};
use super::refusal::{of_rejection, of_send, of_sender};
use crate::cli::error::CommandError;
use crate::cli::shell::Output;
use crate::cli::words;
use crate::system::print;

/// Messages that are sent before the outcome of the first is awaited.
const WINDOW: usize = 64;
/// Messages of one request to schedule.
const SCHEDULED_MAX: usize = 100;

/// Makes the messages of the arguments.
pub(super) fn messages(args: &MessageArgs) -> Result<Vec<AnyMessage>, CommandError> {
    let body = match (&args.body, &args.file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => {
            let read = std::fs::read(file);
            read.map_err(|error| CommandError::of_file(file, &error))?
        }
        (None, None) => {
            let mut read = Vec::new();
            if std::io::stdin().is_terminal() {
                print::complain("The body is read from standard input; Ctrl-D ends it.");
            }
            let done = std::io::stdin().lock().read_to_end(&mut read);
            done.map_err(|error| CommandError::Usage(format!("standard input: {error}")))?;
            if read.is_empty() {
                let text = "Standard input is empty, and nothing was sent. Give the body with --body TEXT or --file FILE; --body '' \
                            is an empty one.";
                return Err(CommandError::Usage(text.to_owned()));
            }
            read
        }
    };
    let bodies = if args.lines {
        let mut lines: Vec<_> = body.split(|byte| *byte == b'\n').collect();
        // The last line may end with a line feed or not.
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        lines.into_iter().map(<[u8]>::to_vec).collect()
    } else {
        vec![body]
    };
    let mut made = Vec::new();
    for _ in 0..args.count {
        for body in &bodies {
            made.push(message(args, body.clone())?);
        }
    }
    Ok(made)
}

/// Sends messages. All that were sent before an error are accepted.
pub(super) async fn send(
    to: &mut Connected,
    messages: Vec<AnyMessage>,
    output: Output,
) -> Result<ExitCode, CommandError> {
    let began = Instant::now();
    let place = to.entity.clone();
    let sender = Sender::attach(
        &mut to.session,
        format!("send-{}", unique()),
        place.as_str(),
    );
    let sender = patiently(&place, sender).await?;
    let mut sender = sender.map_err(|error| of_sender(&place, &error))?;
    let mut accepted = 0;
    let mut messages = messages.into_iter();
    loop {
        let mut sent = Vec::new();
        for message in messages.by_ref().take(WINDOW) {
            let begun = patiently(&place, sender.send_batchable(message)).await?;
            sent.push(begun.map_err(|error| of_send(&place, &error))?);
        }
        if sent.is_empty() {
            break;
        }
        for outcome in sent {
            let outcome = patiently(&place, outcome).await?;
            let outcome = outcome.map_err(|error| of_send(&place, &error));
            let refused = match outcome {
                Ok(Outcome::Accepted(_)) => {
                    accepted += 1;
                    continue;
                }
                Ok(Outcome::Rejected(rejected)) => of_rejection(&place, rejected.error.as_ref()),
                Ok(_) => of_rejection(&place, None),
                Err(error) => error,
            };
            if accepted > 0 {
                let accepted = words::count(accepted, "message");
                print::complain(format_args!(
                    "Sent {accepted} to {place} before that failed:"
                ));
            }
            return Err(refused);
        }
    }
    let _ = patiently(&place, sender.close()).await;
    match output {
        Output::Json => print::json_line(&json!({"entity": place, "sent": accepted})),
        Output::Table => print::line(format_args!(
            "Sent {} to {place} in {}.",
            words::count(accepted, "message"),
            words::taken(began.elapsed())
        )),
    }
    Ok(ExitCode::SUCCESS)
}

/// Schedules messages, and prints their sequence numbers.
pub(super) async fn schedule(
    to: &mut Connected,
    messages: Vec<AnyMessage>,
    at: Timestamp,
    output: Output,
) -> Result<ExitCode, CommandError> {
    let place = to.entity.clone();
    let requests = to.management().await?;
    for some in messages.chunks(SCHEDULED_MAX) {
        let mut list = Vec::new();
        for message in some {
            list.push(scheduled(&place, message.clone(), at)?);
        }
        let body = vec![("messages", Value::List(list))];
        let response = requests.call("schedule-message", None, body).await?;
        for number in elements(field(&response.body, "sequence-numbers")) {
            let number = whole(&number).unwrap_or_default();
            match output {
                Output::Table => print::line(number),
                Output::Json => print::json_line(&json!({"sequence_number": number})),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the entry of a message in the request that schedules it.
fn scheduled(place: &str, mut message: AnyMessage, at: Timestamp) -> Result<Value, CommandError> {
    let time = AmqpTime::from_milliseconds(at.as_millisecond());
    annotate(
        &mut message,
        "x-opt-scheduled-enqueue-time",
        Value::Timestamp(time),
    );
    let properties = message.properties.get_or_insert_default();
    let id = properties
        .message_id
        .get_or_insert_with(|| MessageId::String(unique()));
    let mut entry = OrderedMap::new();
    let mut add = |name: &str, value| entry.insert(Value::String(name.to_owned()), value);
    if let MessageId::String(id) = id {
        add("message-id", Value::String(id.clone()));
    }
    if let Some(session) = &properties.group_id {
        add("session-id", Value::String(session.clone()));
    }
    let annotations = message.message_annotations.iter();
    for (name, value) in annotations.flat_map(|all| all.0.iter()) {
        if *name == "x-opt-partition-key".to_owned().into() {
            add("partition-key", value.clone());
        }
    }
    let bytes = serde_amqp::to_vec(&Serializable(message));
    let bytes = bytes.map_err(|error| CommandError::Usage(format!("{place}: {error}")))?;
    add("message", Value::Binary(Binary::from(bytes)));
    Ok(Value::Map(entry))
}

/// Cancels scheduled messages.
pub(super) async fn cancel(
    to: &mut Connected,
    numbers: &[i64],
    output: Output,
) -> Result<ExitCode, CommandError> {
    let place = to.entity.clone();
    let requests = to.management().await?;
    let body = vec![("sequence-numbers", longs(numbers))];
    requests
        .call("cancel-scheduled-message", None, body)
        .await?;
    match output {
        Output::Json => print::json_line(&json!({"entity": place, "cancelled": numbers})),
        Output::Table => print::line(format_args!(
            "Cancelled {} of {place}.",
            words::count(words::whole(numbers.len()), "scheduled message")
        )),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns sequence numbers as an array.
pub(super) fn longs(numbers: &[i64]) -> Value {
    let numbers: Vec<Value> = numbers.iter().copied().map(Value::Long).collect();
    Value::Array(Array(numbers))
}
