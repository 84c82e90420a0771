//! A client's connection with one link, driven until its work is done.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::amqp::{Config, Connection, Event, Identity, LinkId, LinkRole, LinkTarget, SettleMode};
use crate::limits;
use crate::shell::clock::Clock;
use crate::time::Timestamp;

/// What is done with a link, told of each event on it.
pub(super) trait Work {
    /// Reacts to an event; an error ends the run.
    fn handle(&mut self, engine: &mut Connection, link: LinkId, event: Event)
    -> Result<(), String>;

    /// Does what can be done now; returns when it wants to be called again without an event.
    fn turn(&mut self, engine: &mut Connection, link: LinkId) -> Option<Duration>;

    /// Returns whether everything is done.
    fn is_done(&self) -> bool;
}

/// A link on a connection of its own.
pub(super) struct Client {
    stream: TcpStream,
    engine: Connection,
    clock: Clock,
    link: LinkId,
    input: BytesMut,
    output: BytesMut,
}

const READ_BYTES: usize = 128 * 1024;

impl Client {
    /// Connects, and attaches a link of this role to a node.
    pub(super) async fn attach(
        broker: SocketAddr,
        identity: Identity,
        role: LinkRole,
        node: &str,
        name: &str,
    ) -> Result<Self, String> {
        let stream = TcpStream::connect(broker).await;
        let stream = stream.map_err(|error| format!("cannot connect to {broker}: {error}"))?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        let clock = Clock::new(Timestamp::EPOCH);
        let config = Config {
            container_id: format!("jitney-bench-{name}"),
            hostname: Some(broker.ip().to_string()),
            frame_size_max: limits::FRAME_SIZE_MAX,
            channel_max: 0,
            handle_max: 0,
            idle_timeout: limits::IDLE_TIMEOUT,
            identity,
            has_certificate: false,
            trusts_peer: true,
        };
        let engine = Connection::client(config, clock.now());
        let (input, output) = (BytesMut::new(), BytesMut::new());
        let mut client = Self {
            stream,
            engine,
            clock,
            link: LinkId(0),
            input,
            output,
        };
        client
            .wait_for(|event| matches!(event, Event::Opened { .. }))
            .await?;
        let session = client
            .engine
            .begin()
            .ok_or("the broker allows no session")?;
        let link = client
            .engine
            .attach(session, name, role, node, SettleMode::OnReceipt);
        client.link = link.ok_or("the broker allows no link")?;
        let answer = client
            .wait_for(|event| matches!(event, Event::AttachAnswered(..)))
            .await?;
        if let Event::AttachAnswered(_, attach) = answer {
            let refused = match role {
                LinkRole::Outgoing => attach.target == LinkTarget::Node(None),
                LinkRole::Incoming => attach.source.is_none(),
            };
            if refused {
                client.wait_for(|_| false).await?;
            }
        }
        Ok(client)
    }

    /// Works until it is done.
    pub(super) async fn run(&mut self, work: &mut impl Work) -> Result<(), String> {
        loop {
            while let Some(event) = self.engine.poll_event() {
                check(&event)?;
                work.handle(&mut self.engine, self.link, event)?;
            }
            let wait = work.turn(&mut self.engine, self.link);
            self.exchange(wait, work.is_done()).await?;
            if work.is_done() && self.output.is_empty() {
                return Ok(());
            }
        }
    }

    /// Closes the connection in order.
    pub(super) async fn close(mut self) -> Result<(), String> {
        self.engine.close(self.clock.now(), None);
        while !self.engine.is_finished() {
            self.exchange(None, false).await?;
        }
        Ok(())
    }

    async fn wait_for(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Event, String> {
        loop {
            while let Some(event) = self.engine.poll_event() {
                check(&event)?;
                if wanted(&event) {
                    return Ok(event);
                }
            }
            self.exchange(None, false).await?;
        }
    }

    /// Writes what there is, and reads what comes, or waits for it.
    async fn exchange(&mut self, wait: Option<Duration>, done: bool) -> Result<(), String> {
        let lost = |error: std::io::Error| format!("the connection was lost: {error}");
        self.engine.take_output(self.clock.now(), &mut self.output);
        while !self.output.is_empty() {
            match self.stream.try_write(&self.output) {
                Ok(count) => self.output.advance(count),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(lost(error)),
            }
        }
        if done && self.output.is_empty() {
            return Ok(());
        }
        let interest = if self.output.is_empty() {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        let ready = match wait {
            None => self.stream.ready(interest).await.map_err(lost)?,
            Some(wait) => match tokio::time::timeout(wait, self.stream.ready(interest)).await {
                Ok(ready) => ready.map_err(lost)?,
                Err(_) => return Ok(()),
            },
        };
        if ready.is_readable() {
            self.input.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => self.engine.handle_eof(self.clock.now()),
                Ok(_) => self.engine.handle_bytes(self.clock.now(), &mut self.input),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }
}

/// What ends a run whatever is being done.
fn check(event: &Event) -> Result<(), String> {
    match event {
        Event::Detached { error, .. } | Event::Closed { error } => Err(match error {
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
        | Event::Disposition { .. } => Ok(()),
    }
}
