//! An AMQP client of a broker in a process of its own: fe2o3-amqp, another engine than the broker's.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::message::__private::Deserializable;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Data, Message, Properties, Source,
};
use fe2o3_amqp::types::primitives::SimpleValue;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use serde_amqp::Value;
use serde_amqp::primitives::OrderedMap;

use super::PATIENCE;

/// A connection to one namespace, with one session.
pub(super) struct Client {
    session: SessionHandle<()>,
    _connection: ConnectionHandle<()>,
    requests: usize,
}

/// A message, as a peek shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Peeked {
    pub(super) number: i64,
    /// 0 for active, 1 for deferred, 2 for scheduled.
    pub(super) state: i32,
    pub(super) delivery_count: u32,
    pub(super) body: Vec<u8>,
}

impl Client {
    /// Connects to the namespace that `host` names.
    pub(super) async fn connect(address: SocketAddr, host: &str) -> Self {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let connection = Connection::builder()
            .container_id("client")
            .hostname(host)
            .open_with_stream(stream);
        let mut connection = connection.await.unwrap();
        let session = Session::begin(&mut connection).await.unwrap();
        Self {
            session,
            _connection: connection,
            requests: 0,
        }
    }

    /// Sends a request to a management node, and returns the status and the body of the answer.
    pub(super) async fn request(
        &mut self,
        node: &str,
        operation: &str,
        arguments: &[(&str, Value)],
    ) -> (i32, BTreeMap<String, Value>) {
        let reply_to = format!("replies-{}", self.requests);
        self.requests += 1;
        let receiver = Receiver::builder()
            .name(format!("{reply_to} of {node}"))
            .source(node)
            .target(reply_to.clone());
        let mut receiver = receiver.attach(&mut self.session).await.unwrap();
        let name = format!("requests for {reply_to}");
        let mut sender = Sender::attach(&mut self.session, name, node).await.unwrap();
        let arguments = arguments.iter().cloned();
        let body: OrderedMap<Value, Value> = arguments
            .map(|(name, value)| (Value::String(name.to_owned()), value))
            .collect();
        let properties = Properties::builder()
            .message_id("request".to_owned())
            .reply_to(reply_to);
        let request = Message::builder()
            .properties(properties.build())
            .application_properties(
                ApplicationProperties::builder()
                    .insert("operation", operation.to_owned())
                    .build(),
            )
            .value(Value::Map(body))
            .build();
        sender.send(request).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, receiver.recv::<AmqpValue<Value>>());
        let answer = answer.await.expect("it is answered in time").unwrap();
        receiver.accept(&answer).await.unwrap();
        let told = answer.message().application_properties.as_ref().unwrap();
        let status = match told.0.get("statusCode") {
            Some(SimpleValue::Int(status)) => *status,
            other => panic!("a status is a number: {other:?}"),
        };
        let Value::Map(found) = &answer.message().body.0 else {
            return (status, BTreeMap::new());
        };
        let found = found.iter().map(|(name, value)| match name {
            Value::String(name) => (name.clone(), value.clone()),
            other => panic!("a name is a text: {other:?}"),
        });
        (status, found.collect())
    }

    /// Returns all messages of a queue.
    pub(super) async fn peek(&mut self, entity: &str) -> Vec<Peeked> {
        let mut all: Vec<Peeked> = Vec::new();
        loop {
            let from = all.last().map_or(0, |last| last.number + 1);
            let arguments = [
                ("from-sequence-number", Value::Long(from)),
                ("message-count", Value::Int(100)),
            ];
            let operation = "com.microsoft:peek-message";
            let node = format!("{entity}/$management");
            let (status, found) = self.request(&node, operation, &arguments).await;
            if status == 204 {
                return all;
            }
            assert_eq!(status, 200, "{entity}: {found:?}");
            let Some(Value::List(messages)) = found.get("messages") else {
                panic!("{entity}: {found:?}");
            };
            all.extend(messages.iter().map(peeked));
        }
    }

    /// Returns the state of a message session.
    pub(super) async fn session_state(&mut self, queue: &str, session: &str) -> Option<Vec<u8>> {
        let filter = "com.microsoft:session-filter";
        let source = Source::builder()
            .address(queue)
            .add_to_filter_using_legacy_format(filter, Value::String(session.to_owned()));
        // Without credit no message comes.
        let holder = Receiver::builder()
            .name(format!("holder of {session}"))
            .source(source.build())
            .credit_mode(CreditMode::Manual)
            .attach(&mut self.session);
        let holder = holder.await.unwrap();
        let arguments = [("session-id", Value::String(session.to_owned()))];
        let operation = "com.microsoft:get-session-state";
        let node = format!("{queue}/$management");
        let (status, mut found) = self.request(&node, operation, &arguments).await;
        assert_eq!(status, 200, "{queue}: {found:?}");
        holder.close().await.unwrap();
        match found.remove("session-state") {
            Some(Value::Binary(state)) => Some(state.into_vec()),
            _ => None,
        }
    }

    /// Sends messages to a queue or a topic.
    pub(super) async fn send(&mut self, entity: &str, bodies: &[&str]) {
        let name = format!("sender of {entity}");
        let sender = Sender::attach(&mut self.session, name, entity).await;
        let mut sender = sender.unwrap();
        for body in bodies {
            let message = Message::from(Data::from(body.as_bytes().to_vec()));
            let outcome = sender.send(message).await.unwrap();
            assert!(outcome.is_accepted(), "{outcome:?}");
        }
        sender.close().await.unwrap();
    }
}

fn peeked(value: &Value) -> Peeked {
    let Value::Map(fields) = value else {
        panic!("a message has fields: {value:?}");
    };
    let Some(Value::Binary(bytes)) = fields.get(&Value::String("message".to_owned())) else {
        panic!("it has bytes: {fields:?}");
    };
    let message = serde_amqp::from_slice::<Deserializable<Message<Body<Value>>>>(bytes);
    let message = message.unwrap().0;
    let annotations = message.message_annotations.unwrap_or_default();
    let annotation = |name: &str| {
        let found = annotations.0.iter().find(|(key, _)| match key {
            fe2o3_amqp::types::messaging::annotations::OwnedKey::Symbol(key) => key.0 == name,
            fe2o3_amqp::types::messaging::annotations::OwnedKey::Ulong(_) => false,
        });
        found.map(|(_, value)| value.clone())
    };
    let Some(Value::Long(number)) = annotation("x-opt-sequence-number") else {
        panic!("it has a number");
    };
    let state = match annotation("x-opt-message-state") {
        Some(Value::Int(state)) => state,
        None => 0,
        other => panic!("a state is a number: {other:?}"),
    };
    let body = match message.body {
        Body::Data(data) => data
            .into_iter()
            .flat_map(|data| data.0.into_vec())
            .collect(),
        other => panic!("it has data: {other:?}"),
    };
    Peeked {
        number,
        state,
        delivery_count: message.header.unwrap_or_default().delivery_count,
        body,
    }
}
