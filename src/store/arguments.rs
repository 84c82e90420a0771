//! The arguments of namespaces in a store.

use std::path::PathBuf;

use clap::Args;

use jitney_base::secret::Secret;
use jitney_postgres::StoreOptions;

/// The arguments of namespaces in a store.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgs {
    /// Keep namespaces in this PostgreSQL database, and share them with the other servers that have it. Without this they are in
    /// the data directory of this server. Given several times, as `--store NAME=URL`, namespaces are spread over several databases;
    /// all servers name the same ones.
    #[arg(long, value_name = "[NAME=]URL", env = "JITNEY_STORE", hide_env_values = true, value_delimiter = '\n',
        conflicts_with_all = ["ephemeral", "sync", "accept_data_loss"], requires = "server")]
    pub store: Vec<Secret>,
    /// The certificate authorities of the database, as PEM. The default is those of the system.
    #[arg(long, value_name = "FILE", requires = "store")]
    pub store_ca: Option<PathBuf>,
    /// Use the store although its version or a setting that durability needs is refused: for offers that replicate below PostgreSQL.
    #[arg(long, requires = "store")]
    pub store_unchecked: bool,
    /// The name of this server. No other server of the store may have it.
    #[arg(long, value_name = "NAME", env = "JITNEY_SERVER", requires = "store")]
    pub server: Option<String>,
    /// The address at which the other servers reach this one.
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:5670",
        requires = "store"
    )]
    pub peer_listen: std::net::SocketAddr,
    /// The address at which the other servers reach this one, where it is not the one of `--peer-listen`, as behind NAT.
    #[arg(long, value_name = "HOST:PORT", requires = "store")]
    pub peer_address: Option<String>,
}

impl StoreArgs {
    /// Returns how the stores are reached.
    pub(crate) fn options(&self) -> StoreOptions {
        StoreOptions {
            urls: self.store.clone(),
            ca: self.store_ca.clone(),
            server: self.server.clone(),
        }
    }
}
