//! Connections with TLS to the suite's broker, which accepts any key, and to the secured broker (`../secured.py`).

use std::{fmt, path::PathBuf, sync::Arc, time::SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, Mac};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::{TLS12, TLS13},
};
use sha2::Sha256;
use tokio_rustls::TlsConnector;

use crate::Outcome;

/// The secured broker's address besides 127.0.0.1, where it has the port that AMQPS takes by itself.
pub const ADDRESS: &str = "127.0.0.27";

/// A rule's name, and its key.
#[derive(Clone, Copy)]
pub struct Rule {
    pub name: &'static str,
    pub key: &'static str,
}

pub const ROOT: Rule = Rule {
    name: "RootManageSharedAccessKey",
    key: "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==",
};
pub const LISTENER: Rule = Rule {
    name: "listener",
    key: "a key that may listen",
};
pub const SPEAKER: Rule = Rule {
    name: "speaker",
    key: "a key that may send",
};
/// Of the queue `s291` only.
pub const OWN: Rule = Rule {
    name: "own",
    key: "a key of s291",
};
/// What the suite's own broker is given; there, any key does.
pub const ANY: Rule = Rule {
    name: "RootManageSharedAccessKey",
    key: "SAS_KEY_VALUE",
};

impl Rule {
    /// The rule's name with another key.
    pub fn with_key(self, key: &'static str) -> Self {
        Self { key, ..self }
    }
}

fn environment(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set"))
}

/// `localhost` and a port of the suite's own broker: that of AMQP, and that of HTTP. Each takes everything.
pub fn open_hosts() -> [String; 2] {
    ["JITNEY_AMQP_PORT", "JITNEY_HTTP_PORT"].map(|name| host("localhost", environment(name)))
}

/// The secured broker by a name or address, with its port.
pub fn secured_at(name: &str) -> String {
    host(name, environment("JITNEY_SECURED_AMQP_PORT"))
}

pub fn secured() -> String {
    secured_at("localhost")
}

fn host(name: impl fmt::Display, port: impl fmt::Display) -> String {
    format!("{name}:{port}")
}

/// A file that `jitney certs` made for the secured broker.
fn file(name: &str) -> PathBuf {
    PathBuf::from(environment("JITNEY_SECURED_CERTIFICATES")).join(name)
}

/// The versions of TLS, oldest first.
pub const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// What a client needs for TLS: whom both brokers' certificates are of, and its own certificate if it has one.
pub fn trusting(
    versions: &[&'static SupportedProtocolVersion],
    client: Option<&str>,
) -> Outcome<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(environment("SSL_CERT_FILE"))? {
        roots.add(authority?)?;
    }
    let builder =
        ClientConfig::builder_with_protocol_versions(versions).with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain: Result<Vec<_>, _> =
                CertificateDer::pem_file_iter(file(&format!("{name}.pem")))?.collect();
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key")))?;
            builder.with_client_auth_cert(chain?, key)?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The time in that many seconds, in whole ones since 1970.
pub fn in_seconds(seconds: i64) -> Outcome<i64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(i64::try_from(now.as_secs())? + seconds)
}

/// A shared access signature for a resource, until a time in seconds since 1970.
pub fn signed(resource: &str, rule: Rule, expiry: i64) -> Outcome<String> {
    let resource = urlencoding::encode(resource);
    let mut mac = Hmac::<Sha256>::new_from_slice(rule.key.as_bytes())?;
    mac.update(format!("{resource}\n{expiry}").as_bytes());
    let signature = BASE64.encode(mac.finalize().into_bytes());
    let signature = urlencoding::encode(&signature);
    let name = urlencoding::encode(rule.name);
    Ok(format!(
        "SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={name}"
    ))
}
