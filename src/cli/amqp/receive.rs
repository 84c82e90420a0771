//! Receiving messages and settling them; deferred messages; looking without a lock.

use std::process::ExitCode;
use std::time::Duration;

use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::link::{Receiver, delivery::Delivery};
use fe2o3_amqp::types::definitions::{Fields, ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::message::__private::Deserializable;
use fe2o3_amqp::types::messaging::{Body, FilterSet, Source};
use fe2o3_amqp::types::primitives::{Array, Symbol, Uuid, Value};
use tokio::time::timeout;

use super::arguments::{DeferredArgs, Outcome, PeekArgs, ReceiveArgs, SettleArgs};
use super::connection::Connected;
use super::management::{Response, elements, field, patiently, unique};
use super::message::AnyMessage;
use super::refusal::{of_receiver, of_recv};
use super::send::longs;
use super::shown;
use crate::cli::error::CommandError;
use crate::cli::shell::Output;
use crate::system::print;

/// Messages that are printed and settled together.
const BATCH: usize = 100;
/// How long a batch that has a message waits for one more.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the broker waits for a message session: less than an answer may take.
const SESSION_WAIT_MIN: Duration = Duration::from_secs(1);
const SESSION_WAIT_MAX: Duration = Duration::from_secs(25);
/// Messages that one request to peek asks for.
const PEEKED_MAX: usize = 100;

/// A message that was received, with its lock.
struct ReceivedDelivery {
    message: AnyMessage,
    token: Option<Uuid>,
}

/// Receives messages, prints them, and settles them.
pub(super) async fn receive(
    from: &mut Connected,
    args: &ReceiveArgs,
    output: Output,
) -> Result<ExitCode, CommandError> {
    let name = format!("receive-{}", unique());
    let place = from.entity.clone();
    let wait = args.wait;
    let attached = attach(from, args, &name).await?;
    let mut receiver = match attached {
        Ok(receiver) => receiver,
        Err(CommandError::Refused(text)) if args.next_session && text.contains(":timeout") => {
            shown::print(&[], output);
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error),
    };
    let mut left = args.limit;
    let mut is_first = true;
    while left > 0 {
        let batch = batch(&mut receiver, &place, left.min(BATCH), wait).await?;
        if batch.is_empty() && !is_first {
            break;
        }
        is_first = false;
        left -= batch.len();
        show(&batch, output);
        if batch.is_empty() {
            break;
        }
        settle(from, &args.settling, &batch, Some(&name)).await?;
    }
    let _ = patiently(&place, receiver.close()).await;
    Ok(ExitCode::SUCCESS)
}

/// Attaches the receiver. The outer error is that there is no answer.
async fn attach(
    from: &mut Connected,
    args: &ReceiveArgs,
    name: &str,
) -> Result<Result<Receiver, CommandError>, CommandError> {
    let mut source = Source::from(from.entity.as_str());
    let mut properties = Fields::new();
    if args.session.is_some() || args.next_session {
        let session = args.session.clone().map_or(Value::Null, Value::String);
        let mut filter = FilterSet::new();
        filter.insert(Symbol::new("com.microsoft:session-filter"), session);
        source.filter = Some(filter);
        let wait = args.wait.clamp(SESSION_WAIT_MIN, SESSION_WAIT_MAX);
        let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        properties.insert(Symbol::new("com.microsoft:timeout"), Value::Uint(wait));
    }
    let (sender_mode, receiver_mode) = if args.settling.delete {
        (SenderSettleMode::Settled, ReceiverSettleMode::First)
    } else {
        (SenderSettleMode::Unsettled, ReceiverSettleMode::Second)
    };
    let attaching = Receiver::builder()
        .name(name)
        .source(source)
        .sender_settle_mode(sender_mode)
        .receiver_settle_mode(receiver_mode)
        .credit_mode(CreditMode::Manual)
        .properties(properties)
        .verify_incoming_source(false)
        .attach(&mut from.session);
    let attached = patiently(&from.entity, attaching).await?;
    Ok(attached.map_err(|error| of_receiver(&from.entity, &error)))
}

/// Receives messages until there are enough or none comes. Credit is for one message, so that none is on its way here when
/// the command ends.
async fn batch(
    receiver: &mut Receiver,
    place: &str,
    most: usize,
    wait: Duration,
) -> Result<Vec<ReceivedDelivery>, CommandError> {
    let mut batch = Vec::new();
    while batch.len() < most {
        let credited = receiver.set_credit(1).await;
        credited.map_err(|error| CommandError::Unreachable(format!("{place}: {error}")))?;
        let patience = if batch.is_empty() {
            wait
        } else {
            PAUSE.min(wait)
        };
        let delivery = match timeout(patience, receiver.recv::<Body<Value>>()).await {
            Ok(delivery) => delivery,
            Err(_) => {
                // A message may be on its way: the broker sends it before it confirms the drain.
                let _ = receiver.drain().await;
                match timeout(PAUSE, receiver.recv::<Body<Value>>()).await {
                    Ok(delivery) => delivery,
                    Err(_) => break,
                }
            }
        };
        batch.push(received(delivery.map_err(|error| of_recv(place, &error))?));
    }
    Ok(batch)
}

fn received(delivery: Delivery<Body<Value>>) -> ReceivedDelivery {
    let tag: Result<[u8; 16], _> = delivery.delivery_tag().as_slice().try_into();
    let token = tag.ok().map(|tag| Uuid::from(lock_token(tag)));
    ReceivedDelivery {
        message: delivery.into_message(),
        token,
    }
}

/// Returns the lock token that a delivery tag is: .NET writes the first three fields of a GUID with
/// the low byte first.
fn lock_token(tag: [u8; 16]) -> [u8; 16] {
    let mut token = tag;
    for field in [0..4, 4..6, 6..8] {
        if let Some(bytes) = token.get_mut(field) {
            bytes.reverse();
        }
    }
    token
}

fn show(received: &[ReceivedDelivery], output: Output) {
    let messages: Vec<_> = received.iter().map(|it| &it.message).collect();
    shown::print(&messages, output);
}

/// Settles messages, and waits until the broker has confirmed it.
async fn settle(
    from: &mut Connected,
    args: &SettleArgs,
    received: &[ReceivedDelivery],
    link: Option<&str>,
) -> Result<(), CommandError> {
    let status = match args.outcome {
        _ if args.delete => return Ok(()),
        Outcome::None => return Ok(()),
        Outcome::Complete => "completed",
        Outcome::Abandon => "abandoned",
        Outcome::DeadLetter => "suspended",
        Outcome::Defer => "defered",
    };
    let session = received.first().and_then(|it| {
        let properties = it.message.properties.as_ref()?;
        properties.group_id.clone()
    });
    let tokens = received.iter().filter_map(|it| it.token.clone());
    let tokens: Vec<Value> = tokens.map(Value::Uuid).collect();
    let mut body = vec![
        ("disposition-status", Value::String(status.to_owned())),
        ("lock-tokens", Value::Array(Array(tokens))),
    ];
    let texts = [
        ("deadletter-reason", &args.reason),
        ("deadletter-description", &args.description),
    ];
    for (name, text) in texts {
        body.extend(text.clone().map(|text| (name, Value::String(text))));
    }
    body.extend(
        session
            .filter(|_| link.is_some())
            .map(|id| ("session-id", Value::String(id))),
    );
    let requests = from.management().await?;
    requests.call("update-disposition", link, body).await?;
    Ok(())
}

/// Receives deferred messages, prints them, and settles them.
pub(super) async fn deferred(
    from: &mut Connected,
    args: &DeferredArgs,
    output: Output,
) -> Result<ExitCode, CommandError> {
    let place = from.entity.clone();
    let mode = u32::from(!args.settling.delete);
    let body = vec![
        ("sequence-numbers", longs(&args.numbers)),
        ("receiver-settle-mode", Value::Uint(mode)),
    ];
    let requests = from.management().await?;
    let response = requests
        .call("receive-by-sequence-number", None, body)
        .await?;
    let received = messages_of(&place, &response)?;
    show(&received, output);
    if !received.is_empty() {
        settle(from, &args.settling, &received, None).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows messages without a lock.
pub(super) async fn peek(
    from: &mut Connected,
    args: &PeekArgs,
    output: Output,
) -> Result<ExitCode, CommandError> {
    let place = from.entity.clone();
    let requests = from.management().await?;
    let mut next = args.from;
    let mut all = Vec::new();
    while all.len() < args.limit {
        let count = (args.limit - all.len()).min(PEEKED_MAX);
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let mut body = vec![
            ("from-sequence-number", Value::Long(next)),
            ("message-count", Value::Int(count)),
        ];
        let session = args.session.clone().map(Value::String);
        body.extend(session.map(|session| ("session-id", session)));
        let response = requests.call("peek-message", None, body).await?;
        let some = messages_of(&place, &response)?;
        let last = some.last().and_then(|it| shown::number(&it.message));
        all.extend(some);
        match last {
            Some(last) => next = last + 1,
            None => break,
        }
    }
    show(&all, output);
    if all.len() == args.limit && output == Output::Table {
        print::line(format_args!(
            "{} shown; there may be more: --limit N shows more, --from {next} the next ones.",
            all.len()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the messages of a response.
fn messages_of(place: &str, response: &Response) -> Result<Vec<ReceivedDelivery>, CommandError> {
    if response.status == 204 {
        return Ok(Vec::new());
    }
    let unreadable = |error: &dyn std::fmt::Display| {
        CommandError::Unreachable(format!("{place}: a message in the answer: {error}"))
    };
    let entries = elements(field(&response.body, "messages"));
    let read = entries.iter().map(|entry| {
        let Some(Value::Binary(bytes)) = field(entry, "message") else {
            return Err(unreadable(&"it has no bytes"));
        };
        let message: Deserializable<AnyMessage> =
            serde_amqp::from_slice(bytes).map_err(|error| unreadable(&error))?;
        let token = match field(entry, "lock-token") {
            Some(Value::Uuid(token)) => Some(token.clone()),
            _ => None,
        };
        Ok(ReceivedDelivery {
            message: message.0,
            token,
        })
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_tag_is_a_lock_token_in_the_byte_order_of_dotnet() {
        let tag = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let token = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(lock_token(tag), token);
    }
}
