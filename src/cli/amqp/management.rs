//! Requests and their responses: `$cbs`, and the management nodes of entities.

use std::fmt::Display;
use std::time::Duration;

use fe2o3_amqp::link::{Receiver, Sender};
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::definitions::SenderSettleMode;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Message, MessageId, Outcome, Properties, Source, Target,
};
use fe2o3_amqp::types::primitives::{OrderedMap, SimpleValue, Value};
use tokio::time::timeout;

use super::message::AnyMessage;
use super::refusal::{of_receiver, of_recv, of_rejection, of_send, of_sender, refusal};
use crate::cli::connection_string::ConnectionString;
use crate::cli::error::CommandError;

/// How long one exchange with the broker may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The links to a node that answers requests.
#[derive(Debug)]
pub(super) struct Requests {
    node: String,
    reply_to: String,
    sender: Sender,
    receiver: Receiver,
    sent: u64,
}

/// A response.
#[derive(Debug)]
pub(super) struct Response {
    /// As in HTTP.
    pub(super) status: i64,
    pub(super) body: Value,
}

/// Sends a token that proves the right to an entity.
pub(super) async fn put_token(
    session: &mut SessionHandle<()>,
    string: &ConnectionString,
    entity: &str,
) -> Result<(), CommandError> {
    let mut requests = Requests::open(session, "$cbs").await?;
    let audience = format!("sb://{}/{entity}", string.host);
    let properties = [
        ("operation", "put-token"),
        ("type", "servicebus.windows.net:sastoken"),
        ("name", audience.as_str()),
    ];
    let token = Value::String(string.token(entity));
    let answered = requests.ask(&properties, token).await;
    requests.close().await;
    answered.map(|_| ())
}

impl Requests {
    pub(super) async fn open(
        session: &mut SessionHandle<()>,
        node: &str,
    ) -> Result<Self, CommandError> {
        let reply_to = unique();
        let sender = Sender::builder()
            .name(format!("requests-{reply_to}"))
            .source(reply_to.as_str())
            .target(node)
            .attach(session);
        let sender = patiently(node, sender).await?;
        let sender = sender.map_err(|error| of_sender(node, &error))?;
        let receiver = Receiver::builder()
            .name(reply_to.as_str())
            .source(Source::from(node))
            .target(Target::from(reply_to.as_str()))
            .sender_settle_mode(SenderSettleMode::Settled)
            .attach(session);
        let receiver = patiently(node, receiver).await?;
        let receiver = receiver.map_err(|error| of_receiver(node, &error))?;
        Ok(Self {
            node: node.to_owned(),
            reply_to,
            sender,
            receiver,
            sent: 0,
        })
    }

    /// Asks for an operation of a management node.
    pub(super) async fn call(
        &mut self,
        operation: &str,
        link: Option<&str>,
        body: Vec<(&str, Value)>,
    ) -> Result<Response, CommandError> {
        let mut map = OrderedMap::new();
        for (name, value) in body {
            map.insert(Value::String(name.to_owned()), value);
        }
        let operation = format!("com.microsoft:{operation}");
        let mut properties = vec![("operation", operation.as_str())];
        properties.extend(link.map(|link| ("associated-link-name", link)));
        self.ask(&properties, Value::Map(map)).await
    }

    async fn ask(
        &mut self,
        properties: &[(&str, &str)],
        body: Value,
    ) -> Result<Response, CommandError> {
        self.sent += 1;
        let id = self.sent.to_string();
        let mut named = OrderedMap::new();
        for (name, value) in properties {
            named.insert((*name).to_owned(), SimpleValue::String((*value).to_owned()));
        }
        let mut request: AnyMessage = Message::builder()
            .body(Body::Value(AmqpValue(body)))
            .build();
        request.properties = Some(Properties {
            message_id: Some(MessageId::String(id.clone())),
            reply_to: Some(self.reply_to.clone()),
            ..Properties::default()
        });
        request.application_properties = Some(ApplicationProperties(named));
        let node = self.node.clone();
        let sent = patiently(&node, self.sender.send(request)).await?;
        match sent.map_err(|error| of_send(&node, &error))? {
            Outcome::Accepted(_) => {}
            Outcome::Rejected(rejected) => {
                return Err(of_rejection(&node, rejected.error.as_ref()));
            }
            Outcome::Released(_) | Outcome::Modified(_) | Outcome::Declared(_) => {
                return Err(of_rejection(&node, None));
            }
        }
        loop {
            let delivery = patiently(&node, self.receiver.recv::<Body<Value>>()).await?;
            let delivery = delivery.map_err(|error| of_recv(&node, &error))?;
            let accepted = self.receiver.accept(&delivery).await;
            accepted.map_err(|error| failed(&node, error))?;
            let response = delivery.into_message();
            let correlated = response.properties.as_ref();
            let correlated = correlated.and_then(|all| all.correlation_id.as_ref());
            if correlated == Some(&MessageId::String(id.clone())) {
                return read(response);
            }
        }
    }

    pub(super) async fn close(self) {
        // The requests are answered: an error there changes nothing.
        let closing = async {
            let _ = self.sender.close().await;
            let _ = self.receiver.close().await;
        };
        let _ = timeout(PATIENCE, closing).await;
    }
}

/// Reads a response, or returns what it refuses.
fn read(response: AnyMessage) -> Result<Response, CommandError> {
    let properties = response.application_properties;
    let named = |names: [&str; 2]| {
        let all = properties.as_ref()?;
        let mut found = all.0.iter();
        found
            .find(|(name, _)| names.contains(&name.as_str()))
            .map(|(_, value)| Value::from(value.clone()))
    };
    let text = |names| match named(names) {
        Some(Value::String(text)) => Some(text),
        Some(Value::Symbol(symbol)) => Some(symbol.0),
        _ => None,
    };
    let status = named(["statusCode", "status-code"]);
    let status = status.as_ref().and_then(whole).unwrap_or_default();
    let body = match response.body {
        Body::Value(value) => value.0,
        Body::Data(_) | Body::Sequence(_) | Body::Empty => Value::Null,
    };
    if (200..300).contains(&status) {
        return Ok(Response { status, body });
    }
    let condition = text(["errorCondition", "error-condition"]);
    let condition = condition.unwrap_or_else(|| match status {
        401 => "amqp:unauthorized-access".to_owned(),
        404 => "amqp:not-found".to_owned(),
        _ => format!("status {status}"),
    });
    let description = text(["statusDescription", "status-description"]).unwrap_or_default();
    Err(refusal(&condition, &description))
}

/// Returns any integer.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "one kind of value of many is wanted"
)]
pub(super) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Ubyte(it) => Some(i64::from(*it)),
        Value::Ushort(it) => Some(i64::from(*it)),
        Value::Uint(it) => Some(i64::from(*it)),
        Value::Ulong(it) => i64::try_from(*it).ok(),
        Value::Byte(it) => Some(i64::from(*it)),
        Value::Short(it) => Some(i64::from(*it)),
        Value::Int(it) => Some(i64::from(*it)),
        Value::Long(it) => Some(*it),
        _ => None,
    }
}

/// Returns a field of a map.
pub(super) fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(map) = map else { return None };
    let mut fields = map.iter();
    fields
        .find(|(key, _)| matches!(key, Value::String(key) if key == name))
        .map(|(_, value)| value)
}

/// Returns the elements of a list or an array.
pub(super) fn elements(value: Option<&Value>) -> Vec<Value> {
    match value {
        Some(Value::List(list)) => list.clone(),
        Some(Value::Array(array)) => array.clone().into_inner(),
        _ => Vec::new(),
    }
}

fn failed(place: &str, error: impl Display) -> CommandError {
    CommandError::Unreachable(format!("{place}: {error}"))
}

/// Waits for an answer, but not for ever.
pub(super) async fn patiently<T>(
    place: &str,
    answer: impl Future<Output = T>,
) -> Result<T, CommandError> {
    let answered = timeout(PATIENCE, answer).await;
    answered.map_err(|_| failed(place, "no answer in 30 seconds"))
}

/// Returns a name that no other has.
pub(super) fn unique() -> String {
    let mut bytes = [0; 16];
    // A failure of the random source is fatal to TLS too; a repeated name fails at the broker.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}
