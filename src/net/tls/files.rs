//! Files of certificates and keys, read and checked.
//!
//! Faults are described so that an operator can correct them without knowing TLS: the file, its
//! contents, and the expected contents.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::certificate::{Certificate, day};

/// A fault of one file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {wrong}", file.display())]
pub(crate) struct FileError {
    /// Which.
    pub(crate) file: PathBuf,
    /// The fault.
    pub(crate) wrong: Wrong,
}

/// The fault of a file, and the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("its PEM is broken: {0}")]
    Pem(#[from] pem::Error),
    #[error("it is {what} in DER, and PEM is needed: {command}")]
    Der { what: &'static str, command: String },
    #[error("it holds {found} and no certificate; a '-----BEGIN CERTIFICATE-----' is needed")]
    NoCertificate { found: FoundInstead },
    #[error("it holds {found} and no private key; a '-----BEGIN PRIVATE KEY-----' is needed")]
    NoKey { found: FoundInstead },
    #[error("its key is encrypted, and the broker cannot ask for the password: {command}")]
    EncryptedKey { command: String },
    #[error("certificate {number} in it cannot be read: {why}")]
    Certificate { number: usize, why: String },
    #[error("its key cannot be used: {0}; RSA from 2048 bits, ECDSA and Ed25519 can")]
    Key(rustls::Error),
    #[error("its key is not the one of the certificate in {}", certificate.display())]
    OtherKey { certificate: PathBuf },
    #[error(
        "its key is the one of certificate {number} in {}, and the broker's own must be the first",
        certificate.display()
    )]
    LaterKey { certificate: PathBuf, number: usize },
}

/// The contents of a file that was expected to hold something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundInstead {
    /// Certificates.
    Certificates,
    /// A private key.
    Key,
    /// Nothing at all.
    Nothing,
    /// Nothing that is PEM.
    NoPem,
    /// PEM of something else.
    Other,
}

impl fmt::Display for FoundInstead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificates => "certificates",
            Self::Key => "a private key",
            Self::Nothing => "nothing",
            Self::NoPem => "something that is not PEM",
            Self::Other => "other things",
        })
    }
}

/// A file as it was read. It may hold a key, so it is never printed.
pub(super) struct PemFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// Whether all users of this machine can read it.
    open_to_others: bool,
}

impl PemFile {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let read = || {
            let bytes = fs::read(path)?;
            let mode = fs::metadata(path)?.permissions().mode();
            Ok((bytes, mode))
        };
        match read() {
            Ok((bytes, mode)) => Ok(Self {
                path: path.to_owned(),
                bytes,
                open_to_others: mode & 0o007 != 0,
            }),
            Err(error) => Err(FileError {
                file: path.to_owned(),
                wrong: Wrong::Read(error),
            }),
        }
    }

    /// Takes something that is no file, but is treated as one.
    pub(super) fn in_memory(name: &str, text: &str) -> Self {
        Self {
            path: PathBuf::from(name),
            bytes: text.as_bytes().to_vec(),
            open_to_others: false,
        }
    }

    fn wrong(&self, wrong: impl Into<Wrong>) -> FileError {
        FileError {
            file: self.path.clone(),
            wrong: wrong.into(),
        }
    }

    /// Returns all certificates, which is at least one.
    pub(super) fn certificates(
        &self,
    ) -> Result<Vec<(CertificateDer<'static>, Certificate)>, FileError> {
        let mut all = Vec::new();
        for der in CertificateDer::pem_slice_iter(&self.bytes) {
            let der = der.map_err(|error| self.wrong(error))?;
            let number = all.len() + 1;
            let certificate = Certificate::read(&der)
                .map_err(|why| self.wrong(Wrong::Certificate { number, why }))?;
            all.push((der, certificate));
        }
        if all.is_empty() {
            return Err(self.wrong(match self.der() {
                Some(der) => der,
                None => Wrong::NoCertificate {
                    found: self.found(),
                },
            }));
        }
        Ok(all)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, FileError> {
        if contains(&self.bytes, "ENCRYPTED") {
            let name = self.path.display();
            let command = format!("openssl pkey -in {name} -out {name}.plain");
            return Err(self.wrong(Wrong::EncryptedKey { command }));
        }
        match PrivateKeyDer::from_pem_slice(&self.bytes) {
            Ok(key) => Ok(key),
            Err(pem::Error::NoItemsFound) => Err(self.wrong(match self.der() {
                Some(der) => der,
                None => Wrong::NoKey {
                    found: self.found(),
                },
            })),
            Err(error) => Err(self.wrong(error)),
        }
    }

    /// Recognizes the other format that such files come in.
    fn der(&self) -> Option<Wrong> {
        /// How every structure begins.
        const SEQUENCE: u8 = 0x30;
        if self.bytes.first() != Some(&SEQUENCE) || contains(&self.bytes, "-----BEGIN") {
            return None;
        }
        let name = self.path.display();
        let certificate = CertificateDer::from(&self.bytes[..]);
        let (what, command) = if Certificate::read(&certificate).is_ok() {
            let command = format!("openssl x509 -inform der -in {name} -out {name}.pem");
            ("a certificate", command)
        } else if PrivateKeyDer::try_from(&self.bytes[..]).is_ok() {
            let command = format!("openssl pkey -inform der -in {name} -out {name}.pem");
            ("a private key", command)
        } else {
            let command = format!("openssl pkcs12 -in {name} -nodes -out {name}.pem");
            ("a key store, perhaps,", command)
        };
        Some(Wrong::Der { what, command })
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "SectionKind is foreign, and gains variants"
    )]
    fn found(&self) -> FoundInstead {
        if self.bytes.iter().all(u8::is_ascii_whitespace) {
            return FoundInstead::Nothing;
        }
        if !contains(&self.bytes, "-----BEGIN") {
            return FoundInstead::NoPem;
        }
        let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(&self.bytes);
        let kinds = sections.filter_map(|section| Some(section.ok()?.0));
        for kind in kinds {
            match kind {
                SectionKind::Certificate => return FoundInstead::Certificates,
                SectionKind::EcPrivateKey
                | SectionKind::PrivateKey
                | SectionKind::RsaPrivateKey => return FoundInstead::Key,
                _ => {}
            }
        }
        FoundInstead::Other
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// A certificate that the broker can prove to be its own.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) certificate: Certificate,
    /// A fault with which it can be used, but which may keep clients away.
    pub(super) warnings: Vec<String>,
}

impl Pair {
    pub(super) fn new(
        certificates: &PemFile,
        key: &PemFile,
        provider: &CryptoProvider,
        now: SystemTime,
    ) -> Result<Self, FileError> {
        let all = certificates.certificates()?;
        let private = key.key()?;
        let loaded = provider.key_provider.load_private_key(private);
        let loaded = loaded.map_err(|error| key.wrong(Wrong::Key(error)))?;
        if let Some(public) = loaded.public_key() {
            let of_key = |(_, one): &(_, Certificate)| one.public_key == public.as_ref();
            match all.iter().position(of_key) {
                Some(0) => {}
                Some(at) => {
                    return Err(key.wrong(Wrong::LaterKey {
                        certificate: certificates.path.clone(),
                        number: at + 1,
                    }));
                }
                None => {
                    return Err(key.wrong(Wrong::OtherKey {
                        certificate: certificates.path.clone(),
                    }));
                }
            }
        }
        let (chain, read): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let mut read = read.into_iter();
        let own = read.next().expect("there is at least one");
        let mut warnings = warnings(certificates, &own, now);
        for other in read.filter(|other| other.has_ended(now)) {
            let name = certificates.path.display();
            warnings.push(format!("{name}: of its chain, {other} is no longer good"));
        }
        if key.open_to_others {
            let name = key.path.display();
            warnings.push(format!("{name}: others can read this key: chmod o= {name}"));
        }
        Ok(Self {
            key: Arc::new(CertifiedKey::new(chain, loaded)),
            certificate: own,
            warnings,
        })
    }
}

fn warnings(file: &PemFile, own: &Certificate, now: SystemTime) -> Vec<String> {
    let name = file.path.display();
    let mut warnings = Vec::new();
    if own.has_ended(now) {
        let ended = day(own.not_after);
        warnings.push(format!(
            "{name}: the certificate ended on {ended}, and clients refuse it; renew it"
        ));
    } else if !own.is_good_for(now, std::time::Duration::ZERO) {
        let begin = day(own.not_before);
        warnings.push(format!(
            "{name}: the certificate begins on {begin}, and clients refuse it until then"
        ));
    }
    if own.hosts().is_empty() {
        warnings.push(format!(
            "{name}: the certificate has no subjectAltName, and most clients refuse it; make one \
             with the broker's host names"
        ));
    }
    warnings
}

/// Reads authorities for certificates of clients; returns warnings, too.
pub(super) fn authorities(file: &PemFile) -> Result<(RootCertStore, Vec<String>), FileError> {
    let mut roots = RootCertStore::empty();
    let mut warnings = Vec::new();
    for (at, (der, certificate)) in file.certificates()?.into_iter().enumerate() {
        if !certificate.is_ca {
            let name = file.path.display();
            warnings.push(format!(
                "{name}: {certificate} is not the certificate of an authority; what clients \
                 present must be signed by one that is"
            ));
        }
        roots.add(der).map_err(|error| {
            file.wrong(Wrong::Certificate {
                number: at + 1,
                why: error.to_string(),
            })
        })?;
    }
    Ok((roots, warnings))
}

/// Returns the certificates of a file as text, without anything else in it.
pub(super) fn public_text(file: &PemFile) -> Result<Arc<str>, FileError> {
    file.certificates()?;
    let text = String::from_utf8_lossy(&file.bytes);
    let mut inside = false;
    let mut public = String::new();
    for line in text.lines().map(str::trim) {
        inside |= line == "-----BEGIN CERTIFICATE-----";
        if inside {
            public.push_str(line);
            public.push('\n');
        }
        inside &= line != "-----END CERTIFICATE-----";
    }
    Ok(public.into())
}
