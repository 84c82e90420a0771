//! `jitney serve`: starts all parts, and stops them in order.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Signal, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal as Signalled, SignalKind, signal};
use tokio::sync::{Notify, mpsc, watch};
use tracing::{error, info, warn};

use super::admission::{Admission, ConnectionSlots, ListenerKind};
use super::cli::{self, ListenArgs, ServeArgs};
use super::clock::Clock;
use super::committer::{Committer, SharedDisk, Sync};
use super::disk::FileDisk;
use super::listener::{self, ServerState};
use super::logging;
use super::mailbox::{Mail, Mailbox, Vitals};
use super::memory::{self, Plan};
use super::oidc::{self, KeySource, OidcError};
use super::owner::{Owner, Parts};
use super::page_file::PageFile;
use super::reader::Reader;
use super::root_key;
use super::supervisor::{self, Task};
use super::tls::{self, Tls, TlsError};
use crate::access::Profile;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::journal;
use crate::journal::memory::MemoryDisk;
use crate::limits;
use crate::memory::{Memory, PageStore};
use crate::namespace::{Contained, Damage};
use crate::shard::{Input, Ready, Recovering, Shard};

/// The flag of the addresses of health and administration.
const HTTP: &str = "--http";
/// How long connections may take to close at the stop.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// Serves until a signal.
pub(super) fn run(args: &ServeArgs) -> ExitCode {
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

/// Why the broker does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("{flag}: cannot listen on {address}: {source}")]
    Listen {
        flag: &'static str,
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("{0}")]
    Config(String),
    #[error(
        "the limit of open files is {found}, and the broker needs at least {least}: raise it \
         (ulimit -n)"
    )]
    Descriptors { found: usize, least: usize },
    #[error("making certificates ended early: this is a bug")]
    Certificates,
    #[error(transparent)]
    Keys(#[from] root_key::KeysError),
    #[error(transparent)]
    Oidc(#[from] OidcError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the entities of the configuration cannot be provisioned: {0}")]
    Entities(String),
    #[error(transparent)]
    Storage(#[from] journal::Error),
    #[error("a thread or a signal handler cannot be set up: {0}")]
    System(#[from] std::io::Error),
}

fn configuration(args: &ServeArgs) -> Result<Config, StartError> {
    let file = cli::config_file(args.config.as_deref());
    match file {
        Some(file) => info!(file = %file.display(), "read the configuration"),
        None => info!("no configuration: using the emulator's default entities"),
    }
    cli::load_config(file).map_err(StartError::Config)
}

async fn serve(args: &ServeArgs) -> Result<(), StartError> {
    let config = configuration(args)?;
    let slots = ConnectionSlots::new(allow_descriptors()?);
    survive_long_files()?;
    // Ports first: a second process that cannot have them must not touch the data of the first.
    let listeners = listen_all(&args.listeners).await?;
    let prepared = prepare(args, &config, &listeners)?;
    let (sender, mailbox) = mpsc::channel(limits::MAILBOX_LENGTH);
    let reader = Reader::start(Arc::clone(&prepared.disk), sender.clone())?;
    let keys_wanted = Arc::new(Notify::new());
    let vitals = Arc::new(Vitals::new());
    let parts = Parts {
        shard: prepared.shard,
        clock: Arc::clone(&prepared.clock),
        sender: sender.clone(),
        mailbox,
        committer: prepared.committer,
        reader,
        disk: prepared.disk,
        keys_wanted: Arc::clone(&keys_wanted),
        vitals: Arc::clone(&vitals),
    };
    let mut helpers = Vec::new();
    if let Some(limit) = prepared.plan.limit {
        let watch = memory::watch(limit, prepared.plan, prepared.memory, sender.clone());
        helpers.push(supervisor::spawn("memory", watch));
    }
    let owner = supervisor::spawn("owner", Owner::new(parts).run());
    let (stop, stopped) = watch::channel(false);
    if let Some(source) = prepared.key_source {
        let publish = publisher(sender.clone());
        let keep = oidc::keep_keys(source, publish, keys_wanted, stopped.clone());
        helpers.push(supervisor::spawn("identity keys", keep));
    }
    let hangup = signal(SignalKind::hangup())?;
    let watch = tls::watch(Arc::clone(&prepared.tls), hangup, stopped.clone());
    helpers.push(supervisor::spawn("certificates", watch));
    let server = Arc::new(ServerState {
        clock: prepared.clock,
        owner: Mailbox::new(sender.clone(), prepared.plan.partials),
        vitals: Arc::clone(&vitals),
        tls: prepared.tls,
        admission: Admission::new(slots.count()),
        administration_admission: Admission::new(slots.count()),
        slots,
        is_open: prepared.profile == Profile::Development,
        stopped,
        refusals: AtomicU64::new(0),
    });
    let acceptors: Vec<Task> = listeners
        .into_iter()
        .map(|listener| accept_at(listener, &server))
        .collect();
    let mut signals = Signals::new()?;
    // The emulator's message: tools wait for this line (`emulator.md#ports-and-health`).
    info!("Emulator Service is Successfully Up!");
    signals.next().await;
    end_at_next_signal()?;
    let tasks = helpers.iter().chain(&acceptors).chain([&owner]);
    tasks.for_each(Task::allow_end);
    let _ = sender.send(Mail::Input(Input::Stop)).await;
    // Receivers of the notice are gone only if they ended by themselves.
    let _ = stop.send(true);
    take_leave(acceptors, owner).await;
    Ok(())
}

/// Starts to accept connections.
fn accept_at(listener: Listener, server: &Arc<ServerState>) -> Task {
    let name = format!("listener {} {}", listener.flag, listener.address);
    let accept = listener::accept(listener.socket, kind_of(listener.flag), Arc::clone(server));
    supervisor::spawn(name, accept)
}

/// Waits until all connections have closed.
async fn take_leave(acceptors: Vec<Task>, owner: Task) {
    let ended = tokio::time::timeout(STOP_WAIT, async {
        for acceptor in acceptors {
            acceptor.join().await;
        }
        owner.join().await;
    });
    if ended.await.is_err() {
        warn!("some connections did not close in time");
    }
    info!("stopped");
}

/// Everything that is needed before the first connection.
struct Prepared {
    shard: Shard,
    committer: Committer,
    disk: SharedDisk,
    clock: Arc<Clock>,
    tls: Arc<Tls>,
    key_source: Option<KeySource>,
    profile: Profile,
    memory: Memory,
    plan: Plan,
}

fn prepare(
    args: &ServeArgs,
    config: &Config,
    listeners: &[Listener],
) -> Result<Prepared, StartError> {
    let profile = root_key::profile(args, config, listeners)?;
    let (issuer, key_source) = args.oidc.parse()?.unzip();
    let directory = (!args.ephemeral).then_some(args.data_dir.as_path());
    let cache = args.cache_mb.map(|mib| mib * 1024 * 1024);
    let plan = Plan::new(args.memory_limit, cache, memory::machine());
    let (disk, memory) = open(directory, &plan)?;
    let certs = directory.map(|directory| directory.join("certs"));
    // Making certificates takes as long as the rest, so it runs in parallel.
    let tls_args = args.tls.clone();
    let tls = thread::spawn(move || Tls::load(&tls_args, certs.as_deref()));
    let root_key = match profile {
        Profile::Development => None,
        Profile::Verified => root_key::root_key(config, directory)?,
    };
    let seed = RandomState::new().hash_one(std::process::id());
    let mut gateway = Gateway::new(seed, profile);
    gateway.set_token_issuer(issuer);
    gateway.set_memory(memory.clone());
    let mut options = journal::Options::new(seed);
    options.cache_bytes = plan.cache;
    if directory.is_none() {
        options.segment_bytes = plan.segment;
    }
    options.accepts_loss = args.accept_data_loss;
    let mut recovering = Recovering::read(gateway, Arc::clone(&disk), options)?;
    report_recovery(&recovering);
    let clock = follow(&mut recovering);
    let ready = recovering.begin(
        clock.now(),
        memory.clone(),
        plan.in_flight,
        |gateway, cx| super::provision::provision(gateway, cx, config, root_key.as_ref()),
    );
    let Ready {
        shard,
        committer,
        last_group,
        contained,
        settled,
    } = ready.map_err(StartError::Entities)?;
    report_damage(&contained, &settled);
    warn_of_risk(args.sync.into());
    let committer = Committer::start(committer, args.sync.into(), last_group)?;
    let tls = tls.join().map_err(|_| StartError::Certificates)??;
    match directory {
        None => info!("messages are in memory only and are lost when the process ends"),
        Some(directory) => info!(data = %directory.display(), "messages are stored"),
    }
    Ok(Prepared {
        shard,
        committer,
        disk,
        clock,
        tls,
        key_source,
        profile,
        memory,
        plan,
    })
}

/// Follows the system's clock, though the log may have times ahead of it.
fn follow(recovering: &mut Recovering) -> Arc<Clock> {
    let clock = Clock::new(recovering.recovered().newest);
    if let Some(behind) = clock.behind_log() {
        warn!(
            milliseconds = behind.as_millis(),
            "the log has times that lie ahead of the system's clock, which was ahead then or is behind \
             now. It is followed: messages keep their stamps, numbers and order; check the clock"
        );
        recovering.follow_clock(clock.now());
    }
    Arc::new(clock)
}

/// Opens the disk, and the file for pages of indexes.
fn open(directory: Option<&Path>, plan: &Plan) -> Result<(SharedDisk, Memory), StartError> {
    let Some(directory) = directory else {
        let memory = Memory::new(plan.budget, None);
        return Ok((Arc::new(MemoryDisk::within(&memory)), memory));
    };
    let disk = FileDisk::open(directory)?;
    let pages: Box<dyn PageStore> = Box::new(PageFile::create(directory)?);
    Ok((disk, Memory::new(plan.budget, Some(pages))))
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
    let least = limits::DESCRIPTORS_MIN;
    if found < least {
        return Err(StartError::Descriptors { found, least });
    }
    Ok(found)
}

/// Returns the kind of the listener of a flag.
fn kind_of(flag: &str) -> ListenerKind {
    if flag == HTTP {
        ListenerKind::Administration
    } else {
        ListenerKind::General
    }
}

/// Sends the keys of identity tokens to the owner.
fn publisher(owner: mpsc::Sender<Mail>) -> impl Fn(String) {
    move |keys| {
        let owner = owner.clone();
        tokio::spawn(async move { owner.send(Mail::Input(Input::IdentityKeys(keys))).await });
    }
}

/// A bound port.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) address: SocketAddr,
    /// The flag that named it.
    pub(super) flag: &'static str,
}

/// Binds the ports that the operator names, and 5671 if it is free.
async fn listen_all(args: &ListenArgs) -> Result<Vec<Listener>, StartError> {
    const AMQPS_PORT: u16 = 5671;
    let named = [
        ("--amqp", &args.amqp),
        ("--amqps", &args.amqps),
        (HTTP, &args.http),
        ("--https", &args.https),
    ];
    let mut listeners = Vec::new();
    for (flag, addresses) in named {
        for address in addresses {
            listeners.push(listen(flag, *address).await?);
        }
    }
    if let (true, Some(first)) = (args.amqps.is_empty(), args.amqp.first()) {
        let address = SocketAddr::new(first.ip(), AMQPS_PORT);
        match listen("--amqps", address).await {
            Ok(listener) => listeners.push(listener),
            Err(error) => {
                info!(
                    "{error}: TLS is available at the other ports, each of which takes every protocol"
                );
            }
        }
    }
    for listener in &listeners {
        info!(address = %listener.address, "{}", listener.flag);
    }
    Ok(listeners)
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

async fn listen(flag: &'static str, address: SocketAddr) -> Result<Listener, StartError> {
    let failed = |source| StartError::Listen {
        flag,
        address,
        source,
    };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok(Listener {
        socket,
        address,
        flag,
    })
}

/// Reports what the log's recovery found.
fn report_recovery(recovering: &Recovering) {
    let (recovered, salvaged) = (recovering.recovered(), &recovering.salvaged);
    if let Some(cut) = recovered.cut {
        warn!(
            segment = %cut.segment,
            offset = cut.offset,
            bytes = cut.bytes,
            frames = cut.frames,
            "the end of the log was cut off: a crash left frames there that were never synced, or the \
             newest one is damaged"
        );
    }
    for loss in &recovered.losses {
        error!(
            segment = %loss.segment,
            offset = loss.offset,
            "data loss accepted: the log is used without this damaged part: {}",
            loss.what
        );
    }
    if 0 < salvaged.skipped {
        error!(
            records = salvaged.skipped,
            "records that refer to lost ones were skipped"
        );
    }
    for queue in &salvaged.unnamed {
        error!(
            queue,
            "the record with an entity's name is lost: its messages are in this queue"
        );
    }
    info!(messages = recovering.messages, "recovered");
}

/// Reports the messages whose bytes are damaged or lost.
fn report_damage(contained: &[Contained], settled: &[Damage]) {
    for found in contained {
        error!(
            entity = found.entity,
            number = found.number.0,
            place = found.place,
            "the bytes of a message are damaged: it is in the dead-letter queue with an empty body; \
             check the disk"
        );
    }
    for damage in settled {
        error!(
            place = damage.place,
            "the bytes of a settled message are damaged; check the disk"
        );
    }
}

/// A write beyond the limit of file sizes fails, and the writer reports it: the default action of
/// its signal would end the process without a word.
fn survive_long_files() -> std::io::Result<()> {
    // The handler stays, though no task waits for the signal.
    drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?);
    Ok(())
}

/// The signals that end the broker.
struct Signals {
    terminate: Signalled,
    interrupt: Signalled,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Lets the next signal end the process at once, from a thread of its own, whatever the rest of the
/// process waits for.
fn end_at_next_signal() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _within = runtime.enter();
        Signals::new()?
    };
    let wait = move || {
        runtime.block_on(signals.next());
        logging::fatal(
            "a second signal: the broker ends at once, and the next start recovers the log",
        );
        std::process::exit(1);
    };
    supervisor::spawn_thread("signals", wait)?;
    Ok(())
}
