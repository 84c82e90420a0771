//! `jitney serve`: everything put together, and taken apart in order.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::cli::ServeArgs;
use super::clock::Clock;
use super::committer::{Committer, SharedDisk, Sync};
use super::disk::FileDisk;
use super::owner::{Mail, Owner, Parts};
use super::reader::Reader;
use super::{connection, http};
use crate::amqp;
use crate::broker::{Broker, ConnectionId, Profile, Surroundings};
use crate::limits;
use crate::storage::memory::MemoryDisk;
use crate::storage::{self, Recovered};

/// How long connections have to take their leave.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// Serves until a signal says to stop.
pub(super) fn run(args: &ServeArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            error!(%error, "the runtime cannot be started");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Why the broker does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("cannot listen on {address} for {what}: {source}")]
    Listen {
        what: &'static str,
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("{0}")]
    Config(String),
    #[error("the configuration cannot be carried out: {0}")]
    Entities(String),
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error("a thread or a signal handler cannot be set up: {0}")]
    System(#[from] std::io::Error),
}

async fn serve(args: &ServeArgs) -> Result<(), StartError> {
    let config = super::cli::load_config(args.config.as_deref()).map_err(StartError::Config)?;
    // Ports first: who cannot have them must not touch the data of who has.
    let amqp = listen("AMQP", args.amqp).await?;
    let http = listen("HTTP", args.http).await?;
    let (disk, place): (SharedDisk, String) = if args.ephemeral {
        (Arc::new(MemoryDisk::new()), "memory".to_owned())
    } else {
        (
            FileDisk::open(&args.data_dir)?,
            args.data_dir.display().to_string(),
        )
    };
    let seed = RandomState::new().hash_one(std::process::id());
    let mut broker = Broker::new(seed, Profile::Development);
    let recovered = recover(&mut broker, &disk, seed, args.cache_mb)?;
    let Recovered {
        mut writer,
        committer,
        newest,
        last_frame,
        ..
    } = recovered;
    let clock = Arc::new(Clock::new(newest));
    // Nobody is there yet to be told anything; the owner's first step makes these durable.
    let mut around = Surroundings {
        now: clock.now(),
        journal: &mut writer,
        group: last_frame + 1,
        replies: &mut Vec::new(),
    };
    broker.arm(around.now);
    super::install::install(&mut broker, &mut around, &config).map_err(StartError::Entities)?;
    broker.replayed(&mut around);
    warn_of_risk(args.sync.into());
    let committer = Committer::start(committer, args.sync.into(), last_frame)?;
    let (sender, mailbox) = mpsc::channel(limits::MAILBOX_LENGTH);
    let reader = Reader::start(Arc::clone(&disk), sender.clone())?;
    let parts = Parts {
        broker,
        writer,
        clock: Arc::clone(&clock),
        sender: sender.clone(),
        mailbox,
        committer,
        reader,
        disk,
    };
    let owner = tokio::spawn(Owner::new(parts).run());
    let (stop, stopped) = watch::channel(false);
    let web = tokio::spawn(http::serve(http, Health(sender.clone()), stopped.clone()));
    let doors = tokio::spawn(accept(amqp, Arc::clone(&clock), sender.clone(), stopped));
    info!(amqp = %args.amqp, http = %args.http, data = %place, "listening");
    // The emulator's words: tools wait for this line (`emulator.md` A.3).
    info!("Emulator Service is Successfully Up!");
    wait_for_signal().await?;
    let _ = sender.send(Mail::Stop).await;
    // Receivers of the notice have gone only if they ended by themselves.
    let _ = stop.send(true);
    let ended = tokio::time::timeout(STOP_WAIT, async {
        let _ = doors.await;
        let _ = owner.await;
    });
    if ended.await.is_err() {
        warn!("some connections did not take their leave in time");
    }
    web.abort();
    info!("stopped");
    Ok(())
}

/// Names what can be lost with less than a sync before each answer.
fn warn_of_risk(sync: Sync) {
    match sync {
        Sync::Always => {}
        Sync::Interval => warn!(
            "--sync interval: what was accepted in the last 100 ms can be lost with the power"
        ),
        Sync::Never => warn!("--sync never: what was accepted can be lost with the power"),
    }
}

/// Asks the owner whether a send would work.
#[derive(Debug, Clone)]
pub(super) struct Health(mpsc::Sender<Mail>);

impl Health {
    /// Returns whether it would; an owner that does not answer takes no message.
    pub(super) async fn check(&self) -> bool {
        /// How long the owner may take.
        const WAIT: Duration = Duration::from_secs(2);
        let (answer, answered) = oneshot::channel();
        let ask = async {
            self.0.send(Mail::Health(answer)).await.ok()?;
            answered.await.ok()
        };
        tokio::time::timeout(WAIT, ask)
            .await
            .ok()
            .flatten()
            .unwrap_or(false)
    }
}

async fn listen(what: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Listen {
            what,
            address,
            source,
        })
}

fn recover(
    broker: &mut Broker,
    disk: &SharedDisk,
    seed: u64,
    cache_mb: usize,
) -> Result<Recovered, StartError> {
    let options = storage::Options {
        cache_bytes: cache_mb * 1024 * 1024,
        ..storage::Options::new(seed)
    };
    let mut replay = |record: &crate::entity::Record<'_>, body| {
        broker
            .replay(record, body)
            .map_err(|error| error.to_string())
    };
    let mut recovered = storage::recover(Arc::clone(disk), options, &mut replay)?;
    broker.count_shared();
    let mut count: u64 = 0;
    broker.for_each_body(|body| {
        count += 1;
        recovered.writer.retain(body);
    });
    recovered.writer.check_bodies()?;
    info!(messages = count, "recovered");
    Ok(recovered)
}

/// Takes connections in until it is told to stop, and then waits for all of them.
async fn accept(
    listener: TcpListener,
    clock: Arc<Clock>,
    owner: mpsc::Sender<Mail>,
    mut stopped: watch::Receiver<bool>,
) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let id = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
                    tracing::debug!(connection = id.0, %peer, "connected");
                    connections.spawn(take_in(stream, id, Arc::clone(&clock), owner.clone()));
                }
                Err(error) => {
                    // Out of descriptors, most likely: those that are open may end meanwhile.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn take_in(
    stream: TcpStream,
    id: ConnectionId,
    clock: Arc<Clock>,
    owner: mpsc::Sender<Mail>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(connection = id.0, %error, "TCP_NODELAY");
    }
    let config = amqp::Config {
        container_id: format!("jitney_G{}", id.0),
        hostname: None,
        frame_size_max: limits::FRAME_SIZE_MAX,
        channel_max: limits::CHANNEL_MAX,
        handle_max: limits::HANDLE_MAX,
        idle_timeout: limits::IDLE_TIMEOUT,
        identity: amqp::Identity::Anonymous,
    };
    connection::serve(stream, id, config, clock, owner).await;
}

async fn wait_for_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
