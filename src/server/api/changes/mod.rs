//! Changes of a namespace as server-sent events: the counts of entities, jobs, and connections.
//!
//! While a client follows a namespace, its state is compared with that of a second ago. The id of an event is a version of the
//! namespace in this process: a client that names it in `Last-Event-ID` gets what has changed since.

mod known;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use hyper::body::Frame;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, sleep_until};
use utoipa::{IntoParams, ToSchema};

use super::connections::Connection;
use super::entities::EntityStatus;
use super::jobs::Job;
use super::{Answer, Call, Kind, Problem};
use crate::access::Authority;
use crate::address::SubQueue;
use crate::gateway::admin::time;
use crate::gateway::operations::{Operated, Operation};
use crate::limits;
use crate::namespace::{EntityStatistics, QueueStatistics};
use crate::rights::Right;
use crate::server::mailbox::{Mail, ShardReport};
use crate::server::shards::Shards;
use crate::shard::{OperationAnswer, OperationRequest};
use crate::time::Timestamp;
use known::{Item, Known};

/// Namespaces that clients follow.
#[derive(Debug)]
pub(in crate::server) struct Changes {
    /// Tells this process from others.
    run: String,
    followed: Mutex<BTreeMap<String, Known>>,
    /// The streams of events that are open.
    streams: AtomicUsize,
    /// Notified when one is opened.
    opened: Notify,
    /// The number of the last look.
    looks: watch::Sender<u64>,
}

/// How changes are followed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// The stream ends after so many seconds, and the client continues with `Last-Event-ID`; 600 if it is not given.
    #[param(minimum = 1, maximum = 600)]
    #[serde(default, deserialize_with = "super::entities::number")]
    seconds: Option<usize>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// An entity as the event `entity` has it. Counts of what happened begin with the process.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntityNow {
    path: String,
    kind: Kind,
    active: usize,
    deferred: usize,
    scheduled: usize,
    /// Messages that receivers have locked, in whatever state.
    locked: usize,
    dead_letters: usize,
    size_bytes: u64,
    receivers: usize,
    /// What clients may do with it.
    status: EntityStatus,
    /// Its messages belong to message sessions.
    requires_session: bool,
    /// When the oldest message was enqueued that waits for a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_enqueued_at: Option<String>,
    /// Messages that could not be forwarded.
    transfer_dead_letters: usize,
    /// Message sessions that have messages, a state or a holder.
    sessions: usize,
    sessions_held: usize,
    incoming: u64,
    /// Messages that were completed, or received and deleted.
    completed: u64,
    abandoned: u64,
    expired: u64,
    locks_expired: u64,
    dead_lettered: u64,
}

/// Looks at the namespaces that are followed, until the shards end: at intervals, and soon when a client begins.
pub(in crate::server) async fn follow(changes: Arc<Changes>, shards: Arc<Shards>) {
    let mut ticks = interval(limits::CHANGES_INTERVAL.as_duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut earliest = Instant::now();
    loop {
        if changes.streams.load(Ordering::Relaxed) == 0 {
            tokio::select! {
                () = changes.opened.notified() => ticks.reset_immediately(),
                () = shards.closed() => return,
            }
        }
        tokio::select! {
            _ = ticks.tick() => {}
            () = changes.opened.notified() => {
                sleep_until(earliest).await;
                ticks.reset();
            }
            () = shards.closed() => return,
        }
        changes.look(&shards).await;
        earliest = Instant::now() + limits::CHANGES_INTERVAL_MIN.as_duration();
    }
}

impl Changes {
    pub(in crate::server) fn new(begun: Timestamp) -> Self {
        Self {
            run: format!("{:x}", begun.as_millis()),
            followed: Mutex::default(),
            streams: AtomicUsize::new(0),
            opened: Notify::new(),
            looks: watch::Sender::new(0),
        }
    }

    fn followed(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self, shards: &Shards) {
        let names: Vec<String> = self.followed().keys().cloned().collect();
        let most = limits::CHANGES_ENTITIES_MAX / shards.count();
        let reports = shards.reports(most).await;
        for name in names {
            let mut now = BTreeMap::new();
            entities_of(&name, &reports, &mut now);
            add_jobs(&name, shards, &mut now).await;
            add_connections(&name, shards, &mut now).await;
            if let Some(known) = self.followed().get_mut(&name) {
                known.take(now);
            }
        }
        self.looks.send_modify(|look| *look += 1);
    }

    /// Reads an id of an event of this process.
    fn version_of(&self, id: &str) -> Option<u64> {
        let (run, version) = id.trim().split_once('-')?;
        version.parse().ok().filter(|_| run == self.run)
    }
}

fn entities_of(namespace: &str, reports: &[(u32, ShardReport)], now: &mut BTreeMap<Item, String>) {
    for (_, report) in reports {
        let entities = &report.statistics.gateway.namespaces.entities;
        for entity in entities.iter().filter(|it| it.namespace == namespace) {
            now.insert(
                Item::Entity(entity.path.clone()),
                json_of(&EntityNow::of(entity)),
            );
        }
    }
}

async fn add_jobs(namespace: &str, shards: &Shards, now: &mut BTreeMap<Item, String>) {
    if let Some(Operated::Jobs(jobs)) = ask(namespace, shards, Operation::Jobs).await {
        let jobs = jobs.into_iter();
        now.extend(jobs.map(|view| (Item::Job(view.id.0), json_of(&Job::of(view)))));
    }
}

async fn add_connections(namespace: &str, shards: &Shards, now: &mut BTreeMap<Item, String>) {
    let found = ask(namespace, shards, Operation::Connections).await;
    if let Some(Operated::Connections(connections)) = found {
        let connections = connections.into_iter().take(limits::CHANGES_ENTITIES_MAX);
        now.extend(connections.map(|view| {
            let item = Item::Connection(view.id.0);
            (item, json_of(&Connection::of(view)))
        }));
    }
}

async fn ask(namespace: &str, shards: &Shards, operation: Operation) -> Option<Operated> {
    let request = Box::new(OperationRequest {
        host: Some(namespace.to_owned()),
        authority: Authority::everything(),
        operation,
    });
    let owner = shards.owner_of(namespace)?;
    let answer = owner.ask(|answer| Mail::Operate(request, answer)).await;
    let OperationAnswer { done, .. } = answer?;
    done.ok()
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers are JSON")
}

impl EntityNow {
    fn of(entity: &EntityStatistics) -> Self {
        let queue = |wanted: SubQueue| {
            let found = entity.queues.iter().find(|(kind, _)| *kind == wanted);
            found.map_or_else(QueueStatistics::default, |(_, queue)| *queue)
        };
        let (main, dead) = (queue(SubQueue::Main), queue(SubQueue::DeadLetter));
        let failed = queue(SubQueue::TransferDeadLetter);
        Self {
            path: entity.path.clone(),
            kind: entity.kind.into(),
            active: main.active,
            deferred: main.deferred,
            scheduled: main.scheduled,
            locked: main.locked,
            dead_letters: dead.active + dead.deferred,
            size_bytes: main.bytes + dead.bytes,
            receivers: main.receivers,
            status: entity.status.into(),
            requires_session: entity.requires_session,
            oldest_enqueued_at: main.oldest.map(time),
            transfer_dead_letters: failed.active + failed.deferred,
            sessions: main.sessions,
            sessions_held: main.sessions_held,
            incoming: main.counters.incoming,
            completed: main.counters.completed,
            abandoned: main.counters.abandoned,
            expired: main.counters.expired,
            locks_expired: main.counters.locks_expired,
            dead_lettered: main.counters.dead_lettered.iter().sum(),
        }
    }
}

/// Follows the changes of the namespace as server-sent events: `entity`, `job` and `connection` with the newest state of one,
/// `entity_deleted`, `job_forgotten` and `connection_closed`. `current` ends what changed at one time, and has the id. `reset`
/// says that all that is known is to be forgotten: the whole state follows.
#[utoipa::path(get, path = "/api/v1/changes", operation_id = "follow_changes", tag = "history",
    params(ChangesQuery, ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client has seen")),
    responses((status = 200, body = EntityNow, content_type = "text/event-stream", description = "The data of `entity`; that of `job` and `connection` is as in their lists."),
        (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn events(call: &Call<'_>) -> Answer {
    let query: ChangesQuery = call.query()?;
    let max = limits::CHANGES_STREAM_SECONDS_MAX;
    let seconds = query.seconds.unwrap_or(max);
    if !(1..=max).contains(&seconds) {
        let text = format!("seconds is {seconds}; 1 to {max} is allowed.");
        return Err(Problem::wrong("seconds", text));
    }
    let authority = call.authorize("").await?;
    let (operated, _) = call
        .operate(
            authority,
            Operation::Name {
                path: None,
                right: Right::Listen,
            },
        )
        .await?;
    let Operated::Name { namespace, .. } = operated else {
        return Err(Problem::stopping());
    };
    let changes = &call.server.changes;
    let stream = OpenStream::open(changes)?;
    changes.followed().entry(namespace.clone()).or_default();
    let id = call.parts.headers.get("last-event-id");
    let id = id.and_then(|id| id.to_str().ok());
    let mut looks = changes.looks.subscribe();
    looks.mark_unchanged();
    changes.opened.notify_one();
    let follower = Follower {
        version: id.and_then(|id| changes.version_of(id)),
        stream,
        namespace,
        looks,
        stopped: call.server.stopped.clone(),
        end: Instant::now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)),
        is_first: true,
    };
    let kind = HeaderValue::from_static("text/event-stream");
    let fresh = HeaderValue::from_static("no-store");
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)];
    Ok((StatusCode::OK, headers, Body::new(Events::new(follower))).into_response())
}

/// A stream's place among those that may be open.
#[derive(Debug)]
struct OpenStream(Arc<Changes>);

impl OpenStream {
    fn open(changes: &Arc<Changes>) -> Result<Self, Problem> {
        let max = limits::CHANGES_STREAMS_MAX;
        if max <= changes.streams.fetch_add(1, Ordering::Relaxed) {
            changes.streams.fetch_sub(1, Ordering::Relaxed);
            let text = format!("{max} clients follow changes already, which is the most.");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "limit", text));
        }
        Ok(Self(Arc::clone(changes)))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client that follows a namespace.
#[derive(Debug)]
struct Follower {
    stream: OpenStream,
    namespace: String,
    /// What it knows.
    version: Option<u64>,
    looks: watch::Receiver<u64>,
    stopped: watch::Receiver<bool>,
    end: Instant,
    is_first: bool,
}

impl Follower {
    /// Waits for the next events; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_first) {
            // The client sees that it is connected, and learns how long to wait before it connects again.
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        let quiet = Instant::now() + limits::CHANGES_QUIET_MAX.as_duration();
        loop {
            tokio::select! {
                _ = self.stopped.wait_for(|stopped| *stopped) => return None,
                () = sleep_until(self.end) => return None,
                () = sleep_until(quiet) => return Some(Bytes::from_static(b":\n\n")),
                looked = self.looks.changed() => looked.ok()?,
            }
            let changes = &self.stream.0;
            let followed = changes.followed();
            let known = followed.get(&self.namespace)?;
            if !known.is_looked_at() {
                continue;
            }
            let events = known.events_since(self.version, &changes.run);
            self.version = Some(known.version());
            if !events.is_empty() {
                return Some(events.into());
            }
        }
    }
}

/// The body of an answer: what the follower gets.
struct Events {
    next: Pin<Box<dyn Future<Output = (Follower, Option<Bytes>)> + Send>>,
    is_over: bool,
}

impl Events {
    fn new(follower: Follower) -> Self {
        Self {
            next: Self::wait(follower),
            is_over: false,
        }
    }

    fn wait(
        mut follower: Follower,
    ) -> Pin<Box<dyn Future<Output = (Follower, Option<Bytes>)> + Send>> {
        Box::pin(async move {
            let next = follower.next().await;
            (follower, next)
        })
    }
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let Poll::Ready((follower, bytes)) = self.next.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.is_over = bytes.is_none();
        if !self.is_over {
            self.next = Self::wait(follower);
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
