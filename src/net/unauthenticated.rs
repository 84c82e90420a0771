//! The memory that unauthenticated connections take, all of them together.
//!
//! A connection reserves what its protocol takes as soon as its first byte is there, and waits as long as there is no room. The bytes that
//! it sends beyond the usual, and the answers that it does not read, are added to that. When all is used up, the connection goes that has
//! sent most; for a new one of an address with little, one of the address that has most; among equals, one that has been silent for a
//! while. Who is authorized is counted here no more.
//!
//! Invariant: what is held is never more than the bound, but for the bytes of one read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::warning::Warning;
use crate::limits;
use jitney_broker::access::PeerAddress;

/// The bound, and what is held of it. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct UnauthenticatedBytes(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    max: usize,
    held: Mutex<Held>,
    /// Something was given back.
    freed: Notify,
    /// How many connections were closed for want of room.
    closed: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    next: u64,
    /// The connections that hold something, the oldest first.
    accounts: BTreeMap<u64, Account>,
    peers: BTreeMap<PeerAddress, OfPeer>,
    /// The peers by what they hold.
    peers_by_bytes: BTreeSet<(usize, PeerAddress)>,
    /// The connections by what they hold beyond their reservations; of equals, the oldest is the last.
    by_growth: BTreeSet<(usize, Reverse<u64>)>,
    warning: Warning,
}

/// What one connection holds.
#[derive(Debug)]
struct Account {
    peer: PeerAddress,
    reserved: usize,
    growth: usize,
    /// When it last sent or took something.
    active: Instant,
    traffic: Arc<Traffic>,
}

#[derive(Debug, Default)]
struct OfPeer {
    bytes: usize,
    /// Its connections by what they hold; of equals, the oldest is the last.
    connections: BTreeSet<(usize, Reverse<u64>)>,
}

/// The bytes of one connection.
#[derive(Debug, Default)]
struct Traffic {
    /// Bytes that were read, and may still be kept.
    read: AtomicUsize,
    /// How many of them came with the last read.
    last_read: AtomicUsize,
    /// What the AMQP engine counts for the frames among them: small ones leave more than their bytes.
    frames: AtomicUsize,
    /// Bytes of answers that are not written.
    unread: AtomicUsize,
    /// It is authorized, or has ended.
    is_over: AtomicBool,
    /// It is closed for want of room.
    is_evicted: AtomicBool,
    /// Who reads, and who writes.
    wakers: Mutex<[Option<Waker>; 2]>,
}

/// What a connection reserves, by what its first byte announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstByte {
    Amqp,
    Http,
    /// Whatever is spoken within.
    Tls,
}

/// One connection's part of the bound, for as long as it is unauthenticated.
#[derive(Debug)]
pub(crate) struct Share {
    peer: PeerAddress,
    meter: Meter,
}

/// Counts the bytes of a connection for its [`Share`].
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    pool: Arc<Pool>,
    id: u64,
    traffic: Arc<Traffic>,
}

/// The direction in which a task waits for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl FirstByte {
    /// Returns the bytes that a connection takes with a usual beginning.
    const fn bytes(self) -> usize {
        let fixed = match self {
            Self::Amqp => limits::UNAUTHENTICATED_AMQP_BYTES,
            Self::Http => limits::UNAUTHENTICATED_HTTP_BYTES,
            Self::Tls => limits::UNAUTHENTICATED_TLS_BYTES,
        };
        fixed + COPIES * limits::UNAUTHENTICATED_TRAFFIC_BYTES
    }
}

/// How often a byte of input is kept: once as it was read, and once where it is used.
const COPIES: usize = 2;

impl Default for UnauthenticatedBytes {
    fn default() -> Self {
        Self::new(limits::UNAUTHENTICATED_TOTAL_BYTES_MAX)
    }
}

impl UnauthenticatedBytes {
    /// Bounds what is held together.
    pub(crate) fn new(max: usize) -> Self {
        Self(Arc::new(Pool {
            max,
            held: Mutex::default(),
            freed: Notify::new(),
            closed: AtomicU64::new(0),
        }))
    }

    /// Returns how many bytes are held.
    pub(crate) fn held(&self) -> usize {
        self.0.held().total
    }

    /// Returns how many connections were closed for want of room.
    pub(crate) fn closed(&self) -> u64 {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Begins the part of a connection, which holds nothing yet.
    pub(crate) fn share(&self, peer: PeerAddress) -> Share {
        let mut held = self.0.held();
        held.next += 1;
        let meter = Meter {
            pool: Arc::clone(&self.0),
            id: held.next,
            traffic: Arc::default(),
        };
        Share { peer, meter }
    }
}

impl Share {
    /// Reserves what a connection takes with a usual beginning; waits until there is room. Returns whether it has it by the deadline.
    pub(crate) async fn reserve(&self, beginning: FirstByte, deadline: Instant) -> bool {
        loop {
            let mut freed = pin!(self.meter.pool.freed.notified());
            freed.as_mut().enable();
            let now = Instant::now();
            if self.try_reserve(beginning.bytes(), now) {
                // There may be room for the next one too.
                self.meter.pool.freed.notify_one();
                return true;
            }
            if deadline <= now {
                return false;
            }
            // Meanwhile a silent one may have been silent for long enough.
            let look = now + limits::UNAUTHENTICATED_LOOK.as_duration();
            tokio::select! {
                () = freed => {}
                () = sleep_until(look.min(deadline)) => {}
            }
        }
    }

    fn try_reserve(&self, bytes: usize, now: Instant) -> bool {
        let pool = &self.meter.pool;
        let mut held = pool.held();
        while pool.max < held.total + bytes {
            let Some(victim) = held.victim_for(self.peer, bytes, now) else {
                return false;
            };
            pool.evict(&mut held, victim);
        }
        let account = Account {
            peer: self.peer,
            reserved: bytes,
            growth: 0,
            active: now,
            traffic: Arc::clone(&self.meter.traffic),
        };
        held.insert(self.meter.id, account);
        true
    }

    /// Returns what counts the connection's bytes.
    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Meter { pool, id, traffic } = &self.meter;
        traffic.is_over.store(true, Ordering::Release);
        let removed = pool.held().remove(*id);
        if removed.is_some() {
            pool.freed.notify_one();
        }
    }
}

impl Meter {
    /// Returns whether the connection is counted no more.
    pub(crate) fn is_over(&self) -> bool {
        self.traffic.is_over.load(Ordering::Acquire)
    }

    /// Returns whether much of the bound is held: then what is unusual is refused.
    pub(crate) fn is_crowded(&self) -> bool {
        !self.is_over() && self.pool.max / 2 < self.pool.held().total
    }

    /// Lets the task that waits for the socket be woken when the connection is closed for want of room.
    ///
    /// # Errors
    ///
    /// It is closed already.
    pub(crate) fn watch(&self, direction: Direction, cx: &Context<'_>) -> io::Result<()> {
        {
            let mut wakers = self.traffic.wakers();
            let [reads, writes] = &mut *wakers;
            let waker = match direction {
                Direction::Read => reads,
                Direction::Write => writes,
            };
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
        }
        self.check()
    }

    /// Counts bytes that were read.
    ///
    /// # Errors
    ///
    /// The connection is closed for want of room, or has sent more than any may that is unauthenticated.
    pub(crate) fn read(&self, bytes: usize) -> io::Result<()> {
        let before = self.traffic.read.fetch_add(bytes, Ordering::Relaxed);
        self.traffic.last_read.store(bytes, Ordering::Relaxed);
        self.changed();
        if limits::UNAUTHENTICATED_READ_BYTES_MAX < before + bytes {
            let text = "too much was sent before a right was proved";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, text));
        }
        self.check()
    }

    /// Says what the AMQP engine counts for the frames of the peer.
    pub(crate) fn set_frames(&self, bytes: usize) {
        if self.traffic.frames.swap(bytes, Ordering::Relaxed) != bytes {
            self.changed();
        }
    }

    /// Says how many bytes of answers wait to be written.
    pub(crate) fn set_unread(&self, bytes: usize) {
        if self.traffic.unread.swap(bytes, Ordering::Relaxed) != bytes {
            self.changed();
        }
    }

    /// A request was answered: nothing is kept of it. What the peer sent behind it came with the last read.
    pub(crate) fn answered(&self, bytes: usize) {
        let last = self.traffic.last_read.load(Ordering::Relaxed);
        self.traffic.read.fetch_min(last, Ordering::Relaxed);
        self.traffic.unread.fetch_add(bytes, Ordering::Relaxed);
        self.changed();
    }

    /// Counts bytes that the system has taken.
    pub(crate) fn written(&self, bytes: usize) {
        let unread = &self.traffic.unread;
        let took = unread.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unread| {
            Some(unread.saturating_sub(bytes))
        });
        if took.is_ok_and(|before| 0 < before) {
            self.changed();
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.traffic.is_evicted.load(Ordering::Acquire) {
            let text = "unauthenticated connections hold too much, and this one most";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, text));
        }
        Ok(())
    }

    /// Counts what the connection holds now. If all hold too much, those are closed that have sent most.
    fn changed(&self) {
        let mut held = self.pool.held();
        held.set_growth(self.id, self.traffic.growth(), Instant::now());
        while self.pool.max < held.total
            && let Some(&(_, Reverse(most))) = held.by_growth.last()
        {
            self.pool.evict(&mut held, most);
        }
    }
}

impl Traffic {
    /// Returns what is held beyond the reservation.
    fn growth(&self) -> usize {
        let load = |bytes: &AtomicUsize| bytes.load(Ordering::Relaxed);
        let taken = load(&self.read).max(load(&self.frames)) + load(&self.unread);
        COPIES * taken.saturating_sub(limits::UNAUTHENTICATED_TRAFFIC_BYTES)
    }

    fn evict(&self) {
        self.is_evicted.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn wakers(&self) -> MutexGuard<'_, [Option<Waker>; 2]> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a connection, to make room.
    fn evict(&self, held: &mut Held, id: u64) {
        let total = held.total;
        let Some(account) = held.remove(id) else {
            return;
        };
        account.traffic.evict();
        self.closed.fetch_add(1, Ordering::Relaxed);
        if held.warning.is_due() {
            warn!(
                peer = %account.peer, bytes = account.reserved + account.growth, total, limit = self.max,
                "unauthenticated connections use all memory that they may have: closed the one that held most, or one that was silent"
            );
        }
    }
}

impl Held {
    fn insert(&mut self, id: u64, account: Account) {
        self.count(id, account.peer, account.reserved, account.growth);
        self.accounts.insert(id, account);
    }

    fn remove(&mut self, id: u64) -> Option<Account> {
        let account = self.accounts.remove(&id)?;
        self.discount(id, account.peer, account.reserved, account.growth);
        Some(account)
    }

    fn set_growth(&mut self, id: u64, growth: usize, now: Instant) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        account.active = now;
        let before = std::mem::replace(&mut account.growth, growth);
        let (peer, reserved) = (account.peer, account.reserved);
        if before != growth {
            self.discount(id, peer, reserved, before);
            self.count(id, peer, reserved, growth);
        }
    }

    fn count(&mut self, id: u64, peer: PeerAddress, reserved: usize, growth: usize) {
        let bytes = reserved + growth;
        self.total += bytes;
        if 0 < growth {
            self.by_growth.insert((growth, Reverse(id)));
        }
        let of_peer = self.peers.entry(peer).or_default();
        self.peers_by_bytes.remove(&(of_peer.bytes, peer));
        of_peer.bytes += bytes;
        of_peer.connections.insert((bytes, Reverse(id)));
        self.peers_by_bytes.insert((of_peer.bytes, peer));
    }

    fn discount(&mut self, id: u64, peer: PeerAddress, reserved: usize, growth: usize) {
        let bytes = reserved + growth;
        self.total -= bytes;
        self.by_growth.remove(&(growth, Reverse(id)));
        let Some(of_peer) = self.peers.get_mut(&peer) else {
            return;
        };
        self.peers_by_bytes.remove(&(of_peer.bytes, peer));
        of_peer.bytes -= bytes;
        of_peer.connections.remove(&(bytes, Reverse(id)));
        if of_peer.connections.is_empty() {
            self.peers.remove(&peer);
        } else {
            self.peers_by_bytes.insert((of_peer.bytes, peer));
        }
    }

    /// Returns the connection that has to go so that another peer gets some bytes: one of the peer with most, if that has more than
    /// the other will have; else the one that was there first, if it has been silent for a while.
    fn victim_for(&self, peer: PeerAddress, bytes: usize, now: Instant) -> Option<u64> {
        let &(most, of) = self.peers_by_bytes.last()?;
        let own = self.peers.get(&peer).map_or(0, |of_peer| of_peer.bytes);
        if own + bytes < most {
            let &(_, Reverse(id)) = self.peers.get(&of)?.connections.last()?;
            return Some(id);
        }
        let is_silent = |account: &Account| {
            account.active + limits::UNAUTHENTICATED_SILENCE.as_duration() <= now
        };
        let mut oldest = self.accounts.iter().take(limits::UNAUTHENTICATED_LOOKS);
        let found = oldest.find(|(_, account)| is_silent(account));
        found.map(|(&id, _)| id)
    }
}

#[cfg(test)]
mod tests;
