//! `jitney certs`: a local certificate authority, and certificates that it signs.
//!
//! For development, tests and small installations: one folder with an authority that clients are configured
//! to trust, a certificate for the broker, and certificates for clients that sign in with them.
//! An authority is made once and never overwritten. Keys are readable by their owner only, from the
//! moment that their files exist; files that go together are replaced together.
//!
//! Certificates keep what the strictest clients ask for: names in the alternative-name extension (Go),
//! key identifiers, usages and critical constraints (Python with OpenSSL's strict mode), at most 825
//! days (Apple).

mod pkcs12;
pub(crate) mod shared;

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::tls::certificate::{self, Certificate, day};
use crate::limits;
use crate::system::files::{self, NotReplaced, Readers};
use crate::system::print;

const DAY: Duration = Duration::from_hours(24);

/// The prefix of the names of our authorities; the rest distinguishes them in a client's list.
const AUTHORITY_NAME: &str = "Jitney local CA";

/// The broker's name by default.
const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The arguments of `jitney certs`.
#[derive(Debug, Args)]
pub(crate) struct CertsArgs {
    /// The directory of the certificates.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A host name or address of the broker; may be given several times. The default is the names
    /// of the existing certificate, or else those of this machine: localhost and its addresses.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<SubjectName>,
    /// A client that gets a certificate of its own, to sign in with SASL EXTERNAL; may be given
    /// several times.
    #[arg(long = "client", value_name = "NAME")]
    clients: Vec<ClientName>,
    /// A PEM file of other authorities that clients trust as well: bundle.pem has them and the
    /// authority of this directory, for clients that read one file for all hosts.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// The validity of the certificates, in days; the authority is valid for ten years.
    #[arg(long, value_name = "N", default_value_t = limits::CERTIFICATE_DAYS_MAX,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::CERTIFICATE_DAYS_MAX)))]
    days: u32,
}

/// A host name, with `*` as its first label for all names below, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SubjectName {
    Address(IpAddr),
    Host(String),
}

impl SubjectName {
    /// Returns whether it is a host name, or the names of a domain, and a host is one of them.
    pub(super) fn covers(&self, host: &str) -> bool {
        match self {
            Self::Address(_) => false,
            Self::Host(name) => certificate::covers(name, host),
        }
    }
}

impl FromStr for SubjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let host = text.strip_prefix("*.").unwrap_or(text);
        let label = |label: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            (1..=63).contains(&label.len()) && label.bytes().all(known)
        };
        if 253 < text.len() || !host.split('.').all(label) {
            let right = "such as broker.example.com, *.example.com or 192.0.2.1, without scheme \
                         and port";
            return Err(format!("it is no host name and no address; one is {right}"));
        }
        Ok(Self::Host(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Host(name) => f.write_str(name),
        }
    }
}

/// The name of a client, and of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientName(String);

impl FromStr for ClientName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |c: char| c.is_alphanumeric() || " -_.@+".contains(c);
        if text.starts_with(['.', ' ']) || text.ends_with(' ') || !text.chars().all(known) {
            return Err("a name has letters, digits, and -_.@+ inside".to_owned());
        }
        if !(1..=64).contains(&text.chars().count()) {
            return Err("a name has 1 to 64 characters".to_owned());
        }
        if ["ca", "server"].contains(&text.to_ascii_lowercase().as_str()) {
            return Err("the files of that name are others".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertsError {
    #[error("{}: {wrong}", file.display())]
    Authority { file: PathBuf, wrong: String },
    #[error(
        "{} was signed by '{issuer}' and not by the authority beside it; move it away, or take \
         another folder",
        file.display()
    )]
    Foreign { file: PathBuf, issuer: String },
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error(
        "{} is there and {} is not; put it back, or move the other away too for a new authority \
         (which clients must then trust)",
        there.display(),
        missing.display()
    )]
    OneHalf { there: PathBuf, missing: PathBuf },
    #[error(
        "{} has no certificates in PEM; a file of authorities is, for example, \
         /etc/ssl/certs/ca-certificates.crt, or the one that `python -m certifi` names",
        .0.display()
    )]
    NoAuthorities(PathBuf),
    #[error("the system has no randomness to give")]
    Random(#[from] aws_lc_rs::error::Unspecified),
    #[error("{} cannot be read: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] NotReplaced),
}

/// An authority that signs.
pub(crate) struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
    certificate: Certificate,
}

/// A certificate that was just made.
pub(super) struct Issued {
    /// The certificate and its authority's, as PEM.
    pub(crate) chain: String,
    /// Its key, as PEM.
    pub(crate) key: String,
    der: CertificateDer<'static>,
    certificate: Certificate,
    pkcs8: Vec<u8>,
}

impl Issued {
    /// Returns whether it is valid for a while longer.
    pub(crate) fn lasts(&self, now: SystemTime) -> bool {
        self.certificate
            .is_good_for(now, limits::CERTIFICATE_RENEWAL.as_duration())
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificateAuthority({})", self.certificate)
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

/// The subject of a certificate.
enum Subject<'a> {
    Client(&'a ClientName),
    Server(&'a [SubjectName]),
}

impl CertificateAuthority {
    /// Makes a new one.
    pub(crate) fn make(now: SystemTime) -> Result<Self, CertsError> {
        Self::of_key(KeyPair::generate()?, now)
    }

    /// Makes one with a key, from which its name is made. The certificate has a serial number of its own, because the key may have
    /// another certificate.
    fn of_key(key: KeyPair, now: SystemTime) -> Result<Self, CertsError> {
        let mut params = valid(now, limits::AUTHORITY_DAYS);
        let mut serial = [0; 16];
        aws_lc_rs::rand::fill(&mut serial)?;
        // It is a positive number.
        serial[0] = serial[0] & 0x3f | 0x40;
        params.serial_number = Some(serial.to_vec().into());
        let id = params.key_identifier(&key);
        let id = id.iter().take(4).map(|byte| format!("{byte:02x}"));
        let id: String = id.collect();
        let name = format!("{AUTHORITY_NAME} {id}");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let made = params.self_signed(&key)?;
        let certificate = Certificate::read(made.der());
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem: made.pem(),
            certificate: certificate.expect("it was just made"),
            der: made.der().clone(),
        })
    }

    /// Reads the one in files.
    fn open(files: &AuthorityFiles, now: SystemTime) -> Result<Self, CertsError> {
        let (pem, key) = (read(&files.certificate)?, read(&files.key)?);
        let authority = Self::parse(files, pem, &key)?;
        if authority.certificate.has_ended(now) {
            let ended = day(authority.certificate.not_after);
            return Err(CertsError::Authority {
                file: files.certificate.clone(),
                wrong: format!(
                    "the authority ended on {ended}; move its two files away for a new one (which \
                     clients must then trust)"
                ),
            });
        }
        Ok(authority)
    }

    /// Takes a certificate and its key, as PEM, of the files that are named in errors.
    fn parse(files: &AuthorityFiles, pem: String, key: &str) -> Result<Self, CertsError> {
        let of_certificate = |wrong| CertsError::Authority {
            file: files.certificate.clone(),
            wrong,
        };
        let of_key = |wrong| CertsError::Authority {
            file: files.key.clone(),
            wrong,
        };
        let der = CertificateDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|error| of_certificate(format!("no certificate in PEM: {error}")))?;
        let certificate = Certificate::read(&der)
            .map_err(|error| of_certificate(format!("not a certificate: {error}")))?;
        let key = KeyPair::from_pem(key)
            .map_err(|error| of_key(format!("not a private key in PEM: {error}")))?;
        if key.subject_public_key_info() != certificate.public_key {
            let name = files.certificate.display();
            return Err(of_key(format!("not the key of {name}")));
        }
        if !certificate.is_ca {
            return Err(of_certificate("not the certificate of an authority".into()));
        }
        Ok(Self {
            issuer: Issuer::from_ca_cert_der(&der, key)?,
            pem,
            der,
            certificate,
        })
    }

    /// Returns whether a broker or `jitney certs` has made it.
    fn is_ours(&self) -> bool {
        is_ours(&self.certificate.subject)
    }

    /// Returns its certificate and its key as PEM.
    fn text(&self) -> String {
        format!("{}{}", self.pem, self.issuer.key().serialize_pem())
    }

    /// Makes a certificate for a broker on this machine.
    pub(super) fn issue_local(&self, now: SystemTime) -> Result<Issued, CertsError> {
        self.issue(
            &Subject::Server(&default_names()),
            limits::CERTIFICATE_DAYS_MAX,
            now,
        )
    }

    /// Makes a certificate for a broker with these names.
    pub(super) fn issue_for(
        &self,
        names: &[SubjectName],
        now: SystemTime,
    ) -> Result<Issued, CertsError> {
        let subject = Subject::Server(names);
        self.issue(&subject, limits::CERTIFICATE_DAYS_MAX, now)
    }

    /// Reads the one of a directory, if both its files are there and can be used.
    pub(crate) fn of_directory(directory: &Path, now: SystemTime) -> Option<Self> {
        Self::open(&AuthorityFiles::new(directory), now).ok()
    }

    /// Returns its certificate as PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    fn issue(
        &self,
        subject: &Subject<'_>,
        days: u32,
        now: SystemTime,
    ) -> Result<Issued, CertsError> {
        let key = KeyPair::generate()?;
        let mut params = valid(now, days);
        let end = SystemTime::UNIX_EPOCH
            + Duration::from_secs(self.certificate.not_after.try_into().unwrap_or(0));
        params.not_after = params.not_after.min(end.into());
        let common_name = match subject {
            Subject::Client(name) => {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                name.0.clone()
            }
            Subject::Server(names) => {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                for name in *names {
                    params.subject_alt_names.push(match name {
                        SubjectName::Address(address) => SanType::IpAddress(*address),
                        SubjectName::Host(name) => SanType::DnsName(name.as_str().try_into()?),
                    });
                }
                let first = names.first().map(ToString::to_string);
                // Longer ones are no common names by X.520; no client looks for a host here.
                first.filter(|name| name.len() <= 64).unwrap_or_default()
            }
        };
        if !common_name.is_empty() {
            let names = &mut params.distinguished_name;
            names.push(DnType::CommonName, common_name);
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let made = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            chain: format!("{}{}", made.pem(), self.pem),
            key: key.serialize_pem(),
            certificate: Certificate::read(made.der()).expect("it was just made"),
            der: made.der().clone(),
            pkcs8: key.serialize_der(),
        })
    }
}

/// Returns the parameters that all our certificates share.
fn valid(now: SystemTime, days: u32) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let begin = now - limits::CERTIFICATE_SKEW.as_duration();
    params.not_before = begin.into();
    // The last second counts.
    params.not_after = (begin + DAY * days - Duration::from_secs(1)).into();
    params
}

fn default_names() -> Vec<SubjectName> {
    let names = DEFAULT_NAMES.iter().filter_map(|name| name.parse().ok());
    names.collect()
}

/// The files of an authority.
struct AuthorityFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl AuthorityFiles {
    fn new(directory: &Path) -> Self {
        Self {
            certificate: directory.join("ca.pem"),
            key: directory.join("ca.key"),
        }
    }

    /// Reads the existing authority, or makes one; returns which.
    fn open_or_make(
        &self,
        now: SystemTime,
    ) -> Result<(CertificateAuthority, FileState), CertsError> {
        match (self.certificate.exists(), self.key.exists()) {
            (true, true) => Ok((CertificateAuthority::open(self, now)?, FileState::Kept)),
            (false, false) => {
                let authority = CertificateAuthority::make(now)?;
                let key = authority.issuer.key().serialize_pem();
                let pem = authority.pem.as_bytes();
                files::replace(&[
                    (self.key.clone(), key.as_bytes(), Readers::Owner),
                    (self.certificate.clone(), pem, Readers::OfDirectory),
                ])?;
                Ok((authority, FileState::New))
            }
            (true, false) => Err(CertsError::OneHalf {
                there: self.certificate.clone(),
                missing: self.key.clone(),
            }),
            (false, true) => Err(CertsError::OneHalf {
                there: self.key.clone(),
                missing: self.certificate.clone(),
            }),
        }
    }
}

/// Whether something was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Kept,
    New,
}

/// Makes sure that a directory has a certificate for the broker that is valid for a while longer.
///
/// A valid certificate stays as it is; the authority's key need not even exist.
pub(crate) fn keep(directory: &Path, now: SystemTime) -> Result<(), CertsError> {
    let old = leaf(&directory.join("server.pem"));
    if old
        .as_ref()
        .is_some_and(|old| is_usable(directory, old, now))
    {
        return Ok(());
    }
    make_private(directory)?;
    let (authority, _) = AuthorityFiles::new(directory).open_or_make(now)?;
    put_server(directory, &authority, old.as_ref(), now)
}

/// Returns whether the broker's certificate in a directory is valid for a while longer and has its key beside it.
fn is_usable(directory: &Path, certificate: &Certificate, now: SystemTime) -> bool {
    let key = fs::read_to_string(directory.join("server.key")).ok();
    let key = key.and_then(|text| KeyPair::from_pem(&text).ok());
    certificate.is_good_for(now, limits::CERTIFICATE_RENEWAL.as_duration())
        && key.is_some_and(|key| key.subject_public_key_info() == certificate.public_key)
}

/// Writes a certificate for the broker, for the names of the one before, and what clients in Java trust.
fn put_server(
    directory: &Path,
    authority: &CertificateAuthority,
    old: Option<&Certificate>,
    now: SystemTime,
) -> Result<(), CertsError> {
    let names = names_of(old);
    put(
        directory,
        "server",
        authority,
        &Subject::Server(&names),
        limits::CERTIFICATE_DAYS_MAX,
        now,
    )?;
    put_trust(directory, authority)
}

/// Runs `jitney certs`.
pub(crate) fn run(args: &CertsArgs) -> ExitCode {
    match make(args, SystemTime::now()) {
        Ok(lines) => {
            print::line(lines);
            ExitCode::SUCCESS
        }
        Err(error) => {
            print::complain(format_args!("jitney certs: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Makes the certificates, and returns the lines of the report.
fn make(args: &CertsArgs, now: SystemTime) -> Result<String, CertsError> {
    let directory = &args.directory;
    make_directory(directory)?;
    let (authority, made) = AuthorityFiles::new(directory).open_or_make(now)?;
    let names = match &args.names[..] {
        [] => names_of(leaf(&directory.join("server.pem")).as_ref()),
        names => names.to_vec(),
    };
    let server = Subject::Server(&names);
    let server = put(directory, "server", &authority, &server, args.days, now)?;
    put_trust(directory, &authority)?;
    if let Some(others) = &args.bundle {
        put_bundle(directory, &authority, others)?;
    }
    let mut clients = Vec::new();
    for name in &args.clients {
        let subject = Subject::Client(name);
        let client = put(directory, &name.0, &authority, &subject, args.days, now)?;
        clients.push((name, client));
    }
    let place = fs::canonicalize(directory).unwrap_or_else(|_| directory.clone());
    let mut lines = report_lines(&place, &authority, made, &server, &clients);
    if args.bundle.is_some() {
        lines.extend(bundle_told(&place));
    }
    Ok(lines.join("\n"))
}

/// Reports the files, and how each SDK is configured to trust them.
fn report_lines(
    directory: &Path,
    authority: &CertificateAuthority,
    made: FileState,
    server: &Certificate,
    clients: &[(&ClientName, Certificate)],
) -> Vec<String> {
    let at = directory.display();
    let password = pkcs12::PASSWORD;
    let kept = match made {
        FileState::Kept => "kept",
        FileState::New => "new",
    };
    let mut lines = vec![
        format!("in {at}:"),
        format!("  ca.pem      {} ({kept})", authority.certificate),
        "  ca.key      its key, with which anyone can impersonate any server to your clients: keep it secret".to_owned(),
        format!("  ca.p12      trust store for Java, password {password}"),
        format!("  server.pem  {server}"),
        "  server.key  its key".to_owned(),
        format!("  server.p12  both, password {password}"),
    ];
    for (ClientName(name), certificate) in clients {
        lines.push(format!("  {name}.pem, .key, .p12  client {certificate}"));
    }
    let broker = format!("--tls-cert {at}/server.pem --tls-key {at}/server.key");
    lines.extend([
        "to use them:".to_owned(),
        format!("  broker  jitney serve {broker} --tls-client-ca {at}/ca.pem"),
        format!("  Python  from_connection_string(..., connection_verify=\"{at}/ca.pem\")"),
        format!("  Node    NODE_EXTRA_CA_CERTS={at}/ca.pem node app.js"),
        format!("  Go      SSL_CERT_FILE={at}/ca.pem ./app"),
        format!(
            "  Java    java -Djavax.net.ssl.trustStore={at}/ca.p12 \
             -Djavax.net.ssl.trustStorePassword={password} ..."
        ),
        format!("  .NET    SSL_CERT_FILE={at}/ca.pem dotnet run (Linux)"),
    ]);
    lines
}

/// Reports which clients read a bundle.
fn bundle_told(directory: &Path) -> [String; 4] {
    let bundle = directory.join("bundle.pem");
    let bundle = bundle.display();
    [
        "bundle.pem has the other authorities too, for clients that read one file for all hosts:"
            .to_owned(),
        format!("  Python's requests, over HTTP  REQUESTS_CA_BUNDLE={bundle}"),
        format!("  OpenSSL, Go, .NET on Linux    SSL_CERT_FILE={bundle}"),
        "  Python's AMQP without a setting   instead of the file that `python -m certifi` prints"
            .to_owned(),
    ]
}

/// Returns the names that a certificate is for, or those of this machine.
fn names_of(certificate: Option<&Certificate>) -> Vec<SubjectName> {
    let hosts = certificate.map(Certificate::hosts).unwrap_or_default();
    let names: Vec<SubjectName> = hosts.iter().filter_map(|host| host.parse().ok()).collect();
    if names.is_empty() {
        default_names()
    } else {
        names
    }
}

/// Returns whether an authority of this name was made by a broker or `jitney certs`.
fn is_ours(name: &str) -> bool {
    name.contains(&format!("CN={AUTHORITY_NAME} "))
}

/// Reads the first certificate of a file, if there is one.
fn leaf(file: &Path) -> Option<Certificate> {
    let der = CertificateDer::from_pem_file(file).ok()?;
    Certificate::read(&der).ok()
}

/// Makes a certificate, and writes it and its key, apart and together.
fn put(
    directory: &Path,
    name: &str,
    authority: &CertificateAuthority,
    subject: &Subject<'_>,
    days: u32,
    now: SystemTime,
) -> Result<Certificate, CertsError> {
    let file = |extension: &str| directory.join(format!("{name}.{extension}"));
    if let Some(old) = leaf(&file("pem")) {
        let ours = old.issuer == authority.certificate.subject || is_ours(&old.issuer);
        if !ours {
            return Err(CertsError::Foreign {
                file: file("pem"),
                issuer: old.issuer,
            });
        }
    }
    let issued = authority.issue(subject, days, now)?;
    let chain = [&issued.der[..], &authority.der[..]];
    let store = pkcs12::key_store(name, &issued.pkcs8, &chain)?;
    files::replace(&[
        (file("key"), issued.key.as_bytes(), Readers::Owner),
        (file("pem"), issued.chain.as_bytes(), Readers::OfDirectory),
        (file("p12"), &store, Readers::Owner),
    ])?;
    Ok(issued.certificate)
}

/// The password of the stores for Java.
pub(crate) const STORE_PASSWORD: &str = pkcs12::PASSWORD;

/// Returns the trust store for Java that has an authority.
pub(crate) fn trust_store(authority: &CertificateDer<'_>) -> Result<Vec<u8>, CertsError> {
    Ok(pkcs12::trust_store("jitney-ca", authority)?)
}

fn put_trust(directory: &Path, authority: &CertificateAuthority) -> Result<(), CertsError> {
    let store = trust_store(&authority.der)?;
    files::replace(&[(directory.join("ca.p12"), &store, Readers::OfDirectory)])?;
    Ok(())
}

/// Returns an authority and others in one text, in PEM. A bundle has its authority already.
pub(crate) fn bundle(authority: &str, others: &str) -> String {
    if others.contains(authority.trim_end()) {
        return others.to_owned();
    }
    format!("{}\n{others}", authority.trim_end())
}

/// Writes the authority and others into one file.
fn put_bundle(
    directory: &Path,
    authority: &CertificateAuthority,
    others: &Path,
) -> Result<(), CertsError> {
    let other = read(others)?;
    let certificates = CertificateDer::pem_slice_iter(other.as_bytes());
    let count = certificates
        .collect::<Result<Vec<_>, _>>()
        .map(|all| all.len());
    if !matches!(count, Ok(1..)) {
        return Err(CertsError::NoAuthorities(others.to_owned()));
    }
    let bundle = bundle(&authority.pem, &other);
    let file = directory.join("bundle.pem");
    files::replace(&[(file, bundle.as_bytes(), Readers::OfDirectory)])?;
    Ok(())
}

/// Makes the directory of a broker's own certificates, which is in its data directory.
fn make_private(directory: &Path) -> Result<(), CertsError> {
    let made = files::make_private_directory(directory).map_err(|source| NotReplaced {
        file: directory.to_owned(),
        source,
    });
    made?;
    Ok(())
}

fn make_directory(directory: &Path) -> Result<(), CertsError> {
    let made = fs::create_dir_all(directory).map_err(|source| NotReplaced {
        file: directory.to_owned(),
        source,
    });
    Ok(made?)
}

fn read(file: &Path) -> Result<String, CertsError> {
    fs::read_to_string(file).map_err(|source| CertsError::Read {
        file: file.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
