//! Message sessions.

use std::time::Duration;

use azservicebus::{
    ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiveMode, ServiceBusSessionReceiver,
    receiver::DeadLetterOptions,
};
use jitney_interop_rust::{
    A_WHILE, Outcome, Sdk, at, bodies, body, dead, failure, in_session, numbers, receive,
    receive_in, receive_one, scenario, until,
};
use time::OffsetDateTime;

fn said(id: &str, texts: &[&str]) -> Vec<ServiceBusMessage> {
    texts.iter().map(|text| in_session(id, text)).collect()
}

/// The same of several sessions, each text's first letter being its session.
fn mixed(texts: &[&str]) -> Vec<ServiceBusMessage> {
    texts
        .iter()
        .map(|text| in_session(&text[..1], text))
        .collect()
}

async fn nothing(receiver: &mut ServiceBusSessionReceiver, wait: Duration) -> Outcome {
    let message = receiver.receive_message_with_max_wait_time(wait).await?;
    assert_eq!(message.as_ref().map(body), None);
    // As `receive_nothing`: the drain is over when a request is answered.
    receiver.peek_messages(1, Some(i64::MAX)).await?;
    Ok(())
}

/// That another client cannot have the session.
async fn held(address: &str, id: &str) -> Outcome {
    let mut other = Sdk::connect().await?;
    let text = failure(other.session(address, id).await);
    assert!(
        text.to_lowercase().contains("cannot") || text.contains("locked"),
        "{text}"
    );
    Ok(())
}

/// That there is no next session for that long. The SDK has no time-out for it: the broker's is 65 s.
async fn no_session(address: &str, wait: Duration) -> Outcome {
    let mut other = Sdk::connect().await?;
    let accepted = tokio::time::timeout(wait, other.next_session(address)).await;
    assert!(accepted.is_err(), "it goes on waiting");
    Ok(())
}

scenario!(s101_a_session_is_accepted_by_name, sdk, {
    sdk.send_all("s101", mixed(&["a1", "b1", "a2", "b2", "a3"]))
        .await?;
    for (id, wanted) in [("a", vec!["a1", "a2", "a3"]), ("b", vec!["b1", "b2"])] {
        let mut receiver = sdk.session("s101", id).await?;
        assert_eq!(receiver.session_id(), id);
        let received = receive_in(&mut receiver, u32::try_from(wanted.len())?).await?;
        assert_eq!(bodies(&received), wanted);
        assert!(received.iter().all(|each| each.session_id() == Some(id)));
        nothing(&mut receiver, A_WHILE).await?;
        receiver.dispose().await?;
    }
});

scenario!(s102_the_next_session_is_accepted, sdk, {
    sdk.send_all("s102", said("x", &["1"])).await?;
    let mut receiver = sdk.next_session("s102").await?;
    assert_eq!(receiver.session_id(), "x");
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["1"]);
});

scenario!(s103_each_session_has_one_receiver, sdk, {
    sdk.send_all("s103", mixed(&["x", "y"])).await?;
    let mut other = Sdk::connect().await?;
    let mut receivers = [
        sdk.next_session("s103").await?,
        other.next_session("s103").await?,
    ];
    assert_ne!(receivers[0].session_id(), receivers[1].session_id());
    for receiver in &mut receivers {
        let id = receiver.session_id().to_owned();
        assert_eq!(bodies(&receive_in(receiver, 1).await?), [id]);
    }
    no_session("s103", Duration::from_secs(3)).await?;
});

scenario!(s105_the_next_session_is_waited_for, sdk, {
    let later = async {
        tokio::time::sleep(A_WHILE).await;
        let mut other = Sdk::connect().await?;
        other.send_all("s105", said("late", &["1"])).await?;
        Ok::<_, Box<dyn std::error::Error>>(OffsetDateTime::now_utc())
    };
    let (receiver, sent) = tokio::join!(sdk.next_session("s105"), later);
    let mut receiver = receiver?;
    assert!(OffsetDateTime::now_utc() - sent? < time::Duration::seconds(2));
    assert_eq!(receiver.session_id(), "late");
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["1"]);
});

scenario!(s106_a_session_that_is_given_up_is_the_next, sdk, {
    sdk.send_all("s106", said("x", &["1", "2"])).await?;
    let mut first = sdk.session("s106", "x").await?;
    let received = receive_in(&mut first, 1).await?;
    first.complete_message(&received[0]).await?;
    let mut other = Sdk::connect().await?;
    let giving_up = async {
        tokio::time::sleep(A_WHILE).await;
        first.dispose().await?;
        Ok::<_, Box<dyn std::error::Error>>(OffsetDateTime::now_utc())
    };
    let (receiver, closed) = tokio::join!(other.next_session("s106"), giving_up);
    let mut receiver = receiver?;
    assert!(OffsetDateTime::now_utc() - closed? < time::Duration::seconds(2));
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["2"]);
});

scenario!(s108_a_session_that_never_was_is_accepted, sdk, {
    let mut receiver = sdk.session("s108", "new").await?;
    held("s108", "new").await?;
    sdk.send_all("s108", said("new", &["1"])).await?;
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["1"]);
});

scenario!(s109_a_session_is_held_by_one, sdk, {
    sdk.send_all("s109", said("x", &["1"])).await?;
    let first = sdk.session("s109", "x").await?;
    held("s109", "x").await?;
    first.dispose().await?;
    let mut receiver = sdk.session("s109", "x").await?;
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["1"]);
});

scenario!(s110_a_sessions_lock_is_renewed, sdk, {
    sdk.send_all("s110", said("x", &["1"])).await?;
    let mut receiver = sdk.session("s110", "x").await?;
    let received = receive_in(&mut receiver, 1).await?;
    for _ in 0..4 {
        nothing(&mut receiver, Duration::from_secs(2)).await?;
        let last = receiver.session_locked_until();
        receiver.renew_session_lock().await?;
        assert!(receiver.session_locked_until() > last);
    }
    held("s110", "x").await?;
    receiver.complete_message(&received[0]).await?;
    let left = async || {
        Ok(receiver
            .peek_messages(1, Some(1))
            .await?
            .is_empty()
            .then_some(()))
    };
    until(left).await?;
});

scenario!(s111_a_sessions_lock_ends, sdk, {
    sdk.send_all("s111", said("x", &["1"])).await?;
    let began = OffsetDateTime::now_utc();
    let mut first = sdk.session("s111", "x").await?;
    receive_in(&mut first, 1).await?;
    let mut other = Sdk::connect().await?;
    let mut receiver = until(async || Ok(other.session("s111", "x").await.ok())).await?;
    assert!(OffsetDateTime::now_utc() - began > time::Duration::seconds(4));
    failure(first.renew_session_lock().await);
    failure(first.session_state().await);
    let received = receive_in(&mut receiver, 1).await?;
    assert_eq!(
        (bodies(&received), received[0].delivery_count()),
        (vec!["1".to_owned()], Some(2))
    );
});

scenario!(s113_giving_a_session_up_is_no_delivery, sdk, {
    sdk.send_all("s113", said("x", &["1", "2", "3"])).await?;
    let mut receiver = sdk.session("s113", "x").await?;
    receive_in(&mut receiver, 2).await?;
    receiver.dispose().await?;
    let mut receiver = sdk.session("s113", "x").await?;
    let received = receive_in(&mut receiver, 3).await?;
    assert_eq!(bodies(&received), ["1", "2", "3"]);
    assert!(received.iter().all(|each| each.delivery_count() == Some(1)));
});

scenario!(s115_an_abandoned_message_comes_first, sdk, {
    sdk.send_all("s115", said("x", &["1", "2", "3"])).await?;
    let mut receiver = sdk.session("s115", "x").await?;
    let first = receive_in(&mut receiver, 1).await?;
    receiver.abandon_message(&first[0], None).await?;
    let received = receive_in(&mut receiver, 3).await?;
    assert_eq!(
        (bodies(&received), numbers(&received)[0]),
        (vec!["1".into(), "2".into(), "3".into()], numbers(&first)[0])
    );
    assert_eq!(received[0].delivery_count(), Some(2));
});

scenario!(s117_messages_go_to_who_holds_the_session, sdk, {
    let mut receiver = sdk.session("s117", "x").await?;
    sdk.send_all("s117", said("x", &["1", "2", "3"])).await?;
    no_session("s117", Duration::from_secs(3)).await?;
    assert_eq!(
        bodies(&receive_in(&mut receiver, 3).await?),
        ["1", "2", "3"]
    );
});

scenario!(s118_sessions_have_states, sdk, {
    // A state that is null, as one is that was never set, it cannot read.
    let mut x = sdk.session("s118", "x").await?;
    failure(x.session_state().await);
    for state in [[0, 255], [1, 2]] {
        x.set_session_state(state.into()).await?;
        assert_eq!(x.session_state().await?, state);
    }
    x.set_session_state(Vec::new()).await?;
    failure(x.session_state().await);
});

scenario!(s119_a_state_stays_without_messages, sdk, {
    for state in [
        b"idle".to_vec(),
        (0..=250).cycle().take(200 << 10).collect(),
    ] {
        let mut receiver = sdk.session("s119", "idle").await?;
        receiver.set_session_state(state.clone()).await?;
        receiver.dispose().await?;
        let mut receiver = sdk.session("s119", "idle").await?;
        assert!(receiver.session_state().await? == state);
        receiver.dispose().await?;
    }
});

scenario!(s124_deferred_messages_stay_in_their_session, sdk, {
    sdk.send_all("s124", said("x", &["1", "2"])).await?;
    let mut receiver = sdk.session("s124", "x").await?;
    let received = receive_in(&mut receiver, 2).await?;
    for message in &received {
        receiver.defer_message(message, None).await?;
    }
    receiver.dispose().await?;
    let mut other = Sdk::connect().await?;
    let mut y = other.session("s124", "y").await?;
    failure(
        y.receive_deferred_message(received[0].sequence_number())
            .await,
    );
    let mut receiver = sdk.session("s124", "x").await?;
    let deferred = receiver
        .receive_deferred_messages(numbers(&received).into_iter())
        .await?;
    assert_eq!(bodies(&deferred), ["1", "2"]);
    for message in &deferred {
        assert_eq!(message.state(), ServiceBusMessageState::Deferred);
        receiver.complete_message(message).await?;
    }
    assert!(receiver.peek_messages(1, Some(1)).await?.is_empty());
});

scenario!(s125_a_message_is_scheduled_in_a_session, sdk, {
    let due = OffsetDateTime::now_utc() + time::Duration::seconds(3);
    let mut sender = sdk.sender("s125").await?;
    let kept = sender
        .schedule_message(in_session("x", "kept"), due)
        .await?;
    let gone = sender
        .schedule_message(in_session("x", "gone"), due)
        .await?;
    sender.cancel_scheduled_message(gone).await?;
    let mut receiver = sdk.next_session("s125").await?;
    assert!(OffsetDateTime::now_utc() > due - time::Duration::SECOND);
    let received = receive_in(&mut receiver, 1).await?;
    assert_eq!(bodies(&received), ["kept"]);
    assert_ne!(received[0].sequence_number(), kept);
    nothing(&mut receiver, A_WHILE).await?;
});

scenario!(s126_a_session_is_peeked, sdk, {
    sdk.send_all("s126", mixed(&["a1", "b1", "a2", "b2", "b3"]))
        .await?;
    let mut receiver = sdk.session("s126", "a").await?;
    let found = receiver.peek_messages(100, Some(1)).await?;
    let found: Vec<_> = found.iter().map(jitney_interop_rust::peeked_body).collect();
    assert_eq!(found, ["a1", "a2"]);
});

scenario!(s127_a_message_needs_a_session, sdk, {
    let mut sender = sdk.sender("s127").await?;
    let text = failure(sender.send_message("none").await);
    assert!(
        text.contains("The SessionId was not set on a message"),
        "{text}"
    );
    sdk.send_all("s127", said("x", &["1"])).await?;
    let mut receiver = sdk.session("s127", "x").await?;
    assert_eq!(numbers(&receive_in(&mut receiver, 1).await?), [1]);
});

scenario!(s128_a_receiver_needs_a_session, sdk, {
    let text = failure(sdk.receiver("s128").await);
    let wanted = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver";
    assert!(text.contains(wanted), "{text}");
});

scenario!(s129_a_queue_without_sessions_has_none, sdk, {
    let text = failure(sdk.session("s129", "x").await);
    assert!(text.contains("does not require sessions"), "{text}");
    let mut other = Sdk::connect().await?;
    failure(other.next_session("s129").await);
    let mut third = Sdk::connect().await?;
    third.send_all("s129", said("x", &["1"])).await?;
    assert_eq!(third.take("s129", 1).await?[0].session_id(), Some("x"));
});

scenario!(s130_dead_letters_have_no_sessions, sdk, {
    sdk.send_all("s130", mixed(&["a", "b"])).await?;
    for id in ["a", "b"] {
        let mut receiver = sdk.session("s130", id).await?;
        let received = receive_in(&mut receiver, 1).await?;
        let options = DeadLetterOptions {
            dead_letter_reason: Some(id.to_owned()),
            ..Default::default()
        };
        receiver.dead_letter_message(&received[0], options).await?;
        receiver.dispose().await?;
    }
    let mut letters = sdk.dead_letters("s130").await?;
    for message in receive(&mut letters, 2).await? {
        assert_eq!(message.session_id(), Some(&*body(&message)));
        assert_eq!(message.dead_letter_reason(), message.session_id());
        letters.complete_message(&message).await?;
    }
});

scenario!(s131_deliveries_are_bounded_in_a_session, sdk, {
    sdk.send_all("s131", said("x", &["1", "2"])).await?;
    let mut receiver = sdk.session("s131", "x").await?;
    for _ in 0..2 {
        let received = receive_in(&mut receiver, 1).await?;
        assert_eq!(bodies(&received), ["1"]);
        receiver.abandon_message(&received[0], None).await?;
    }
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["2"]);
    let letters = sdk.take(&dead("s131"), 1).await?;
    assert_eq!(
        letters[0].dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
});

scenario!(s132_a_session_is_received_and_deleted, sdk, {
    sdk.send_all("s132", said("x", &["1", "2", "3"])).await?;
    let mut receiver = sdk
        .session_in_mode("s132", "x", ServiceBusReceiveMode::ReceiveAndDelete)
        .await?;
    assert_eq!(
        bodies(&receive_in(&mut receiver, 3).await?),
        ["1", "2", "3"]
    );
    assert!(receiver.peek_messages(1, Some(1)).await?.is_empty());
});

scenario!(s133_an_expired_message_grants_no_session, sdk, {
    let mut message = in_session("x", "1");
    message.set_time_to_live(Duration::from_secs(1))?;
    sdk.send_message("s133", message).await?;
    let mut letters = sdk.dead_letters("s133").await?;
    let message = receive_one(&mut letters).await?;
    assert_eq!(message.session_id(), Some("x"));
    assert_eq!(message.dead_letter_reason(), Some("TTLExpiredException"));
    no_session("s133", Duration::from_secs(3)).await?;
});

scenario!(s135_a_batch_may_be_of_several_sessions, sdk, {
    let mut sender = sdk.sender("s135").await?;
    sender.send_messages(mixed(&["a1", "b1", "a2"])).await?;
    for (id, wanted) in [("a", vec!["a1", "a2"]), ("b", vec!["b1"])] {
        let mut receiver = sdk.session("s135", id).await?;
        assert_eq!(
            bodies(&receive_in(&mut receiver, u32::try_from(wanted.len())?).await?),
            wanted
        );
        receiver.dispose().await?;
    }
});

scenario!(s136_session_ids_are_of_many_kinds, sdk, {
    for id in ["1", &"x".repeat(128), "a b/c\\ü"] {
        sdk.send_all("s136", said(id, &["1"])).await?;
        let mut receiver = sdk.session("s136", id).await?;
        assert_eq!(
            (receiver.session_id(), receiver.session_id().len()),
            (id, id.len())
        );
        assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["1"]);
        receiver.dispose().await?;
    }
});

scenario!(s145_a_subscription_may_have_sessions, sdk, {
    sdk.send_all("s145", mixed(&["x1", "y1", "x2"])).await?;
    assert_eq!(sdk.here(&at("s145", "plain")).await?, ["x1", "y1", "x2"]);
    let mut x = sdk.session(&at("s145", "s"), "x").await?;
    x.set_session_state(b"state".to_vec()).await?;
    x.renew_session_lock().await?;
    assert_eq!(bodies(&receive_in(&mut x, 2).await?), ["x1", "x2"]);
    let mut y = sdk.next_session(&at("s145", "s")).await?;
    assert_eq!(y.session_id(), "y");
    assert_eq!(bodies(&receive_in(&mut y, 1).await?), ["y1"]);
    x.dispose().await?;
    let mut x = sdk.session(&at("s145", "s"), "x").await?;
    assert_eq!(x.session_state().await?, b"state");
});

scenario!(s116_workers_share_sessions, sdk, {
    for number in 1..=20 {
        let messages = (0..10).map(|id| in_session(&id.to_string(), &number.to_string()));
        sdk.send_all("s116", messages.collect()).await?;
    }
    let worker = async || -> Outcome<Vec<(String, Vec<String>)>> {
        let mut done = Vec::new();
        let mut sdk = Sdk::connect().await?;
        let wait = Duration::from_secs(5);
        while let Ok(receiver) = tokio::time::timeout(wait, sdk.next_session("s116")).await {
            let mut receiver = receiver?;
            let mut seen = Vec::new();
            while seen.len() < 20 {
                for message in receive_in(&mut receiver, 1).await? {
                    receiver.complete_message(&message).await?;
                    seen.push(body(&message));
                }
            }
            done.push((receiver.session_id().to_owned(), seen));
            receiver.dispose().await?;
        }
        Ok(done)
    };
    let (one, two, three) = tokio::join!(worker(), worker(), worker());
    let mut done = [one?, two?, three?].concat();
    done.sort();
    let all: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
    let wanted: Vec<_> = (0..10).map(|id| (id.to_string(), all.clone())).collect();
    assert_eq!(done, wanted);
});
