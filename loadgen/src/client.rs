//! An AMQP client connection: a TCP stream and the protocol engine.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use jitney_amqp::limits;
use jitney_amqp::{
    Config, Connection, Event, Identity, LinkId, LinkRole, LinkTarget, Refusal, SessionId,
    SettleMode,
};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::clock::Clock;
use crate::progress::Completion;
use crate::stream::{Stream, Trust};
use crate::timer::Timer;

/// Sends or receives over the links of one connection.
pub(crate) trait Driver {
    /// Handles an event of the engine. An error ends the run.
    fn handle_event(&mut self, engine: &mut Connection, event: Event) -> Result<(), String>;

    /// Issues the commands that are possible now.
    fn poll(&mut self, engine: &mut Connection) -> Next;
}

/// The condition on which a driver is polled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// None: the driver is finished.
    Finished,
    /// The output of the engine is written.
    OutputWritten,
    /// There is an event.
    Event,
    /// There is an event, or the time has come.
    EventOrTime(Instant),
}

/// The broker's address and the client's identity.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) broker: SocketAddr,
    /// Host name in the AMQP open.
    pub(crate) host: String,
    pub(crate) identity: Identity,
    /// With TLS, the certificates that the client trusts.
    pub(crate) trust: Option<Trust>,
    /// The client retries for this time while the broker refuses connections.
    pub(crate) connect_timeout: Duration,
}

/// A link to attach.
#[derive(Debug, Clone)]
pub(crate) struct LinkSpec {
    pub(crate) role: LinkRole,
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) message_session: Option<String>,
}

/// An open connection.
pub(crate) struct Client {
    stream: Stream,
    engine: Connection,
    clock: Clock,
    timer: Timer,
    input: BytesMut,
    output: BytesMut,
}

const READ_BYTES: usize = 128 * 1024;
/// The time between two attempts to connect.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

impl Client {
    /// Opens a connection.
    pub(crate) async fn open(endpoint: &Endpoint, name: &str) -> Result<Self, String> {
        let tcp = connect(endpoint).await?;
        let stream = Stream::new(tcp, endpoint.trust.as_ref(), &endpoint.host)?;
        let clock = Clock::start();
        let config = Config {
            container_id: format!("loadgen-{name}"),
            hostname: Some(endpoint.host.clone()),
            frame_size_max: limits::FRAME_SIZE_MAX,
            channel_max: limits::CHANNEL_MAX,
            handle_max: limits::HANDLE_MAX,
            idle_timeout: limits::IDLE_TIMEOUT,
            identity: endpoint.identity.clone(),
            has_certificate: false,
            trusts_peer: true,
            holds_open: false,
        };
        let engine = Connection::client(config, clock.elapsed());
        let mut client = Self {
            stream,
            engine,
            clock,
            timer: Timer::default(),
            input: BytesMut::new(),
            output: BytesMut::new(),
        };
        client
            .wait_for(|event| matches!(event, Event::Opened { .. }))
            .await?;
        Ok(client)
    }

    /// Begins a session.
    fn begin(&mut self) -> Result<SessionId, String> {
        let session = self.engine.begin();
        session.ok_or_else(|| "the broker allows no further session".to_owned())
    }

    /// Attaches links in one session, and returns when the broker has answered all of them.
    pub(crate) async fn attach(&mut self, specs: &[LinkSpec]) -> Result<Vec<LinkId>, String> {
        let session = self.begin()?;
        let mut links = Vec::with_capacity(specs.len());
        for link in specs {
            let (name, node) = (link.name.as_str(), link.node.as_str());
            let mode = SettleMode::OnReceipt;
            let id = match &link.message_session {
                None => self.engine.attach(session, name, link.role, node, mode),
                Some(id) => self.engine.attach_message_session(session, name, node, id),
            };
            links.push(
                id.ok_or("the broker allows no further link in this session: use more pairs")?,
            );
        }
        let mut waiting = links.len();
        while waiting > 0 {
            let answer = self.wait_for(|event| matches!(event, Event::AttachAnswered(..)));
            let Event::AttachAnswered(_, attach) = answer.await? else {
                continue;
            };
            let refused = match attach.role {
                LinkRole::Outgoing => attach.target == LinkTarget::Node(None),
                LinkRole::Incoming => attach.source.is_none(),
            };
            if refused {
                // The detach that follows has the error.
                self.wait_for(|_| false).await?;
            }
            waiting -= 1;
        }
        Ok(links)
    }

    /// Returns the protocol engine, for commands.
    pub(crate) fn engine(&mut self) -> &mut Connection {
        &mut self.engine
    }

    /// Runs a driver until it is finished. The driver is polled again when the load is complete.
    pub(crate) async fn run(
        &mut self,
        driver: &mut impl Driver,
        completion: &mut Completion,
    ) -> Result<(), String> {
        loop {
            while let Some(event) = self.engine.poll_event() {
                check(&event)?;
                driver.handle_event(&mut self.engine, event)?;
            }
            let next = driver.poll(&mut self.engine);
            self.write()?;
            match next {
                Next::Finished if self.output.is_empty() => return Ok(()),
                Next::OutputWritten if self.output.is_empty() => {
                    self.read()?;
                    tokio::task::yield_now().await;
                }
                Next::Finished | Next::OutputWritten | Next::Event => {
                    self.wait(None, Some(completion)).await?;
                }
                Next::EventOrTime(at) => self.wait(Some(at), Some(completion)).await?,
            }
        }
    }

    /// Keeps the connection open until it fails.
    pub(crate) async fn hold(&mut self) -> Result<(), String> {
        self.wait_for(|_| false).await.map(drop)
    }

    /// Closes the connection and waits for the broker's close.
    pub(crate) async fn close(mut self) -> Result<(), String> {
        self.engine.close(self.clock.elapsed(), None);
        while !self.engine.is_finished() {
            while self.engine.poll_event().is_some() {}
            self.write()?;
            self.wait(None, None).await?;
        }
        Ok(())
    }

    /// Waits for an event. Events before it are discarded.
    pub(crate) async fn wait_for(
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

    /// Writes the output of the engine until the socket would block.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        self.engine
            .take_output(self.clock.elapsed(), &mut self.output);
        while !self.output.is_empty() {
            match self.stream.try_write(&self.output) {
                Ok(count) => self.output.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(lost(error)),
            }
        }
        self.stream.flush().map_err(lost)
    }

    /// Reads the socket once and passes the bytes to the engine.
    fn read(&mut self) -> Result<(), String> {
        self.input.reserve(READ_BYTES);
        match self.stream.try_read(&mut self.input) {
            Ok(0) => self.engine.handle_eof(self.clock.elapsed()),
            Ok(_) => self
                .engine
                .handle_bytes(self.clock.elapsed(), &mut self.input),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(lost(error)),
        }
        Ok(())
    }

    /// Waits until the socket is ready, a time has come, or the load is complete.
    async fn wait(
        &mut self,
        at: Option<Instant>,
        completion: Option<&mut Completion>,
    ) -> Result<(), String> {
        if self.engine.is_held() {
            self.engine
                .handle_bytes(self.clock.elapsed(), &mut self.input);
            return Ok(());
        }
        let due = self.engine.poll_timeout();
        let due = due.map_or(Duration::MAX, |due| self.clock.until(due));
        let due = due.min(Duration::from_hours(1));
        let interest = if self.output.is_empty() {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        tokio::select! {
            ready = self.stream.ready(interest) => {
                if ready.map_err(lost)? {
                    self.read()?;
                }
            }
            waited = async { self.timer.until(at?).await.into() }, if at.is_some() => {
                if let Some(Err(error)) = waited {
                    return Err(format!("the timer failed: {error}"));
                }
            }
            () = async {
                if let Some(completion) = completion {
                    completion.wait().await;
                } else {
                    std::future::pending::<()>().await;
                }
            } => {}
            () = tokio::time::sleep(due) => self.engine.handle_timeout(self.clock.elapsed()),
        }
        Ok(())
    }
}

async fn connect(endpoint: &Endpoint) -> Result<TcpStream, String> {
    let started = Instant::now();
    loop {
        match TcpStream::connect(endpoint.broker).await {
            Ok(stream) if !is_self_connected(&stream) => return Ok(stream),
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                return Err(format!("cannot connect to {}: {error}", endpoint.broker));
            }
            Ok(_) | Err(_) => {}
        }
        if endpoint.connect_timeout <= started.elapsed() {
            return Err(format!("{} refuses connections", endpoint.broker));
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Returns whether a connection is one to itself. Where nothing listens on a port that the system also gives to clients,
/// a connection can get that port for its own end. It would keep the broker from listening there.
fn is_self_connected(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

fn lost(error: std::io::Error) -> String {
    format!("the connection was lost: {error}")
}

/// Returns an error if the broker has detached a link or closed the connection.
fn check(event: &Event) -> Result<(), String> {
    let reason = |error: &Option<Refusal>| match error {
        Some(error) => format!(": {}", error.description),
        None => String::new(),
    };
    match event {
        Event::Detached { error, .. } => {
            Err(format!("the broker detached a link{}", reason(error)))
        }
        Event::Closed { error, .. } => Err(format!("the connection was closed{}", reason(error))),
        Event::Authenticating { .. }
        | Event::Opened { .. }
        | Event::AttachRequested(..)
        | Event::AttachAnswered(..)
        | Event::Transfer(_)
        | Event::RefusedInTransaction { .. }
        | Event::Credit(_)
        | Event::Unsent { .. }
        | Event::Disposition(_) => Ok(()),
    }
}
