//! Connection strings: the namespace, the credential, and the tokens that are made of it.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::http::uri::Authority;

use super::error::CommandError;
use super::path::encoded;
use crate::host::root_key::{self, ROOT};
use crate::net::listen::{AMQP_PORT, AMQPS_PORT, EMULATOR_HTTP_PORT, HTTP_PORT, HTTPS_PORT};
use jitney_base::secret::Secret;

/// Seconds for which a token is valid.
const TOKEN_SECONDS: u64 = 3_600;

/// The parts of a connection string.
#[derive(Debug)]
pub(super) struct ConnectionString {
    pub(super) host: String,
    port: Option<u16>,
    credential: StringCredential,
    /// The entity that it is limited to.
    entity_path: Option<String>,
    /// It is for the emulator: AMQP is without TLS.
    pub(super) is_emulator: bool,
    /// Where the key is from.
    pub(super) origin: Origin,
}

/// Where a key is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was given.
    Given,
    /// It is in this file of a data directory.
    OfDirectory(PathBuf),
    /// No key was given or found: this is one that a broker takes that accepts any.
    Any,
}

#[derive(Debug)]
enum StringCredential {
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
        let port = uri.as_ref().map_or(Ok(None), port_of);
        let port = port.map_err(|()| {
            let text =
                format!("the connection string's Endpoint is '{endpoint}'; ports are 0 to 65535");
            CommandError::Usage(text)
        })?;
        let credential = if let Some(signature) = part("SharedAccessSignature") {
            StringCredential::Signature(Secret::new(signature))
        } else {
            let name = part("SharedAccessKeyName");
            let key = part("SharedAccessKey");
            StringCredential::Key {
                name: name.ok_or_else(|| missing("SharedAccessKeyName"))?,
                key: Secret::new(key.ok_or_else(|| missing("SharedAccessKey"))?),
            }
        };
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            credential,
            entity_path: part("EntityPath").filter(|path| !path.is_empty()),
            is_emulator: part("UseDevelopmentEmulator")
                .is_some_and(|is| is.eq_ignore_ascii_case("true")),
            origin: Origin::Given,
        })
    }

    /// Makes the string of a broker at a URL, or at this machine's port for AMQP, with the root key in a data directory of this
    /// machine if there is one.
    pub(super) fn of_broker(url: Option<&str>, data_dir: &Path) -> Result<Self, CommandError> {
        let (is_tls, host, port) = match url {
            Some(url) => {
                let (is_tls, host, port) = place_of(url)?;
                (is_tls, host, Some(port))
            }
            None => (false, "localhost".to_owned(), None),
        };
        let address: Option<IpAddr> = host.parse().ok();
        let is_here = host.eq_ignore_ascii_case("localhost")
            || address.is_some_and(|address| address.is_loopback());
        let file = data_dir.join(root_key::FILE_NAME);
        let found = is_here.then(|| std::fs::read_to_string(&file));
        let (key, origin) = match found {
            Some(Ok(key)) => (key.trim().to_owned(), Origin::OfDirectory(file)),
            Some(Err(error)) if error.kind() != ErrorKind::NotFound && file.exists() => {
                return Err(CommandError::of_file(&file, &error));
            }
            Some(Err(_)) | None => (root_key::ANY_KEY.to_owned(), Origin::Any),
        };
        Ok(Self {
            host,
            port,
            credential: StringCredential::Key {
                name: ROOT.to_owned(),
                key: Secret::new(key),
            },
            entity_path: None,
            is_emulator: !is_tls,
            origin,
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
            (None, false) => vec![HTTPS_PORT, self.amqp_port()],
        }
    }

    /// Returns the port for AMQP.
    pub(super) fn amqp_port(&self) -> u16 {
        let default = if self.is_emulator {
            AMQP_PORT
        } else {
            AMQPS_PORT
        };
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
            StringCredential::Key { name, key } => (name, key),
            StringCredential::Signature(signature) => return signature.expose().to_owned(),
        };
        let resource = encoded(&format!("http://{}/{path}", url_host(&self.host)));
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
        let signature = hmac::sign(&key, format!("{resource}\n{until}").as_bytes());
        let signature = encoded(&STANDARD.encode(signature));
        let name = encoded(name);
        format!("SharedAccessSignature sr={resource}&sig={signature}&se={until}&skn={name}")
    }
}

/// Returns the port of an address. One that is none is an error: the address is not to be taken as one without a port.
fn port_of(uri: &Uri) -> Result<Option<u16>, ()> {
    let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.parse().map(Some).map_err(|_| ()),
        Some(_) | None => Ok(None),
    }
}

/// Returns a host as it is in a URL.
pub(super) fn url_host(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// Returns whether a URL is for TLS, its host, and its port.
pub(super) fn place_of(url: &str) -> Result<(bool, String, u16), CommandError> {
    let wrong = || {
        let text = format!("--url is '{url}'; an address such as http://127.0.0.1:5300 is allowed");
        CommandError::Usage(text)
    };
    // A host and a port without a scheme are what a listener's address looks like.
    let text = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let (is_tls, port) = match uri.scheme_str() {
        Some("http") => (false, HTTP_PORT),
        Some("https") => (true, HTTPS_PORT),
        _ => return Err(wrong()),
    };
    let host = uri
        .host()
        .filter(|host| !host.is_empty())
        .ok_or_else(wrong)?;
    let default = if url.contains("://") {
        port
    } else {
        EMULATOR_HTTP_PORT
    };
    let port = port_of(&uri).map_err(|()| wrong())?.unwrap_or(default);
    Ok((is_tls, host.trim_matches(['[', ']']).to_owned(), port))
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
        let StringCredential::Key { name, key } = &string.credential else {
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
    fn without_a_string_the_root_key_of_a_data_directory_is_for_this_machine() {
        let directory = tempfile::tempdir().unwrap();
        let of = |url| {
            ConnectionString::of_broker(url, directory.path())
                .ok()
                .unwrap()
        };
        let any = of(None);
        assert_eq!((any.origin.clone(), any.amqp_port()), (Origin::Any, 5672));
        let file = directory.path().join("root.key");
        std::fs::write(&file, "c2l4dGVlbi1sZXR0ZXJzIQ==\n").unwrap();
        for (url, port) in [(None, 5672), (Some("http://127.0.0.1:5301"), 5301)] {
            let found = of(url);
            assert_eq!(found.origin, Origin::OfDirectory(file.clone()));
            let StringCredential::Key { name, key } = &found.credential else {
                panic!("it has a key");
            };
            assert_eq!(
                (name.as_str(), key.expose()),
                (ROOT, "c2l4dGVlbi1sZXR0ZXJzIQ==")
            );
            assert!(found.is_emulator && found.amqp_port() == port);
        }
        let elsewhere = of(Some("https://broker.example.com"));
        assert_eq!(elsewhere.origin, Origin::Any);
        assert!(!elsewhere.is_emulator && elsewhere.amqp_port() == 443);
    }

    #[test]
    fn a_port_that_is_none_is_refused() {
        for endpoint in ["sb://localhost:99999", "sb://[::1]:x", "sb://a:"] {
            let text = format!("Endpoint={endpoint};SharedAccessKeyName=r;SharedAccessKey=k");
            assert!(ConnectionString::parse(&text).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn a_url_may_be_without_a_scheme() {
        for (url, wanted) in [
            ("http://localhost:5301", (false, "localhost", 5301)),
            ("https://[::1]", (true, "::1", 443)),
            ("localhost:5301", (false, "localhost", 5301)),
            ("localhost", (false, "localhost", 5300)),
        ] {
            let (is_tls, host, port) = place_of(url).ok().unwrap();
            assert_eq!((is_tls, host.as_str(), port), wanted, "{url}");
        }
        for wrong in ["ftp://a", "http://", "http://a:99999", ""] {
            assert!(place_of(wrong).is_err(), "{wrong}");
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
