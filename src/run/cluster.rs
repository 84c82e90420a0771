//! The start of a server that shares its namespaces with others, in a store: what it takes from there instead of from its data
//! directory, and what it makes there if it is the first.

use std::fs::{self, File};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tokio::net::TcpListener;

use super::arguments::ServeArgs;
use super::config_file::SharedFile;
use super::local::Started;
use super::running::{OfAllShards, Running};
use super::start_error::StartError;
use crate::host::configuration::ConfigurationSource;
use crate::host::history::History;
use crate::host::memory::Plan;
use crate::host::page_file::PageFile;
use crate::host::placement::Placement;
use crate::host::{disk, root_key};
use crate::net::certs;
use crate::net::certs::shared::LatestAuthority;
use crate::net::listen::ListenError;
use crate::net::tls::TlsError;
use crate::peer::{self, Owners, PeerTls, Peers};
use crate::store::{
    self, Common, Fleet, FleetAuthority, FleetParts, ServedParts, Store, StoreConfiguration,
    StoreSetup, Stores,
};
use crate::system::clock::Clock;
use crate::system::runtime::ShardRuntime;
use jitney_base::memory::{Memory, PageStore};
use jitney_base::rights::Key;
use jitney_base::time::Timestamp;
use jitney_broker::access::Profile;
use jitney_config::Configuration;
use jitney_shard::routing::Routes;

/// The directory of certificates within the data directory.
pub(super) const CERTIFICATES: &str = "certs";

/// The stores, and what all their servers have in common.
pub(crate) struct SharedStores {
    stores: Arc<Stores>,
    common: Common,
    /// The arguments, with what the store says.
    pub(crate) args: ServeArgs,
    /// The configuration that the store has.
    pub(crate) config: StoreConfiguration,
    file: Option<SharedFile>,
    profile: Profile,
    /// Where the other servers reach this one.
    listener: TcpListener,
}

/// What is needed to join the other servers.
pub(super) struct SharedParts {
    stores: Arc<Stores>,
    /// The data directory, which one process has: certificates, and pages of indexes.
    lock: File,
    args: ServeArgs,
    config: StoreConfiguration,
    /// The configuration file of this server.
    pub(crate) file: Option<SharedFile>,
    first: String,
    root_key: Option<Key>,
    profile: Profile,
    tls: PeerTls,
    /// Of the certificates for clients; none if the operator has given one.
    authority: Option<FleetAuthority>,
}

/// Reaches the store, if there is one, makes what it has not, and returns what it has.
///
/// # Errors
///
/// It cannot be reached or used.
pub(super) async fn prepare(
    args: &ServeArgs,
    config: &Configuration,
    profile: Profile,
) -> Result<Option<SharedStores>, StartError> {
    let stores = Store::all(&args.store.options())?;
    if stores.is_empty() {
        return Ok(None);
    }
    let stores = Arc::new(Stores::new(stores));
    let source = args.configuration.source();
    let text = source.read().map_err(StartError::Config)?;
    let hash = text.as_deref().map(store::hash_of);
    let new_keys = match profile {
        Profile::Development => None,
        Profile::Verified => Some((root_key::random_key()?, root_key::random_key()?)),
    };
    let names = config.namespaces.iter().map(|it| &it.name[..]);
    let wanted = StoreSetup {
        server: args.store.server.as_deref().unwrap_or_default(),
        namespaces: names.collect(),
        config: text.as_deref().zip(hash.as_deref()),
        new_keys,
        new_authority: peer::make_authority()?,
        new_tls_authority: offered_authority(args)?,
        is_unchecked: args.store.store_unchecked,
    };
    let common = store::prepare(&stores, &wanted).await?;
    let mut args = args.clone();
    if profile == Profile::Verified
        && args.operator.operator_key_file.is_none()
        && args.operator.operator_key.is_none()
    {
        args.operator.operator_key = common.operator_key.clone().map(Key::new);
    }
    let config = match &common.config {
        Some((text, hash, number)) => StoreConfiguration {
            number: *number,
            hash: hash.clone(),
            config: store::parse(text).map_err(StartError::Config)?,
        },
        None => StoreConfiguration {
            number: 0,
            hash: "default".to_owned(),
            config: config.clone(),
        },
    };
    let file = file_of(source, text, common.file_number, config.number);
    if let Some(file) = &file {
        file.warn_if_older(config.number);
    }
    let address = args.store.peer_listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| ListenError::new("--peer-listen", address, source))?;
    Ok(Some(SharedStores {
        stores,
        common,
        args,
        config,
        file,
        profile,
        listener,
    }))
}

/// Returns the file of this server that is followed: the one that was read, with the number of its text in the store, or one that
/// may come. The newest number is known.
fn file_of(
    source: ConfigurationSource,
    text: Option<String>,
    number: Option<i64>,
    newest: i64,
) -> Option<SharedFile> {
    match (source, text) {
        (ConfigurationSource::File(path), Some(text)) => {
            Some(SharedFile::new(&path, text, number, newest))
        }
        (ConfigurationSource::Shipped(path), _) => Some(SharedFile::awaited(&path, newest)),
        (ConfigurationSource::File(_) | ConfigurationSource::Text(_), _) => None,
    }
}

/// Returns an authority of the certificates for clients, for stores that have none, unless the operator has given a certificate.
fn offered_authority(args: &ServeArgs) -> Result<Option<String>, TlsError> {
    if !args.tls.tls_cert.is_empty() {
        return Ok(None);
    }
    let directory = args.data_dir.join(CERTIFICATES);
    let offered = certs::shared::offered(&directory, SystemTime::now());
    Ok(Some(offered?))
}

impl SharedStores {
    /// Returns the listener for the other servers.
    pub(super) fn into_listener(self) -> TcpListener {
        self.listener
    }

    /// Locks the data directory.
    ///
    /// # Errors
    ///
    /// It cannot be made, or another process has it.
    pub(super) fn open(&self) -> Result<SharedParts, StartError> {
        fs::create_dir_all(&self.args.data_dir)?;
        Ok(SharedParts {
            stores: Arc::clone(&self.stores),
            lock: disk::lock(&self.args.data_dir)?,
            args: self.args.clone(),
            config: self.config.clone(),
            file: self.file.clone(),
            first: self.common.first.clone(),
            root_key: self.common.root_key.clone().map(Key::new),
            profile: self.profile,
            tls: PeerTls::new(&self.common.peer_authority)?,
            authority: self
                .common
                .tls_authority
                .clone()
                .map(|text| FleetAuthority::new(Arc::clone(&self.stores), text)),
        })
    }
}

impl SharedParts {
    /// Returns where the latest authority of the certificates for clients is, unless the operator has given a certificate.
    pub(super) fn latest_authority(&self) -> Option<LatestAuthority> {
        self.authority.as_ref().map(FleetAuthority::latest)
    }

    /// Takes the authority of the certificates for clients, to follow it.
    pub(super) fn take_authority(&mut self) -> Option<FleetAuthority> {
        self.authority.take()
    }

    /// Returns the key for the namespaces without rules in the configuration.
    pub(crate) fn root_key(&self) -> Option<Key> {
        self.root_key.clone()
    }

    /// Returns a start without shards: they come with the namespaces that are taken over.
    ///
    /// # Errors
    ///
    /// The file for pages cannot be made.
    pub(crate) fn started(&self, plan: &Plan) -> Result<Started, StartError> {
        let pages: Box<dyn PageStore> = Box::new(PageFile::create(&self.args.data_dir)?);
        Ok(Started {
            shards: Vec::new(),
            routes: Routes::shared(),
            placement: Placement::default(),
            clock: Arc::new(Clock::new(Timestamp::EPOCH)),
            memory: Memory::new(plan.budget, Some(pages)),
            messages: 0,
        })
    }

    /// Makes this server's part of the fleet, and how the other servers are reached, if namespaces are in a store.
    ///
    /// # Errors
    ///
    /// The system has no threads for it.
    #[expect(clippy::type_complexity, reason = "there is either both, or nothing")]
    pub(crate) fn join(
        shared: Option<Self>,
        running: &Running,
        common: &OfAllShards,
        memory: &Memory,
        plan: Plan,
        history: &Arc<History>,
    ) -> Result<(Option<Arc<Fleet>>, Option<Arc<Peers>>), StartError> {
        let Some(shared) = shared else {
            return Ok((None, None));
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtimes = (0..cores).map(|_| ShardRuntime::start());
        let store = &shared.args.store;
        let address = store.peer_address.clone();
        let fleet = Fleet::new(FleetParts {
            stores: shared.stores,
            server: store.server.clone().unwrap_or_default(),
            address: address.unwrap_or_else(|| store.peer_listen.to_string()),
            first: shared.first,
            serving: ServedParts {
                shards: Arc::clone(&running.shards),
                clock: Arc::clone(&common.clock),
                history: Arc::clone(history),
                memory: memory.clone(),
                plan,
                profile: shared.profile,
                oidc: shared.args.oidc.clone(),
                keys_wanted: Arc::clone(&common.keys_wanted),
                traces: common.traces.clone(),
                root_key: shared.root_key,
                configuration: ArcSwap::from_pointee(shared.config),
                config_deletes: shared.args.configuration.config_deletes,
                runtimes: runtimes.collect::<Result<_, _>>()?,
            },
            lock: shared.lock,
        });
        let owners: Arc<dyn Owners> = Arc::<Fleet>::clone(&fleet);
        let peers = Arc::new(Peers::new(owners, shared.tls));
        Ok((Some(fleet), Some(peers)))
    }
}
