//! TLS for every listener: its certificates, and their replacement while the broker runs.
//!
//! Certificates come from files that the operator names, or from a local authority that is made on
//! the first start (`net::certs`), once for all servers that share a store. Open connections keep their certificates; new ones get the
//! latest. Unusable files change nothing: the old certificates stay, and the log names the file,
//! its fault and the remedy.
//!
//! Leaves to the listeners: deadlines of handshakes, and the protocol inside.

pub(crate) mod certificate;
mod error;
mod files;
mod handshake;
mod on_demand;
mod source;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use clap::Args;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, error, info, warn};

use super::certs::shared::LatestAuthority;
use super::certs::{CertsError, SubjectName};
use super::warning::Warning;
use crate::limits;
pub(crate) use certificate::common_name;
pub(crate) use error::TlsError;
use files::Pair;
use on_demand::OnDemand;
pub(crate) use on_demand::is_local_name;
use source::{CertificateSource, Fingerprint, Inputs};

/// The protocols inside, for clients that negotiate one by name (ALPN); the first is preferred.
const PROTOCOLS: [&[u8]; 2] = [b"amqp", b"http/1.1"];

/// The arguments of `jitney serve` for TLS.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TlsArgs {
    /// The broker's certificate, as PEM, with those between it and its authority. Of several, the
    /// one for the client's host name is used; the first is the default. Without this option, a
    /// local authority and a certificate for localhost are made in the data directory; servers that
    /// share a store share the authority.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Vec<PathBuf>,
    /// The key of each --tls-cert, as PEM, in the same order.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Vec<PathBuf>,
    /// Authorities, as PEM, for certificates of clients that sign in with SASL EXTERNAL.
    #[arg(long, value_name = "FILE")]
    pub(super) tls_client_ca: Option<PathBuf>,
    /// The authority that GET /ca.pem returns. The default is ca.pem beside the first --tls-cert,
    /// if it exists.
    #[arg(long, value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,
    /// A host name or address by which clients reach the broker; may be given several times, with `*` as the first label for all
    /// names below. The broker's own authority signs a certificate for it. Names of this machine and of containers need not be
    /// given.
    #[arg(long, value_name = "NAME", conflicts_with = "tls_cert")]
    pub(super) tls_name: Vec<SubjectName>,
}

/// The certificate that clients see by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownCertificate {
    /// The names that it is for.
    pub(crate) names: Vec<String>,
    /// The day on which it ends.
    pub(crate) end: String,
    /// The broker hands out the authority that signed it.
    pub(crate) has_authority: bool,
}

/// The certificates of the broker, shared by its listeners.
#[derive(Debug)]
pub(crate) struct Tls {
    source: CertificateSource,
    client_ca: Option<PathBuf>,
    ca: Option<PathBuf>,
    names: Vec<SubjectName>,
    provider: Arc<CryptoProvider>,
    /// About clients whose handshake has failed for a reason that people can mend.
    warning: Mutex<Warning>,
    current: ArcSwap<Current>,
}

impl Tls {
    /// Reads the certificates. Without files of the operator, makes them in a directory or, without
    /// one, in memory.
    ///
    /// # Errors
    ///
    /// The first fault, with its file and the remedy.
    pub(crate) fn load(args: &TlsArgs, own_dir: Option<&Path>) -> Result<Arc<Self>, TlsError> {
        Self::load_with(args, |now| match own_dir {
            Some(directory) => Ok(CertificateSource::Own(directory.to_owned())),
            None => CertificateSource::in_memory(now),
        })
    }

    /// Reads the certificates. Without files of the operator, makes them in a directory, by the authority that servers share.
    ///
    /// # Errors
    ///
    /// As [`Tls::load`].
    pub(crate) fn load_shared(
        args: &TlsArgs,
        directory: &Path,
        authority: LatestAuthority,
    ) -> Result<Arc<Self>, TlsError> {
        Self::load_with(args, |_| {
            Ok(CertificateSource::Shared(directory.to_owned(), authority))
        })
    }

    fn load_with(
        args: &TlsArgs,
        own: impl FnOnce(SystemTime) -> Result<CertificateSource, CertsError>,
    ) -> Result<Arc<Self>, TlsError> {
        let now = SystemTime::now();
        let (certificates, keys) = (args.tls_cert.len(), args.tls_key.len());
        if certificates != keys {
            return Err(TlsError::Count { certificates, keys });
        }
        let pairs = args.tls_cert.iter().cloned();
        let pairs: Vec<_> = pairs.zip(args.tls_key.iter().cloned()).collect();
        let source = if pairs.is_empty() {
            own(now)?
        } else {
            CertificateSource::Files(pairs)
        };
        let beside = match &source {
            CertificateSource::Files(pairs) => {
                let ca = pairs
                    .first()
                    .map(|(first, _)| first.with_file_name("ca.pem"));
                ca.filter(|ca| ca.exists())
            }
            CertificateSource::Own(directory) | CertificateSource::Shared(directory, _) => {
                Some(directory.join("ca.pem"))
            }
            CertificateSource::Memory(..) => None,
        };
        let client_ca = args.tls_client_ca.clone();
        let ca = args.tls_ca.clone().or(beside);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let names = args.tls_name.clone();
        let inputs = Inputs::read(&source, client_ca.as_deref(), ca.as_deref(), now);
        let current = inputs.and_then(|inputs| {
            let on_demand = OnDemand::of(&source, &names, &provider, now);
            Current::new(&inputs, on_demand, &provider, now)
        });
        let current = current.map_err(|error| error.with_remedy(&source))?;
        current.log_warnings();
        Ok(Arc::new(Self {
            source,
            client_ca,
            ca,
            names,
            provider,
            warning: Mutex::default(),
            current: ArcSwap::from_pointee(current),
        }))
    }

    /// Reads all files again; returns whether anything changed.
    ///
    /// # Errors
    ///
    /// As [`Tls::load`]; the old certificates stay.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        self.reload_at(SystemTime::now())
    }

    fn reload_at(&self, now: SystemTime) -> Result<bool, TlsError> {
        let (client_ca, ca) = (self.client_ca.as_deref(), self.ca.as_deref());
        let inputs = Inputs::read(&self.source, client_ca, ca, now)?;
        if inputs.fingerprint() == self.current.load().fingerprint {
            return Ok(false);
        }
        let on_demand = OnDemand::of(&self.source, &self.names, &self.provider, now);
        let new = Current::new(&inputs, on_demand, &self.provider, now)?;
        self.current.store(Arc::new(new));
        Ok(true)
    }

    /// Does the handshake of one connection, which came to an address of this machine.
    ///
    /// A client that offers only unknown protocols is accepted as if it had offered none: its first
    /// bytes show the protocol.
    ///
    /// # Errors
    ///
    /// The fault of the handshake; the client got an alert.
    pub(crate) async fn accept<S>(
        &self,
        stream: S,
        address: Option<IpAddr>,
    ) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let ours = |protocol: &[u8]| PROTOCOLS.contains(&protocol);
        let others_only = match start.client_hello().alpn() {
            Some(mut asked) => !asked.any(ours),
            None => false,
        };
        let current = self.current.load_full();
        let config = if others_only {
            &current.without_protocols
        } else {
            &current.config
        };
        let named = start.client_hello().server_name().is_some();
        let of_address = address.filter(|_| !named);
        let of_address = of_address.and_then(|address| current.choice.for_address(address));
        let config = match of_address {
            Some(key) => on_demand::showing(config, key),
            None => Arc::clone(config),
        };
        start.into_stream(config).await
    }

    /// Returns the authority for clients to trust, as PEM.
    pub(crate) fn ca_pem(&self) -> Option<Arc<str>> {
        self.current.load().ca_pem.clone()
    }

    /// Logs a failed handshake: what people can mend, once in a while, and the rest for those who ask for it.
    pub(crate) fn report_failed(&self, peer: SocketAddr, error: &io::Error) {
        let remedy = handshake::remedy(error).filter(|_| {
            let mut warning = self.warning.lock().unwrap_or_else(PoisonError::into_inner);
            warning.is_due()
        });
        match remedy {
            Some(remedy) => info!(%peer, %error, "a client's TLS handshake failed: {remedy}"),
            None => debug!(%peer, %error, "TLS handshake failed"),
        }
    }

    /// Returns the certificate that clients see by default.
    pub(crate) fn shown(&self) -> Option<ShownCertificate> {
        let current = self.current.load();
        let first = &current.choice.pairs.first()?.certificate;
        Some(ShownCertificate {
            names: first.hosts(),
            end: certificate::day(first.not_after),
            has_authority: current.ca_pem.is_some(),
        })
    }

    /// Returns whether one of the broker's certificates is for a host.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.current.load().choice.is_for(host)
    }
}

/// The latest certificates.
#[derive(Debug)]
struct Current {
    /// For clients that ask for a protocol of ours, or for none.
    config: Arc<ServerConfig>,
    /// For clients that ask for other protocols only.
    without_protocols: Arc<ServerConfig>,
    choice: Arc<CertificateSelector>,
    ca_pem: Option<Arc<str>>,
    summaries: Vec<String>,
    warnings: Vec<String>,
    fingerprint: Fingerprint,
}

impl Current {
    fn new(
        inputs: &Inputs,
        on_demand: Option<OnDemand>,
        provider: &Arc<CryptoProvider>,
        now: SystemTime,
    ) -> Result<Self, TlsError> {
        let mut summaries = Vec::new();
        let mut warnings = Vec::new();
        let mut pairs = Vec::new();
        for (certificate, key) in &inputs.pairs {
            let mut pair = Pair::new(certificate, key, provider, now)?;
            let place = certificate.path.display();
            summaries.push(format!("{place}: {}", pair.certificate));
            warnings.append(&mut pair.warnings);
            pairs.push(pair);
        }
        let clients = match &inputs.client_ca {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(file) => {
                let (roots, mut odd) = files::authorities(file)?;
                for (_, authority) in file.certificates()? {
                    summaries.push(format!("{}: for clients, {authority}", file.path.display()));
                }
                warnings.append(&mut odd);
                let provider = Arc::clone(provider);
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| rustls::Error::General(error.to_string()))?
            }
        };
        if let Some(error) = &inputs.not_renewed {
            warnings.push(format!("the certificate cannot be renewed: {error}"));
        }
        let choice = Arc::new(CertificateSelector { pairs, on_demand });
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<CertificateSelector>::clone(&choice);
        let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(resolver);
        // Old tickets are invalid now: a client whose authority is no longer trusted must not
        // resume a session.
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        let without_protocols = Arc::new(config.clone());
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self {
            config: Arc::new(config),
            without_protocols,
            choice,
            ca_pem: inputs.ca.as_ref().map(files::public_text).transpose()?,
            summaries,
            warnings,
            fingerprint: inputs.fingerprint(),
        })
    }

    fn log_certificates(&self, what: &str) {
        for certificate in &self.summaries {
            info!("{what}: {certificate}");
        }
        self.log_warnings();
    }

    fn log_warnings(&self) {
        for warning in &self.warnings {
            warn!("{warning}");
        }
    }
}

/// Selects a client's certificate: one for the host that it names, or else the first.
#[derive(Debug)]
struct CertificateSelector {
    pairs: Vec<Pair>,
    /// For other names, if the broker has an authority of its own.
    on_demand: Option<OnDemand>,
}

impl CertificateSelector {
    /// Returns whether there is a certificate for a host.
    fn is_for(&self, host: &str) -> bool {
        let mut pairs = self.pairs.iter();
        pairs.any(|pair| pair.certificate.is_for(host))
            || self.on_demand.as_ref().is_some_and(|it| it.may_name(host))
    }

    /// Returns the certificate for a client that names no host; none for the default one.
    fn for_address(&self, address: IpAddr) -> Option<Arc<CertifiedKey>> {
        let default = self.pairs.first()?.certificate.hosts();
        self.on_demand.as_ref()?.for_address(address, &default)
    }
}

impl ResolvesServerCert for CertificateSelector {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let host = hello.server_name();
        let fits = |pair: &&Pair| host.is_some_and(|host| pair.certificate.is_for(host));
        // Of one name there may be two, with RSA for the old clients.
        let schemes = hello.signature_schemes();
        let usable = |pair: &&Pair| pair.key.key.choose_scheme(schemes).is_some();
        let all = || self.pairs.iter();
        let chosen = all().filter(fits).find(usable);
        let chosen = chosen.or_else(|| all().find(fits));
        let chosen = chosen.map(|pair| Arc::clone(&pair.key));
        let on_demand = || self.on_demand.as_ref()?.for_host(host?);
        let first = || self.pairs.first().map(|pair| Arc::clone(&pair.key));
        chosen.or_else(on_demand).or_else(first)
    }
}

/// Reloads certificates until the stop: checks the files periodically, and at once on SIGHUP, which
/// is `hangup`.
pub(crate) async fn watch(tls: Arc<Tls>, hangup: Signal, stopped: watch::Receiver<bool>) {
    watch_every(
        limits::CERTIFICATE_CHECK_INTERVAL.as_duration(),
        tls,
        hangup,
        stopped,
    )
    .await;
}

async fn watch_every(
    every: Duration,
    tls: Arc<Tls>,
    mut hangup: Signal,
    mut stopped: watch::Receiver<bool>,
) {
    let mut looks = tokio::time::interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut trouble = Trouble::default();
    loop {
        let why = tokio::select! {
            _ = looks.tick() => Why::Time,
            _ = hangup.recv() => Why::Asked,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let reading = Arc::clone(&tls);
        // A directory on a network may be slow.
        let read = tokio::task::spawn_blocking(move || reading.reload()).await;
        match read.unwrap_or_else(|error| Err(error.into())) {
            Ok(true) => tls
                .current
                .load()
                .log_certificates("new certificate for TLS"),
            Ok(false) if why == Why::Asked => info!("SIGHUP: the certificates have not changed"),
            Ok(false) => {}
            Err(error) => {
                let error = error.to_string();
                if trouble.is_to_tell(why, &error) {
                    error!("{error}; TLS keeps using the previous certificates");
                }
                continue;
            }
        }
        trouble = Trouble::default();
    }
}

/// The reason for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Asked,
    Time,
}

/// The faults of the last checks.
#[derive(Debug, Default)]
struct Trouble {
    seen: Option<String>,
    logged: Option<String>,
}

impl Trouble {
    /// Returns whether an error is logged: not one that passes, as while files are being replaced
    /// one after the other, and not the same one again and again.
    fn is_to_tell(&mut self, why: Why, error: &str) -> bool {
        let again = self.seen.as_deref() == Some(error);
        let known = self.logged.as_deref() == Some(error);
        self.seen = Some(error.to_owned());
        let tell = why == Why::Asked || (again && !known);
        if tell {
            self.logged = Some(error.to_owned());
        }
        tell
    }
}

#[cfg(test)]
mod tests;
