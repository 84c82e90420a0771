//! Topics, subscriptions, duplicates and partitions.

use std::{collections::BTreeSet, time::Duration};

use azservicebus::{
    ServiceBusMessage, ServiceBusMessageState, ServiceBusPeekedMessage, receiver::DeadLetterOptions,
};
use jitney_interop_rust::{
    A_WHILE, Sdk, at, bodies, body, dead, failure, in_session, numbers, peeked_body, receive,
    receive_in, receive_nothing, receive_one, scenario, until, with, with_id,
};
use time::OffsetDateTime;

fn in_seconds(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + time::Duration::seconds(seconds)
}

fn with_n(numbers: &[i64]) -> Vec<ServiceBusMessage> {
    numbers
        .iter()
        .map(|&n| with!(n.to_string(), "n": n))
        .collect()
}

scenario!(s141_every_subscription_has_its_copy, sdk, {
    sdk.send_all("s141", with_n(&[1, 2, 3, 4, 5])).await?;
    for name in ["a", "b"] {
        let received = sdk.take(&at("s141", name), 5).await?;
        assert_eq!(bodies(&received), ["1", "2", "3", "4", "5"]);
        assert_eq!(numbers(&received), [1, 2, 3, 4, 5]);
    }
    let odd = sdk.take(&at("s141", "odd"), 3).await?;
    assert_eq!(
        (bodies(&odd), numbers(&odd)),
        (vec!["1".into(), "3".into(), "5".into()], vec![1, 2, 3])
    );
    let origins: Vec<i64> = odd
        .iter()
        .map(|each| each.enqueued_sequence_number())
        .collect();
    assert_eq!(origins, [1, 3, 5]);
});

scenario!(s142_a_topic_without_subscriptions_takes_messages, sdk, {
    sdk.send("s142", &["1"]).await?;
    let mut sender = sdk.sender("s142").await?;
    sender.send_messages(["2", "3"]).await?;
});

scenario!(s143_subscriptions_settle_apart, sdk, {
    sdk.send("s143", &["1", "2", "3"]).await?;
    let mut a = sdk.receiver(&at("s143", "a")).await?;
    let received = receive(&mut a, 3).await?;
    a.complete_message(&received[0]).await?;
    a.defer_message(&received[1], None).await?;
    a.abandon_message(&received[2], None).await?;
    let mut b = sdk.receiver(&at("s143", "b")).await?;
    let others = receive(&mut b, 3).await?;
    assert_eq!(bodies(&others), ["1", "2", "3"]);
    for (one, other) in received.iter().zip(&others) {
        assert_eq!(other.delivery_count(), Some(1));
        assert_ne!(one.lock_token(), other.lock_token());
    }
    let deferred = a
        .receive_deferred_message(received[1].sequence_number())
        .await?;
    assert_eq!(deferred.as_ref().map(body).as_deref(), Some("2"));
});

scenario!(s144_a_subscription_has_dead_letters_of_its_own, sdk, {
    sdk.send("s144", &["1"]).await?;
    let mut receiver = sdk.receiver(&at("s144", "a")).await?;
    let message = receive_one(&mut receiver).await?;
    let options = DeadLetterOptions {
        dead_letter_reason: Some("why".to_owned()),
        dead_letter_error_description: Some("because".to_owned()),
        properties_to_modify: None,
    };
    receiver.dead_letter_message(&message, options).await?;
    let letters = sdk.take(&dead(&at("s144", "a")), 1).await?;
    assert_eq!(letters[0].dead_letter_reason(), Some("why"));
    assert_eq!(letters[0].dead_letter_error_description(), Some("because"));
    assert_eq!(sdk.here(&at("s144", "b")).await?, ["1"]);
    assert!(sdk.here(&dead(&at("s144", "b"))).await?.is_empty());
});

scenario!(s146_a_message_without_a_session_is_a_dead_letter, sdk, {
    sdk.send("s146", &["1"]).await?;
    assert_eq!(sdk.here(&at("s146", "plain")).await?, ["1"]);
    let letters = sdk.take(&dead(&at("s146", "s")), 1).await?;
    assert_eq!(letters[0].dead_letter_reason(), Some("Session ID is null."));
});

scenario!(s147_messages_are_scheduled_on_a_topic, sdk, {
    let due = in_seconds(4);
    let mut sender = sdk.sender("s147").await?;
    sender.schedule_message("scheduled", due).await?;
    let mut message = ServiceBusMessage::new("sent");
    message.set_scheduled_enqueue_time(due);
    sender.send_message(message).await?;
    for name in ["a", "b"] {
        assert!(sdk.here(&at("s147", name)).await?.is_empty());
    }
    for name in ["a", "b"] {
        let mut found = bodies(&sdk.take(&at("s147", name), 2).await?);
        assert!(OffsetDateTime::now_utc() >= due);
        found.sort();
        assert_eq!(found, ["scheduled", "sent"]);
        assert!(sdk.here(&at("s147", name)).await?.is_empty());
    }
});

scenario!(s148_scheduled_messages_are_cancelled_on_a_topic, sdk, {
    let mut sender = sdk.sender("s148").await?;
    let numbers = sender
        .schedule_messages(["1", "2", "3"], in_seconds(2))
        .await?;
    sender.cancel_scheduled_message(numbers[0]).await?;
    sender
        .cancel_scheduled_messages([numbers[1], numbers[2]])
        .await?;
    failure(sender.cancel_scheduled_message(numbers[0]).await);
    let mut receiver = sdk.receiver(&at("s148", "a")).await?;
    receive_nothing(&mut receiver, Duration::from_secs(3)).await?;
});

scenario!(
    s149_nobody_receives_from_a_topic_or_sends_to_a_subscription,
    sdk,
    {
        failure(sdk.send(&at("s149", "a"), &["1"]).await);
        let mut other = Sdk::connect().await?;
        failure(other.receiver("s149").await);
    }
);

scenario!(s150_a_subscription_that_is_not_there, sdk, {
    let text = failure(sdk.receiver(&at("s150", "no-such")).await);
    assert!(text.contains("could not be found"), "{text}");
    let mut other = Sdk::connect().await?;
    let text = failure(other.receiver(&at("no-such", "a")).await);
    assert!(text.contains("could not be found"), "{text}");
});

scenario!(s151_names_of_topics_do_not_depend_on_case, sdk, {
    sdk.send("S151", &["1"]).await?;
    assert_eq!(bodies(&sdk.take(&at("s151", "mixed"), 1).await?), ["1"]);
});

scenario!(s152_subscriptions_lock_and_count_apart, sdk, {
    sdk.send("s152", &["1"]).await?;
    let mut receiver = sdk.receiver(&at("s152", "a")).await?;
    for count in 1..=2 {
        let message = receive_one(&mut receiver).await?;
        assert_eq!(message.delivery_count(), Some(count));
    }
    let letters = sdk.take(&dead(&at("s152", "a")), 1).await?;
    assert_eq!(
        letters[0].dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
    assert_eq!(sdk.here(&at("s152", "b")).await?, ["1"]);
});

scenario!(s153_the_shortest_time_to_live_counts, sdk, {
    sdk.send("s153", &["1"]).await?;
    for name in ["short", "keep"] {
        let letters = sdk.take(&dead(&at("s153", name)), 1).await?;
        assert_eq!(letters[0].dead_letter_reason(), Some("TTLExpiredException"));
    }
    assert!(sdk.here(&dead(&at("s153", "drop"))).await?.is_empty());
    let mut receiver = sdk.receiver(&at("s153", "drop")).await?;
    receive_nothing(&mut receiver, A_WHILE).await?;
});

scenario!(
    s154_batches_and_large_messages_are_in_every_subscription,
    sdk,
    {
        let mut sender = sdk.sender("s154").await?;
        sender
            .send_messages((1..101).map(|number: u32| number.to_string()))
            .await?;
        let large: Vec<u8> = (0..=250).cycle().take(200 << 10).collect();
        sender.send_message(large.clone()).await?;
        for name in ["a", "b", "c"] {
            let received = sdk.take(&at("s154", name), 101).await?;
            assert_eq!(
                bodies(&received[..100]),
                (1..=100).map(|each| each.to_string()).collect::<Vec<_>>()
            );
            assert!(received[100].body()? == large);
            assert!(sdk.here(&at("s154", name)).await?.is_empty());
        }
    }
);

scenario!(s155_topics_and_subscriptions_are_disabled, sdk, {
    let text = failure(sdk.send("s155", &["1"]).await);
    assert!(text.contains("disabled"), "{text}");
    let mut other = Sdk::connect().await?;
    let mut receiver = other.receiver(&at("s155", "a")).await?;
    receive_nothing(&mut receiver, A_WHILE).await?;
    other.send("s155b", &["1"]).await?;
    assert_eq!(other.here(&at("s155b", "on")).await?, ["1"]);
    let text = failure(other.receiver(&at("s155b", "off")).await);
    assert!(text.contains("disabled"), "{text}");
});

scenario!(s156_a_full_topic_takes_messages_again, sdk, {
    let mut sender = sdk.sender("s156").await?;
    let mut accepted = 0;
    while accepted < 30 && sender.send_message(vec![0; 100 << 10]).await.is_ok() {
        accepted += 1;
    }
    assert!((1..30).contains(&accepted), "one is refused");
    for name in ["a", "b"] {
        sdk.take(&at("s156", name), accepted).await?;
    }
    sdk.send("s156", &["again"]).await?;
});

scenario!(s157_a_subscription_is_peeked, sdk, {
    sdk.send_all(
        "s157",
        ["1", "2", "3"].map(|text| in_session("x", text)).into(),
    )
    .await?;
    let mut receiver = sdk.receiver(&at("s157", "a")).await?;
    let received = receive(&mut receiver, 3).await?;
    receiver.defer_message(&received[1], None).await?;
    let found = until(async || {
        let found = sdk.peeked(&at("s157", "a")).await?;
        let deferred = found[1].state() == ServiceBusMessageState::Deferred;
        Ok(deferred.then_some(found))
    })
    .await?;
    assert_eq!(
        found.iter().map(peeked_body).collect::<Vec<_>>(),
        ["1", "2", "3"]
    );
    let mut session = sdk.session(&at("s157", "s"), "x").await?;
    assert_eq!(session.peek_messages(100, Some(1)).await?.len(), 3);
    assert_eq!(bodies(&receive_in(&mut session, 3).await?), ["1", "2", "3"]);
});

scenario!(s181_an_id_is_taken_once, sdk, {
    for _ in 0..5 {
        sdk.send_message("s181", with_id("one", "1")).await?;
    }
    sdk.send_message("s181", with_id("other", "2")).await?;
    let received = sdk.take("s181", 2).await?;
    assert_eq!(
        (bodies(&received), numbers(&received)),
        (vec!["1".into(), "2".into()], vec![1, 2])
    );
    assert!(sdk.here("s181").await?.is_empty());
});

scenario!(s182_an_id_is_remembered_for_a_while, sdk, {
    let mut letters = sdk.dead_letters("s182").await?;
    for (text, waits) in [("1", 1), ("2", 12), ("3", 1)] {
        sdk.send_message("s182", with_id("same", text)).await?;
        for _ in 0..waits {
            receive_nothing(&mut letters, Duration::from_secs(2)).await?;
        }
    }
    assert_eq!(sdk.here("s182").await?, ["1", "3"]);
});

scenario!(s183_ids_of_a_batch_are_taken_once, sdk, {
    let mut sender = sdk.sender("s183").await?;
    sender
        .send_messages(["1", "2", "1", "3", "3"].map(|id| with_id(id, id)))
        .await?;
    let received = sdk.take("s183", 3).await?;
    assert_eq!(
        (bodies(&received), numbers(&received)),
        (vec!["1".into(), "2".into(), "3".into()], vec![1, 2, 3])
    );
    assert!(sdk.here("s183").await?.is_empty());
});

scenario!(s184_it_does_not_matter_what_became_of_the_first, sdk, {
    let messages = || {
        ["completed", "deferred", "dead"]
            .map(|id| with_id(id, id))
            .into()
    };
    sdk.send_all("s184", messages()).await?;
    let mut receiver = sdk.receiver("s184").await?;
    let received = receive(&mut receiver, 3).await?;
    receiver.complete_message(&received[0]).await?;
    receiver.defer_message(&received[1], None).await?;
    receiver
        .dead_letter_message(&received[2], DeadLetterOptions::default())
        .await?;
    sdk.send_all("s184", messages()).await?;
    receive_nothing(&mut receiver, A_WHILE).await?;
});

scenario!(s185_without_an_id_nothing_is_a_duplicate, sdk, {
    sdk.send("s185", &["1", "2", "3"]).await?;
    assert_eq!(sdk.here("s185").await?, ["1", "2", "3"]);
});

scenario!(s186_a_scheduled_message_counts, sdk, {
    let mut sender = sdk.sender("s186").await?;
    sender
        .schedule_message(with_id("same", "scheduled"), in_seconds(2))
        .await?;
    sender.send_message(with_id("same", "sent")).await?;
    let mut receiver = sdk.receiver("s186").await?;
    assert_eq!(body(&receive_one(&mut receiver).await?), "scheduled");
    receive_nothing(&mut receiver, A_WHILE).await?;
});

scenario!(s187_a_topic_finds_duplicates, sdk, {
    sdk.send_all("s187", vec![with_id("same", "1"), with_id("same", "2")])
        .await?;
    for name in ["a", "b"] {
        assert_eq!(sdk.here(&at("s187", name)).await?, ["1"]);
    }
});

scenario!(s189_sessions_do_not_matter_to_duplicates, sdk, {
    for id in ["x", "y"] {
        let mut message = with_id("same", id);
        message.set_session_id(id.to_owned())?;
        sdk.send_message("s189", message).await?;
    }
    let mut y = sdk.session("s189", "y").await?;
    assert!(y.peek_messages(10, Some(1)).await?.is_empty());
    let mut x = sdk.session("s189", "x").await?;
    assert_eq!(bodies(&receive_in(&mut x, 1).await?), ["x"]);
});

fn keyed(key: &str, text: &str) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(text);
    message
        .set_partition_key(key.to_owned())
        .expect("a good key");
    message
}

fn partition(number: i64) -> i64 {
    number >> 48
}

/// That each key's messages are in one partition, in order.
fn of_one_partition(found: &[ServiceBusPeekedMessage], keys: &[&str], texts: &[&str]) {
    for &key in keys {
        let mine: Vec<_> = found
            .iter()
            .filter(|each| each.partition_key() == Some(key))
            .collect();
        assert_eq!(
            mine.iter()
                .map(|each| peeked_body(each))
                .collect::<Vec<_>>(),
            texts
        );
        let places: BTreeSet<i64> = mine
            .iter()
            .map(|each| partition(each.sequence_number()))
            .collect();
        assert_eq!(places.len(), 1);
        assert!(places.iter().all(|place| (0..16).contains(place)));
    }
}

const FIVE: [&str; 5] = ["1", "2", "3", "4", "5"];

scenario!(s211_a_key_is_in_one_partition, sdk, {
    let messages = FIVE
        .iter()
        .flat_map(|text| [keyed("k", text), keyed("j", text)])
        .collect();
    sdk.send_all("s211", messages).await?;
    of_one_partition(&sdk.peeked("s211").await?, &["k", "j"], &FIVE);
});

scenario!(s212_a_session_is_in_one_partition, sdk, {
    for text in ["1", "2", "3"] {
        let messages = FIVE.iter().map(|id| in_session(id, text)).collect();
        sdk.send_all("s212", messages).await?;
    }
    for id in FIVE {
        let mut receiver = sdk.session("s212", id).await?;
        let received = receive_in(&mut receiver, 3).await?;
        assert_eq!(bodies(&received), ["1", "2", "3"]);
        let places: BTreeSet<i64> = numbers(&received).into_iter().map(partition).collect();
        assert_eq!(places.len(), 1);
        receiver.dispose().await?;
    }
    // The client itself refuses a key that is not the session's id.
    failure(in_session("x", "1").set_partition_key("y".to_owned()));
});

scenario!(s213_without_a_key_partitions_take_turns, sdk, {
    let mut sender = sdk.sender("s213").await?;
    for number in 1..=100 {
        sender.send_message(number.to_string()).await?;
    }
    let found = sdk.peeked("s213").await?;
    let texts: BTreeSet<String> = found.iter().map(peeked_body).collect();
    assert_eq!((found.len(), texts.len()), (100, 100));
    let places: BTreeSet<i64> = found
        .iter()
        .map(|each| partition(each.sequence_number()))
        .collect();
    assert!(places.len() > 1);
    let mut receiver = sdk.receiver("s213").await?;
    let received = receive(&mut receiver, 100).await?;
    for place in places {
        let mine = received
            .iter()
            .find(|each| partition(each.sequence_number()) == place);
        let mine = mine.ok_or("one of each partition")?;
        receiver.defer_message(mine, None).await?;
        let deferred = receiver
            .receive_deferred_message(mine.sequence_number())
            .await?;
        let deferred = deferred.ok_or("the deferred one")?;
        assert_eq!(body(&deferred), body(mine));
        receiver.complete_message(&deferred).await?;
    }
    for _ in 0..4 {
        let number = sender.schedule_message("later", in_seconds(3600)).await?;
        sender.cancel_scheduled_message(number).await?;
    }
});

scenario!(s214_duplicates_are_of_one_key, sdk, {
    let keyed_id = |key: &str, text: &str| {
        let mut message = keyed(key, text);
        message.set_message_id("2".to_owned()).expect("a good id");
        message
    };
    let messages = vec![
        with_id("1", "1"),
        with_id("1", "1"),
        keyed_id("k", "2"),
        keyed_id("k", "2"),
        keyed_id("j", "3"),
    ];
    sdk.send_all("s214", messages).await?;
    let mut found = sdk.here("s214").await?;
    found.sort();
    assert_eq!(found, ["1", "2", "3"]);
});

scenario!(s215_a_batch_of_one_key_is_in_one_partition, sdk, {
    let mut sender = sdk.sender("s215").await?;
    sender
        .send_messages(FIVE.map(|text| keyed("k", text)))
        .await?;
    of_one_partition(&sdk.peeked("s215").await?, &["k"], &FIVE);
});

scenario!(s216_a_topic_has_partitions, sdk, {
    let messages = FIVE
        .iter()
        .flat_map(|text| [keyed("k", text), keyed("j", text)])
        .collect();
    sdk.send_all("s216", messages).await?;
    of_one_partition(&sdk.peeked(&at("s216", "a")).await?, &["k", "j"], &FIVE);
});
