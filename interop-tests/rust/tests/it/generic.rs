//! The generic client: links without a token, settle modes, outcomes, kinds of bodies.

use std::time::Duration;

use fe2o3_amqp::{
    Connection, Delivery, Receiver, Sender, Session, connection::ConnectionHandle,
    link::receiver::CreditMode, sasl_profile::SaslProfile, session::SessionHandle,
};
use fe2o3_amqp_types::{
    definitions::{self, ErrorCondition, ReceiverSettleMode, SenderSettleMode},
    messaging::{AmqpSequence, AmqpValue, Body, Data, Message, Modified, Outcome as AmqpOutcome},
    primitives::{Binary, Value},
};
use jitney_interop_rust::{DEADLINE, Outcome, failure, host, run};

pub(crate) type Received = Delivery<Body<Value>>;

/// A connection with one session.
pub(crate) struct Peer {
    pub(crate) session: SessionHandle<()>,
    connection: ConnectionHandle<()>,
}

impl Peer {
    async fn anonymous() -> Outcome<Self> {
        Self::open(SaslProfile::Anonymous).await
    }

    async fn open(profile: SaslProfile) -> Outcome<Self> {
        let url = format!("amqp://{}", host());
        let builder = Connection::builder()
            .container_id("interop")
            .sasl_profile(profile);
        Self::over(builder.open(url.as_str()).await?).await
    }

    pub(crate) async fn over(mut connection: ConnectionHandle<()>) -> Outcome<Self> {
        let session = Session::begin(&mut connection).await?;
        Ok(Self {
            session,
            connection,
        })
    }

    pub(crate) async fn sender(&mut self, queue: &str) -> Outcome<Sender> {
        Ok(Sender::attach(&mut self.session, format!("sender-{queue}"), queue).await?)
    }

    /// A receiver that must be told to ask for messages.
    pub(crate) async fn receiver(
        &mut self,
        queue: &str,
        mode: ReceiverSettleMode,
    ) -> Outcome<Receiver> {
        let builder = Receiver::builder()
            .name(format!("receiver-{queue}"))
            .source(queue);
        let builder = builder
            .receiver_settle_mode(mode)
            .credit_mode(CreditMode::Manual);
        Ok(builder.attach(&mut self.session).await?)
    }

    async fn send(&mut self, queue: &str, values: &[i64]) -> Outcome {
        let mut sender = self.sender(queue).await?;
        for value in values {
            accepted(sender.send(AmqpValue(*value)).await?);
        }
        Ok(sender.close().await?)
    }

    pub(crate) async fn close(mut self) -> Outcome {
        self.session.end().await?;
        Ok(self.connection.close().await?)
    }
}

pub(crate) fn accepted(outcome: AmqpOutcome) {
    assert!(matches!(outcome, AmqpOutcome::Accepted(_)), "{outcome:?}");
}

async fn receive(receiver: &mut Receiver, count: u32) -> Outcome<Vec<Received>> {
    receiver.set_credit(count).await?;
    let mut deliveries = Vec::new();
    for _ in 0..count {
        deliveries.push(tokio::time::timeout(DEADLINE, receiver.recv()).await??);
    }
    Ok(deliveries)
}

pub(crate) async fn receive_one(receiver: &mut Receiver) -> Outcome<Received> {
    Ok(receive(receiver, 1).await?.remove(0))
}

async fn receive_nothing(receiver: &mut Receiver) -> Outcome {
    receiver.set_credit(1).await?;
    let waited =
        tokio::time::timeout(Duration::from_millis(500), receiver.recv::<Body<Value>>()).await;
    assert!(waited.is_err(), "a message arrived");
    receiver.set_credit(0).await?;
    Ok(())
}

fn value(delivery: &Received) -> Option<i64> {
    match delivery.body() {
        Body::Value(AmqpValue(Value::Long(value))) => Some(*value),
        _ => None,
    }
}

fn count(delivery: &Received) -> u32 {
    delivery
        .message()
        .header
        .as_ref()
        .map_or(0, |header| header.delivery_count)
}

#[test]
fn s05_sasl_plain_and_anonymous_are_enough_to_send_and_receive() {
    run(async {
        let plain = SaslProfile::Plain {
            username: "RootManageSharedAccessKey".into(),
            password: "SAS_KEY_VALUE".into(),
        };
        for profile in [SaslProfile::Anonymous, plain] {
            let mut peer = Peer::open(profile).await?;
            peer.send("s05", &[5]).await?;
            let mut receiver = peer.receiver("s05", ReceiverSettleMode::First).await?;
            let delivery = receive_one(&mut receiver).await?;
            receiver.accept(&delivery).await?;
            receiver.close().await?;
            peer.close().await?;
        }
        Ok(())
    });
}

#[test]
fn s02_a_link_to_an_unknown_queue_is_refused_with_the_reason() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        let text = failure(peer.sender("no-such-queue").await);
        assert!(
            text.contains("could not be found") || text.contains("NotFound"),
            "{text}"
        );
        // Another session: the client's first one has ended with the refusal.
        let mut peer = Peer::anonymous().await?;
        let text = failure(
            peer.receiver("no-such-queue", ReceiverSettleMode::First)
                .await,
        );
        assert!(
            text.contains("could not be found") || text.contains("NotFound"),
            "{text}"
        );
        peer.close().await
    });
}

#[test]
fn s07_every_kind_of_body_comes_back() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        let mut sender = peer.sender("s07").await?;
        accepted(sender.send(Data(Binary::from(vec![0, 255]))).await?);
        accepted(sender.send(AmqpValue(Value::String("text".into()))).await?);
        accepted(
            sender
                .send(AmqpSequence(vec![Value::Long(1), Value::Bool(true)]))
                .await?,
        );
        accepted(
            sender
                .send(Message::builder().value(Value::Null).build())
                .await?,
        );
        let mut receiver = peer.receiver("s07", ReceiverSettleMode::Second).await?;
        let received = receive(&mut receiver, 4).await?;
        assert!(
            matches!(received[0].body(), Body::Data(sections) if sections[0].0 == vec![0, 255])
        );
        assert!(
            matches!(received[1].body(), Body::Value(AmqpValue(Value::String(text))) if text == "text")
        );
        assert!(matches!(received[2].body(), Body::Sequence(sections) if sections[0].0.len() == 2));
        assert!(matches!(
            received[3].body(),
            Body::Value(AmqpValue(Value::Null)) | Body::Empty
        ));
        Ok(())
    });
}

#[test]
fn s11_a_message_of_many_frames_comes_back() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        let mut sender = peer.sender("s352").await?;
        let mut receiver = peer.receiver("s352", ReceiverSettleMode::First).await?;
        for size in [64 * 1024, 900 * 1024] {
            let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
            accepted(sender.send(Data(Binary::from(bytes.clone()))).await?);
            let delivery = receive_one(&mut receiver).await?;
            assert!(
                matches!(delivery.body(), Body::Data(sections) if sections[0].0 == bytes),
                "{size} bytes"
            );
            receiver.accept(&delivery).await?;
        }
        Ok(())
    });
}

#[test]
fn s14_pre_settled_messages_arrive() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        let builder = Sender::builder()
            .name("settled")
            .target("s14")
            .sender_settle_mode(SenderSettleMode::Settled);
        let mut sender = builder.attach(&mut peer.session).await?;
        for number in [1, 2, 3] {
            accepted(sender.send(AmqpValue(number)).await?);
        }
        let mut receiver = peer.receiver("s14", ReceiverSettleMode::First).await?;
        let received = receive(&mut receiver, 3).await?;
        assert_eq!(received.len(), 3);
        Ok(())
    });
}

#[test]
fn s19_settled_deliveries_are_gone() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        peer.send("s19", &[1, 2, 3]).await?;
        let builder = Receiver::builder()
            .name("settled")
            .source("s19")
            .credit_mode(CreditMode::Manual);
        let mut receiver = builder
            .sender_settle_mode(SenderSettleMode::Settled)
            .attach(&mut peer.session)
            .await?;
        let received = receive(&mut receiver, 3).await?;
        assert_eq!(
            received.iter().filter_map(value).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        receiver.close().await?;
        receive_nothing(&mut peer.receiver("s19", ReceiverSettleMode::First).await?).await
    });
}

#[test]
fn s20_s32_modified_counts_a_delivery_and_released_does_not() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        peer.send("s32", &[1]).await?;
        let mut receiver = peer.receiver("s32", ReceiverSettleMode::Second).await?;
        let first = receive_one(&mut receiver).await?;
        let failed = Modified {
            delivery_failed: Some(true),
            undeliverable_here: None,
            message_annotations: None,
        };
        receiver.modify(&first, failed).await?;
        let second = receive_one(&mut receiver).await?;
        receiver.release(&second).await?;
        let third = receive_one(&mut receiver).await?;
        assert_eq!([count(&first), count(&second), count(&third)], [0, 1, 1]);
        receiver.accept(&third).await?;
        receive_nothing(&mut receiver).await
    });
}

#[test]
fn s22_a_rejected_message_is_dead_lettered() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        peer.send("s353", &[22]).await?;
        let mut receiver = peer.receiver("s353", ReceiverSettleMode::First).await?;
        let delivery = receive_one(&mut receiver).await?;
        let error = definitions::Error::new(
            ErrorCondition::Custom("my:reason".into()),
            "mine".to_owned(),
            None,
        );
        receiver.reject(&delivery, error).await?;
        let mut dead_letters = peer
            .receiver("s353/$DeadLetterQueue", ReceiverSettleMode::First)
            .await?;
        let dead = receive_one(&mut dead_letters).await?;
        assert_eq!(value(&dead), Some(22));
        Ok(())
    });
}

#[test]
fn s37_one_disposition_settles_a_range() {
    run(async {
        let mut peer = Peer::anonymous().await?;
        peer.send("s37", &(1..=20).collect::<Vec<_>>()).await?;
        let mut receiver = peer.receiver("s37", ReceiverSettleMode::First).await?;
        let received = receive(&mut receiver, 20).await?;
        let (lower, upper) = received.split_at(10);
        receiver.accept_all(upper).await?;
        receiver.accept_all(lower).await?;
        receive_nothing(&mut receiver).await
    });
}
