//! Queues and subscriptions that send their messages on.

use std::{collections::BTreeMap, time::Duration};

use azservicebus::{ServiceBusMessage, receiver::DeadLetterOptions};
use jitney_interop_rust::{
    A_WHILE, at, bodies, body, failure, in_session, numbers, receive, receive_in, receive_nothing,
    receive_one, scenario, short_lived, until, with, with_id,
};
use time::OffsetDateTime;

fn dead_letters(queue: &str) -> String {
    format!("{queue}/$DeadLetterQueue")
}

scenario!(s191_a_queue_forwards, sdk, {
    sdk.send("s191b", &["1", "2"]).await?;
    sdk.send("s191", &["3", "4"]).await?;
    let mut sender = sdk.sender("s191").await?;
    sender.send_messages(["5"]).await?;
    let received = sdk.take("s191b", 5).await?;
    assert_eq!(bodies(&received), ["1", "2", "3", "4", "5"]);
    assert_eq!(numbers(&received), [1, 2, 3, 4, 5]);
    let origins: Vec<i64> = received[2..]
        .iter()
        .map(|each| each.enqueued_sequence_number())
        .collect();
    assert_eq!(origins, [1, 2, 3]);
});

scenario!(s192_forwards_go_on, sdk, {
    for (count, queue) in ["s192c", "s192b", "s192"].into_iter().enumerate() {
        sdk.send(queue, &[queue]).await?;
        until(async || Ok((sdk.here("s192c").await?.len() == count + 1).then_some(()))).await?;
    }
    let received = sdk.take("s192c", 3).await?;
    assert_eq!(bodies(&received), ["s192c", "s192b", "s192"]);
    assert_eq!(received[2].enqueued_sequence_number(), 1);
});

scenario!(s193_forwards_are_bounded, sdk, {
    sdk.send("s193", &["too far"]).await?;
    sdk.send("s193b", &["far"]).await?;
    assert_eq!(bodies(&sdk.take("s193f", 1).await?), ["far"]);
    let letters = sdk.take(&dead_letters("s193e"), 1).await?;
    assert_eq!(bodies(&letters), ["too far"]);
    assert_eq!(
        letters[0].dead_letter_reason(),
        Some("MaxTransferHopCountExceeded")
    );
});

scenario!(s194_nobody_receives_from_who_forwards, sdk, {
    failure(sdk.receiver("s194").await);
});

scenario!(s195_a_target_that_is_disabled, sdk, {
    sdk.send("s195", &["1"]).await?;
    let letters = sdk.take(&dead_letters("s195"), 1).await?;
    assert!(letters[0].dead_letter_reason().is_some());
});

scenario!(s196_a_target_that_is_full, sdk, {
    let mut sender = sdk.sender("s196").await?;
    for index in 0..15 {
        let mut message = ServiceBusMessage::new(vec![0; 100 << 10]);
        message.set_message_id(index.to_string())?;
        sender.send_message(message).await?;
    }
    let found = until(async || {
        let there = sdk.peeked("s196b").await?;
        let left = sdk.peeked(&dead_letters("s196")).await?;
        let all = there.len() + left.len() >= 15;
        Ok(all.then_some((there, left)))
    })
    .await?;
    assert!(!found.0.is_empty() && !found.1.is_empty());
    let ids = found
        .0
        .iter()
        .chain(&found.1)
        .map(|each| each.message_id().unwrap_or_default().parse());
    let mut ids = ids.collect::<Result<Vec<u32>, _>>()?;
    ids.sort_unstable();
    assert_eq!(ids, (0..15).collect::<Vec<u32>>());
});

scenario!(s197_a_subscription_forwards, sdk, {
    sdk.send_all(
        "s197",
        (1..=3).map(|n| with!(n.to_string(), "n": n)).collect(),
    )
    .await?;
    let received = sdk.take("s197b", 2).await?;
    assert_eq!(
        (bodies(&received), numbers(&received)),
        (vec!["2".into(), "3".into()], vec![1, 2])
    );
    assert_eq!(received[0].enqueued_sequence_number(), 2);
});

scenario!(s198_a_queue_forwards_to_a_topic, sdk, {
    sdk.send_all(
        "s198",
        ["red", "blue"]
            .map(|color| with!(color, "color": color))
            .into(),
    )
    .await?;
    assert_eq!(
        bodies(&sdk.take(&at("s198b", "all"), 2).await?),
        ["red", "blue"]
    );
    assert_eq!(sdk.here(&at("s198b", "red")).await?, ["red"]);
});

scenario!(s199_dead_letters_are_forwarded, sdk, {
    let expiring = short_lived("expired", Duration::from_secs(1));
    sdk.send_all("s199", vec!["dead".into(), "abandoned".into(), expiring])
        .await?;
    let mut receiver = sdk.receiver("s199").await?;
    let received = receive(&mut receiver, 2).await?;
    let options = DeadLetterOptions {
        dead_letter_reason: Some("why".to_owned()),
        ..Default::default()
    };
    receiver.dead_letter_message(&received[0], options).await?;
    receiver.abandon_message(&received[1], None).await?;
    let letters = sdk.take("s199b", 3).await?;
    let reasons: BTreeMap<_, _> = letters
        .iter()
        .map(|each| (body(each), each.dead_letter_reason()))
        .collect();
    assert_eq!(reasons["dead"], Some("why"));
    assert_eq!(reasons["abandoned"], Some("MaxDeliveryCountExceeded"));
    assert_eq!(reasons["expired"], Some("TTLExpiredException"));
    assert!(
        letters
            .iter()
            .all(|each| each.dead_letter_source() == Some("s199"))
    );
    assert_eq!(numbers(&letters), [1, 2, 3]);
});

scenario!(s200_dead_letters_of_a_subscription_are_forwarded, sdk, {
    sdk.send("s200", &["1"]).await?;
    let mut receiver = sdk.receiver(&at("s200", "a")).await?;
    let message = receive_one(&mut receiver).await?;
    let options = DeadLetterOptions {
        dead_letter_reason: Some("why".to_owned()),
        ..Default::default()
    };
    receiver.dead_letter_message(&message, options).await?;
    let letters = sdk.take("s200b", 1).await?;
    assert_eq!(letters[0].dead_letter_reason(), Some("why"));
    assert!(
        letters[0]
            .dead_letter_source()
            .is_some_and(|source| source.contains("s200"))
    );
});

scenario!(s201_scheduled_messages_are_forwarded_when_due, sdk, {
    let due = OffsetDateTime::now_utc() + time::Duration::seconds(3);
    let mut sender = sdk.sender("s201").await?;
    let numbers = sender.schedule_messages(["kept", "gone"], due).await?;
    sender.cancel_scheduled_message(numbers[1]).await?;
    let mut receiver = sdk.receiver("s201b").await?;
    assert_eq!(body(&receive_one(&mut receiver).await?), "kept");
    assert!(OffsetDateTime::now_utc() >= due);
    receive_nothing(&mut receiver, A_WHILE).await?;
});

scenario!(s202_a_target_with_sessions, sdk, {
    sdk.send_all("s202", vec![in_session("x", "x"), "none".into()])
        .await?;
    let mut receiver = sdk.session("s202b", "x").await?;
    assert_eq!(bodies(&receive_in(&mut receiver, 1).await?), ["x"]);
    let found = until(async || {
        let found = sdk.here(&dead_letters("s202")).await?;
        Ok((!found.is_empty()).then_some(found))
    })
    .await?;
    assert_eq!(found, ["none"]);
});

scenario!(s203_a_target_that_finds_duplicates, sdk, {
    sdk.send_all("s203", vec![with_id("same", "1"), with_id("same", "2")])
        .await?;
    until(async || Ok((!sdk.here("s203b").await?.is_empty()).then_some(()))).await?;
    sdk.send_message("s203b", with_id("same", "3")).await?;
    assert_eq!(sdk.here("s203b").await?, ["1"]);
});
