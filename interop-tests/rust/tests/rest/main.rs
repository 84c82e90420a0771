//! Microsoft's own Rust client of the time before there was one for AMQP: `azure_messaging_servicebus`, which asks over
//! HTTP. It always goes to `https://NAMESPACE.servicebus.windows.net`; the HTTP client that it is given goes to the
//! broker's HTTP port instead.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use azure_core_rest::{HttpClient, Request, Response, StatusCode, Url, headers::HeaderName};
use azure_messaging_servicebus::service_bus::{
    PeekLockResponse, QueueClient, SendMessageOptions, SettableBrokerProperties,
    SubscriptionReceiver, TopicClient,
};
use time::OffsetDateTime;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const DEADLINE: Duration = Duration::from_secs(60);
/// What a receive may wait, as the broker is told.
const WAIT: Option<Duration> = Some(Duration::from_secs(10));
const RULE: &str = "RootManageSharedAccessKey";
const KEY: &str = "SAS_KEY_VALUE";

/// Hands requests to the broker's HTTP port, whatever host they are for.
#[derive(Debug)]
struct There {
    client: Arc<dyn HttpClient>,
    base: Url,
}

#[async_trait::async_trait]
impl HttpClient for There {
    async fn execute_request(&self, request: &Request) -> azure_core_rest::Result<Response> {
        let mut request = request.clone();
        let (path, query) = (
            request.url().path().to_owned(),
            request.url().query().map(str::to_owned),
        );
        let url = request.url_mut();
        *url = self.base.clone();
        url.set_path(&path);
        url.set_query(query.as_deref());
        self.client.execute_request(&request).await
    }
}

fn there() -> Outcome<Arc<dyn HttpClient>> {
    let port = std::env::var("JITNEY_HTTP_PORT")?;
    let base = Url::parse(&format!("http://localhost:{port}/"))?;
    let client = azure_core_rest::new_http_client();
    Ok(Arc::new(There { client, base }))
}

fn queue(name: &str) -> Outcome<QueueClient> {
    Ok(QueueClient::new(
        there()?,
        "jitney",
        name,
        RULE,
        KEY.to_owned(),
    )?)
}

fn topic(name: &str) -> Outcome<TopicClient> {
    Ok(TopicClient::new(
        there()?,
        "jitney",
        name,
        RULE,
        KEY.to_owned(),
    )?)
}

fn run(test: impl Future<Output = Outcome>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let outcome = runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await });
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{error} {error:?}"),
        Err(_) => panic!("not finished after {DEADLINE:?}"),
    }
}

/// The status of a refusal.
fn refused<T>(result: azure_core_rest::Result<T>) -> StatusCode {
    let Err(error) = result else {
        panic!("it succeeded")
    };
    error
        .as_http_error()
        .expect("an answer of the broker")
        .status()
}

async fn locked(queue: &QueueClient) -> Outcome<PeekLockResponse> {
    let message = queue.peek_lock_message2(WAIT).await?;
    assert_eq!(message.status(), &StatusCode::Created);
    Ok(message)
}

#[test]
fn s341_a_message_is_sent_and_received_and_deleted() {
    run(async {
        let queue = queue("s341r")?;
        for text in ["one", "two ü"] {
            queue.send_message(text, None).await?;
        }
        assert_eq!(queue.receive_and_delete_message().await?, "one");
        assert_eq!(queue.receive_and_delete_message().await?, "two ü");
        let nothing = queue
            .peek_lock_message2(Some(Duration::from_secs(1)))
            .await?;
        assert_eq!(
            (nothing.status(), &*nothing.body()),
            (&StatusCode::NoContent, "")
        );
        Ok(())
    });
}

#[test]
fn s342_a_locked_message_is_deleted_unlocked_or_renewed() {
    run(async {
        let queue = queue("s342")?;
        let sent = OffsetDateTime::now_utc() - Duration::from_secs(2);
        queue.send_message("1", None).await?;
        let first = locked(&queue).await?;
        let properties = first.broker_properties().ok_or("broker properties")?;
        assert_eq!(
            (properties.delivery_count, properties.sequence_number),
            (1, 1)
        );
        assert_eq!(
            (&*properties.state, properties.message_id.is_empty()),
            ("Active", false)
        );
        assert!(
            properties
                .enqueued_time_utc
                .is_some_and(|time| time >= sent)
        );
        assert!(properties.locked_until_utc > OffsetDateTime::now_utc() + Duration::from_secs(50));
        // Nobody else's.
        let nothing = queue
            .peek_lock_message2(Some(Duration::from_secs(1)))
            .await?;
        assert_eq!(nothing.status(), &StatusCode::NoContent);
        first.renew_message_lock().await?;
        first.unlock_message().await?;
        let again = locked(&queue).await?;
        let again_properties = again.broker_properties().ok_or("broker properties")?;
        assert_eq!((&*again.body(), again_properties.delivery_count), ("1", 2));
        assert_ne!(again_properties.lock_token, properties.lock_token);
        // The first lock is lost.
        assert_eq!(refused(first.delete_message().await), StatusCode::NotFound);
        assert_eq!(refused(first.unlock_message().await), StatusCode::NotFound);
        again.delete_message().await?;
        assert_eq!(
            refused(again.renew_message_lock().await),
            StatusCode::NotFound
        );
        let nothing = queue
            .peek_lock_message2(Some(Duration::from_secs(1)))
            .await?;
        assert_eq!(nothing.status(), &StatusCode::NoContent);
        Ok(())
    });
}

/// Application properties come as headers; a text is in quotes.
struct Custom(HashMap<String, String>);

impl TryFrom<azure_core_rest::headers::Headers> for Custom {
    type Error = azure_core_rest::Error;

    fn try_from(headers: azure_core_rest::headers::Headers) -> Result<Self, Self::Error> {
        let mut found = HashMap::new();
        for name in ["color", "size", "urgent", "content-type"] {
            let value = headers.get_optional_string(&HeaderName::from(name));
            found.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(Self(found))
    }
}

#[test]
fn s343_properties_go_there_and_back() {
    run(async {
        let queue = queue("s343")?;
        let properties = SettableBrokerProperties {
            correlation_id: Some("correlation".to_owned()),
            message_id: Some("message".to_owned()),
            label: Some("label".to_owned()),
            reply_to: Some("reply".to_owned()),
            time_to_live: Some(Duration::from_millis(90_500)),
            to: Some("to".to_owned()),
            ..Default::default()
        };
        let custom = [("color", "\"red\""), ("size", "7"), ("urgent", "true")];
        let options = SendMessageOptions {
            content_type: Some("application/json".to_owned()),
            broker_properties: Some(properties),
            custom_properties: Some(
                custom
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
        };
        queue.send_message("{}", Some(options)).await?;
        let message = locked(&queue).await?;
        let properties = message.broker_properties().ok_or("broker properties")?;
        assert_eq!(properties.message_id, "message");
        assert!(
            (properties.time_to_live - 90.5).abs() < 0.01,
            "{}",
            properties.time_to_live
        );
        let Custom(found) = message.custom_properties()?;
        for (name, value) in custom {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(
            found.get("content-type").map(String::as_str),
            Some("application/json")
        );
        message.delete_message().await?;
        Ok(())
    });
}

#[test]
fn s344_a_message_comes_at_its_time_and_is_waited_for() {
    run(async {
        let queue = queue("s344")?;
        let due = OffsetDateTime::now_utc() + Duration::from_secs(3);
        let options = SendMessageOptions {
            broker_properties: Some(SettableBrokerProperties {
                scheduled_enqueue_time_utc: Some(due),
                ..Default::default()
            }),
            ..Default::default()
        };
        queue.send_message("later", Some(options)).await?;
        let nothing = queue
            .peek_lock_message2(Some(Duration::from_secs(1)))
            .await?;
        assert_eq!(nothing.status(), &StatusCode::NoContent);
        let message = locked(&queue).await?;
        // The time is told in whole seconds.
        assert!(OffsetDateTime::now_utc() > due - Duration::from_secs(1));
        assert_eq!(message.body(), "later");
        Ok(())
    });
}

#[test]
fn s345_topics_are_sent_to_and_subscriptions_received_from() {
    run(async {
        let topic = topic("s345t")?;
        topic.topic_sender().send_message("1", None).await?;
        let receivers: Vec<SubscriptionReceiver> = ["a", "b"]
            .map(|name| topic.subscription_receiver(name))
            .into();
        assert_eq!(receivers[0].receive_and_delete_message().await?, "1");
        let message = receivers[1].peek_lock_message2(WAIT).await?;
        assert_eq!(
            (message.status(), &*message.body()),
            (&StatusCode::Created, "1")
        );
        message.delete_message().await?;
        topic.topic_sender().send_message("2", None).await?;
        assert_eq!(receivers[0].peek_lock_message(WAIT).await?, "2");
        Ok(())
    });
}

#[test]
fn s346_what_is_not_there_is_gone() {
    run(async {
        let nowhere = queue("no-such-queue")?;
        assert_eq!(
            refused(nowhere.send_message("1", None).await),
            StatusCode::Gone
        );
        assert_eq!(
            refused(nowhere.receive_and_delete_message().await),
            StatusCode::Gone
        );
        let subscription = topic("s345t")?.subscription_receiver("no-such");
        assert_eq!(
            refused(subscription.peek_lock_message(WAIT).await),
            StatusCode::Gone
        );
        // Too large for its queue.
        let small = queue("s12")?;
        assert_eq!(
            refused(small.send_message(&"x".repeat(100 << 10), None).await),
            StatusCode::Forbidden
        );
        Ok(())
    });
}
