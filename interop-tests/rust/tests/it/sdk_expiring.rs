//! Locks and messages that end, dead letters, and what else a queue does by itself.

use std::time::Duration;

use azservicebus::{
    ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode, ServiceBusReceiverOptions,
    receiver::DeadLetterOptions,
};
use jitney_interop_rust::{
    A_WHILE, Sdk, bodies, body, dead, failure, numbers, receive, receive_nothing, receive_one,
    scenario, short_lived, until, with,
};
use time::OffsetDateTime;

fn in_seconds(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + time::Duration::seconds(seconds)
}

scenario!(s03_names_do_not_depend_on_case, sdk, {
    sdk.send("S03", &["1"]).await?;
    assert_eq!(bodies(&sdk.take("s03", 1).await?), ["1"]);
});

scenario!(s04_senders_and_receivers_share_a_connection, sdk, {
    let mut senders = Vec::new();
    let mut receivers = Vec::new();
    for queue in ["s04", "s04b", "s04"] {
        senders.push(sdk.sender(queue).await?);
        receivers.push(sdk.receiver(queue).await?);
    }
    senders.remove(0).dispose().await?;
    receivers.remove(2).dispose().await?;
    for sender in &mut senders {
        sender.send_message("on").await?;
    }
    for receiver in &mut receivers {
        assert_eq!(body(&receive_one(receiver).await?), "on");
    }
});

scenario!(s12_a_message_that_is_too_large_is_refused, sdk, {
    // The client is told by the end of its link, and does not notice: it waits for an outcome.
    let sending = sdk.send_message("s12", vec![0; 100 << 10].into());
    let outcome = tokio::time::timeout(5 * A_WHILE, sending).await;
    assert!(!matches!(outcome, Ok(Ok(()))), "it is not sent");
    let mut other = Sdk::connect().await?;
    other.send("s12", &["small"]).await?;
    assert_eq!(other.here("s12").await?, ["small"]);
});

scenario!(s16_the_enqueued_time_stays, sdk, {
    let before = in_seconds(-1);
    sdk.send("s16", &["1"]).await?;
    let after = in_seconds(1);
    let mut receiver = sdk.receiver("s16").await?;
    let first = receive_one(&mut receiver).await?;
    assert!(before <= first.enqueued_time() && first.enqueued_time() <= after);
    receiver.abandon_message(&first, None).await?;
    let again = receive_one(&mut receiver).await?;
    assert_eq!(again.enqueued_time(), first.enqueued_time());
    assert_eq!(again.sequence_number(), first.sequence_number());
});

scenario!(s25_one_delivery_is_enough, sdk, {
    sdk.send("s25", &["1"]).await?;
    let mut receiver = sdk.receiver("s25").await?;
    let message = receive_one(&mut receiver).await?;
    receiver.abandon_message(&message, None).await?;
    assert_eq!(bodies(&sdk.take(&dead("s25"), 1).await?), ["1"]);
});

scenario!(s31_what_a_closed_receiver_held_comes_back, sdk, {
    sdk.send("s31", &["1", "2", "3"]).await?;
    let mut holder = sdk.receiver("s31").await?;
    receive_one(&mut holder).await?;
    holder.dispose().await?;
    let mut receiver = sdk.receiver("s31").await?;
    assert_eq!(bodies(&receive(&mut receiver, 2).await?), ["2", "3"]);
    let again = receive_one(&mut receiver).await?;
    assert_eq!(
        (body(&again), again.delivery_count()),
        ("1".to_owned(), Some(2))
    );
});

scenario!(s34_a_message_comes_to_who_waits, sdk, {
    let mut receiver = sdk.receiver("s34").await?;
    let later = async {
        tokio::time::sleep(A_WHILE).await;
        let mut other = Sdk::connect().await?;
        other.send("s34", &["late"]).await?;
        Ok::<_, Box<dyn std::error::Error>>(OffsetDateTime::now_utc())
    };
    let (message, sent) = tokio::join!(receive_one(&mut receiver), later);
    assert_eq!(body(&message?), "late");
    assert!(OffsetDateTime::now_utc() - sent? < time::Duration::seconds(2));
});

scenario!(s35_two_receivers_share_a_queue, sdk, {
    let all: Vec<String> = (1..=200).map(|number| number.to_string()).collect();
    let mut sender = sdk.sender("s35").await?;
    sender.send_messages(all.iter().map(String::as_str)).await?;
    let mut other = Sdk::connect().await?;
    let mut receivers = [sdk.receiver("s35").await?, other.receiver("s35").await?];
    let mut seen = Vec::new();
    for _ in 0..10 {
        for receiver in &mut receivers {
            for message in receive(receiver, 10).await? {
                receiver.complete_message(&message).await?;
                seen.push(body(&message).parse::<u32>()?);
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=200).collect::<Vec<u32>>());
});

scenario!(s38_dead_letters_are_messages_too, sdk, {
    sdk.send("s38", &["1", "2", "3"]).await?;
    let mut receiver = sdk.receiver("s38").await?;
    for message in receive(&mut receiver, 3).await? {
        receiver
            .dead_letter_message(&message, DeadLetterOptions::default())
            .await?;
    }
    for _ in 0..2 {
        assert_eq!(sdk.here(&dead("s38")).await?, ["1", "2", "3"]);
    }
    let mut letters = sdk.dead_letters("s38").await?;
    let received = receive(&mut letters, 3).await?;
    letters.complete_message(&received[0]).await?;
    letters.abandon_message(&received[1], None).await?;
    letters.defer_message(&received[2], None).await?;
    let again = receive_one(&mut letters).await?;
    assert_eq!(body(&again), "2");
    letters.complete_message(&again).await?;
    let number = received[2].sequence_number();
    let deferred = letters.receive_deferred_message(number).await?;
    let deferred = deferred.expect("the deferred one");
    assert_eq!(body(&deferred), "3");
    letters.complete_message(&deferred).await?;
    assert!(sdk.here(&dead("s38")).await?.is_empty());
});

scenario!(s39_nobody_sends_to_a_dead_letter_queue, sdk, {
    let outcome = sdk.send(&dead("s39"), &["1"]).await;
    failure(outcome);
});

scenario!(s40_nothing_expires_in_a_dead_letter_queue, sdk, {
    sdk.send("s40", &["1"]).await?;
    let mut receiver = sdk.receiver("s40").await?;
    let message = receive_one(&mut receiver).await?;
    receiver
        .dead_letter_message(&message, DeadLetterOptions::default())
        .await?;
    receive_nothing(&mut receiver, Duration::from_secs(4)).await?;
    let mut letters = sdk.dead_letters("s40").await?;
    for _ in 0..12 {
        let message = receive_one(&mut letters).await?;
        letters.abandon_message(&message, None).await?;
    }
});

scenario!(s41_an_expired_message_is_gone, sdk, {
    let short = short_lived("short", Duration::from_secs(1));
    sdk.send_all("s41", vec![short, "long".into()]).await?;
    let mut letters = sdk.dead_letters("s41").await?;
    receive_nothing(&mut letters, Duration::from_secs(2)).await?;
    let mut receiver = sdk.receiver("s41").await?;
    assert_eq!(body(&receive_one(&mut receiver).await?), "long");
    receive_nothing(&mut receiver, A_WHILE).await?;
    receive_nothing(&mut letters, A_WHILE).await?;
});

scenario!(s42_an_expired_message_is_a_dead_letter, sdk, {
    sdk.send_message("s42", short_lived("short", Duration::from_secs(1)))
        .await?;
    let mut letters = sdk.dead_letters("s42").await?;
    let message = receive_one(&mut letters).await?;
    assert_eq!(message.dead_letter_reason(), Some("TTLExpiredException"));
    assert_eq!(
        message.dead_letter_error_description(),
        Some("The message expired and was dead lettered.")
    );
});

scenario!(s43_a_queue_has_a_longest_time_to_live, sdk, {
    let hour = short_lived("hour", Duration::from_secs(3600));
    sdk.send_all("s43", vec!["none".into(), hour]).await?;
    for message in sdk.peeked("s43").await? {
        assert_eq!(message.time_to_live(), Some(Duration::from_secs(2)));
    }
    let mut letters = sdk.dead_letters("s43").await?;
    let mut found = bodies(&receive(&mut letters, 2).await?);
    found.sort();
    assert_eq!(found, ["hour", "none"]);
});

scenario!(s44_a_locked_message_may_be_settled_after_its_time, sdk, {
    sdk.send_message("s44", short_lived("short", Duration::from_secs(4)))
        .await?;
    let mut receiver = sdk.receiver("s44").await?;
    let message = receive_one(&mut receiver).await?;
    receive_nothing(&mut receiver, Duration::from_secs(5)).await?;
    receiver.complete_message(&message).await?;
    assert!(sdk.here("s44").await?.is_empty());
});

scenario!(s47_a_message_may_bring_its_time, sdk, {
    let due = in_seconds(6);
    let mut sender = sdk.sender("s47").await?;
    let later = |text: &str| {
        let mut message = ServiceBusMessage::new(text);
        message.set_scheduled_enqueue_time(due);
        message
    };
    sender.send_message(later("1")).await?;
    let mut batch = sender.create_message_batch(Default::default())?;
    batch.try_add_message(later("2")).map_err(|_| "it fits")?;
    sender.send_message_batch(batch).await?;
    let mut receiver = sdk.receiver("s47").await?;
    receive_nothing(&mut receiver, A_WHILE).await?;
    assert_eq!(bodies(&receive(&mut receiver, 2).await?), ["1", "2"]);
    assert!(OffsetDateTime::now_utc() >= due);
});

scenario!(s48_a_scheduled_message_is_peeked, sdk, {
    let due = in_seconds(3600);
    let mut sender = sdk.sender("s48").await?;
    let number = sender.schedule_message("later", due).await?;
    let found = sdk.peeked("s48").await?;
    assert_eq!((found.len(), found[0].sequence_number()), (1, number));
    assert_eq!(found[0].state(), ServiceBusMessageState::Scheduled);
    assert!((found[0].scheduled_enqueue_time() - due).abs() < time::Duration::seconds(1));
});

scenario!(s50_what_has_come_is_not_cancelled, sdk, {
    let mut sender = sdk.sender("s50").await?;
    let number = sender.schedule_message("soon", in_seconds(1)).await?;
    let mut receiver = sdk.receiver("s50").await?;
    let message = receive_one(&mut receiver).await?;
    receiver.abandon_message(&message, None).await?;
    failure(sender.cancel_scheduled_message(number).await);
    assert_eq!(sdk.here("s50").await?, ["soon"]);
});

scenario!(s51_a_time_in_the_past_is_now, sdk, {
    let mut sender = sdk.sender("s51").await?;
    sender.schedule_message("at once", in_seconds(-60)).await?;
    assert_eq!(bodies(&sdk.take("s51", 1).await?), ["at once"]);
});

scenario!(s54_deferred_messages_are_received_and_deleted, sdk, {
    sdk.send("s54", &["1", "2"]).await?;
    let mut receiver = sdk.receiver("s54").await?;
    let received = receive(&mut receiver, 2).await?;
    for message in &received {
        receiver.defer_message(message, None).await?;
    }
    let options = ServiceBusReceiverOptions {
        receive_mode: ServiceBusReceiveMode::ReceiveAndDelete,
        ..Default::default()
    };
    let mut deleting = sdk.receiver_with("s54", options).await?;
    let deferred = deleting
        .receive_deferred_messages(numbers(&received))
        .await?;
    assert_eq!(bodies(&deferred), ["1", "2"]);
    assert!(sdk.here("s54").await?.is_empty());
});

scenario!(s57_a_deferred_message_is_peeked, sdk, {
    sdk.send("s57", &["1"]).await?;
    let mut receiver = sdk.receiver("s57").await?;
    let message = receive_one(&mut receiver).await?;
    receiver.defer_message(&message, None).await?;
    let found = until(async || {
        let found = sdk.peeked("s57").await?;
        Ok(found
            .into_iter()
            .find(|each| each.state() == ServiceBusMessageState::Deferred))
    })
    .await?;
    assert_eq!(found.sequence_number(), message.sequence_number());
});

scenario!(s58_a_deferred_message_does_not_expire, sdk, {
    sdk.send_message("s58", short_lived("short", Duration::from_secs(2)))
        .await?;
    let mut receiver = sdk.receiver("s58").await?;
    let message = receive_one(&mut receiver).await?;
    receiver.defer_message(&message, None).await?;
    let mut letters = sdk.dead_letters("s58").await?;
    receive_nothing(&mut letters, Duration::from_secs(4)).await?;
    let number = message.sequence_number();
    let again = receiver.receive_deferred_message(number).await?;
    assert_eq!(again.as_ref().map(body).as_deref(), Some("short"));
});

scenario!(s63_many_messages_are_peeked_in_pages, sdk, {
    let mut sender = sdk.sender("s63").await?;
    for _ in 0..6 {
        sender
            .send_messages((0..100).map(|_| vec![b'x'; 1024]))
            .await?;
    }
    let found = sdk.peeked("s63").await?;
    let numbers: Vec<i64> = found.iter().map(|each| each.sequence_number()).collect();
    assert_eq!(numbers, (1..=600).collect::<Vec<i64>>());
});

scenario!(s67_a_full_queue_refuses, sdk, {
    let mut sender = sdk.sender("s67").await?;
    let mut accepted: u32 = 0;
    let refusal = loop {
        assert!(accepted < 30, "one is refused");
        match sender.send_message(vec![0; 100 << 10]).await {
            Ok(()) => accepted += 1,
            Err(error) => break failure::<()>(Err(error)),
        }
    };
    assert!(
        refusal.contains("resource-limit-exceeded") || refusal.contains("ResourceLimitExceeded"),
        "{refusal}"
    );
    assert_eq!(
        sdk.take("s67", accepted).await?.len(),
        usize::try_from(accepted)?
    );
    sdk.send("s67", &["again"]).await?;
});

scenario!(s309_a_thousand_unsettled_on_one_link, sdk, {
    let mut sender = sdk.sender("s309").await?;
    for hundred in 0..10 {
        let texts = (1..101).map(|number| (hundred * 100 + number).to_string());
        sender.send_messages(texts).await?;
    }
    let mut receiver = sdk.receiver("s309").await?;
    let received = receive(&mut receiver, 1000).await?;
    assert_eq!(numbers(&received), (1..=1000).collect::<Vec<i64>>());
    for index in 0..1000 {
        receiver
            .complete_message(&received[index * 7 % 1000])
            .await?;
    }
    until(async || Ok(sdk.here("s309").await?.is_empty().then_some(()))).await?;
});

scenario!(s312_a_message_of_20_mib_comes_back, sdk, {
    let large: Vec<u8> = (0..=250).cycle().take(20 << 20).collect();
    sdk.send_message("s312", large.clone().into()).await?;
    let received = sdk.take("s312", 1).await?;
    assert!(received[0].body()? == large);
});

scenario!(s13_two_senders_two_thousand_messages, sdk, {
    let mut other = Sdk::connect().await?;
    let send = async |sdk: &mut Sdk, name: &str| -> jitney_interop_rust::Outcome {
        let mut sender = sdk.sender("s13").await?;
        for hundred in 0..10 {
            let texts = (1..101).map(|number| format!("{name}{:04}", hundred * 100 + number));
            sender.send_messages(texts).await?;
        }
        Ok(sender.dispose().await?)
    };
    let (one, two) = tokio::join!(send(&mut sdk, "a"), send(&mut other, "b"));
    one.and(two)?;
    let options = ServiceBusReceiverOptions {
        prefetch_count: 100,
        ..Default::default()
    };
    let mut receiver = sdk.receiver_with("s13", options).await?;
    let mut seen = Vec::new();
    while seen.len() < 2000 {
        let message = receive_one(&mut receiver).await?;
        receiver.complete_message(&message).await?;
        seen.push(body(&message));
    }
    for name in ["a", "b"] {
        let mine: Vec<&String> = seen.iter().filter(|text| text.starts_with(name)).collect();
        assert!(mine.len() == 1000 && mine.is_sorted());
    }
});

scenario!(s310_a_batch_is_filled, sdk, {
    let mut sender = sdk.sender("s310").await?;
    for (size, least) in [(1000, 800), (10, 4000)] {
        let mut batch = sender.create_message_batch(Default::default())?;
        // The service takes some thousands of messages in a batch, however small.
        while batch.len() < 4000 && batch.try_add_message(vec![b'x'; size]).is_ok() {}
        let count = batch.len();
        assert!(count >= least, "{count} of {size} bytes");
        sender.send_message_batch(batch).await?;
        let options = ServiceBusReceiverOptions {
            receive_mode: ServiceBusReceiveMode::ReceiveAndDelete,
            ..Default::default()
        };
        let mut receiver = sdk.receiver_with("s310", options).await?;
        let mut received = Vec::new();
        while received.len() < count {
            let left = u32::try_from(count - received.len())?;
            received.extend(receive(&mut receiver, left.min(500)).await?);
        }
        assert!(numbers(&received).is_sorted());
        assert!(
            received
                .iter()
                .all(|each| each.body().is_ok_and(|body| body.len() == size))
        );
        receiver.dispose().await?;
    }
});

scenario!(s311_a_megabyte_and_more, sdk, {
    let mut sender = sdk.sender("s311").await?;
    let large = |size: usize| (0..=250).cycle().take(size).collect::<Vec<u8>>();
    sender.send_message(large(1_000_000)).await?;
    let mut batch = sender.create_message_batch(Default::default())?;
    assert!(batch.try_add_message(large(1_100_000)).is_err());
    batch
        .try_add_message(large(1_000_000))
        .map_err(|_| "it fits")?;
    sender.send_message_batch(batch).await?;
    for message in sdk.take("s311", 2).await? {
        assert!(message.body()? == large(1_000_000));
    }
    let mut other = Sdk::connect().await?;
    failure(other.send_message("s311", large(1_100_000).into()).await);
});

scenario!(s326_tracing_properties_stay, sdk, {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
    let traced = |text: &str| with!(text, "Diagnostic-Id": PARENT, "traceparent": PARENT, "tracestate": STATE);
    let check = |message: &azservicebus::ServiceBusReceivedMessage| {
        let properties = message.application_properties().expect("properties");
        assert_eq!(properties.get("Diagnostic-Id"), Some(&PARENT.into()));
        assert_eq!(properties.get("traceparent"), Some(&PARENT.into()));
        assert_eq!(properties.get("tracestate"), Some(&STATE.into()));
    };
    let mut sender = sdk.sender("s326").await?;
    sender.send_message(traced("1")).await?;
    sender.schedule_message(traced("2"), in_seconds(1)).await?;
    let mut receiver = sdk.receiver("s326").await?;
    let received = receive(&mut receiver, 2).await?;
    received.iter().for_each(check);
    receiver.defer_message(&received[0], None).await?;
    receiver
        .dead_letter_message(&received[1], DeadLetterOptions::default())
        .await?;
    let number = received[0].sequence_number();
    check(
        &receiver
            .receive_deferred_message(number)
            .await?
            .ok_or("the deferred one")?,
    );
    check(&sdk.take(&dead("s326"), 1).await?[0]);
    sdk.send_message("s326t", traced("3")).await?;
    check(&sdk.take("s326t/Subscriptions/a", 1).await?[0]);
});

scenario!(s330_a_full_queue_refuses_batches_and_schedules, sdk, {
    let mut sender = sdk.sender("s330").await?;
    let mut batches = 0;
    while batches < 30
        && sender
            .send_messages((0..3).map(|_| vec![0; 100 << 10]))
            .await
            .is_ok()
    {
        batches += 1;
    }
    assert!((1..30).contains(&batches), "one is refused");
    assert_eq!(sdk.peeked("s330").await?.len(), batches * 3);
    let mut scheduled = 0;
    while scheduled < 30
        && sender
            .schedule_message(vec![0; 100 << 10], in_seconds(3600))
            .await
            .is_ok()
    {
        scheduled += 1;
    }
    assert!(scheduled < 30, "one is refused");
});
