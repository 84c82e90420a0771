//! Messages for later.

use std::time::Duration;

use jitney_interop_rust::{
    A_WHILE, Sdk, bodies, body, failure, numbers, receive, receive_nothing, receive_one, run,
};
use time::OffsetDateTime;

fn after(seconds: u64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + Duration::from_secs(seconds)
}

#[test]
fn s45_a_scheduled_message_arrives_at_its_time_with_a_new_number() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let due = after(3);
        let mut sender = sdk.sender("s45").await?;
        assert_eq!(sender.schedule_message("later", due).await?, 1);
        let mut receiver = sdk.receiver("s45").await?;
        receive_nothing(&mut receiver, A_WHILE).await?;
        let message = receive_one(&mut receiver).await?;
        assert!(OffsetDateTime::now_utc() >= due - Duration::from_millis(1));
        assert_eq!(
            (body(&message), message.sequence_number()),
            ("later".to_owned(), 2)
        );
        assert!(message.scheduled_enqueue_time() - due < Duration::from_millis(1));
        Ok(())
    });
}

#[test]
fn s46_messages_scheduled_together_keep_their_order() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let wanted: Vec<String> = (1..=10).map(|index| index.to_string()).collect();
        let mut sender = sdk.sender("s46").await?;
        let scheduled = sender.schedule_messages(wanted.clone(), after(2)).await?;
        assert_eq!(scheduled, (1..=10).collect::<Vec<_>>());
        let mut receiver = sdk.receiver("s46").await?;
        let messages = receive(&mut receiver, 10).await?;
        assert_eq!(bodies(&messages), wanted);
        assert_eq!(numbers(&messages), (11..=20).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn s49_cancelled_messages_never_arrive() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut sender = sdk.sender("s49").await?;
        let scheduled = sender.schedule_messages(["1", "2", "3"], after(2)).await?;
        sender.cancel_scheduled_message(scheduled[0]).await?;
        sender
            .cancel_scheduled_messages(scheduled[1..].to_vec())
            .await?;
        let mut receiver = sdk.receiver("s49").await?;
        receive_nothing(&mut receiver, Duration::from_secs(3)).await
    });
}

#[test]
fn s52_what_is_not_scheduled_cannot_be_cancelled() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut sender = sdk.sender("s52").await?;
        let text = failure(sender.cancel_scheduled_message(999).await);
        assert!(
            text.contains("404") || text.to_lowercase().contains("not"),
            "{text}"
        );
        let number = sender.schedule_message("later", after(3_600)).await?;
        sender.cancel_scheduled_message(number).await?;
        failure(sender.cancel_scheduled_message(number).await);
        Ok(())
    });
}
