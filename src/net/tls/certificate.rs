//! The contents of a certificate: its subject, its names, its validity.
//!
//! Parsed once, for operators and for the selection by name. Whether it can be trusted is not
//! decided here.

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// The relevant fields of one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::net) struct Certificate {
    /// The subject's whole name, as people write it.
    pub(crate) subject: String,
    /// The issuer's name.
    pub(crate) issuer: String,
    /// The subject's common name, if it has exactly one.
    pub(crate) common_name: Option<String>,
    /// The host names that it is for.
    pub(crate) names: Vec<String>,
    /// The addresses that it is for.
    pub(crate) addresses: Vec<IpAddr>,
    /// The beginning of its validity, in seconds since 1970.
    pub(crate) not_before: i64,
    /// The end of its validity, in seconds since 1970.
    pub(crate) not_after: i64,
    /// Whether it may sign others.
    pub(crate) is_ca: bool,
    /// Its public key, as DER.
    pub(in crate::net) public_key: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    ///
    /// The fault, as the end of a sentence.
    pub(crate) fn read(der: &CertificateDer<'_>) -> Result<Self, String> {
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err(format!("{} bytes too many follow it", rest.len()));
        }
        let mut names = Vec::new();
        let mut addresses = Vec::new();
        let alternative = parsed.subject_alternative_name();
        let alternative = alternative.map_err(|error| format!("its names: {error}"))?;
        for name in alternative.iter().flat_map(|all| &all.value.general_names) {
            if let GeneralName::DNSName(name) = name {
                names.push((*name).to_owned());
            } else if let GeneralName::IPAddress(octets) = name {
                addresses.extend(address(octets));
            }
        }
        Ok(Self {
            subject: parsed.subject().to_string(),
            issuer: parsed.issuer().to_string(),
            common_name: one_common_name(&parsed),
            names,
            addresses,
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            is_ca: parsed.is_ca(),
            public_key: parsed.public_key().raw.to_vec(),
        })
    }

    /// Returns all names and addresses that it is for.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let addresses = self.addresses.iter().map(ToString::to_string);
        self.names.iter().cloned().chain(addresses).collect()
    }

    /// Returns whether it is for a host, by RFC 6125: `*` matches exactly one first label.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.names.iter().any(|name| covers(name, host))
    }

    /// Returns whether it has expired at a time.
    pub(crate) fn has_ended(&self, now: SystemTime) -> bool {
        self.not_after < seconds(now)
    }

    /// Returns whether it is valid at a time, and for a while after it.
    pub(in crate::net) fn is_good_for(&self, now: SystemTime, wanted: Duration) -> bool {
        self.not_before <= seconds(now) && seconds(now + wanted) <= self.not_after
    }
}

/// For operators: `CN=localhost (localhost, 127.0.0.1), good until 2029-02-23`.
impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.subject.is_empty() {
            "no subject"
        } else {
            &self.subject
        };
        f.write_str(subject)?;
        let hosts = self.hosts();
        if !hosts.is_empty() {
            write!(f, " ({})", hosts.join(", "))?;
        }
        write!(f, ", good until {}", day(self.not_after))
    }
}

/// Returns whether a name of a certificate is for a host, by RFC 6125: `*` matches exactly one first label.
pub(in crate::net) fn covers(name: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let Some(parent) = name.strip_prefix("*.") else {
        return name.eq_ignore_ascii_case(host);
    };
    let rest = host.split_once('.').filter(|(first, _)| !first.is_empty());
    rest.is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent))
}

/// Returns the common name of a certificate's subject: the client's name.
///
/// None if there is none, or if there are several, because a choice would be a guess.
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    one_common_name(&parsed)
}

fn one_common_name(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut names = certificate.subject().iter_common_name();
    let (first, second) = (names.next()?, names.next());
    let name = first.as_str().ok().filter(|_| second.is_none())?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the day of a time, in UTC.
pub(in crate::net) fn day(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => "the end of time".to_owned(),
    }
}

/// Returns a time in seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(octets) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn made(names: &[&str], common_names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for &name in common_names {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_name_is_for_its_host_and_a_star_for_one_label() {
        let der = made(&["broker.test", "*.wild.test", "127.0.0.1", "::1"], &["x"]);
        let certificate = Certificate::read(&der).unwrap();
        let cases = [
            ("broker.test", true),
            ("BROKER.test.", true),
            ("other.test", false),
            ("a.broker.test", false),
            ("one.wild.test", true),
            ("One.Wild.Test", true),
            ("wild.test", false),
            (".wild.test", false),
            ("two.one.wild.test", false),
        ];
        for (host, expected) in cases {
            assert_eq!(certificate.is_for(host), expected, "{host}");
        }
        let hosts = ["broker.test", "*.wild.test", "127.0.0.1", "::1"];
        assert_eq!(certificate.hosts(), hosts);
    }

    #[test]
    fn a_client_is_called_by_its_one_common_name() {
        assert_eq!(
            common_name(&made(&[], &["device-7"])),
            Some("device-7".into())
        );
        assert_eq!(common_name(&made(&["device-7"], &[])), None);
        assert_eq!(common_name(&made(&[], &[""])), None);
        assert_eq!(common_name(&CertificateDer::from(vec![0x30, 3])), None);
    }

    #[test]
    fn what_is_no_certificate_is_told() {
        let mut der = made(&[], &["x"]).to_vec();
        der.push(0);
        let error = Certificate::read(&CertificateDer::from(der)).unwrap_err();
        assert_eq!(error, "1 bytes too many follow it");
        assert!(Certificate::read(&CertificateDer::from(vec![1, 2, 3])).is_err());
    }

    #[test]
    fn a_certificate_is_told_in_a_line() {
        let certificate = Certificate {
            subject: "CN=a".to_owned(),
            issuer: String::new(),
            common_name: None,
            names: vec!["a".to_owned()],
            addresses: vec![IpAddr::from([127, 0, 0, 1])],
            not_before: 0,
            not_after: 1_800_000_001,
            is_ca: false,
            public_key: Vec::new(),
        };
        let line = "CN=a (a, 127.0.0.1), good until 2027-01-15";
        assert_eq!(certificate.to_string(), line);
        let minute = Duration::from_mins(1);
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_001) - minute;
        assert!(certificate.is_good_for(now, minute));
        assert!(!certificate.is_good_for(now, Duration::from_secs(61)));
        assert!(!certificate.has_ended(now));
        assert!(certificate.has_ended(now + Duration::from_secs(61)));
    }
}
