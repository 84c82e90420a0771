//! What a failed handshake says of the client, in words for people.

use std::io;

use rustls::{AlertDescription, Error, PeerMisbehaved};

/// Returns what is wrong with a client whose handshake has failed, and what helps; none for faults that tell an operator nothing,
/// such as those of scanners.
pub(super) fn remedy(error: &io::Error) -> Option<&'static str> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let is_distrust = |alert: &AlertDescription| {
        [
            AlertDescription::UnknownCA,
            AlertDescription::CertificateUnknown,
            AlertDescription::BadCertificate,
        ]
        .contains(alert)
    };
    if matches!(error, Error::AlertReceived(alert) if is_distrust(alert)) {
        return Some(
            "it does not trust the broker's certificate, or the certificate is for other names: see `jitney env`, --tls-name and \
             docs/clients/README.md",
        );
    }
    if matches!(
        error,
        Error::PeerMisbehaved(PeerMisbehaved::ServerNameMustContainOneHostName)
    ) {
        return Some(
            "the server name that it asks for is no host name: Go's SDK puts the port into it if the connection string has one and TLS \
             is used (docs/clients/go.md)",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: Error) -> Option<&'static str> {
        remedy(&io::Error::other(error))
    }

    #[test]
    fn a_client_that_does_not_trust_the_authority_is_told_of() {
        for alert in [
            AlertDescription::UnknownCA,
            AlertDescription::BadCertificate,
        ] {
            let text = of(Error::AlertReceived(alert)).unwrap();
            assert!(text.contains("jitney env"), "{text}");
        }
        let text = of(PeerMisbehaved::ServerNameMustContainOneHostName.into()).unwrap();
        assert!(text.contains("Go's SDK"), "{text}");
    }

    #[test]
    fn other_faults_are_not() {
        assert_eq!(
            of(Error::AlertReceived(AlertDescription::ProtocolVersion)),
            None
        );
        assert_eq!(remedy(&io::ErrorKind::UnexpectedEof.into()), None);
    }
}
