//! Why the broker does not start.

use crate::host::oidc::OidcError;
use crate::host::placement::PlacementError;
use crate::host::root_key::KeysError;
use crate::host::traces::TracesError;
use crate::net::listen::ListenError;
use crate::net::tls::TlsError;
use crate::store::StoreError;

/// Why the broker does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("{0}")]
    Config(String),
    #[error(
        "the limit of open files is {found}, and the broker needs at least {least}: raise it \
         (ulimit -n)"
    )]
    Descriptors { found: usize, least: usize },
    #[error("making certificates ended early: this is a bug")]
    Certificates,
    #[error("reading a log has ended early: this is a bug")]
    Recovery,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Oidc(#[from] OidcError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Traces(#[from] TracesError),
    #[error("the configuration cannot be applied:\n{0}")]
    Entities(String),
    #[error(transparent)]
    Storage(#[from] jitney_journal::Error),
    #[error("a thread or a signal handler cannot be set up: {0}")]
    System(#[from] std::io::Error),
}
