//! Changes of a namespace as server-sent events: the counts of entities, jobs, and connections.
//!
//! While a client follows a namespace, its state is compared with that of a second ago. The id of an event is a version of the
//! namespace in this process: a client that names it in `Last-Event-ID` gets what has changed since.

mod followed;
mod known;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use hyper::body::Frame;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, sleep_until};
use utoipa::IntoParams;

use super::attention::attention_of;
use super::call::{Answer, Call};
use super::connections::{FIRST, connection_of};
use super::entities::{kind_of, status_of};
use super::jobs::job_of;
use super::problem::Problem;
use crate::host::owner_message::{OwnerMessage, ShardReport};
use crate::host::shards::Shards;
use crate::http::answers::Reservation;
use crate::limits;
pub(crate) use followed::Changes;
use followed::OpenStream;
use jitney_api::attention::Attention;
use jitney_api::changes::{AttentionNow, EntityNow};
use jitney_base::address::SubQueue;
use jitney_base::rights::Right;
use jitney_broker::access::{Authority, Inquiry};
use jitney_broker::namespace::{EntityStatistics, QueueStatistics};
use jitney_gateway::admin::time;
use jitney_gateway::operations::{
    ConnectionView, ConnectionsPage, JobsPage, ListConnections, ListJobs, Names, ReadAttention,
    ReadNames,
};
use jitney_gateway::request::{Request, Requester};
use known::{Item, More, Seen};

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

/// Looks at the namespaces that are followed, until the shards end: at intervals, and soon when a client begins.
pub(crate) async fn follow(changes: Arc<Changes>, shards: Arc<Shards>) {
    let mut ticks = interval(limits::CHANGES_INTERVAL.as_duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut earliest = Instant::now();
    loop {
        if changes.followed().is_empty() {
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
    async fn look(&self, shards: &Shards) {
        let names = self.wanted(Instant::now());
        if names.is_empty() {
            return;
        }
        let most = limits::CHANGES_ENTITIES_MAX / shards.count();
        let reports = shards.reports(most).await;
        for name in names {
            let kept = self
                .followed()
                .get_mut(&name)
                .and_then(|it| it.reservation.take());
            let begin = || self.bytes.begin(name.clone(), Arc::default());
            let mut now = NamespaceState::new(kept.unwrap_or_else(begin));
            now.add_entities(&name, &reports);
            now.add_jobs(&name, shards).await;
            now.add_connections(&name, shards).await;
            now.add_attention(&name, shards).await;
            let (items, reservation) = now.end();
            if let Some(followed) = self.followed().get_mut(&name) {
                followed.known.take(items);
                followed.reservation = Some(reservation);
            }
        }
        self.looks.send_modify(|look| *look += 1);
    }
}

/// The state of a namespace, which is made once for all who follow it.
#[derive(Debug)]
struct NamespaceState {
    items: BTreeMap<Item, String>,
    reservation: Reservation,
    /// Bytes that are used of the reservation.
    used: usize,
}

impl NamespaceState {
    fn new(reservation: Reservation) -> Self {
        Self {
            items: BTreeMap::new(),
            reservation,
            used: 0,
        }
    }

    /// Adds an item, if there is room for it; returns whether there was.
    fn add(&mut self, item: Item, value: &impl Serialize) -> bool {
        /// The item is known as it was before, too; and beside its text there are its key and places in trees.
        const TIMES: usize = 2;
        const BESIDE: usize = 128;
        let json = serde_json::to_string(value).expect("texts and numbers are JSON");
        let used = self.used + TIMES * (json.len() + BESIDE);
        let reserved = self.reservation.bytes();
        let missing = used.saturating_sub(reserved);
        let more = missing.next_multiple_of(limits::ANSWER_STEP_BYTES);
        if 0 < missing && self.reservation.grow(more).is_err() {
            return false;
        }
        self.used = used;
        self.items.insert(item, json);
        true
    }

    fn add_entities(&mut self, namespace: &str, reports: &[(u32, ShardReport)]) {
        for (_, report) in reports {
            let entities = &report.statistics.gateway.namespaces.entities;
            for entity in entities.iter().filter(|it| it.namespace == namespace) {
                let item = Item::Entity(entity.path.clone());
                if !self.add(item, &entity_now(entity)) {
                    return;
                }
            }
        }
    }

    async fn add_jobs(&mut self, namespace: &str, shards: &Shards) {
        let mut before = None;
        loop {
            let list = ListJobs { before };
            let Some(JobsPage { jobs, next }) = ask(namespace, shards, list).await else {
                return;
            };
            for view in jobs {
                if !self.add(Item::Job(view.id.0), &job_of(view)) {
                    return;
                }
            }
            if next.is_none() {
                return;
            }
            before = next;
        }
    }

    async fn add_connections(&mut self, namespace: &str, shards: &Shards) {
        let (mut from, mut last): (_, Option<ConnectionView>) = (FIRST, None);
        let most = jitney_gateway::limits::LISTED_LINKS;
        for _ in 0..limits::CHANGES_LINKS_MAX / most {
            let list = ListConnections { from, most };
            let Some(ConnectionsPage { connections, next }) = ask(namespace, shards, list).await
            else {
                return;
            };
            for view in connections {
                match last.take() {
                    // It had more links than the page before.
                    Some(mut known) if known.id == view.id => {
                        known.links.extend(view.links);
                        last = Some(known);
                    }
                    known => {
                        last = Some(view);
                        if known.is_some_and(|known| !self.add_connection(known)) {
                            return;
                        }
                    }
                }
            }
            let Some(next) = next else { break };
            from = next;
        }
        if let Some(last) = last {
            self.add_connection(last);
        }
    }

    async fn add_attention(&mut self, namespace: &str, shards: &Shards) {
        let read = ReadAttention { path: None };
        let Some(view) = ask(namespace, shards, read).await else {
            return;
        };
        let Attention {
            mut items,
            counts,
            left_out,
            ..
        } = attention_of(view);
        let left_out = left_out + items.len().saturating_sub(limits::CHANGES_ATTENTION_MAX);
        items.truncate(limits::CHANGES_ATTENTION_MAX);
        let now = AttentionNow {
            items,
            counts,
            left_out,
        };
        self.add(Item::Attention, &now);
    }

    fn add_connection(&mut self, view: ConnectionView) -> bool {
        self.add(Item::Connection(view.id.0), &connection_of(view))
    }

    fn end(self) -> (BTreeMap<Item, String>, Reservation) {
        self.reservation.shrink(self.used);
        (self.items, self.reservation)
    }
}

async fn ask<R: Request>(namespace: &str, shards: &Shards, request: R) -> Option<R::Answer> {
    let requester = Requester {
        host: Some(namespace.to_owned()),
        authority: Authority::everything(),
    };
    let owner = shards.owner_of(namespace)?;
    owner.request(requester, request).await?.ok()
}

fn entity_now(entity: &EntityStatistics) -> EntityNow {
    let queue = |wanted: SubQueue| {
        let found = entity.queues.iter().find(|(kind, _)| *kind == wanted);
        found.map_or_else(QueueStatistics::default, |(_, queue)| *queue)
    };
    let (main, dead) = (queue(SubQueue::Main), queue(SubQueue::DeadLetter));
    let failed = queue(SubQueue::TransferDeadLetter);
    EntityNow {
        path: entity.path.clone(),
        kind: kind_of(entity.kind),
        active: main.active,
        deferred: main.deferred,
        scheduled: main.scheduled,
        locked: main.locked,
        dead_letters: dead.active + dead.deferred,
        size_bytes: main.bytes + dead.bytes,
        receivers: main.receivers,
        status: status_of(entity.status),
        requires_session: entity.requires_session,
        forward_to: entity.forward_to.clone(),
        forward_dead_letters_to: entity.forward_dead_letters_to.clone(),
        next_number: entity.next_number.map(|number| number.0),
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
        forwarded: main.counters.forwarded,
        unmatched: main.counters.unmatched,
    }
}

/// Follows the changes of the namespace as server-sent events: `entity`, `job` and `connection` with the newest state of one,
/// `entity_deleted`, `job_forgotten` and `connection_closed`; `attention` with all that needs attention, and `attention_unknown` if
/// that is not known any more. `current` ends what changed at one time, and has the id. `reset`
/// says that all that is known is to be forgotten: the whole state follows.
#[utoipa::path(get, path = "/api/v1/changes", operation_id = "follow_changes", tag = "history",
    params(ChangesQuery, ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client has seen")),
    responses((status = 200, body = EntityNow, content_type = "text/event-stream", description = "The data of `entity`; that of `job` and `connection` is as in their lists, and that of `attention` is `AttentionNow`."),
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
    let ends_at = authority.ends_at();
    let names = ReadNames {
        path: None,
        right: Right::Listen,
    };
    let Names { namespace, .. } = call.request(authority, names).await?;
    let changes = &call.server.changes;
    let stream = OpenStream::open(changes, &namespace)?;
    let id = call.parts.headers.get("last-event-id");
    let id = id.and_then(|id| id.to_str().ok());
    let mut looks = changes.looks.subscribe();
    looks.mark_unchanged();
    changes.opened.notify_one();
    let longest = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    let now = call.server.clock.now();
    let grant_ends = ends_at.since(now.min(ends_at)).as_duration();
    let follower = Follower {
        seen: Seen::up_to(id.and_then(|id| changes.version_of(id))),
        more: More::No,
        stream,
        looks,
        stopped: call.server.stopped.clone(),
        end: Instant::now() + longest.min(grant_ends),
        proof: Proof::of(call),
        checked: Instant::now(),
        is_first: true,
    };
    let kind = HeaderValue::from_static("text/event-stream");
    let fresh = HeaderValue::from_static("no-store");
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)];
    Ok((StatusCode::OK, headers, Body::new(Events::new(follower))).into_response())
}

/// The token of a stream, which has to hold for as long as the stream is open.
#[derive(Debug)]
struct Proof {
    shards: Arc<Shards>,
    /// What was asked at the beginning; `None` of the operator.
    inquiry: Option<Inquiry>,
}

impl Proof {
    fn of(call: &Call<'_>) -> Self {
        Self {
            shards: Arc::clone(&call.server.shards),
            inquiry: (!call.is_operator()).then(|| call.inquiry("")),
        }
    }

    /// Returns whether it still holds: its rule is there, and has its key and the right.
    async fn holds(&self) -> bool {
        let Some(inquiry) = self.inquiry.clone() else {
            return true;
        };
        let owner = inquiry.host.as_deref().unwrap_or_default();
        let Some(owner) = self.shards.owner_of(owner) else {
            return false;
        };
        let host = inquiry.host.clone();
        let authorized = owner.ask(|answer| OwnerMessage::Authorize(Box::new(inquiry), answer));
        let Some(Ok(authority)) = authorized.await else {
            return false;
        };
        let requester = Requester { host, authority };
        let names = ReadNames {
            path: None,
            right: Right::Listen,
        };
        let answer = owner.request(requester, names).await;
        answer.is_some_and(|answer| answer.is_ok())
    }
}

/// A client that follows a namespace.
#[derive(Debug)]
struct Follower {
    stream: OpenStream,
    seen: Seen,
    /// There are more events than it was handed.
    more: More,
    looks: watch::Receiver<u64>,
    stopped: watch::Receiver<bool>,
    /// When the stream ends: with its token, at the latest.
    end: Instant,
    proof: Proof,
    /// When the token was last checked.
    checked: Instant,
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
            let check = self.checked + limits::CHANGES_TOKEN_CHECK.as_duration();
            if self.end <= Instant::now() {
                return None;
            }
            if check <= Instant::now() {
                self.checked = Instant::now();
                if !self.proof.holds().await {
                    return None;
                }
            }
            if self.more == More::No {
                tokio::select! {
                    _ = self.stopped.wait_for(|stopped| *stopped) => return None,
                    () = sleep_until(self.end) => return None,
                    () = sleep_until(check) => continue,
                    () = sleep_until(quiet) => return Some(Bytes::from_static(b":\n\n")),
                    looked = self.looks.changed() => looked.ok()?,
                }
            }
            let changes = &self.stream.changes;
            let followed = changes.followed();
            let known = &followed.get(&self.stream.namespace)?.known;
            if !known.is_looked_at() {
                continue;
            }
            let (events, more) = known.events(&mut self.seen, &changes.run);
            self.more = more;
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
