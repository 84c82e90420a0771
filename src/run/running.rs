//! Shards that run: their owners, threads and runtimes.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use super::local::StartedShard;
use super::start_error::StartError;
use crate::host::mailbox::Mailbox;
use crate::host::owner::{Owner, OwnerParts};
use crate::host::partials::PartialBytes;
use crate::host::reader::Reader;
use crate::host::shards::{Member, Shards};
use crate::host::traces::{Traces, TracesArgs, TracesError};
use crate::host::vitals::Vitals;
use crate::limits;
use crate::system::clock::Clock;
use crate::system::runtime::ShardRuntime;
use crate::system::supervisor::{self, Task};
use jitney_journal::Checkpoints;
use jitney_shard::routing::Routes;

/// The shards that run, with their tasks and threads.
pub(crate) struct Running {
    pub(crate) shards: Arc<Shards>,
    pub(crate) owners: Vec<Task>,
    pub(crate) runtimes: Vec<ShardRuntime>,
}

/// What all shards use.
pub(super) struct OfAllShards {
    pub(crate) clock: Arc<Clock>,
    /// Notified when a token was signed with a key that is not known.
    pub(crate) keys_wanted: Arc<Notify>,
    pub(crate) traces: Option<Traces>,
}

impl OfAllShards {
    pub(crate) fn new(traces: &TracesArgs, clock: &Arc<Clock>) -> Result<Self, TracesError> {
        Ok(Self {
            clock: Arc::clone(clock),
            keys_wanted: Arc::default(),
            traces: Traces::start(traces, Handle::current())?,
        })
    }

    /// Sends the last spans.
    pub(crate) async fn stop(self) {
        if let Some(traces) = self.traces {
            // Not on this thread, which runs the requests to the collector.
            let stopped = tokio::task::spawn_blocking(move || traces.stop()).await;
            stopped.expect("it does not panic");
        }
    }
}

/// Starts the threads and the owners of all shards.
pub(super) fn run_shards(
    started: Vec<StartedShard>,
    routes: Routes,
    common: &OfAllShards,
    partials: PartialBytes,
) -> Result<Running, StartError> {
    let bytes = limits::MAILBOX_BYTES_MAX / started.len().max(1);
    let (mut owners, mut runtimes, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for shard in started {
        let (owner, runtime, member) = run_shard(shard, bytes, common)?;
        owners.push(owner);
        runtimes.push(runtime);
        members.push(member);
    }
    Ok(Running {
        shards: Arc::new(Shards::new(routes, members, partials)),
        owners,
        runtimes,
    })
}

/// Starts the threads and the owner of a shard, for whose batches there are so many bytes.
fn run_shard(
    started: StartedShard,
    bytes: usize,
    common: &OfAllShards,
) -> Result<(Task, ShardRuntime, Member), StartError> {
    let StartedShard {
        number,
        shard,
        committer,
        log,
        files: _,
    } = started;
    let (sender, mailbox) = mpsc::channel(limits::MAILBOX_LENGTH);
    let (controller, control) = mpsc::channel(1);
    let vitals = Arc::new(Vitals::new());
    let parts = OwnerParts {
        shard,
        clock: Arc::clone(&common.clock),
        sender: sender.clone(),
        mailbox,
        control,
        committer: Box::new(committer),
        store: None,
        reader: Reader::start(
            Arc::<dyn Checkpoints>::clone(&log),
            sender.clone(),
            Reader::end,
        )?,
        log,
        keys_wanted: Arc::clone(&common.keys_wanted),
        vitals: Arc::clone(&vitals),
        traces: common.traces.as_ref().map(Traces::of_shard),
    };
    let name = format!("owner of shard {number}");
    let runtime = ShardRuntime::start()?;
    let owner = {
        let _within = runtime.handle().enter();
        supervisor::spawn(name, Owner::new(parts).run())
    };
    let member = Member {
        number,
        owner: Mailbox::new(sender, controller, bytes.max(limits::MAILBOX_BYTES_MIN)),
        runtime: runtime.handle().clone(),
        vitals,
    };
    Ok((owner, runtime, member))
}
