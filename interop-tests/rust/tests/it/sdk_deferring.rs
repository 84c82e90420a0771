//! Messages set aside, and received by their numbers.

use azservicebus::{ServiceBusMessageState, ServiceBusReceiver, receiver::DeadLetterOptions};
use jitney_interop_rust::{
    A_WHILE, Outcome, Sdk, bodies, body, failure, numbers, receive, receive_nothing, receive_one,
    run,
};

/// Receives `count` messages and defers them all.
async fn defer(receiver: &mut ServiceBusReceiver, count: u32) -> Outcome<Vec<i64>> {
    let messages = receive(receiver, count).await?;
    for message in &messages {
        receiver.defer_message(message, None).await?;
    }
    Ok(numbers(&messages))
}

#[test]
fn s53_deferred_messages_are_received_by_their_numbers() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s53", &["1", "2", "3"]).await?;
        let mut receiver = sdk.receiver("s53").await?;
        let deferred = defer(&mut receiver, 3).await?;
        receive_nothing(&mut receiver, A_WHILE).await?;
        let messages = receiver.receive_deferred_messages(deferred.clone()).await?;
        assert_eq!(
            (bodies(&messages), numbers(&messages)),
            (bodies_of(&["1", "2", "3"]), deferred)
        );
        for message in &messages {
            assert_eq!(message.state(), ServiceBusMessageState::Deferred);
            receiver.complete_message(message).await?;
        }
        assert!(receiver.peek_messages(10, Some(0)).await?.is_empty());
        Ok(())
    });
}

#[test]
fn s55_a_number_that_is_not_deferred_is_not_found() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s55", &["1", "2", "3"]).await?;
        let mut receiver = sdk.receiver("s55").await?;
        defer(&mut receiver, 3).await?;
        failure(receiver.receive_deferred_messages([3, 4]).await);
        failure(receiver.receive_deferred_messages([5, 6, 7]).await);
        let message = receiver
            .receive_deferred_message(3)
            .await?
            .expect("message 3");
        assert_eq!(body(&message), "3");
        Ok(())
    });
}

#[test]
fn s56_deferred_messages_are_settled_by_their_lock_tokens() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s56", &["1", "2", "3"]).await?;
        let mut receiver = sdk.receiver("s56").await?;
        let deferred = defer(&mut receiver, 3).await?;
        let mut messages = receiver.receive_deferred_messages(deferred.clone()).await?;
        receiver.abandon_message(&messages[0], None).await?;
        let options = DeadLetterOptions {
            dead_letter_reason: Some("why".to_owned()),
            ..Default::default()
        };
        receiver.dead_letter_message(&messages[1], options).await?;
        receiver.renew_message_lock(&mut messages[2]).await?;
        receiver.defer_message(&messages[2], None).await?;
        receive_nothing(&mut receiver, A_WHILE).await?;
        let again = receiver
            .receive_deferred_messages([deferred[0], deferred[2]])
            .await?;
        assert_eq!(bodies(&again), ["1", "3"]);
        let mut dead_letters = sdk.dead_letters("s56").await?;
        let dead = receive_one(&mut dead_letters).await?;
        assert_eq!(
            (body(&dead), dead.dead_letter_reason()),
            ("2".to_owned(), Some("why"))
        );
        Ok(())
    });
}

#[test]
fn s59_a_deferral_changes_the_properties_named() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s59", &["changed"]).await?;
        let mut receiver = sdk.receiver("s59").await?;
        let message = receive_one(&mut receiver).await?;
        let changes = [("attempt".to_owned(), 1_i32.into())].into_iter().collect();
        receiver.defer_message(&message, Some(changes)).await?;
        let deferred = receiver
            .receive_deferred_message(message.sequence_number())
            .await?
            .expect("the message");
        let properties = deferred.application_properties().expect("properties");
        assert_eq!(properties.get("attempt"), Some(&1_i32.into()));
        Ok(())
    });
}

fn bodies_of(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
