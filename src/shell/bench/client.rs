//! A client's connection and its links, driven until its work is done.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::pace::Pace;
use super::progress::Finished;
use crate::amqp::{
    Config, Connection, Event, Identity, LinkId, LinkRole, LinkTarget, SessionId, SettleMode,
};
use crate::limits;
use crate::shell::clock::Clock;
use crate::time::Timestamp;

/// What is done with a connection's links.
pub(super) trait Work {
    /// Reacts to an event; an error ends the run.
    fn handle(&mut self, engine: &mut Connection, event: Event) -> Result<(), String>;

    /// Does what can be done now.
    fn turn(&mut self, engine: &mut Connection) -> Turn;
}

/// When work goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is nothing more to do.
    Done,
    /// As soon as what there is has been written.
    Again,
    /// With the next event.
    Wait,
    /// Then, or with the next event.
    Until(Instant),
}

/// Where a connection leads, and who asks.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) broker: SocketAddr,
    pub(super) identity: Identity,
    /// How long a broker that does not listen yet is waited for.
    pub(super) patience: Duration,
}

/// A link that is to be.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) role: LinkRole,
    pub(super) node: String,
    pub(super) name: String,
    pub(super) message_session: Option<String>,
}

/// A connection.
pub(super) struct Client {
    stream: TcpStream,
    engine: Connection,
    clock: Clock,
    pace: Pace,
    input: BytesMut,
    output: BytesMut,
}

const READ_BYTES: usize = 128 * 1024;
/// How often a broker that does not listen yet is tried.
const TRY: Duration = Duration::from_millis(1);

impl Client {
    /// Opens a connection.
    pub(super) async fn open(peer: &Peer, name: &str) -> Result<Self, String> {
        let stream = connect(peer).await?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        let clock = Clock::new(Timestamp::EPOCH);
        let config = Config {
            container_id: format!("jitney-bench-{name}"),
            hostname: Some(peer.broker.ip().to_string()),
            frame_size_max: limits::FRAME_SIZE_MAX,
            channel_max: limits::CHANNEL_MAX,
            handle_max: limits::HANDLE_MAX,
            idle_timeout: limits::IDLE_TIMEOUT,
            identity: peer.identity.clone(),
            has_certificate: false,
            trusts_peer: true,
        };
        let engine = Connection::client(config, clock.elapsed());
        let mut client = Self {
            stream,
            engine,
            clock,
            pace: Pace::default(),
            input: BytesMut::new(),
            output: BytesMut::new(),
        };
        client
            .wait_for(|event| matches!(event, Event::Opened { .. }))
            .await?;
        Ok(client)
    }

    /// Begins a session.
    pub(super) fn begin(&mut self) -> Result<SessionId, String> {
        let session = self.engine.begin();
        session.ok_or_else(|| "the broker allows no session".to_owned())
    }

    /// Attaches links in one session, and returns them when all are there.
    pub(super) async fn attach(&mut self, wanted: &[Wanted]) -> Result<Vec<LinkId>, String> {
        let session = self.begin()?;
        let mut links = Vec::with_capacity(wanted.len());
        for link in wanted {
            let (name, node) = (link.name.as_str(), link.node.as_str());
            let mode = SettleMode::OnReceipt;
            let id = match &link.message_session {
                None => self.engine.attach(session, name, link.role, node, mode),
                Some(id) => self.engine.attach_message_session(session, name, node, id),
            };
            links.push(id.ok_or("the broker allows no more links: use more pairs")?);
        }
        let mut waiting = links.len();
        while waiting > 0 {
            let answer = self.wait_for(|event| matches!(event, Event::AttachAnswered(..)));
            let Event::AttachAnswered(_, attach) = answer.await? else {
                continue;
            };
            let refused = match attach.role {
                // As the peer sees it, and so it is from the engine's side.
                LinkRole::Outgoing => attach.target == LinkTarget::Node(None),
                LinkRole::Incoming => attach.source.is_none(),
            };
            if refused {
                self.wait_for(|_| false).await?;
            }
            waiting -= 1;
        }
        Ok(links)
    }

    /// The protocol's state, for commands.
    pub(super) fn engine(&mut self) -> &mut Connection {
        &mut self.engine
    }

    /// Works until it is done. When all is finished the work is looked at once more.
    pub(super) async fn run(
        &mut self,
        work: &mut impl Work,
        finished: &mut Finished,
    ) -> Result<(), String> {
        loop {
            while let Some(event) = self.engine.poll_event() {
                check(&event)?;
                work.handle(&mut self.engine, event)?;
            }
            let turn = work.turn(&mut self.engine);
            self.write()?;
            match turn {
                Turn::Done if self.output.is_empty() => return Ok(()),
                Turn::Again if self.output.is_empty() => {
                    self.read()?;
                    tokio::task::yield_now().await;
                }
                Turn::Done | Turn::Again | Turn::Wait => self.wait(None, Some(finished)).await?,
                Turn::Until(at) => self.wait(Some(at), Some(finished)).await?,
            }
        }
    }

    /// Keeps the connection alive for as long as the future takes.
    pub(super) async fn hold(&mut self) -> Result<(), String> {
        self.wait_for(|_| false).await.map(drop)
    }

    /// Closes the connection in order.
    pub(super) async fn close(mut self) -> Result<(), String> {
        self.engine.close(self.clock.elapsed(), None);
        while !self.engine.is_finished() {
            while self.engine.poll_event().is_some() {}
            self.write()?;
            self.wait(None, None).await?;
        }
        Ok(())
    }

    /// Waits for an event; those before it are passed over.
    pub(super) async fn wait_for(
        &mut self,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event, String> {
        loop {
            while let Some(event) = self.engine.poll_event() {
                check(&event)?;
                if wanted(&event) {
                    return Ok(event);
                }
            }
            self.write()?;
            self.wait(None, None).await?;
        }
    }

    /// Writes what there is, as far as the socket takes it.
    pub(super) fn write(&mut self) -> Result<(), String> {
        self.engine
            .take_output(self.clock.elapsed(), &mut self.output);
        while !self.output.is_empty() {
            match self.stream.try_write(&self.output) {
                Ok(count) => self.output.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// Takes what has come.
    fn read(&mut self) -> Result<(), String> {
        self.input.reserve(READ_BYTES);
        match self.stream.try_read_buf(&mut self.input) {
            Ok(0) => self.engine.handle_eof(self.clock.elapsed()),
            Ok(_) => self
                .engine
                .handle_bytes(self.clock.elapsed(), &mut self.input),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(lost(error)),
        }
        Ok(())
    }

    /// Waits until something can be read or written, is due, or everything is finished.
    async fn wait(
        &mut self,
        at: Option<Instant>,
        finished: Option<&mut Finished>,
    ) -> Result<(), String> {
        if self.engine.is_held() {
            self.engine.handle_bytes(self.clock.now(), &mut self.input);
            return Ok(());
        }
        let interest = if self.output.is_empty() {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        let due = self.engine.poll_timeout();
        let due = due.map_or(Duration::MAX, |due| self.clock.until_elapsed(due));
        let due = due.min(Duration::from_hours(1));
        tokio::select! {
            ready = self.stream.ready(interest) => {
                if ready.map_err(lost)?.is_readable() {
                    self.read()?;
                }
            }
            // What is not there is not waited for.
            waited = async { self.pace.until(at?).await.into() }, if at.is_some() => {
                if let Some(Err(error)) = waited {
                    return Err(format!("cannot wait: {error}"));
                }
            }
            () = async {
                if let Some(finished) = finished {
                    finished.wait().await;
                } else {
                    std::future::pending::<()>().await;
                }
            } => {}
            () = tokio::time::sleep(due) => self.engine.handle_timeout(self.clock.elapsed()),
        }
        Ok(())
    }
}

async fn connect(peer: &Peer) -> Result<TcpStream, String> {
    let began = Instant::now();
    loop {
        match TcpStream::connect(peer.broker).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                if peer.patience <= began.elapsed() {
                    return Err(format!("nobody listens at {}", peer.broker));
                }
                tokio::time::sleep(TRY).await;
            }
            Err(error) => return Err(format!("cannot connect to {}: {error}", peer.broker)),
        }
    }
}

fn lost(error: std::io::Error) -> String {
    format!("the connection was lost: {error}")
}

/// What ends a run whatever is being done.
fn check(event: &Event) -> Result<(), String> {
    match event {
        Event::Detached { error, .. } | Event::Closed { error, .. } => Err(match error {
            Some(error) => format!("the broker ended: {}", error.description),
            None => "the broker ended the link or the connection".to_owned(),
        }),
        Event::Authenticating { .. }
        | Event::Opened { .. }
        | Event::AttachRequested(..)
        | Event::AttachAnswered(..)
        | Event::Transfer { .. }
        | Event::RefusedInTransaction { .. }
        | Event::Credit { .. }
        | Event::Unsent { .. }
        | Event::Disposition { .. } => Ok(()),
    }
}
