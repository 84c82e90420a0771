//! What every test needs: a runtime with a deadline, the SDK over a plain-text port, receives that wait no longer.

pub mod endpoints;

use std::{error::Error, future::Future, time::Duration};

use azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusMessage, ServiceBusPeekedMessage,
    ServiceBusReceiveMode, ServiceBusReceivedMessage, ServiceBusReceiver,
    ServiceBusReceiverOptions, ServiceBusRetryOptions, ServiceBusRuleManager, ServiceBusSender,
    ServiceBusSenderOptions, ServiceBusSessionReceiver, ServiceBusSessionReceiverOptions,
    ServiceBusTransportType, SubQueue,
    authorization::{AzureNamedKeyCredential, AzureSasCredential},
    core::BasicRetryPolicy,
};
use endpoints::Rule;

/// How long an expected message may take.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// "Nothing arrives" means: not within this time.
pub const A_WHILE: Duration = Duration::from_secs(1);

/// No test takes longer.
const TEST_DEADLINE: Duration = Duration::from_secs(90);

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Runs a test to its end, or fails it.
///
/// On one thread: both clients send a transfer first and note that it wants an answer then, so that on several threads
/// they miss an answer that comes at once, and wait for ever.
pub fn run(test: impl Future<Output = Outcome>) {
    // Two are linked in, and rustls takes neither by itself. It is there already for all tests but the first.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(TEST_DEADLINE, test).await });
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{error}"),
        Err(_) => panic!("not finished after {TEST_DEADLINE:?}"),
    }
}

/// `localhost` and the broker's plain-text port.
pub fn host() -> String {
    let port = std::env::var("JITNEY_AMQP_PORT").expect("JITNEY_AMQP_PORT is set");
    format!("localhost:{port}")
}

/// The SDK's client: one connection, and one session on it.
///
/// A link must be kept or disposed of: when one is merely dropped, the session ends at the answer to its detach.
pub struct Sdk {
    client: ServiceBusClient<BasicRetryPolicy>,
}

impl Sdk {
    /// Connects in the SDK's own way to a port without TLS. A connection string would not do: it drops the port.
    pub async fn connect() -> Outcome<Self> {
        Self::connect_plainly(&host(), ServiceBusTransportType::AmqpTcp).await
    }

    /// Connects to a host and port without TLS.
    pub async fn connect_plainly(host: &str, transport: ServiceBusTransportType) -> Outcome<Self> {
        let client = ServiceBusClient::unsecured()
            .new_from_named_key_credential(host, named_key(endpoints::ANY), options(transport))
            .await?;
        Ok(Self { client })
    }

    /// Connects to a host and port with TLS, and a rule's key.
    pub async fn connect_securely(
        host: &str,
        rule: Rule,
        transport: ServiceBusTransportType,
    ) -> Outcome<Self> {
        let client = ServiceBusClient::new_from_named_key_credential(
            host,
            named_key(rule),
            options(transport),
        )
        .await?;
        Ok(Self { client })
    }

    /// Connects with TLS by a connection string, to the port that the SDK takes by itself.
    pub async fn connect_by_string(text: &str) -> Outcome<Self> {
        let options = options(ServiceBusTransportType::AmqpTcp);
        let client = ServiceBusClient::new_from_connection_string(text, options).await?;
        Ok(Self { client })
    }

    /// Connects to a host and port with TLS, and a signature in place of a key.
    pub async fn connect_bearing(host: &str, signature: String) -> Outcome<Self> {
        let options = options(ServiceBusTransportType::AmqpTcp);
        let credential = AzureSasCredential::new(signature);
        let client = ServiceBusClient::new_from_sas_credential(host, credential, options).await?;
        Ok(Self { client })
    }

    /// Sends messages of these sizes, and takes them back.
    pub async fn round_trip(&mut self, queue: &str, sizes: &[usize]) -> Outcome {
        let mut sender = self.sender(queue).await?;
        let mut receiver = self.receiver(queue).await?;
        for &size in sizes {
            let body: Vec<u8> = (0..=250).cycle().take(size).collect();
            sender.send_message(body.clone()).await?;
            let message = receive_one(&mut receiver).await?;
            assert!(message.body()? == body, "{size} bytes");
            receiver.complete_message(&message).await?;
        }
        sender.dispose().await?;
        Ok(receiver.dispose().await?)
    }

    pub async fn sender(&mut self, queue: &str) -> Outcome<ServiceBusSender> {
        Ok(self
            .client
            .create_sender(queue, ServiceBusSenderOptions::default())
            .await?)
    }

    pub async fn receiver(&mut self, queue: &str) -> Outcome<ServiceBusReceiver> {
        self.receiver_with(queue, ServiceBusReceiverOptions::default())
            .await
    }

    pub async fn dead_letters(&mut self, queue: &str) -> Outcome<ServiceBusReceiver> {
        let options = ServiceBusReceiverOptions {
            sub_queue: SubQueue::DeadLetter,
            ..Default::default()
        };
        self.receiver_with(queue, options).await
    }

    pub async fn receiver_with(
        &mut self,
        queue: &str,
        options: ServiceBusReceiverOptions,
    ) -> Outcome<ServiceBusReceiver> {
        Ok(self
            .client
            .create_receiver_for_queue(queue, options)
            .await?)
    }

    /// Sends messages with these bodies, one by one.
    pub async fn send(&mut self, queue: &str, bodies: &[&str]) -> Outcome {
        let mut sender = self.sender(queue).await?;
        for body in bodies {
            sender.send_message(*body).await?;
        }
        Ok(sender.dispose().await?)
    }

    /// Sends messages, one by one.
    pub async fn send_all(&mut self, address: &str, messages: Vec<ServiceBusMessage>) -> Outcome {
        let mut sender = self.sender(address).await?;
        for message in messages {
            sender.send_message(message).await?;
        }
        Ok(sender.dispose().await?)
    }

    /// All that peek finds at an address: a queue's name, a subscription's path, either's dead letters.
    pub async fn peeked(&mut self, address: &str) -> Outcome<Vec<ServiceBusPeekedMessage>> {
        let mut receiver = self.receiver(address).await?;
        let mut found: Vec<ServiceBusPeekedMessage> = Vec::new();
        loop {
            let next = found.last().map_or(1, |last| last.sequence_number() + 1);
            let page = receiver.peek_messages(100, Some(next)).await?;
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        receiver.dispose().await?;
        Ok(found)
    }

    /// The bodies of what peek finds.
    pub async fn here(&mut self, address: &str) -> Outcome<Vec<String>> {
        let found = self.peeked(address).await?;
        Ok(found.iter().map(peeked_body).collect())
    }

    /// Receives messages, and completes them.
    pub async fn take(
        &mut self,
        address: &str,
        count: u32,
    ) -> Outcome<Vec<ServiceBusReceivedMessage>> {
        let mut receiver = self.receiver(address).await?;
        let mut messages = Vec::new();
        while messages.len() < usize::try_from(count)? {
            let message = receive_one(&mut receiver).await?;
            receiver.complete_message(&message).await?;
            messages.push(message);
        }
        receiver.dispose().await?;
        Ok(messages)
    }

    pub async fn session(&mut self, address: &str, id: &str) -> Outcome<ServiceBusSessionReceiver> {
        let options = ServiceBusSessionReceiverOptions::default();
        Ok(self
            .client
            .accept_session_for_queue(address, id, options)
            .await?)
    }

    pub async fn session_in_mode(
        &mut self,
        address: &str,
        id: &str,
        receive_mode: ServiceBusReceiveMode,
    ) -> Outcome<ServiceBusSessionReceiver> {
        let options = ServiceBusSessionReceiverOptions {
            receive_mode,
            ..Default::default()
        };
        Ok(self
            .client
            .accept_session_for_queue(address, id, options)
            .await?)
    }

    pub async fn next_session(&mut self, address: &str) -> Outcome<ServiceBusSessionReceiver> {
        let options = ServiceBusSessionReceiverOptions::default();
        Ok(self
            .client
            .accept_next_session_for_queue(address, options)
            .await?)
    }

    pub async fn rules(
        &mut self,
        topic: &str,
        subscription: &str,
    ) -> Outcome<ServiceBusRuleManager> {
        Ok(self.client.create_rule_manager(topic, subscription).await?)
    }

    pub async fn send_message(&mut self, queue: &str, message: ServiceBusMessage) -> Outcome {
        let mut sender = self.sender(queue).await?;
        sender.send_message(message).await?;
        Ok(sender.dispose().await?)
    }
}

fn named_key(rule: Rule) -> AzureNamedKeyCredential {
    AzureNamedKeyCredential::new(rule.name, rule.key)
}

fn options(transport_type: ServiceBusTransportType) -> ServiceBusClientOptions {
    let retry_options = ServiceBusRetryOptions {
        max_retries: 0,
        try_timeout: DEADLINE,
        ..Default::default()
    };
    ServiceBusClientOptions {
        retry_options,
        transport_type,
        ..Default::default()
    }
}

/// Defines a test of the SDK: its name, the name of its client, and what it does.
#[macro_export]
macro_rules! scenario {
    ($name:ident, $sdk:ident, $body:block) => {
        #[test]
        fn $name() {
            $crate::run(async {
                let mut $sdk = $crate::Sdk::connect().await?;
                $body
                Ok(())
            });
        }
    };
}

/// The address of a subscription.
pub fn at(topic: &str, subscription: &str) -> String {
    format!("{topic}/Subscriptions/{subscription}")
}

/// The address of the dead letters of an address.
pub fn dead(address: &str) -> String {
    format!("{address}/$DeadLetterQueue")
}

pub fn in_session(id: &str, body: &str) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message
        .set_session_id(id.to_owned())
        .expect("a good session id");
    message
}

pub fn with_id(id: &str, body: &str) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message
        .set_message_id(id.to_owned())
        .expect("a good message id");
    message
}

pub fn short_lived(body: &str, life: Duration) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message.set_time_to_live(life).expect("a good time to live");
    message
}

/// A message with application properties.
#[macro_export]
macro_rules! with {
    ($message:expr, $($name:literal: $value:expr),+) => {{
        let mut message: azservicebus::ServiceBusMessage = $message.into();
        let properties = message
            .application_properties_mut()
            .get_or_insert_with(Default::default);
        $(properties.insert($name.to_owned(), $value.into());)+
        message
    }};
}

pub fn peeked_body(message: &ServiceBusPeekedMessage) -> String {
    String::from_utf8_lossy(message.body().expect("one data section")).into_owned()
}

/// Waits until something holds, asking again and again.
pub async fn until<T>(mut ask: impl AsyncFnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        if let Some(found) = ask().await? {
            return Ok(found);
        }
        if tokio::time::Instant::now() > end {
            return Err("it did not come about in time".into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Receives exactly `count` messages of a session.
pub async fn receive_in(
    receiver: &mut ServiceBusSessionReceiver,
    count: u32,
) -> Outcome<Vec<ServiceBusReceivedMessage>> {
    let mut messages = Vec::new();
    while messages.len() < usize::try_from(count)? {
        let message = receiver
            .receive_message_with_max_wait_time(DEADLINE)
            .await?
            .ok_or("a message of the session")?;
        messages.push(message);
    }
    Ok(messages)
}

/// Receives exactly `count` messages.
pub async fn receive(
    receiver: &mut ServiceBusReceiver,
    count: u32,
) -> Outcome<Vec<ServiceBusReceivedMessage>> {
    let messages = receiver
        .receive_messages_with_max_wait_time(count, DEADLINE)
        .await?;
    assert_eq!(
        messages.len(),
        usize::try_from(count)?,
        "{count} messages within {DEADLINE:?}"
    );
    Ok(messages)
}

pub async fn receive_one(receiver: &mut ServiceBusReceiver) -> Outcome<ServiceBusReceivedMessage> {
    Ok(receive(receiver, 1).await?.remove(0))
}

/// Checks that no message arrives for a time. This is also how a test lets time pass.
pub async fn receive_nothing(receiver: &mut ServiceBusReceiver, wait: Duration) -> Outcome {
    let message = receiver.receive_message_with_max_wait_time(wait).await?;
    assert_eq!(message.as_ref().map(body), None);
    // The SDK drains its credit and does not wait for the answer; credit that it asks for before that is spent by it. A
    // request on the same session comes after.
    receiver.peek_messages(1, Some(i64::MAX)).await?;
    Ok(())
}

pub fn body(message: &ServiceBusReceivedMessage) -> String {
    String::from_utf8_lossy(message.body().expect("one data section")).into_owned()
}

pub fn bodies(messages: &[ServiceBusReceivedMessage]) -> Vec<String> {
    messages.iter().map(body).collect()
}

pub fn numbers(messages: &[ServiceBusReceivedMessage]) -> Vec<i64> {
    messages
        .iter()
        .map(ServiceBusReceivedMessage::sequence_number)
        .collect()
}

/// The text of an error and of all that caused it; fails when there is none.
pub fn failure<T>(result: Result<T, impl Into<Box<dyn Error>>>) -> String {
    let Err(error) = result else {
        panic!("it succeeded")
    };
    let error: Box<dyn Error> = error.into();
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
