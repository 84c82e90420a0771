//! What a start tells people, in a few lines: how the broker is reached, who may use it, where its data is.
//!
//! As text it is a line for each, to be read and copied; as JSON one object.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use tracing::{info, warn};

use crate::host::root_key::{self, KeyPlace, RootKey};
use crate::net::listen::{self, AMQP, AMQPS_PORT, HTTP, HTTPS_PORT, Listener, METRICS};
use crate::net::tls::ShownCertificate;
use crate::system::logging::{LogFormat, START};
use jitney_broker::access::Profile;

/// An address that is listened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    flag: &'static str,
    address: SocketAddr,
}

impl Place {
    pub(crate) const fn of(listener: &Listener) -> Self {
        Self {
            flag: listener.flag,
            address: listener.address,
        }
    }
}

/// Where messages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    Memory,
    Directory { path: PathBuf, messages: u64 },
    Store,
}

/// What a start tells.
#[derive(Debug)]
pub(super) struct StartReport {
    pub(crate) profile: Profile,
    pub(crate) places: Vec<Place>,
    pub(crate) data: Data,
    /// The key of the namespaces that have none in the configuration.
    pub(crate) root_key: Option<RootKey>,
    pub(crate) certificate: Option<ShownCertificate>,
}

impl StartReport {
    /// Logs it.
    pub(crate) fn log(&self, format: LogFormat) {
        let (access, data) = (self.access(), self.data());
        let (console, connect) = (self.console(), self.connect());
        let certificate = self.certificate();
        match format {
            LogFormat::Text => {
                info!(target: START, "access: {access}");
                info!(target: START, "data: {data}");
                if let Some(console) = console {
                    info!(target: START, "console: {console}");
                }
                info!(target: START, "connect: {connect}");
                if let Some(certificate) = certificate {
                    info!(target: START, "certificate: {certificate}");
                }
            }
            LogFormat::Json => {
                info!(target: START, access, data, console, connect, certificate, "started");
            }
        }
        for warning in self.warnings() {
            warn!(target: START, "{warning}");
        }
    }

    fn access(&self) -> String {
        // The addresses of metrics accept no keys.
        let mut for_clients = self.places.iter().filter(|it| it.flag != METRICS);
        let is_local = for_clients.all(|it| it.address.ip().is_loopback());
        match (self.profile, is_local) {
            (Profile::Development, true) => {
                "any key is accepted, from this machine only (--auth development)".to_owned()
            }
            (Profile::Development, false) => {
                "any key is accepted, from every machine (--auth development)".to_owned()
            }
            (Profile::Verified, _) => "keys and tokens are verified (--auth sas)".to_owned(),
        }
    }

    fn data(&self) -> String {
        match &self.data {
            Data::Memory => "in memory, lost when the process ends".to_owned(),
            Data::Directory { path, messages } => {
                format!("{} ({messages} messages)", path.display())
            }
            Data::Store => "in the store".to_owned(),
        }
    }

    fn console(&self) -> Option<String> {
        let first = self.first(HTTP)?;
        Some(format!("http://{}:{}/", host(first), first.port()))
    }

    /// Returns the connection string, or where to find its key.
    fn connect(&self) -> String {
        let Some(first) = self.first(HTTP).or_else(|| self.first(AMQP)) else {
            return "no address is listened on".to_owned();
        };
        let host = host(first);
        let port = first.port();
        if self.profile == Profile::Development {
            return root_key::emulator_string(&host, port);
        }
        // Without a port, clients go to 5671 and 443.
        let has = |port| self.places.iter().any(|it| it.address.port() == port);
        let port = (!has(AMQPS_PORT) || !has(HTTPS_PORT)).then_some(port);
        let Some(RootKey { key, place }) = &self.root_key else {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            return format!("Endpoint=sb://{host}{port}; with a key of the configuration");
        };
        let of = |key: &str| root_key::root_string(&host, port, key);
        match place {
            KeyPlace::New => format!("{} (a new key, shown once)", of(key.expose())),
            KeyPlace::NewFile(file) => format!(
                "{} (a new key, shown once; it stays in {})",
                of(key.expose()),
                file.display()
            ),
            KeyPlace::File(file) => format!("{} (the key is in {})", of("…"), file.display()),
            KeyPlace::Store => format!("{} (the key is in the store)", of("…")),
        }
    }

    fn certificate(&self) -> Option<String> {
        let certificate = self.certificate.as_ref()?;
        let (names, end) = (certificate.names.join(", "), &certificate.end);
        let trust = if certificate.has_authority {
            "; clients that use TLS have to trust its authority: eval \"$(jitney env)\""
        } else {
            ""
        };
        Some(format!("{names}, until {end}{trust}"))
    }

    /// Returns what SDKs will miss.
    fn warnings(&self) -> Vec<String> {
        if self.profile == Profile::Development {
            return Vec::new();
        }
        let has = |port| self.places.iter().any(|it| it.address.port() == port);
        let mut warnings = Vec::new();
        if !has(AMQPS_PORT) {
            warnings.push(format!(
                "port {AMQPS_PORT} is not listened on: Python and .NET go there for AMQP with TLS, whatever port the \
                 connection string has (--amqps)"
            ));
        }
        warnings
    }

    /// Returns the first address of a kind.
    fn first(&self, flag: &str) -> Option<SocketAddr> {
        let mut all = self.places.iter().filter(|it| it.flag == flag);
        all.next().map(|it| it.address)
    }
}

/// Returns the name by which clients reach an address.
fn host(address: SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_loopback() => "localhost".to_owned(),
        ip if ip.is_unspecified() => listen::host_name(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_base::rights::Key;

    fn report(profile: Profile, places: &[(&'static str, &str)]) -> StartReport {
        let places = places.iter().map(|(flag, address)| Place {
            flag,
            address: address.parse().unwrap(),
        });
        StartReport {
            profile,
            places: places.collect(),
            data: Data::Memory,
            root_key: None,
            certificate: None,
        }
    }

    #[test]
    fn the_string_serves_messages_and_administration_and_has_the_port_that_is_listened_on() {
        let places = [(AMQP, "127.0.0.1:5672"), (HTTP, "127.0.0.1:41234")];
        let report = report(Profile::Development, &places);
        assert_eq!(
            report.connect(),
            "Endpoint=sb://localhost:41234;SharedAccessKeyName=RootManageSharedAccessKey;\
             SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
        );
        assert_eq!(report.console().unwrap(), "http://localhost:41234/");
        assert!(report.access().contains("from this machine only"));
        assert_eq!(report.warnings(), Vec::<String>::new());
    }

    #[test]
    fn an_address_of_metrics_lets_no_client_in() {
        let inside = (AMQP, "127.0.0.1:5672");
        let metrics = report(Profile::Development, &[inside, (METRICS, "0.0.0.0:9100")]);
        assert!(metrics.access().contains("from this machine only"));
        let outside = report(Profile::Development, &[inside, (HTTP, "0.0.0.0:5300")]);
        assert!(outside.access().contains("from every machine"));
    }

    #[test]
    fn a_key_is_shown_at_the_start_that_makes_it_only() {
        let places = [
            (AMQP, "10.0.0.1:5672"),
            ("--amqps", "10.0.0.1:5671"),
            (HTTP, "10.0.0.1:5300"),
            ("--https", "10.0.0.1:443"),
        ];
        let mut report = report(Profile::Verified, &places);
        let with = |place| {
            Some(RootKey {
                key: Key::new("c2VjcmV0".to_owned()),
                place,
            })
        };
        report.root_key = with(KeyPlace::NewFile("d/root.key".into()));
        let text = report.connect();
        assert!(text.starts_with("Endpoint=sb://10.0.0.1;"), "{text}");
        assert!(text.contains("SharedAccessKey=c2VjcmV0 "), "{text}");
        report.root_key = with(KeyPlace::File("d/root.key".into()));
        let text = report.connect();
        assert!(
            !text.contains("c2VjcmV0") && text.contains("d/root.key"),
            "{text}"
        );
        assert_eq!(report.warnings(), Vec::<String>::new());
        // Without 443 the port is said, at which every client finds administration but Java's.
        report.places.pop();
        assert!(report.connect().starts_with("Endpoint=sb://10.0.0.1:5300;"));
    }

    #[test]
    fn it_warns_where_python_and_net_find_no_port() {
        let places = [(AMQP, "10.0.0.1:5672"), (HTTP, "10.0.0.1:5300")];
        let warnings = report(Profile::Verified, &places).warnings();
        assert!(warnings[0].contains("5671"), "{warnings:?}");
    }
}
