//! Looking at messages.

use std::time::Duration;

use azservicebus::{ServiceBusMessageState, ServiceBusPeekedMessage};
use jitney_interop_rust::{Sdk, receive, run};
use time::OffsetDateTime;

fn numbers(messages: &[ServiceBusPeekedMessage]) -> Vec<i64> {
    messages
        .iter()
        .map(ServiceBusPeekedMessage::sequence_number)
        .collect()
}

#[test]
fn s60_a_peek_sees_every_state_and_changes_none() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s60", &["locked", "deferred", "active"]).await?;
        let later = OffsetDateTime::now_utc() + Duration::from_secs(3_600);
        let mut sender = sdk.sender("s60").await?;
        sender.schedule_message("scheduled", later).await?;
        let mut receiver = sdk.receiver("s60").await?;
        let messages = receive(&mut receiver, 2).await?;
        receiver.defer_message(&messages[1], None).await?;
        for _ in 0..2 {
            let peeked = receiver.peek_messages(10, Some(0)).await?;
            assert_eq!(numbers(&peeked), [1, 2, 3, 4]);
            let states: Vec<_> = peeked.iter().map(ServiceBusPeekedMessage::state).collect();
            let [active, deferred, scheduled] = [
                ServiceBusMessageState::Active,
                ServiceBusMessageState::Deferred,
                ServiceBusMessageState::Scheduled,
            ];
            assert_eq!(states, [active.clone(), deferred, active, scheduled]);
        }
        Ok(())
    });
}

#[test]
fn s61_a_peek_goes_on_where_the_last_one_ended() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s61", &["1", "2", "3", "4", "5", "6", "7", "8"])
            .await?;
        let mut receiver = sdk.receiver("s61").await?;
        assert_eq!(
            numbers(&receiver.peek_messages(3, Some(4)).await?),
            [4, 5, 6]
        );
        assert_eq!(numbers(&receiver.peek_messages(3, None).await?), [7, 8]);
        assert!(receiver.peek_messages(3, None).await?.is_empty());
        Ok(())
    });
}

#[test]
fn s62_a_peek_into_an_empty_queue_finds_nothing() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        assert!(
            sdk.receiver("s62")
                .await?
                .peek_messages(10, None)
                .await?
                .is_empty()
        );
        Ok(())
    });
}
