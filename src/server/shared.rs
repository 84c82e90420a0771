//! The start of a server that shares its namespaces with others, in a store: what it takes from there instead of from its data
//! directory, and what it makes there if it is the first.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use aws_lc_rs::digest::{SHA256, digest};
use tokio::net::TcpListener;
use tracing::info;

use super::cli::{self, ServeArgs};
use super::clock::Clock;
use super::disk;
use super::memory::Plan;
use super::page_file::PageFile;
use super::peer::{self, Owners, PeerTls, Peers};
use super::placement::Placement;
use super::root_key;
use super::runtime::ShardRuntime;
use super::serve::{OfAllShards, Running, StartError};
use super::startup::Started;
use super::store::{self, Common, Fleet, FleetParts, ServingParts, Store, Wanted};
use crate::access::Profile;
use crate::config::Configuration;
use crate::memory::{Memory, PageStore};
use crate::rights::Key;
use crate::shard::routing::Routes;
use crate::time::Timestamp;

/// The store, and what all its servers have in common.
pub(super) struct Shared {
    store: Arc<Store>,
    common: Common,
    /// The arguments, with what the store says.
    pub(super) args: ServeArgs,
    /// The configuration that the store has.
    pub(super) config: Configuration,
    hash: String,
    profile: Profile,
    /// Where the other servers reach this one.
    listener: TcpListener,
}

/// What is needed to join the other servers.
pub(super) struct SharedParts {
    store: Arc<Store>,
    /// The data directory, which one process has: certificates, and pages of indexes.
    lock: File,
    args: ServeArgs,
    config: Configuration,
    hash: String,
    first: String,
    root_key: Option<Key>,
    profile: Profile,
    tls: PeerTls,
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
) -> Result<Option<Shared>, StartError> {
    let Some(store) = Store::new(&args.store)? else {
        return Ok(None);
    };
    let text = match cli::config_file(args.config.as_deref()) {
        Some(file) => Some(cli::read_config(file).map_err(StartError::Config)?),
        None => None,
    };
    let hash = text.as_deref().map(hash_of);
    let new_keys = match profile {
        Profile::Development => None,
        Profile::Verified => Some((root_key::random_key()?, root_key::random_key()?)),
    };
    let names = config.namespaces.iter().map(|it| &it.name[..]);
    let wanted = Wanted {
        namespaces: names.collect(),
        config: text.as_deref().zip(hash.as_deref()),
        new_keys,
        new_authority: peer::make_authority()?,
        is_unchecked: args.store.store_unchecked,
    };
    let common = store::prepare(&store, &wanted).await?;
    let mut args = args.clone();
    if profile == Profile::Verified
        && args.operator.operator_key_file.is_none()
        && args.operator.operator_key.is_none()
    {
        args.operator.operator_key = common.operator_key.clone().map(Key::new);
    }
    let (config, hash) = match &common.config {
        Some((text, hash)) => (
            cli::parse_config(Path::new("the store's configuration"), text)
                .map_err(StartError::Config)?,
            hash.clone(),
        ),
        None => (config.clone(), "default".to_owned()),
    };
    info!(store = store.place(), "reached the store");
    let address = args.store.peer_listen;
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| StartError::Listen {
        flag: "--peer-listen",
        address,
        source,
    })?;
    Ok(Some(Shared {
        listener,
        store: Arc::new(store),
        common,
        args,
        config,
        hash,
        profile,
    }))
}

fn hash_of(text: &str) -> String {
    let sum = digest(&SHA256, text.as_bytes());
    let bytes = sum.as_ref().iter();
    bytes.fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

impl Shared {
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
            store: Arc::clone(&self.store),
            lock: disk::lock(&self.args.data_dir)?,
            args: self.args.clone(),
            config: self.config.clone(),
            hash: self.hash.clone(),
            first: self.common.first.clone(),
            root_key: self.common.root_key.clone().map(Key::new),
            profile: self.profile,
            tls: PeerTls::new(&self.common.peer_authority)?,
        })
    }
}

impl SharedParts {
    /// Returns the key for the namespaces without rules in the configuration.
    pub(super) fn root_key(&self) -> Option<Key> {
        self.root_key.clone()
    }

    /// Returns a start without shards: they come with the namespaces that are taken over.
    ///
    /// # Errors
    ///
    /// The file for pages cannot be made.
    pub(super) fn started(&self, plan: &Plan) -> Result<Started, StartError> {
        let pages: Box<dyn PageStore> = Box::new(PageFile::create(&self.args.data_dir)?);
        Ok(Started {
            shards: Vec::new(),
            routes: Routes::shared(),
            placement: Placement::default(),
            clock: Arc::new(Clock::new(Timestamp::EPOCH)),
            memory: Memory::new(plan.budget, Some(pages)),
        })
    }

    /// Makes this server's part of the fleet, and how the other servers are reached, if namespaces are in a store.
    ///
    /// # Errors
    ///
    /// The system has no threads for it.
    #[expect(clippy::type_complexity, reason = "there is either both, or nothing")]
    pub(super) fn join(
        shared: Option<Self>,
        running: &Running,
        common: &OfAllShards,
        (memory, plan): (&Memory, Plan),
    ) -> Result<(Option<Arc<Fleet>>, Option<Arc<Peers>>), StartError> {
        let Some(shared) = shared else {
            return Ok((None, None));
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let runtimes = (0..cores).map(|_| ShardRuntime::start());
        let store = &shared.args.store;
        let address = store.peer_address.clone();
        let fleet = Fleet::new(FleetParts {
            server: store.server.clone().unwrap_or_default(),
            address: address.unwrap_or_else(|| store.peer_listen.to_string()),
            first: shared.first,
            serving: ServingParts {
                store: shared.store,
                shards: Arc::clone(&running.shards),
                clock: Arc::clone(&common.clock),
                memory: memory.clone(),
                plan,
                profile: shared.profile,
                oidc: shared.args.oidc.clone(),
                keys_wanted: Arc::clone(&common.keys_wanted),
                traces: common.traces.clone(),
                root_key: shared.root_key,
                config: shared.config,
                config_hash: shared.hash,
                runtimes: runtimes.collect::<Result<_, _>>()?,
            },
            lock: shared.lock,
        });
        let owners: Arc<dyn Owners> = Arc::<Fleet>::clone(&fleet);
        let peers = Arc::new(Peers::new(owners, shared.tls));
        Ok((Some(fleet), Some(peers)))
    }
}
