//! `jitney serve`: starts all parts, and stops them in order.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use super::arguments::ServeArgs;
use super::cluster::{self, CERTIFICATES, SharedParts, SharedStores};
use super::config_file::{self, Presence, SharedFile, WatchedConfig};
use super::local::{Started, StartedShard, Startup};
use super::profile;
use super::protocols;
use super::running::{OfAllShards, Running, run_shards};
use super::signals::{self, Signals};
use super::start_error::StartError;
use super::start_report::{Data, Place, StartReport};
use super::stdin;
use crate::host::backup::{self, Backups, Kept};
use crate::host::committer::Sync;
use crate::host::configuration::{ConfigurationSource, Persistence};
use crate::host::disk::FileDisk;
use crate::host::history::{self, History};
use crate::host::memory::{self, Plan};
use crate::host::namespaces::ServerNamespaces;
use crate::host::oidc::{self, KeySource};
use crate::host::partials::PartialBytes;
use crate::host::root_key::{self, KeyPlace, RootKey};
use crate::host::shards::Shards;
use crate::http::answers::Answers;
use crate::http::api::{self, Changes, Searches};
use crate::http::metrics::Metrics;
use crate::http::operator::Operator;
use crate::http::refusals::Refusals;
use crate::http::sign_in::ConsoleSignIn;
use crate::http::state::ServerState;
use crate::limits;
use crate::net::admission::{Admission, ConnectionSlots, ListenerKind};
use crate::net::balancers::Balancers;
use crate::net::listen::{HTTP, Listener, METRICS, listen_all};
use crate::net::tls::{self, Tls};
use crate::net::unauthenticated::UnauthenticatedBytes;
use crate::peer::Peers;
use crate::store::Fleet;
use crate::system::clock::Clock;
use crate::system::logging::{self, START};
use crate::system::service::{ServiceState, notify};
use crate::system::supervisor::{self, Task};
use jitney_base::memory::Memory;
use jitney_base::rights::Key;
use jitney_broker::access::Profile;
use jitney_config::Configuration;
use jitney_shard::Input;

/// Serves until a signal, or the end of standard input.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    memory::take_small_pages();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            logging::fatal(format_args!("the runtime cannot be started: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::fatal(error);
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: &ServeArgs) -> Result<(), StartError> {
    let kept = if args.ephemeral && args.store.store.is_empty() {
        Persistence::InMemory
    } else {
        Persistence::Durably
    };
    let config = args.configuration.load(kept).map_err(StartError::Config)?;
    let descriptors = allow_descriptors()?;
    signals::survive_long_files()?;
    // Ports first: a second process that cannot have them must not touch the data of the first.
    let listeners = listen_all(&args.listeners, &args.metrics.metrics).await?;
    let profile = profile::profile(&args.auth, &args.oidc, &config, &listeners)?;
    let places: Vec<Place> = listeners.iter().map(Place::of).collect();
    let shared = cluster::prepare(args, &config, profile).await?;
    let (of_store, config) = match &shared {
        Some(shared) => (Some(shared.args.clone()), shared.config.config.clone()),
        None => (None, config),
    };
    let args = of_store.as_ref().unwrap_or(args);
    let prepared = prepare(args, &config, profile, shared.as_ref())?;
    let peer_listener = shared.map(SharedStores::into_listener);
    let listeners = Listeners {
        listeners,
        of_peers: peer_listener,
        descriptors,
    };
    // Before anything is answered that a supervisor may take for a sign to continue.
    let mut signals = Signals::new()?;
    let input = args.stop_on_stdin_close.then(stdin::watch).transpose()?;
    let report = StartReport {
        profile,
        places,
        data: match args.directory() {
            _ if prepared.shared.is_some() => Data::Store,
            None => Data::Memory,
            Some(path) => Data::Directory {
                path: path.to_owned(),
                messages: prepared.started.messages,
            },
        },
        root_key: prepared.root_key.clone(),
        certificate: prepared.tls.shown(),
    };
    let mut serving = start(args, config, prepared, listeners)?;
    serving.join_fleet().await?;
    report.log(args.logs.log_format);
    // The emulator's message: tools wait for it (`emulator.md#ports-and-health`), and may send a signal then.
    info!(target: START, "Emulator Service is Successfully Up!");
    notify(ServiceState::Ready);
    tokio::select! {
        () = signals.next() => {}
        () = stdin::closed(input) => info!("standard input has ended: the broker stops"),
    }
    notify(ServiceState::Stopping);
    signals::end_at_next_signal()?;
    serving.stop().await;
    Ok(())
}

/// The ports, and how many descriptors there are for connections.
struct Listeners {
    listeners: Vec<Listener>,
    /// For the other servers that share the store, if namespaces are in one.
    of_peers: Option<TcpListener>,
    descriptors: usize,
}

impl Listeners {
    /// Returns the slots of connections, beside what so many shards and stores need.
    fn slots(&self, shards: usize, stores: usize) -> Result<ConnectionSlots, StartError> {
        let count = descriptors_of_connections(self.descriptors, shards, stores)?;
        Ok(ConnectionSlots::new(count))
    }
}

/// What runs until the stop.
struct RunningNamespaces {
    running: Running,
    /// Tasks that last as long as the server.
    helpers: Vec<Task>,
    acceptors: Vec<Task>,
    common: OfAllShards,
    /// The servers that share a store, if namespaces are in one.
    fleet: Option<Arc<Fleet>>,
    stop: watch::Sender<bool>,
    history: Arc<History>,
}

/// Starts all tasks, the listeners last.
#[expect(
    clippy::too_many_lines,
    reason = "the tasks of the server, in their order"
)]
fn start(
    args: &ServeArgs,
    config: Configuration,
    prepared: Prepared,
    listeners: Listeners,
) -> Result<RunningNamespaces, StartError> {
    let Prepared {
        started:
            Started {
                shards,
                routes,
                placement,
                clock,
                memory,
                ..
            },
        tls,
        key_source,
        console,
        operator,
        plan,
        root_key,
        mut shared,
    } = prepared;
    let root_key = root_key.map(|root| root.key);
    let slots = listeners.slots(shards.len(), args.store.store.len())?;
    let backups = Arc::new(backups(args, shared.as_ref(), &shards));
    let partials = PartialBytes::new(plan.partials);
    let common = OfAllShards::new(&args.traces, &clock)?;
    let running = run_shards(shards, routes, &common, partials)?;
    let shards = &running.shards;
    let (stop, stopped) = watch::channel(false);
    // Histories of namespaces in a store are there, too.
    let directory = args.directory().filter(|_| shared.is_none());
    let history = Arc::new(History::open(directory, plan.history));
    let answers = Answers::new(plan.answers, plan.long_answer);
    let changes = Arc::new(Changes::new(clock.now(), plan.changes));
    let mut helpers = renew_certificates(&tls, shared.as_mut(), &stopped)?;
    helpers.push(record_history(&history, &clock, shards));
    helpers.push(follow_changes(&changes, shards));
    helpers.extend(watch_memory(plan, &memory, shards));
    helpers.extend(key_source.map(|it| keep_keys(it, shards, &common, &stopped)));
    let (all, of_new) = (Arc::clone(shards), root_key.as_ref());
    let namespaces = Arc::new(ServerNamespaces::new(
        all,
        placement,
        args.directory(),
        args.shards,
        &config,
        of_new,
    ));
    let file = shared.as_ref().and_then(|shared| shared.file.clone());
    let (fleet, peers) = SharedParts::join(shared, &running, &common, &memory, plan, &history)?;
    helpers.extend(match &fleet {
        Some(fleet) => Some(follow_shared_config(file, fleet, &namespaces, &stopped)?),
        None => follow_config(args, config, root_key, shards, &namespaces, &stopped)?,
    });
    let unauthenticated = UnauthenticatedBytes::new(plan.unauthenticated);
    let server = Arc::new(ServerState {
        fleet: fleet.clone(),
        peers: peers.clone(),
        clock,
        shards: Arc::clone(shards),
        tls,
        admission: Admission::new(slots.count()).sharing(unauthenticated.clone()),
        administration_admission: Admission::new(slots.count()).sharing(unauthenticated.clone()),
        balancers: Balancers::new(&args.listeners.balancers, slots.count()),
        slots,
        operator,
        backups,
        namespaces,
        metrics: Metrics::new(&args.metrics, memory, answers.clone(), unauthenticated),
        history: Arc::clone(&history),
        changes,
        answers,
        searches: Searches::new(),
        is_open: console.is_open(),
        console,
        stopped,
        refused_tokens: Refusals::default(),
        refusals: AtomicU64::new(0),
    });
    Ok(RunningNamespaces {
        running,
        helpers,
        acceptors: accept_all(listeners, peers, &server),
        common,
        fleet,
        stop,
        history,
    })
}

impl RunningNamespaces {
    /// Joins the servers that share the store, and waits for a while until each namespace has a server.
    async fn join_fleet(&mut self) -> Result<(), StartError> {
        if let Some(fleet) = &self.fleet {
            let tasks = fleet.join(&self.stop.subscribe()).await?;
            self.helpers.extend(tasks);
            fleet.settle().await;
        }
        Ok(())
    }

    /// Stops the shards, then the rest.
    async fn stop(self) {
        let (clock, shards) = (&self.common.clock, &self.running.shards);
        self.history.finish(clock, shards).await;
        if let Some(fleet) = &self.fleet {
            fleet.leave().await;
        }
        let Running {
            shards,
            owners,
            runtimes,
        } = self.running;
        let tasks = self.helpers.iter().chain(&self.acceptors).chain(&owners);
        tasks.for_each(Task::allow_end);
        shards.send_all(|| Input::Stop).await;
        self.stop.send_replace(true);
        take_leave(self.acceptors, owners).await;
        // Nothing is served any more.
        drop(runtimes);
        self.common.stop().await;
    }
}

/// Returns what makes backups of the shards' logs.
fn backups(args: &ServeArgs, shared: Option<&SharedParts>, shards: &[StartedShard]) -> Backups {
    // Its data directory has no messages.
    if shared.is_some() {
        return Backups::new(Kept::Store);
    }
    let disks = shards.iter();
    let disks = disks.filter_map(|it| Some((it.number, it.files.clone()?)));
    Backups::new(args.directory().map_or(Kept::Memory, |directory| {
        Kept::Files(backup::Source::new(directory, disks.collect()))
    }))
}

/// Starts to accept connections, those of the other servers too.
fn accept_all(
    listeners: Listeners,
    peers: Option<Arc<Peers>>,
    server: &Arc<ServerState>,
) -> Vec<Task> {
    let accept = |listener| accept_at(listener, server);
    let of_peers = listeners.of_peers.zip(peers).map(|(socket, peers)| {
        let accept = protocols::accept_passed(socket, peers, Arc::clone(server));
        supervisor::spawn("listener --peer-listen", accept)
    });
    let own = listeners.listeners.into_iter().map(accept);
    own.chain(of_peers).collect()
}

/// Starts the task that takes certificates that were replaced, at once after SIGHUP, and the one that follows the authority which
/// servers share.
fn renew_certificates(
    tls: &Arc<Tls>,
    shared: Option<&mut SharedParts>,
    stopped: &watch::Receiver<bool>,
) -> Result<Vec<Task>, StartError> {
    let hangup = signal(SignalKind::hangup())?;
    let watch = tls::watch(Arc::clone(tls), hangup, stopped.clone());
    let mut tasks = vec![supervisor::spawn("certificates", watch)];
    if let Some(authority) = shared.and_then(SharedParts::take_authority) {
        let follow = authority.follow(stopped.clone());
        tasks.push(supervisor::spawn("authority of certificates", follow));
    }
    Ok(tasks)
}

/// Starts the task that checks the size of the process, if it has a limit, and divides the cache where shards come and go.
fn watch_memory(plan: Plan, memory: &Memory, shards: &Arc<Shards>) -> Option<Task> {
    let is_needed = plan.limit.is_some() || shards.routes().is_shared();
    let watch = memory::watch(plan, memory.clone(), Arc::clone(shards));
    is_needed.then(|| supervisor::spawn("memory", watch))
}

/// Starts the task that keeps the keys of identity tokens.
fn keep_keys(
    source: KeySource,
    shards: &Arc<Shards>,
    common: &OfAllShards,
    stopped: &watch::Receiver<bool>,
) -> Task {
    let publish = publisher(Arc::clone(shards));
    let wanted = Arc::clone(&common.keys_wanted);
    let keep = oidc::keep_keys(source, publish, wanted, stopped.clone());
    supervisor::spawn("identity keys", keep)
}

/// Starts the task that looks at what clients follow.
fn follow_changes(changes: &Arc<Changes>, shards: &Arc<Shards>) -> Task {
    let follow = api::follow(Arc::clone(changes), Arc::clone(shards));
    supervisor::spawn("changes", follow)
}

/// Starts the task that takes the history of the entities.
fn record_history(history: &Arc<History>, clock: &Arc<Clock>, shards: &Arc<Shards>) -> Task {
    let (history, clock, shards) = (Arc::clone(history), Arc::clone(clock), Arc::clone(shards));
    supervisor::spawn("history", history::record(history, clock, shards))
}

/// Starts the task that follows the configuration file, if there is one.
fn follow_config(
    args: &ServeArgs,
    config: Configuration,
    root_key: Option<Key>,
    shards: &Arc<Shards>,
    namespaces: &Arc<ServerNamespaces>,
    stopped: &watch::Receiver<bool>,
) -> Result<Option<Task>, StartError> {
    let (file, presence) = match args.configuration.source() {
        ConfigurationSource::File(file) => (file, Presence::Expected),
        ConfigurationSource::Shipped(file) => (file, Presence::Awaited),
        ConfigurationSource::Text(_) => return Ok(None),
    };
    let watched = WatchedConfig {
        file,
        presence,
        reading: args.configuration.reading(),
        config,
        root_key,
        deletes: args.configuration.config_deletes,
    };
    let hangup = signal(SignalKind::hangup())?;
    let (shards, namespaces) = (Arc::clone(shards), Arc::clone(namespaces));
    let watch = config_file::watch(watched, shards, namespaces, hangup, stopped.clone());
    Ok(Some(supervisor::spawn("configuration", watch)))
}

/// Starts the task that follows the configuration which servers share, and the file of this one if it has any.
fn follow_shared_config(
    file: Option<SharedFile>,
    fleet: &Arc<Fleet>,
    namespaces: &Arc<ServerNamespaces>,
    stopped: &watch::Receiver<bool>,
) -> Result<Task, StartError> {
    let hangup = signal(SignalKind::hangup())?;
    let (fleet, namespaces) = (Arc::clone(fleet), Arc::clone(namespaces));
    let watch = config_file::watch_shared(file, fleet, namespaces, hangup, stopped.clone());
    Ok(supervisor::spawn("configuration", watch))
}

/// Returns how many descriptors there are for connections, and what they need of the first shard.
fn descriptors_of_connections(
    found: usize,
    shards: usize,
    stores: usize,
) -> Result<usize, StartError> {
    let of_shards = limits::SHARD_DESCRIPTORS * shards.saturating_sub(1);
    let further = of_shards + jitney_postgres::limits::STORE_DESCRIPTORS * stores;
    let least = limits::DESCRIPTORS_MIN + further;
    if found < least {
        return Err(StartError::Descriptors { found, least });
    }
    Ok(found - further)
}

/// Starts to accept connections.
fn accept_at(listener: Listener, server: &Arc<ServerState>) -> Task {
    let name = format!("listener {} {}", listener.flag, listener.address);
    let accept = protocols::accept(listener.socket, kind_of(listener.flag), Arc::clone(server));
    supervisor::spawn(name, accept)
}

/// Waits until all connections have closed.
async fn take_leave(acceptors: Vec<Task>, owners: Vec<Task>) {
    let ended = tokio::time::timeout(limits::STOP_WAIT.as_duration(), async {
        for task in acceptors.into_iter().chain(owners) {
            task.join().await;
        }
    });
    if ended.await.is_err() {
        warn!("some connections did not close in time");
    }
    info!("stopped");
}

/// Everything that is needed before the first connection.
struct Prepared {
    started: Started,
    tls: Arc<Tls>,
    key_source: Option<KeySource>,
    console: ConsoleSignIn,
    operator: Operator,
    plan: Plan,
    root_key: Option<RootKey>,
    shared: Option<SharedParts>,
}

fn prepare(
    args: &ServeArgs,
    config: &Configuration,
    profile: Profile,
    shared: Option<&SharedStores>,
) -> Result<Prepared, StartError> {
    let mut key_source = args.oidc.parse()?;
    let console = ConsoleSignIn::new(&args.console, &args.oidc, profile, key_source.as_mut());
    let directory = args.directory();
    let cache = args.cache_mb.map(|mib| mib * 1024 * 1024);
    let plan = Plan::new(args.memory_limit, cache, memory::machine());
    // What is in the data directory is read once it is locked.
    let data = match directory {
        Some(directory) if shared.is_none() => Some((directory, FileDisk::open(directory)?)),
        Some(_) | None => None,
    };
    let shared = shared.map(SharedStores::open).transpose()?;
    let certs = directory.map(|directory| directory.join(CERTIFICATES));
    let authority = shared.as_ref().and_then(SharedParts::latest_authority);
    // Making certificates takes as long as the rest, so it runs in parallel.
    let tls_args = args.tls.clone();
    let tls = thread::spawn(move || match certs.as_deref().zip(authority) {
        Some((directory, authority)) => Tls::load_shared(&tls_args, directory, authority),
        None => Tls::load(&tls_args, certs.as_deref()),
    });
    let root_key = match profile {
        Profile::Development => None,
        Profile::Verified => match &shared {
            Some(shared) => shared.root_key().map(|key| RootKey {
                key,
                place: KeyPlace::Store,
            }),
            None => root_key::root_key(config, directory)?,
        },
    };
    let operator = Operator::new(&args.operator, profile, directory)?;
    let startup = Startup {
        args,
        config,
        plan,
        profile,
        root_key: root_key.as_ref().map(|root| root.key.clone()),
        data,
    };
    let started = match &shared {
        Some(shared) => shared.started(&plan)?,
        None => startup.run()?,
    };
    warn_of_risk(args.sync.into());
    let tls = tls.join().map_err(|_| StartError::Certificates)??;
    Ok(Prepared {
        started,
        tls,
        key_source,
        console,
        operator,
        plan,
        root_key,
        shared,
    })
}

/// Raises the limit of descriptors as far as the system allows, and returns it: each connection
/// takes one.
fn allow_descriptors() -> Result<usize, StartError> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "cannot raise the limit of open files");
    }
    let count = getrlimit(Resource::Nofile).current.map(usize::try_from);
    // Without a limit there are as many as can be counted.
    let found = count.and_then(Result::ok).unwrap_or(usize::MAX);
    // With one shard; how many are served is not known yet.
    descriptors_of_connections(found, 1, 0)?;
    Ok(found)
}

/// Returns the kind of the listener of a flag.
fn kind_of(flag: &str) -> ListenerKind {
    match flag {
        HTTP => ListenerKind::Administration,
        METRICS => ListenerKind::Metrics,
        _ => ListenerKind::General,
    }
}

/// Sends the keys of identity tokens to the shards.
fn publisher(shards: Arc<Shards>) -> impl Fn(String) {
    move |keys| {
        let shards = Arc::clone(&shards);
        tokio::spawn(async move {
            shards.send_all(|| Input::IdentityKeys(keys.clone())).await;
        });
    }
}

/// Warns of the losses that are possible without a sync before each answer.
fn warn_of_risk(sync: Sync) {
    match sync {
        Sync::Always => {}
        Sync::Interval => warn!(
            "--sync interval: a crash of the machine can lose messages acknowledged in the last 100 ms"
        ),
        Sync::Never => warn!("--sync never: a crash of the machine can lose acknowledged messages"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_of_each_store_leave_fewer_descriptors_for_connections() {
        let found = 4_096;
        let without = descriptors_of_connections(found, 0, 0).unwrap();
        assert_eq!(without, found);
        for stores in [1, 2, jitney_cluster::limits::STORES_MAX] {
            let sessions = 1
                + jitney_postgres::limits::STORE_APPEND_SESSIONS
                + jitney_postgres::limits::STORE_SESSIONS_MAX;
            let with = descriptors_of_connections(found, 0, stores).unwrap();
            assert_eq!(with, without - stores * sessions);
        }
        let refused = descriptors_of_connections(limits::DESCRIPTORS_MIN, 0, 1);
        let least = limits::DESCRIPTORS_MIN + jitney_postgres::limits::STORE_DESCRIPTORS;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(&least.to_string()), "{text}");
    }
}
