//! Receiving: modes, waits, and queues that refuse.

use std::time::{Duration, Instant};

use azservicebus::{ServiceBusReceiveMode, ServiceBusReceiverOptions};
use jitney_interop_rust::{
    A_WHILE, DEADLINE, Sdk, bodies, failure, receive, receive_nothing, receive_one, run,
};

#[test]
fn s18_a_locked_message_is_nobody_elses() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s18", &["mine"]).await?;
        let mut receiver = sdk.receiver("s18").await?;
        let mut other = sdk.receiver("s18").await?;
        let message = receive_one(&mut receiver).await?;
        receive_nothing(&mut other, A_WHILE).await?;
        receiver.complete_message(&message).await?;
        receive_nothing(&mut other, A_WHILE).await
    });
}

#[test]
fn s19_receive_and_delete_leaves_nothing_behind() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s19", &["1", "2", "3"]).await?;
        let receive_mode = ServiceBusReceiveMode::ReceiveAndDelete;
        let options = ServiceBusReceiverOptions {
            receive_mode,
            ..Default::default()
        };
        let mut receiver = sdk.receiver_with("s19", options).await?;
        assert_eq!(bodies(&receive(&mut receiver, 3).await?), ["1", "2", "3"]);
        assert!(receiver.peek_messages(10, Some(0)).await?.is_empty());
        Ok(())
    });
}

#[test]
fn s33_a_receive_on_an_empty_queue_waits_and_the_next_one_works() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let mut receiver = sdk.receiver("s33").await?;
        let began = Instant::now();
        receive_nothing(&mut receiver, Duration::from_secs(2)).await?;
        assert!(began.elapsed() >= Duration::from_secs(2));
        for _ in 0..10 {
            receive_nothing(&mut receiver, Duration::from_millis(20)).await?;
        }
        sdk.send("s33", &["late"]).await?;
        assert_eq!(receive_one(&mut receiver).await?.body()?, b"late");
        Ok(())
    });
}

#[test]
fn s36_a_receive_brings_no_more_than_it_asked_for() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s36", &["1", "2", "3", "4", "5", "6"]).await?;
        let mut receiver = sdk.receiver("s36").await?;
        let first = receiver
            .receive_messages_with_max_wait_time(4, DEADLINE)
            .await?;
        assert_eq!(bodies(&first), ["1", "2", "3", "4"]);
        let rest = receiver
            .receive_messages_with_max_wait_time(10, A_WHILE)
            .await?;
        assert_eq!(bodies(&rest), ["5", "6"]);
        Ok(())
    });
}

#[test]
fn s64_s65_s66_a_disabled_direction_refuses_the_link() {
    run(async {
        // A connection each: a refusal may end the session (see `Sdk`).
        let refusals = [
            failure(Sdk::connect().await?.sender("s64").await),
            failure(Sdk::connect().await?.receiver("s65").await),
            failure(Sdk::connect().await?.sender("s66").await),
            failure(Sdk::connect().await?.receiver("s66").await),
        ];
        for text in refusals {
            assert!(text.contains("disabled"), "{text}");
        }
        let mut sdk = Sdk::connect().await?;
        sdk.receiver("s64").await?.dispose().await?;
        sdk.send("s65", &["taken"]).await
    });
}
