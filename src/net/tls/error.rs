//! Why there is no TLS.

use std::path::PathBuf;

use tokio::task::JoinError;

use super::files::FileError;
use crate::net::certs::CertsError;

/// Why there is no TLS, or no new certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error(
        "--tls-cert is given {certificates} times and --tls-key {keys} times; each certificate \
         needs its key, in the same order"
    )]
    Count { certificates: usize, keys: usize },
    #[error(transparent)]
    PemFile(#[from] FileError),
    #[error("the local certificates: {0}")]
    Own(#[from] CertsError),
    #[error(
        "{error}; the broker made the files in {}: remove this directory, and it makes others, which \
         clients have to trust anew",
        directory.display()
    )]
    OwnFile {
        directory: PathBuf,
        error: Box<Self>,
    },
    /// Reading the files panicked. The old certificates stay.
    #[error("certificates cannot be read: {0}, which is a bug")]
    Reading(#[from] JoinError),
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}
