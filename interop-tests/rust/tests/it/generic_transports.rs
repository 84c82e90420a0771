//! The generic client: TLS, WebSockets, keys and certificates in SASL.

use fe2o3_amqp::{Connection, connection::ConnectionHandle, sasl_profile::SaslProfile};
use fe2o3_amqp_types::{
    definitions::ReceiverSettleMode,
    messaging::{Body, Data},
    primitives::Binary,
};
use fe2o3_amqp_ws::WebSocketStream;
use jitney_interop_rust::{
    Outcome, failure,
    endpoints::{
        ADDRESS, ANY, LISTENER, OWN, ROOT, Rule, SPEAKER, VERSIONS, secured, open_hosts, trusting,
    },
    run,
};
use rustls::SupportedProtocolVersion;

use super::generic::{Peer, accepted, receive_one};

fn plain(rule: Rule) -> SaslProfile {
    SaslProfile::Plain {
        username: rule.name.to_owned(),
        password: rule.key.to_owned(),
    }
}

/// Connects with TLS from the first byte: the client would begin with AMQP's own way to it otherwise.
async fn connect(
    host: &str,
    profile: SaslProfile,
    versions: &[&'static SupportedProtocolVersion],
    certificate: Option<&str>,
) -> Outcome<ConnectionHandle<()>> {
    let builder = Connection::builder()
        .container_id("interop")
        .alt_tls_establishment(true)
        .sasl_profile(profile)
        .tls_connector(trusting(versions, certificate)?);
    Ok(builder.open(format!("amqps://{host}").as_str()).await?)
}

async fn secure(host: &str, profile: SaslProfile, certificate: Option<&str>) -> Outcome<Peer> {
    Peer::over(connect(host, profile, &VERSIONS, certificate).await?).await
}

/// Sends small and large messages, and takes them back.
async fn round_trip(peer: &mut Peer, queue: &str) -> Outcome {
    let mut sender = peer.sender(queue).await?;
    let mut receiver = peer.receiver(queue, ReceiverSettleMode::First).await?;
    for size in [1, 200 * 1024] {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        accepted(sender.send(Data(Binary::from(bytes.clone()))).await?);
        let delivery = receive_one(&mut receiver).await?;
        assert!(
            matches!(delivery.body(), Body::Data(sections) if sections[0].0 == bytes),
            "{size} bytes"
        );
        receiver.accept(&delivery).await?;
    }
    sender.close().await?;
    Ok(receiver.close().await?)
}

fn is_unauthorized(text: &str) -> bool {
    text.contains("UnauthorizedAccess") || text.contains("unauthorized-access")
}

/// Nothing may be sent to the queue. One refusal a connection: the client's session ends with it.
async fn denied(mut peer: Peer, queue: &str) {
    let refused = failure(peer.sender(queue).await);
    assert!(is_unauthorized(&refused), "{refused}");
}

async fn denied_receiving(mut peer: Peer, queue: &str) {
    let refused = failure(peer.receiver(queue, ReceiverSettleMode::First).await);
    assert!(is_unauthorized(&refused), "{refused}");
}

#[test]
fn s261_amqps_is_on_every_port_with_tls_1_2_and_1_3() {
    run(async {
        for host in open_hosts() {
            for version in VERSIONS {
                for profile in [SaslProfile::Anonymous, plain(ANY)] {
                    let connection = connect(&host, profile, &[version], None).await?;
                    let mut peer = Peer::over(connection).await?;
                    round_trip(&mut peer, "s261g").await?;
                    peer.close().await?;
                }
            }
        }
        let mut peer = secure(ADDRESS, plain(ROOT), None).await?;
        round_trip(&mut peer, "s261").await?;
        peer.close().await
    });
}

#[test]
fn s262_who_does_not_trust_the_authority_does_not_connect() {
    run(async {
        for host in open_hosts() {
            let builder = Connection::builder()
                .container_id("interop")
                .alt_tls_establishment(true);
            // The authorities of the web.
            let opened = builder.open(format!("amqps://{host}").as_str()).await;
            let refused = failure(opened.map(drop));
            assert!(refused.contains("UnknownIssuer"), "{refused}");
        }
        Ok(())
    });
}

#[test]
fn s263_websockets_are_on_every_port_with_tls_and_without() {
    run(async {
        for host in open_hosts() {
            for scheme in ["wss", "ws"] {
                for profile in [SaslProfile::Anonymous, plain(ANY)] {
                    let address = format!("{scheme}://{host}/$servicebus/websocket");
                    let stream = WebSocketStream::connect(address).await?;
                    let builder = Connection::builder()
                        .container_id("interop")
                        .sasl_profile(profile);
                    let mut peer = Peer::over(builder.open_with_stream(stream).await?).await?;
                    round_trip(&mut peer, "s263g").await?;
                    peer.close().await?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn s291_plain_gives_what_its_rule_says() {
    run(async {
        let host = secured();
        let mut peer = secure(&host, plain(ROOT), None).await?;
        round_trip(&mut peer, "s291").await?;
        peer.close().await?;
        denied(secure(&host, plain(LISTENER), None).await?, "s291b").await;
        denied_receiving(secure(&host, plain(SPEAKER), None).await?, "s291b").await;
        let mut own = secure(&host, plain(OWN), None).await?;
        round_trip(&mut own, "s291").await?;
        own.close().await?;
        denied(secure(&host, plain(OWN), None).await?, "s291b").await;
        denied_receiving(secure(&host, plain(OWN), None).await?, "s291b").await;
        for wrong in [ROOT.with_key("wrong"), OWN.with_key(ROOT.key)] {
            let refused = failure(
                connect(&host, plain(wrong), &VERSIONS, None)
                    .await
                    .map(drop),
            );
            assert!(refused.contains("code: Auth"), "{refused}");
        }
        Ok(())
    });
}

#[test]
fn s292_external_is_the_rule_of_the_certificates_name() {
    run(async {
        let host = secured();
        let mut speaker = secure(&host, plain(SPEAKER), None).await?;
        let mut sender = speaker.sender("s292").await?;
        accepted(sender.send("heard").await?);
        let mut listener = secure(&host, SaslProfile::External, Some("listener")).await?;
        let mut receiver = listener.receiver("s292", ReceiverSettleMode::First).await?;
        let delivery = receive_one(&mut receiver).await?;
        receiver.accept(&delivery).await?;
        receiver.close().await?;
        denied(listener, "s292").await;
        // A name that no rule has; and no certificate, so that the mechanism is not offered.
        for (certificate, reason) in [(Some("nobody"), "code: Auth"), (None, "EXTERNAL")] {
            let connected = connect(&host, SaslProfile::External, &VERSIONS, certificate).await;
            let refused = failure(connected.map(drop));
            assert!(refused.contains(reason), "{refused}");
        }
        Ok(())
    });
}

#[test]
fn s293_anonymous_sees_nothing_without_a_token() {
    run(async {
        let host = secured();
        for node in ["s293", "s293/$management", "no-such-queue"] {
            denied(secure(&host, SaslProfile::Anonymous, None).await?, node).await;
            denied_receiving(secure(&host, SaslProfile::Anonymous, None).await?, node).await;
        }
        let mut peer = secure(&host, SaslProfile::Anonymous, None).await?;
        peer.sender("$cbs").await?.close().await?;
        peer.close().await
    });
}
