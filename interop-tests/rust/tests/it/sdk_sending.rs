//! Connecting, sending, and what a message carries.

use std::time::Duration;

use azservicebus::{CreateMessageBatchOptions, ServiceBusMessage};
use jitney_interop_rust::{
    A_WHILE, Outcome, Sdk, bodies, failure, numbers, receive, receive_nothing, receive_one, run,
};
use time::OffsetDateTime;

#[test]
fn s01_a_message_is_sent_received_and_completed() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s01", &["hello"]).await?;
        let mut receiver = sdk.receiver("s01").await?;
        let message = receive_one(&mut receiver).await?;
        assert_eq!(message.body()?, b"hello");
        receiver.complete_message(&message).await?;
        receive_nothing(&mut receiver, A_WHILE).await
    });
}

#[test]
fn s02_an_unknown_queue_is_not_found() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let text = failure(sdk.sender("no-such-queue").await);
        assert!(text.contains("could not be found"), "{text}");
        let text = failure(sdk.receiver("no-such-queue").await);
        assert!(text.contains("could not be found"), "{text}");
        Ok(())
    });
}

#[test]
fn s08_every_property_comes_back() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let sent = message_with_properties()?;
        sdk.send_message("s08", sent.clone()).await?;
        let mut receiver = sdk.receiver("s08").await?;
        let received = receive_one(&mut receiver).await?;
        assert_eq!(received.message_id(), sent.message_id());
        assert_eq!(received.correlation_id(), sent.correlation_id());
        assert_eq!(received.content_type(), sent.content_type());
        assert_eq!(received.subject(), sent.subject());
        assert_eq!(received.to(), sent.to());
        assert_eq!(received.reply_to(), sent.reply_to());
        assert_eq!(received.reply_to_session_id(), sent.reply_to_session_id());
        assert_eq!(received.partition_key(), sent.partition_key());
        assert_eq!(received.time_to_live(), sent.time_to_live());
        assert_eq!(
            received.application_properties(),
            sent.application_properties()
        );
        Ok(())
    });
}

#[test]
fn s10_a_batch_arrives_in_order() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut sender = sdk.sender("s10").await?;
        let mut batch = sender.create_message_batch(CreateMessageBatchOptions::default())?;
        let wanted: Vec<String> = (1..=100).map(|index| format!("message {index}")).collect();
        for body in &wanted {
            batch.try_add_message(body.clone())?;
        }
        sender.send_message_batch(batch).await?;
        let mut receiver = sdk.receiver("s10").await?;
        let messages = receive(&mut receiver, 100).await?;
        assert_eq!(bodies(&messages), wanted);
        assert_eq!(numbers(&messages), (1..=100).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn s11_small_and_large_messages_come_back() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut sender = sdk.sender("s11").await?;
        let mut receiver = sdk.receiver("s11").await?;
        for size in [1, 64 * 1024, 200 * 1024] {
            let body: Vec<u8> = (0..=250).cycle().take(size).collect();
            sender.send_message(body.clone()).await?;
            let message = receive_one(&mut receiver).await?;
            assert!(message.body()? == body, "{size} bytes");
            receiver.complete_message(&message).await?;
        }
        Ok(())
    });
}

#[test]
fn s15_numbers_are_1_to_7_in_the_order_sent() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s15", &["1", "2", "3"]).await?;
        let mut sender = sdk.sender("s15").await?;
        sender.send_messages(["4", "5", "6"]).await?;
        sender.send_message("7").await?;
        let mut receiver = sdk.receiver("s15").await?;
        let messages = receive(&mut receiver, 7).await?;
        assert_eq!(bodies(&messages), ["1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(numbers(&messages), [1, 2, 3, 4, 5, 6, 7]);
        Ok(())
    });
}

#[test]
fn s17_a_locked_message_carries_its_stamps() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut sent = ServiceBusMessage::from("stamped");
        sent.set_time_to_live(Duration::from_secs(600))?;
        sdk.send_message("s17", sent).await?;
        let mut receiver = sdk.receiver("s17").await?;
        let message = receive_one(&mut receiver).await?;
        let now = OffsetDateTime::now_utc();
        assert_eq!(message.sequence_number(), 1);
        assert!((message.enqueued_time() - now).abs() < Duration::from_secs(3));
        let locked_until = message.locked_until().expect("a lock");
        assert!((locked_until - now - Duration::from_secs(30)).abs() < Duration::from_secs(3));
        // This SDK shows one more than the wire: 1 at the first delivery.
        assert_eq!(message.delivery_count(), Some(1));
        assert_eq!(message.time_to_live(), Some(Duration::from_secs(600)));
        assert_eq!(
            message.expires_at(),
            message.enqueued_time() + Duration::from_secs(600)
        );
        Ok(())
    });
}

fn message_with_properties() -> Outcome<ServiceBusMessage> {
    let mut message = ServiceBusMessage::new("all");
    message.set_message_id("id-1")?;
    message.set_correlation_id(Some("correlation".to_owned()));
    message.set_content_type(Some("text/plain".to_owned()));
    message.set_subject(Some("subject".to_owned()));
    message.set_to(Some("to".to_owned()));
    message.set_reply_to(Some("reply-to".to_owned()));
    message.set_reply_to_session_id(Some("reply-to-session".to_owned()))?;
    message.set_partition_key(Some("key".to_owned()))?;
    message.set_time_to_live(Duration::from_secs(600))?;
    let properties = message
        .application_properties_mut()
        .get_or_insert_with(Default::default);
    properties.insert("string".to_owned(), "ü".into());
    properties.insert("bool".to_owned(), true.into());
    properties.insert("int".to_owned(), (-1_i32).into());
    properties.insert("long".to_owned(), (1_i64 << 40).into());
    properties.insert("ulong".to_owned(), u64::MAX.into());
    properties.insert("double".to_owned(), 1.5_f64.into());
    Ok(message)
}
