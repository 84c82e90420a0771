//! What is there after the broker was killed and started again. These run one by one, after the others.

use std::process::{Command, Stdio};

use azservicebus::{
    ServiceBusMessageState, ServiceBusPeekedMessage, administration::SqlRuleFilter,
    receiver::DeadLetterOptions,
};
use jitney_interop_rust::{
    Outcome, Sdk, at, bodies, body, dead, in_session, numbers, receive, receive_in, receive_one,
    run, with, with_id,
};
use time::OffsetDateTime;

/// Tells the runner's control what to do.
fn broker(verbs: &[&str]) -> Outcome {
    let control = std::env::var("JITNEY_BROKER_CONTROL")?;
    for verb in verbs {
        let status = Command::new("sh")
            .arg("-c")
            .arg(format!("{control} {verb}"))
            .stdout(Stdio::null())
            .status()?;
        assert!(status.success(), "{verb}");
    }
    Ok(())
}

/// A client of the broker after it was ended and started again.
async fn again(last: Sdk, verbs: &[&str]) -> Outcome<Sdk> {
    drop(last);
    broker(verbs)?;
    Sdk::connect().await
}

fn in_seconds(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + time::Duration::seconds(seconds)
}

fn numbers_of(found: &[ServiceBusPeekedMessage]) -> Vec<i64> {
    found
        .iter()
        .map(ServiceBusPeekedMessage::sequence_number)
        .collect()
}

#[test]
fn s72_s73_queues_survive_a_kill() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s72", &["1", "2", "3", "4"]).await?;
        let mut receiver = sdk.receiver("s72").await?;
        let received = receive(&mut receiver, 3).await?;
        receiver.complete_message(&received[0]).await?;
        receiver.defer_message(&received[1], None).await?;
        receiver
            .dead_letter_message(&received[2], DeadLetterOptions::default())
            .await?;
        // The client does not wait for what becomes of that; the dead letter is its last.
        assert_eq!(bodies(&sdk.take(&dead("s72"), 1).await?), ["3"]);
        let mut sender = sdk.sender("s72").await?;
        sender.schedule_message("far", in_seconds(3600)).await?;
        let mut soon = sdk.sender("s73").await?;
        soon.schedule_message("due", in_seconds(1)).await?;
        let mut sdk = again(sdk, &["kill", "start"]).await?;
        let found = sdk.peeked("s72").await?;
        assert_eq!(numbers_of(&found), [2, 4, 5]);
        assert_eq!(found[0].state(), ServiceBusMessageState::Deferred);
        assert_eq!(found[2].state(), ServiceBusMessageState::Scheduled);
        sdk.send("s72", &["new"]).await?;
        assert_eq!(numbers_of(&sdk.peeked("s72").await?), [2, 4, 5, 6]);
        assert_eq!(bodies(&sdk.take("s73", 1).await?), ["due"]);
        Ok(())
    });
}

#[test]
fn s75_a_stop_is_in_good_order() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send("s75", &["1"]).await?;
        let mut receiver = sdk.receiver("s75").await?;
        let message = receive_one(&mut receiver).await?;
        receiver.abandon_message(&message, None).await?;
        let message = receive_one(&mut receiver).await?;
        assert_eq!(message.delivery_count(), Some(2));
        // A client is connected; `stop` fails when the broker does not end with 0.
        let _open = Sdk::connect().await?;
        let mut sdk = again(sdk, &["stop", "start"]).await?;
        let mut receiver = sdk.receiver("s75").await?;
        let message = receive_one(&mut receiver).await?;
        assert_eq!(
            (body(&message), message.delivery_count()),
            ("1".to_owned(), Some(2))
        );
        Ok(())
    });
}

#[test]
fn s138_s158_s170_s188_sessions_topics_rules_and_ids_survive_a_kill() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        sdk.send_all(
            "s138",
            ["1", "2", "3"].map(|text| in_session("x", text)).into(),
        )
        .await?;
        let mut x = sdk.session("s138", "x").await?;
        x.set_session_state(b"state".to_vec()).await?;
        receive_in(&mut x, 1).await?;
        let texts: Vec<String> = (1..=5).map(|number| number.to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        sdk.send("s158", &texts).await?;
        sdk.take(&at("s158", "a"), 2).await?;
        let mut rules = sdk.rules("s170", "a").await?;
        rules
            .create_rule("one", SqlRuleFilter::new("n = 1"))
            .await?;
        rules.delete_rule("$Default").await?;
        sdk.send_message("s188", with_id("same", "1")).await?;
        assert_eq!(sdk.here(&at("s158", "a")).await?, ["3", "4", "5"]);
        let mut sdk = again(sdk, &["kill", "start"]).await?;
        let mut x = sdk.session("s138", "x").await?;
        assert_eq!(x.session_state().await?, b"state");
        let received = receive_in(&mut x, 3).await?;
        assert_eq!(
            (bodies(&received), numbers(&received)),
            (vec!["1".into(), "2".into(), "3".into()], vec![1, 2, 3])
        );
        let left = sdk.peeked(&at("s158", "a")).await?;
        assert_eq!(numbers_of(&left), [3, 4, 5]);
        assert!(
            left.iter()
                .all(|each| each.enqueued_sequence_number() == each.sequence_number())
        );
        let mut rules = sdk.rules("s170", "a").await?;
        let names: Vec<String> = rules
            .get_rules()
            .await?
            .into_iter()
            .map(|rule| rule.name)
            .collect();
        assert_eq!(names, ["one"]);
        sdk.send_all("s170", vec![with!("1", "n": 1_i64), with!("2", "n": 2_i64)])
            .await?;
        assert_eq!(sdk.here(&at("s170", "a")).await?, ["1"]);
        sdk.send_all("s188", vec![with_id("same", "2"), with_id("other", "3")])
            .await?;
        assert_eq!(sdk.here("s188").await?, ["1", "3"]);
        Ok(())
    });
}

#[test]
fn s217_numbers_go_on_in_each_partition() {
    run(async {
        let mut sdk = Sdk::connect().await?;
        let keyed = |number: i64| {
            let mut message = azservicebus::ServiceBusMessage::new(number.to_string());
            message
                .set_partition_key(format!("k{}", number % 10))
                .expect("a good key");
            message
        };
        sdk.send_all("s217", (0..50).map(keyed).collect()).await?;
        let before = numbers_of(&sdk.peeked("s217").await?);
        let mut sdk = again(sdk, &["kill", "start"]).await?;
        assert_eq!(numbers_of(&sdk.peeked("s217").await?), before);
        sdk.send_all("s217", (50..60).map(keyed).collect()).await?;
        let after = numbers_of(&sdk.peeked("s217").await?);
        assert_eq!(after.len(), 60);
        for new in after.iter().filter(|number| !before.contains(number)) {
            // Each is the one after another of its partition.
            assert!(
                new & 0xFFFF_FFFF_FFFF == 1 || after.contains(&(new - 1)),
                "{new:x}"
            );
        }
        Ok(())
    });
}
