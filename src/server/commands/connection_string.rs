//! Connection strings: the namespace, the credential, and the tokens that are made of it.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;

use super::client::{CommandError, encoded};
use crate::secret::Secret;

/// The port of the emulator's administration API, which is the broker's HTTP port.
pub(super) const EMULATOR_HTTP_PORT: u16 = 5300;
/// Seconds for which a token is valid.
const TOKEN_SECONDS: u64 = 3_600;

/// The parts of a connection string.
#[derive(Debug)]
pub(super) struct ConnectionString {
    pub(super) host: String,
    port: Option<u16>,
    credential: Credential,
    /// The entity that it is limited to.
    entity_path: Option<String>,
    /// It is for the emulator: AMQP is without TLS.
    pub(super) is_emulator: bool,
}

#[derive(Debug)]
enum Credential {
    Key { name: String, key: Secret },
    Signature(Secret),
}

impl ConnectionString {
    pub(super) fn parse(text: &str) -> Result<Self, CommandError> {
        let part = |wanted: &str| {
            let mut parts = text.split(';').filter_map(|part| part.split_once('='));
            parts
                .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim().to_owned())
        };
        let missing =
            |name: &str| CommandError::Usage(format!("the connection string has no {name}"));
        let endpoint = part("Endpoint").ok_or_else(|| missing("Endpoint"))?;
        let uri: Option<Uri> = endpoint.parse().ok();
        let host = uri.as_ref().and_then(Uri::host);
        let host = host.ok_or_else(|| missing("usable Endpoint; sb://HOST/ is allowed"))?;
        let credential = if let Some(signature) = part("SharedAccessSignature") {
            Credential::Signature(Secret::new(signature))
        } else {
            let name = part("SharedAccessKeyName");
            let key = part("SharedAccessKey");
            Credential::Key {
                name: name.ok_or_else(|| missing("SharedAccessKeyName"))?,
                key: Secret::new(key.ok_or_else(|| missing("SharedAccessKey"))?),
            }
        };
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.as_ref().and_then(Uri::port_u16),
            credential,
            entity_path: part("EntityPath").filter(|path| !path.is_empty()),
            is_emulator: part("UseDevelopmentEmulator")
                .is_some_and(|is| is.eq_ignore_ascii_case("true")),
        })
    }

    /// Returns the ports for HTTP, the one to be tried first before the others: every port of a broker takes HTTP too. It is TLS
    /// unless the string is for the emulator.
    pub(super) fn http_ports(&self) -> Vec<u16> {
        match (self.port, self.is_emulator) {
            (Some(EMULATOR_HTTP_PORT), _) => vec![EMULATOR_HTTP_PORT],
            (Some(port), true) => vec![port, EMULATOR_HTTP_PORT],
            (Some(port), false) => vec![port],
            (None, true) => vec![EMULATOR_HTTP_PORT, self.amqp_port()],
            (None, false) => vec![443, self.amqp_port()],
        }
    }

    /// Returns the port for AMQP.
    pub(super) fn amqp_port(&self) -> u16 {
        let default = if self.is_emulator { 5672 } else { 5671 };
        self.port.unwrap_or(default)
    }

    /// Checks that an entity is the one that the string is limited to, or lies below it.
    pub(super) fn check_entity(&self, entity: &str) -> Result<(), CommandError> {
        let Some(path) = &self.entity_path else {
            return Ok(());
        };
        let (path, entity) = (path.to_ascii_lowercase(), entity.to_ascii_lowercase());
        let rest = entity.strip_prefix(path.trim_matches('/'));
        match rest {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Ok(()),
            Some(_) | None => Err(CommandError::Usage(format!(
                "the entity is '{entity}'; the connection string is for '{path}' (EntityPath)"
            ))),
        }
    }

    /// Makes a token for a path of the namespace, or returns the signature that the string has
    /// (`administration.md#headers`).
    pub(super) fn token(&self, path: &str) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.token_until(path, now.as_secs() + TOKEN_SECONDS)
    }

    fn token_until(&self, path: &str, until: u64) -> String {
        let (name, key) = match &self.credential {
            Credential::Key { name, key } => (name, key),
            Credential::Signature(signature) => return signature.expose().to_owned(),
        };
        let resource = encoded(&format!("http://{}/{path}", self.url_host()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
        let signature = hmac::sign(&key, format!("{resource}\n{until}").as_bytes());
        let signature = encoded(&STANDARD.encode(signature));
        let name = encoded(name);
        format!("SharedAccessSignature sr={resource}&sig={signature}&se={until}&skn={name}")
    }

    fn url_host(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ConnectionString {
        ConnectionString::parse(text).ok().unwrap()
    }

    #[test]
    fn a_connection_string_says_where_and_with_what() {
        let text = "Endpoint=sb://localhost;SharedAccessKeyName=Root;SharedAccessKey=a=b=;UseDevelopmentEmulator=true;";
        let string = parsed(text);
        assert_eq!(string.http_ports(), [5300, 5672]);
        assert_eq!(string.amqp_port(), 5672);
        let Credential::Key { name, key } = &string.credential else {
            panic!("it has a key");
        };
        assert_eq!((name.as_str(), key.expose()), ("Root", "a=b="));
        let text = "Endpoint=sb://shop.example.com:8443/;SharedAccessKeyName=r;SharedAccessKey=k";
        let string = parsed(text);
        assert_eq!(string.http_ports(), [8443]);
        assert_eq!(string.amqp_port(), 8443);
        let error = ConnectionString::parse("Endpoint=sb://a;SharedAccessKeyName=r")
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "the connection string has no SharedAccessKey"
        );
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn the_port_of_the_string_is_tried_first_for_http() {
        for (endpoint, flag, ports) in [
            (
                "sb://localhost:32771",
                ";UseDevelopmentEmulator=true",
                &[32771, 5300][..],
            ),
            (
                "sb://localhost:5300",
                ";UseDevelopmentEmulator=true",
                &[5300],
            ),
            ("sb://localhost", "", &[443, 5671]),
        ] {
            let text = format!("Endpoint={endpoint};SharedAccessKeyName=r;SharedAccessKey=k{flag}");
            assert_eq!(parsed(&text).http_ports(), ports, "{text}");
        }
    }

    #[test]
    fn an_entity_path_limits_the_entities() {
        let string =
            parsed("Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey=k;EntityPath=Orders");
        assert!(string.check_entity("orders").is_ok());
        assert!(string.check_entity("Orders/$DeadLetterQueue").is_ok());
        assert!(string.check_entity("orders2").is_err());
    }

    #[test]
    fn a_signature_is_the_token_and_a_key_signs_one() {
        let string =
            parsed("Endpoint=sb://a/;SharedAccessSignature=SharedAccessSignature sr=x&sig=y");
        assert_eq!(string.token("q"), "SharedAccessSignature sr=x&sig=y");
        assert_eq!(string.amqp_port(), 5671);
        let string = parsed("Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey=k");
        let token = string.token_until("q", 7);
        assert!(
            token.starts_with("SharedAccessSignature sr=http%3A%2F%2Fa%2Fq&sig="),
            "{token}"
        );
        assert!(token.ends_with("&se=7&skn=r"), "{token}");
    }
}
