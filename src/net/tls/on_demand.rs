//! Certificates for the names by which clients reach a broker that has its own local authority.
//!
//! The default certificate is for this machine's names. A client in a container asks for `host.docker.internal` or for the name of
//! a service, and one in another network for an address: it gets a certificate for that name, signed when it is first asked for.
//! Only names are signed that have no owner in the public name system, the names of the machine, and those of `--tls-name`.
//!
//! What a peer without a key can cost: so many certificates in a second and so many that are kept. Beyond that it gets the default
//! certificate.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::{debug, warn};

use super::files::{Pair, PemFile};
use super::source::CertificateSource;
use crate::net::certs::{CertificateAuthority, SubjectName};
use crate::net::listen;

/// Certificates that are kept.
const KEPT_MAX: usize = 64;
/// Certificates that are signed in a second.
const SIGNED_MAX: u32 = 20;

/// Domains below which no attacker can register a name: those of machines, containers and local networks.
const LOCAL_DOMAINS: [&str; 6] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "home.arpa",
    "test",
];

/// Returns whether a host name is none of the public name system: it has no dot, or is in a domain of local networks.
pub(crate) fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_below = |domain: &&str| {
        let rest = host.strip_suffix(*domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    !host.contains('.') || LOCAL_DOMAINS.iter().any(is_below)
}

/// Makes certificates for names that clients ask for.
pub(super) struct OnDemand {
    authority: Arc<CertificateAuthority>,
    /// The names that the operator has given.
    named: Vec<SubjectName>,
    /// The name of this machine.
    machine: String,
    provider: Arc<CryptoProvider>,
    issued: Mutex<IssuedCertificates>,
}

#[derive(Default)]
struct IssuedCertificates {
    /// By their names.
    all: BTreeMap<Vec<String>, Arc<CertifiedKey>>,
    /// The second that is counted, and how many were signed in it.
    second: Option<(Instant, u32)>,
}

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand").finish_non_exhaustive()
    }
}

impl OnDemand {
    /// Returns what signs with the authority of the broker's own certificates; none if there is none that can.
    pub(super) fn of(
        source: &CertificateSource,
        named: &[SubjectName],
        provider: &Arc<CryptoProvider>,
        now: SystemTime,
    ) -> Option<Self> {
        let authority = source.authority(now)?;
        Some(Self::new(authority, named.to_vec(), Arc::clone(provider)))
    }

    fn new(
        authority: Arc<CertificateAuthority>,
        named: Vec<SubjectName>,
        provider: Arc<CryptoProvider>,
    ) -> Self {
        Self {
            authority,
            named,
            machine: listen::host_name(),
            provider,
            issued: Mutex::default(),
        }
    }

    /// Returns whether a certificate for a host name may be signed.
    pub(super) fn may_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        matches!(host.parse(), Ok(SubjectName::Host(name)) if !name.starts_with('*'))
            && (is_local_name(host)
                || host.eq_ignore_ascii_case(&self.machine)
                || self.named.iter().any(|name| name.covers(host)))
    }

    /// Returns the certificate for a host name; none if there is none for it.
    pub(super) fn for_host(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        if !self.may_name(host) {
            return None;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.for_names(vec![host])
    }

    /// Returns the certificate for clients that name no host, and have connected to an address of this machine; none if the
    /// default one, which is for the hosts that are given, is for all of those names.
    pub(super) fn for_address(
        &self,
        address: IpAddr,
        default: &[String],
    ) -> Option<Arc<CertifiedKey>> {
        let address = address.to_canonical().to_string();
        let named = self.named.iter().map(ToString::to_string);
        let further: Vec<String> = named.chain([address]).collect();
        if further.iter().all(|name| default.contains(name)) {
            return None;
        }
        let mut all = default.to_vec();
        all.extend(further.into_iter().filter(|name| !default.contains(name)));
        self.for_names(all)
    }

    fn for_names(&self, names: Vec<String>) -> Option<Arc<CertifiedKey>> {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issued.all.get(&names) {
            return Some(Arc::clone(known));
        }
        if !issued.may_sign(Instant::now()) {
            debug!("too many certificates were asked for in a second: the default one is used");
            return None;
        }
        let made = self.make(&names)?;
        if KEPT_MAX <= issued.all.len() {
            issued.all.clear();
        }
        issued.all.insert(names, Arc::clone(&made));
        Some(made)
    }

    fn make(&self, names: &[String]) -> Option<Arc<CertifiedKey>> {
        let now = SystemTime::now();
        let subjects: Vec<SubjectName> = names.iter().filter_map(|it| it.parse().ok()).collect();
        let issued = match self.authority.issue_for(&subjects, now) {
            Ok(issued) => issued,
            Err(error) => {
                warn!(%error, "a certificate cannot be signed");
                return None;
            }
        };
        let certificate = PemFile::in_memory("the certificate for a name", &issued.chain);
        let key = PemFile::in_memory("its key", &issued.key);
        let pair = Pair::new(&certificate, &key, &self.provider, now).ok()?;
        debug!(?names, "signed a certificate");
        Some(pair.key)
    }
}

impl IssuedCertificates {
    /// Counts a signature; returns whether there may be another one now.
    fn may_sign(&mut self, now: Instant) -> bool {
        let count = match self.second {
            Some((begin, count)) if now.duration_since(begin) < Duration::from_secs(1) => count,
            _ => {
                self.second = Some((now, 0));
                0
            }
        };
        if count == SIGNED_MAX {
            return false;
        }
        if let Some((_, signed)) = &mut self.second {
            *signed = count + 1;
        }
        true
    }
}

/// Returns a configuration with which a client sees one certificate, whatever it asks for.
pub(super) fn showing(config: &ServerConfig, key: Arc<CertifiedKey>) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.cert_resolver = Arc::new(OneCertificate(key));
    Arc::new(config)
}

#[derive(Debug)]
struct OneCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for OneCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::aws_lc_rs;

    use super::*;
    use crate::net::tls::certificate::Certificate;

    fn on_demand(named: &[&str]) -> OnDemand {
        let authority = CertificateAuthority::make(SystemTime::now()).unwrap();
        let named = named.iter().map(|name| name.parse().unwrap()).collect();
        OnDemand::new(
            Arc::new(authority),
            named,
            Arc::new(aws_lc_rs::default_provider()),
        )
    }

    fn hosts(key: &CertifiedKey) -> Vec<String> {
        Certificate::read(key.cert.first().unwrap())
            .unwrap()
            .hosts()
    }

    #[test]
    fn only_names_are_signed_that_no_other_owns() {
        let all = on_demand(&["broker.example.com", "*.jitney.example"]);
        for host in [
            "localhost",
            "servicebus-emulator",
            "sb.localhost",
            "a.b.localhost",
            "HOST.docker.internal",
            "x.test",
            "jitney.default.svc.cluster.local",
            "broker.example.com",
            "one.jitney.example",
            "localhost.",
        ] {
            assert!(all.may_name(host), "{host}");
        }
        for host in [
            "example.com",
            "notlocalhost.com",
            "evil.notinternal",
            "evil-internal.com",
            "a.b.jitney.example",
            "other.example.com",
            "",
            ".",
            "*.localhost",
            "a b",
            "127.0.0.1",
            "x..localhost",
        ] {
            assert!(!all.may_name(host), "{host}");
        }
    }

    #[test]
    fn a_certificate_is_for_the_name_that_was_asked_for_and_is_signed_once() {
        let all = on_demand(&[]);
        let one = all.for_host("host.docker.internal").unwrap();
        assert_eq!(hosts(&one), ["host.docker.internal"]);
        let again = all.for_host("Host.Docker.Internal").unwrap();
        assert!(Arc::ptr_eq(&one, &again));
        assert!(all.for_host("example.com").is_none());
    }

    #[test]
    fn without_a_name_the_address_that_was_connected_to_is_in_it() {
        let all = on_demand(&["192.0.2.7"]);
        let default = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let key = all
            .for_address("10.1.2.3".parse().unwrap(), &default)
            .unwrap();
        let names = hosts(&key);
        for name in ["localhost", "127.0.0.1", "::1", "192.0.2.7", "10.1.2.3"] {
            assert!(names.contains(&name.to_owned()), "{names:?}");
        }
        // A listener of both families sees addresses of the older one as of the newer.
        let mapped = all.for_address("::ffff:10.1.2.3".parse().unwrap(), &default);
        assert!(Arc::ptr_eq(&key, &mapped.unwrap()));
        let without = on_demand(&[]);
        assert!(
            without
                .for_address("127.0.0.1".parse().unwrap(), &default)
                .is_none()
        );
    }

    #[test]
    fn a_peer_that_asks_for_ever_new_names_gets_a_bounded_number() {
        let mut issued = IssuedCertificates::default();
        let now = Instant::now();
        let signed = (0..1_000).filter(|_| issued.may_sign(now)).count();
        assert_eq!(signed, usize::try_from(SIGNED_MAX).unwrap());
        assert!(issued.may_sign(now + Duration::from_secs(1)));
        let all = on_demand(&[]);
        for number in 0..3 * KEPT_MAX {
            all.issued.lock().unwrap().second = None;
            assert!(all.for_host(&format!("name{number}")).is_some());
            assert!(all.issued.lock().unwrap().all.len() <= KEPT_MAX);
        }
    }
}
