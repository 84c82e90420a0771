//! The arguments of `jitney serve`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::profile::AuthArgs;
use crate::host::committer::SyncArg;
use crate::host::configuration::ConfigArgs;
use crate::host::memory::{self, ByteSize};
use crate::host::oidc::OidcArgs;
use crate::host::traces::TracesArgs;
use crate::http::metrics::MetricsArgs;
use crate::http::operator::OperatorArgs;
use crate::http::sign_in::ConsoleArgs;
use crate::limits;
use crate::net::listen::ListenArgs;
use crate::net::tls::TlsArgs;
use crate::store::StoreArgs;
use crate::system::logging::LogArgs;

/// The arguments of `jitney serve`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// The configuration.
    #[command(flatten)]
    pub(crate) configuration: ConfigArgs,
    /// The directory of the log and other data.
    #[arg(long, value_name = "DIR", default_value = "jitney-data")]
    pub(crate) data_dir: PathBuf,
    /// Keep messages in memory only; they are lost when the process ends.
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// How many shards namespaces are divided among: each has a task, threads and a log of its own, so
    /// that a busy namespace does not delay those of other shards. A namespace stays in the shard that
    /// it got when it was new; shards that have namespaces are served whatever this says.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::SHARDS_MAX)))]
    pub(crate) shards: u32,
    /// Namespaces that several servers share.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Listeners.
    #[command(flatten)]
    pub(crate) listeners: ListenArgs,
    /// Certificates.
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Authentication.
    #[command(flatten)]
    pub(super) auth: AuthArgs,
    /// Identity tokens.
    #[command(flatten)]
    pub(crate) oidc: OidcArgs,
    /// The web console.
    #[command(flatten)]
    pub(crate) console: ConsoleArgs,
    /// The operator's key.
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    /// Metrics.
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Traces.
    #[command(flatten)]
    pub(crate) traces: TracesArgs,
    /// When records are synced to the disk.
    #[arg(long, value_enum, default_value_t = SyncArg::Always)]
    pub(crate) sync: SyncArg,
    /// Start although the log is damaged, without the damaged or missing parts: messages can be
    /// lost, or delivered again. Use it for one start after the broker refused to start, and copy
    /// the data directory before.
    #[arg(long, conflicts_with = "ephemeral")]
    pub(super) accept_data_loss: bool,
    /// The memory limit of the process, such as 512MiB or 2GB; at the limit no messages are
    /// accepted. The default is no limit.
    #[arg(long, value_name = "SIZE", value_parser = memory::parse_limit)]
    pub(crate) memory_limit: Option<ByteSize>,
    /// Memory for the bodies of recent messages, in MiB; 64, or 3/16 of the limit if that is
    /// less.
    #[arg(long, value_name = "MIB")]
    pub(crate) cache_mb: Option<usize>,
    /// Stop when standard input ends. A program that starts the broker holds its input open: the broker then ends with that
    /// program, however that ends.
    #[arg(long)]
    pub(super) stop_on_stdin_close: bool,
    /// Logs.
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

impl ServeArgs {
    /// Returns the data directory, if messages are stored.
    pub(crate) fn directory(&self) -> Option<&Path> {
        (!self.ephemeral).then_some(self.data_dir.as_path())
    }
}
