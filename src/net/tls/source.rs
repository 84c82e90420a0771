//! The source of certificates, and its contents.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::digest;

use super::error::TlsError;
use super::files::{FileError, PemFile};
use crate::net::certs::shared::{self, LatestAuthority};
use crate::net::certs::{self, CertificateAuthority, CertsError, Issued};

/// The names of the broker's own certificates.
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";

/// The source of certificates.
pub(super) enum CertificateSource {
    /// The operator's files: certificates and their keys.
    Files(Vec<(PathBuf, PathBuf)>),
    /// A directory of ours.
    Own(PathBuf),
    /// A directory of ours, with the authority that servers share.
    Shared(PathBuf, LatestAuthority),
    /// A local authority that ends with the process, and what it signed last.
    Memory(Arc<CertificateAuthority>, Mutex<Box<Issued>>),
}

impl CertificateSource {
    /// Makes one that is in no file.
    pub(super) fn in_memory(now: SystemTime) -> Result<Self, CertsError> {
        let authority = CertificateAuthority::make(now)?;
        let issued = authority.issue_local(now)?;
        Ok(Self::Memory(
            Arc::new(authority),
            Mutex::new(Box::new(issued)),
        ))
    }

    /// Returns the authority of our own certificates, if it can sign others.
    pub(super) fn authority(&self, now: SystemTime) -> Option<Arc<CertificateAuthority>> {
        match self {
            Self::Files(_) => None,
            Self::Own(directory) | Self::Shared(directory, _) => {
                CertificateAuthority::of_directory(directory, now).map(Arc::new)
            }
            Self::Memory(authority, _) => Some(Arc::clone(authority)),
        }
    }
}

impl TlsError {
    /// Returns the remedy for a file that the broker has made itself.
    pub(super) fn with_remedy(self, source: &CertificateSource) -> Self {
        let CertificateSource::Own(directory) = source else {
            return self;
        };
        let file = match &self {
            Self::PemFile(error) => &error.file,
            Self::Own(CertsError::Authority { file, .. }) => file,
            Self::Count { .. }
            | Self::Own(_)
            | Self::OwnFile { .. }
            | Self::Reading(_)
            | Self::Setup(_) => {
                return self;
            }
        };
        if !file.starts_with(directory) {
            return self;
        }
        let directory = directory.clone();
        let error = Box::new(self);
        Self::OwnFile { directory, error }
    }
}

impl fmt::Debug for CertificateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => f.debug_tuple("Files").field(files).finish(),
            Self::Own(directory) => f.debug_tuple("Own").field(directory).finish(),
            Self::Shared(directory, _) => f.debug_tuple("Shared").field(directory).finish(),
            Self::Memory(..) => f.write_str("Memory"),
        }
    }
}

/// Distinguishes one state of all files from another.
pub(super) type Fingerprint = Vec<u8>;

/// The contents of all files, not checked yet.
pub(super) struct Inputs {
    pub(super) pairs: Vec<(PemFile, PemFile)>,
    pub(super) client_ca: Option<PemFile>,
    pub(super) ca: Option<PemFile>,
    /// Why a valid certificate of ours was not renewed.
    pub(super) not_renewed: Option<CertsError>,
}

impl Inputs {
    /// Reads everything; makes and renews our own certificates.
    pub(super) fn read(
        source: &CertificateSource,
        client_ca: Option<&Path>,
        ca: Option<&Path>,
        now: SystemTime,
    ) -> Result<Self, TlsError> {
        let mut not_renewed = None;
        let mut own_ca = None;
        let pairs = match source {
            CertificateSource::Files(files) => {
                let pairs = files
                    .iter()
                    .map(|(certificate, key)| Ok((read(certificate)?, read(key)?)));
                pairs.collect::<Result<_, FileError>>()?
            }
            CertificateSource::Own(directory) => {
                let kept = certs::keep(directory, now);
                vec![own_pair(directory, kept, &mut not_renewed)?]
            }
            CertificateSource::Shared(directory, latest) => {
                let kept = shared::keep(directory, &latest.load(), now);
                vec![own_pair(directory, kept, &mut not_renewed)?]
            }
            CertificateSource::Memory(own, issued) => {
                let mut issued = issued.lock().unwrap_or_else(PoisonError::into_inner);
                if !issued.lasts(now) {
                    **issued = own.issue_local(now)?;
                }
                own_ca = Some(PemFile::in_memory("the local authority", own.pem()));
                let certificate = PemFile::in_memory("the local certificate", &issued.chain);
                vec![(certificate, PemFile::in_memory("its key", &issued.key))]
            }
        };
        Ok(Self {
            pairs,
            client_ca: client_ca.map(read).transpose()?,
            ca: ca.map(read).transpose()?.or(own_ca),
            not_renewed,
        })
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        let mut context = digest::Context::new(&digest::SHA256);
        let pairs = self.pairs.iter().flat_map(|(one, other)| [one, other]);
        for file in pairs.chain(&self.client_ca).chain(&self.ca) {
            context.update(&file.bytes.len().to_be_bytes());
            context.update(&file.bytes);
        }
        context.finish().as_ref().to_vec()
    }
}

/// Reads the broker's own certificate and key, which may not have been renewed.
fn own_pair(
    directory: &Path,
    kept: Result<(), CertsError>,
    not_renewed: &mut Option<CertsError>,
) -> Result<(PemFile, PemFile), TlsError> {
    let pair = read(directory.join(CERTIFICATE))
        .and_then(|certificate| Ok((certificate, read(directory.join(KEY))?)));
    match (pair, kept) {
        (Ok(pair), kept) => {
            *not_renewed = kept.err();
            Ok(pair)
        }
        (Err(_), Err(error)) => Err(error.into()),
        (Err(error), Ok(())) => Err(error.into()),
    }
}

fn read(path: impl AsRef<Path>) -> Result<PemFile, FileError> {
    PemFile::read(path.as_ref())
}
