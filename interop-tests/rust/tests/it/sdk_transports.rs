//! TLS, WebSockets, keys and signatures.

use azservicebus::ServiceBusTransportType::{AmqpTcp, AmqpWebSocket};
use jitney_interop_rust::{
    A_WHILE, DEADLINE, Sdk, body, failure,
    endpoints::{
        ADDRESS, ANY, LISTENER, ROOT, Rule, SPEAKER, secured, secured_at, in_seconds, open_hosts,
        signed,
    },
    receive_nothing, receive_one, run,
};

const SIZES: [usize; 2] = [1, 200 * 1024];

#[test]
fn s261_amqps_is_on_every_port() {
    run(async {
        for host in open_hosts() {
            let mut sdk = Sdk::connect_securely(&host, ANY, AmqpTcp).await?;
            sdk.round_trip("s261r", &SIZES).await?;
        }
        Ok(())
    });
}

#[test]
fn s261_a_connection_string_is_enough() {
    run(async {
        let Rule { name, key } = ROOT;
        let text =
            format!("Endpoint=sb://{ADDRESS}/;SharedAccessKeyName={name};SharedAccessKey={key}");
        let mut sdk = Sdk::connect_by_string(&text).await?;
        sdk.round_trip("s261", &SIZES).await
    });
}

#[test]
fn s262_a_name_that_is_not_the_certificates_is_not_connected_to() {
    run(async {
        for transport in [AmqpTcp, AmqpWebSocket] {
            let host = secured_at("127.0.0.1");
            let refused = failure(
                Sdk::connect_securely(&host, ROOT, transport)
                    .await
                    .map(drop),
            );
            assert!(refused.contains("certificate verify failed"), "{refused}");
        }
        Ok(())
    });
}

#[test]
fn s263_websockets_are_on_every_port_with_tls_and_without() {
    run(async {
        for host in open_hosts() {
            let mut sdk = Sdk::connect_securely(&host, ANY, AmqpWebSocket).await?;
            sdk.round_trip("s263r", &SIZES).await?;
            let mut sdk = Sdk::connect_plainly(&host, AmqpWebSocket).await?;
            sdk.round_trip("s263r", &SIZES).await?;
        }
        Ok(())
    });
}

/// Nothing may be sent to the queue, nor received from it.
async fn denied(sdk: &mut Sdk, queue: &str) {
    let refused = failure(sdk.sender(queue).await);
    assert!(is_unauthorized(&refused), "{refused}");
    let refused = failure(sdk.receiver(queue).await);
    assert!(is_unauthorized(&refused), "{refused}");
}

fn is_unauthorized(text: &str) -> bool {
    text.contains("UnauthorizedAccess") || text.contains("401") || text.contains("Unauthorized")
}

#[test]
fn s264_a_wrong_key_and_an_unknown_name_are_unauthorized() {
    run(async {
        for wrong in [
            ROOT.with_key("wrong"),
            ROOT.with_key(ANY.key),
            ROOT.with_key(LISTENER.key),
            Rule {
                name: "no-such-name",
                ..ROOT
            },
        ] {
            for transport in [AmqpTcp, AmqpWebSocket] {
                let mut sdk = Sdk::connect_securely(&secured(), wrong, transport).await?;
                denied(&mut sdk, "s264").await;
            }
        }
        Ok(())
    });
}

#[test]
fn s264_a_key_does_what_its_rule_says() {
    run(async {
        let mut speaker = Sdk::connect_securely(&secured(), SPEAKER, AmqpTcp).await?;
        speaker.send("s264", &["heard"]).await?;
        let refused = failure(speaker.receiver("s264").await);
        assert!(is_unauthorized(&refused), "{refused}");
        let mut listener = Sdk::connect_securely(&secured(), LISTENER, AmqpWebSocket).await?;
        let mut receiver = listener.receiver("s264").await?;
        let message = receive_one(&mut receiver).await?;
        assert_eq!(body(&message), "heard");
        receiver.complete_message(&message).await?;
        receive_nothing(&mut receiver, A_WHILE).await?;
        let refused = failure(listener.sender("s264").await);
        assert!(is_unauthorized(&refused), "{refused}");
        Ok(())
    });
}

#[test]
fn s265_a_signature_is_good_for_its_resource_and_its_time() {
    run(async {
        let host = secured();
        let soon = in_seconds(600)?;
        let whole = format!("sb://{host}/");
        for resource in [
            whole.as_str(),
            "amqps://localhost",
            "https://localhost/",
            "localhost",
        ] {
            let signature = signed(resource, ROOT, soon)?;
            let mut sdk = Sdk::connect_bearing(&host, signature).await?;
            sdk.round_trip("s265", &[1]).await?;
        }
        let own = signed(&format!("{whole}s265"), ROOT, soon)?;
        let mut sdk = Sdk::connect_bearing(&host, own).await?;
        sdk.round_trip("s265", &[1]).await?;
        denied(&mut sdk, "s265b").await;
        for bad in [
            signed(&whole, ROOT, in_seconds(-1)?)?,
            signed(&whole, ROOT.with_key("wrong"), soon)?,
            signed(&whole, ROOT, soon)?.replace("&se=", "&se=1"),
        ] {
            let mut sdk = Sdk::connect_bearing(&host, bad).await?;
            denied(&mut sdk, "s265").await;
        }
        Ok(())
    });
}

#[test]
fn s265_a_link_ends_when_its_signature_does() {
    run(async {
        let expiry = in_seconds(4)?;
        let signature = signed(&format!("sb://{}/", secured()), ROOT, expiry)?;
        let mut sdk = Sdk::connect_bearing(&secured(), signature).await?;
        let mut receiver = sdk.receiver("s295").await?;
        let waited = receiver
            .receive_messages_with_max_wait_time(1, DEADLINE)
            .await;
        let ended = failure(waited);
        assert!(is_unauthorized(&ended), "{ended}");
        assert!(expiry <= in_seconds(0)?, "before its time");
        Ok(())
    });
}
