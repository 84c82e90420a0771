//! What becomes of a locked message, and of its lock.

use std::time::Duration;

use azservicebus::{ServiceBusMessage, receiver::DeadLetterOptions};
use jitney_interop_rust::{
    A_WHILE, Sdk, bodies, body, failure, numbers, receive, receive_nothing, receive_one, run,
};
use time::OffsetDateTime;

#[test]
fn s20_an_abandoned_message_comes_again_before_the_next() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s20", &["1", "2"]).await?;
        let mut receiver = sdk.receiver("s20").await?;
        let first = receive_one(&mut receiver).await?;
        receiver.abandon_message(&first, None).await?;
        let again = receive(&mut receiver, 2).await?;
        assert_eq!(
            (bodies(&again), numbers(&again)),
            (vec!["1".to_owned(), "2".to_owned()], vec![1, 2])
        );
        assert_eq!(
            (again[0].delivery_count(), again[1].delivery_count()),
            (Some(2), Some(1))
        );
        assert_ne!(again[0].lock_token(), first.lock_token());
        Ok(())
    });
}

#[test]
fn s21_an_abandon_changes_the_properties_named() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut sent = ServiceBusMessage::new("changed");
        let properties = sent
            .application_properties_mut()
            .get_or_insert_with(Default::default);
        properties.insert("attempt".to_owned(), 0_i32.into());
        properties.insert("kept".to_owned(), "kept".into());
        sdk.send_message("s21", sent).await?;
        let mut receiver = sdk.receiver("s21").await?;
        let message = receive_one(&mut receiver).await?;
        let changes = [("attempt".to_owned(), 1_i32.into())].into_iter().collect();
        receiver.abandon_message(&message, Some(changes)).await?;
        let again = receive_one(&mut receiver).await?;
        let properties = again.application_properties().expect("properties");
        assert_eq!(properties.get("attempt"), Some(&1_i32.into()));
        assert_eq!(properties.get("kept"), Some(&"kept".into()));
        Ok(())
    });
}

#[test]
fn s22_a_dead_letter_carries_its_reason_and_description() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s22", &["dead"]).await?;
        let mut receiver = sdk.receiver("s22").await?;
        let message = receive_one(&mut receiver).await?;
        let options = DeadLetterOptions {
            dead_letter_reason: Some("why".to_owned()),
            dead_letter_error_description: Some("because".to_owned()),
            properties_to_modify: None,
        };
        receiver.dead_letter_message(&message, options).await?;
        receive_nothing(&mut receiver, A_WHILE).await?;
        let mut dead_letters = sdk.dead_letters("s22").await?;
        let dead = receive_one(&mut dead_letters).await?;
        assert_eq!(body(&dead), "dead");
        assert_eq!(dead.dead_letter_reason(), Some("why"));
        assert_eq!(dead.dead_letter_error_description(), Some("because"));
        Ok(dead_letters.complete_message(&dead).await?)
    });
}

#[test]
fn s23_a_message_is_dead_lettered_without_a_reason() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s23", &["dead"]).await?;
        let mut receiver = sdk.receiver("s23").await?;
        let message = receive_one(&mut receiver).await?;
        receiver
            .dead_letter_message(&message, DeadLetterOptions::default())
            .await?;
        let mut dead_letters = sdk.dead_letters("s23").await?;
        let dead = receive_one(&mut dead_letters).await?;
        assert_eq!(
            (body(&dead), dead.dead_letter_reason()),
            ("dead".to_owned(), None)
        );
        dead_letters.complete_message(&dead).await?;
        receive_nothing(&mut dead_letters, A_WHILE).await
    });
}

#[test]
fn s24_the_third_failed_delivery_is_the_last() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s24", &["dead"]).await?;
        let mut receiver = sdk.receiver("s24").await?;
        for count in 1..=3 {
            let message = receive_one(&mut receiver).await?;
            assert_eq!(message.delivery_count(), Some(count));
            receiver.abandon_message(&message, None).await?;
        }
        let mut dead_letters = sdk.dead_letters("s24").await?;
        let dead = receive_one(&mut dead_letters).await?;
        assert_eq!(dead.dead_letter_reason(), Some("MaxDeliveryCountExceeded"));
        Ok(())
    });
}

#[test]
fn s26_a_lock_that_has_expired_frees_the_message() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s26", &["again"]).await?;
        let mut receiver = sdk.receiver("s26").await?;
        let first = receive_one(&mut receiver).await?;
        let second = receive_one(&mut receiver).await?;
        assert_eq!(second.delivery_count(), Some(2));
        assert_ne!(second.lock_token(), first.lock_token());
        // This SDK does not wait for the broker's answer, and so never learns that a lock is lost.
        receiver.complete_message(&first).await?;
        receiver.complete_message(&second).await?;
        receive_nothing(&mut receiver, A_WHILE).await
    });
}

#[test]
fn s27_a_renewed_lock_lasts() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s27", &["held"]).await?;
        let mut receiver = sdk.receiver("s27").await?;
        let mut message = receive_one(&mut receiver).await?;
        for _ in 0..4 {
            receive_nothing(&mut receiver, Duration::from_secs(2)).await?;
            let before = message.locked_until();
            receiver.renew_message_lock(&mut message).await?;
            assert!(message.locked_until() > before);
            let left = message.locked_until().expect("a lock") - OffsetDateTime::now_utc();
            assert!(
                left > Duration::from_secs(3) && left < Duration::from_secs(6),
                "{left}"
            );
        }
        receiver.complete_message(&message).await?;
        receive_nothing(&mut receiver, A_WHILE).await
    });
}

#[test]
fn s28_the_lock_of_a_completed_message_is_lost() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s28", &["gone"]).await?;
        let mut receiver = sdk.receiver("s28").await?;
        let mut message = receive_one(&mut receiver).await?;
        receiver.complete_message(&message).await?;
        let text = failure(receiver.renew_message_lock(&mut message).await);
        assert!(text.contains("lock"), "{text}");
        Ok(())
    });
}
