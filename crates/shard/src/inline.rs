//! A server without threads, sockets and clocks: whatever its shard wants is done at once.
//!
//! Tests, benches and fuzzers drive whole conversations through it, bytes in and bytes out: the same
//! [`Shard`], [`Peer`] and journal as in production.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::BytesMut;

use super::peer::{Peer, ReplyEffect};
use super::{Input, Output, Ready, Recovering, Shard, read};
use jitney_amqp::Connection;
use jitney_base::ids::ConnectionId;
use jitney_base::memory::Memory;
use jitney_base::time::Timestamp;
use jitney_broker::access::Origin;
use jitney_broker::namespace::StepContext;
use jitney_gateway::Gateway;
use jitney_journal::memory::MemoryDisk;
use jitney_journal::{Committer, Disk, Frame, Options};

/// A shard with its log in memory, and the ends of its connections.
pub struct Inline {
    /// The shard.
    pub shard: Shard,
    disk: Arc<dyn Disk>,
    committer: Committer,
    frames: Vec<Frame>,
    connections: BTreeMap<ConnectionId, Served>,
}

/// The server's end of a connection.
struct Served {
    peer: Peer,
    /// Bytes that the client has sent, and the engine has not taken.
    input: BytesMut,
    /// There is more of it than at the last look.
    has_read: bool,
    output: BytesMut,
}

impl Inline {
    /// Starts a shard with an empty log and what `configure` makes.
    ///
    /// # Panics
    ///
    /// An empty log in memory cannot be read: that is a bug.
    pub fn start(
        gateway: Gateway,
        now: Timestamp,
        configure: impl FnOnce(&mut Gateway, &mut StepContext<'_>),
    ) -> Self {
        Self::start_with(Options::new(1), gateway, now, configure)
    }

    /// Starts a shard as [`Inline::start`] does, with a log that is kept by `options`.
    ///
    /// # Panics
    ///
    /// As [`Inline::start`].
    pub fn start_with(
        options: Options,
        gateway: Gateway,
        now: Timestamp,
        configure: impl FnOnce(&mut Gateway, &mut StepContext<'_>),
    ) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let recovering = Recovering::recover(gateway, Arc::clone(&disk), options);
        let recovering = recovering.expect("an empty log can be read");
        let ready = recovering.begin(now, Memory::default(), usize::MAX, |gateway, cx| {
            configure(gateway, cx);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(Ready {
            shard, committer, ..
        }) = ready;
        let mut server = Self {
            shard,
            disk,
            committer,
            frames: Vec::new(),
            connections: BTreeMap::new(),
        };
        server.turn(now);
        server
    }

    /// Opens a connection.
    pub fn connect(&mut self, now: Timestamp, id: ConnectionId, config: jitney_amqp::Config) {
        self.shard
            .handle(now, Input::Connected(id, Origin::default()));
        let served = Served {
            peer: Peer::new(Connection::server(config, now)),
            input: BytesMut::new(),
            has_read: false,
            output: BytesMut::new(),
        };
        self.connections.insert(id, served);
    }

    /// Ends a connection, as a socket does that is cut.
    pub fn cut(&mut self, now: Timestamp, id: ConnectionId) {
        let Some(mut served) = self.connections.remove(&id) else {
            return;
        };
        served.peer.engine.handle_eof(now);
        served.peer.take_events();
        let reports = served.peer.take_reports();
        self.shard.handle(now, Input::Reports(id, reports));
        let left = std::mem::take(&mut served.peer.outgoing);
        self.shard.handle(now, Input::Disconnected(id, left));
        self.turn(now);
    }

    /// Takes bytes that a client sends, for the next [`Inline::turn`].
    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8]) {
        if let Some(served) = self.connections.get_mut(&id) {
            served.input.extend_from_slice(bytes);
            served.has_read |= !bytes.is_empty();
        }
    }

    /// Returns how many bytes of a client's wait for the rest of their frame.
    #[must_use]
    pub fn unread(&self, id: ConnectionId) -> usize {
        self.connections
            .get(&id)
            .map_or(0, |served| served.input.len())
    }

    /// Returns what a client is sent, to be taken.
    pub fn output(&mut self, id: ConnectionId) -> Option<&mut BytesMut> {
        Some(&mut self.connections.get_mut(&id)?.output)
    }

    /// Returns the engine of a connection.
    pub fn engine(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        Some(&mut self.connections.get_mut(&id)?.peer.engine)
    }

    /// Reads the log as the next start would; `broker` has no namespaces yet.
    ///
    /// # Errors
    ///
    /// The log is not one that a shard can start with.
    pub fn recover(
        &self,
        gateway: Gateway,
        options: Options,
    ) -> Result<Recovering, jitney_journal::Error> {
        Recovering::recover(gateway, Arc::clone(&self.disk), options)
    }

    /// Does all that clients and the time ask for.
    pub fn turn(&mut self, now: Timestamp) {
        loop {
            for (&id, served) in &mut self.connections {
                served.take(now);
                if served.peer.has_reports() {
                    let reports = served.peer.take_reports();
                    self.shard.handle(now, Input::Reports(id, reports));
                }
            }
            self.shard.handle_timeout(now);
            let mut is_busy = self.carry_out(now);
            self.commit(now);
            is_busy |= self.carry_out(now);
            for served in self.connections.values_mut() {
                served.send(now);
                is_busy |= served.peer.has_reports();
            }
            if !is_busy {
                return;
            }
        }
    }

    /// Carries out what the shard wants; returns whether there was anything to do.
    fn carry_out(&mut self, now: Timestamp) -> bool {
        self.shard.finish_turn(now);
        let mut is_busy = false;
        while let Some(output) = self.shard.poll_output() {
            is_busy = true;
            match output {
                Output::Commit(frame) => self.frames.push(frame),
                Output::Read(request) => {
                    let done = read(&*self.disk, request).expect("memory can be read");
                    self.shard.handle(now, Input::Read(done));
                }
                Output::WriteCheckpoint(task) => {
                    let written = task.write(&*self.disk);
                    self.shard.handle(now, Input::CheckpointWritten(written));
                }
                Output::RemoveSegments(segments) => {
                    for segment in segments {
                        let removed = self.committer.remove(segment);
                        removed.expect("memory can be given back");
                    }
                }
                Output::Send(id) => {
                    let served = self.connections.get_mut(&id);
                    if let (Some(served), Some(outgoing)) = (served, self.shard.outgoing(id)) {
                        served.peer.outgoing.append(outgoing);
                    }
                }
                // Everything is synced at once, and clients read what they are sent; requests come over
                // connections only, no client has an identity token, and nothing is traced.
                Output::Sync
                | Output::Close(_)
                | Output::Answer(..)
                | Output::Abandon(_)
                | Output::FetchIdentityKeys
                | Output::Trace(_) => {}
            }
        }
        is_busy
    }

    /// Makes durable what was sealed.
    fn commit(&mut self, now: Timestamp) {
        if self.frames.is_empty() {
            return;
        }
        let written = self.committer.write(&self.frames);
        written.expect("memory can be written");
        self.committer.sync().expect("memory can be synced");
        self.frames.clear();
        let synced = self.committer.synced();
        let durable = synced;
        self.shard.handle(now, Input::Durable { durable, synced });
    }
}

impl Served {
    fn take(&mut self, now: Timestamp) {
        let due = self.peer.engine.poll_timeout();
        if due.is_some_and(|due| due <= now) {
            self.peer.engine.handle_timeout(now);
        }
        if std::mem::take(&mut self.has_read) || self.peer.engine.is_held() {
            self.peer.engine.handle_bytes(now, &mut self.input);
        }
        self.peer.take_events();
    }

    fn send(&mut self, now: Timestamp) {
        while let Some(effect) = self.peer.send_next(now) {
            match effect {
                ReplyEffect::None | ReplyEffect::Admitted => {}
                ReplyEffect::ReadOn => self.peer.engine.handle_bytes(now, &mut self.input),
            }
        }
        self.peer.engine.go_on();
        self.peer.take_events();
        self.peer.engine.take_output(now, &mut self.output);
        self.peer.report_written();
    }
}
