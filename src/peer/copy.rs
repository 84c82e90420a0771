//! Bytes between a client and the server that has its namespace.
//!
//! A connection that is passed on takes a slot for each of its two sockets, so both must end soon after one of the two peers has:
//! - The client may end its output first. Then it gets the last answers for a bounded time.
//! - The other server closes a connection, and no longer reads from it: then the client's is closed, too, as a direct one would be.
//! - What a peer does not read blocks the bytes behind it, the end of the other peer among them. A server that closes resets a
//!   connection whose bytes are not taken ([`crate::amqp::connection`]), and a look at the socket finds that.

use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::client::TlsStream;
use tracing::debug;

use crate::limits;

/// How long the peers of a connection that is passed on may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyWaits {
    /// For the rest, when one of them has ended.
    last: Duration,
    /// Between looks at bytes that a peer does not read.
    look: Duration,
    /// Without reading any of them.
    unread: Duration,
}

impl CopyWaits {
    pub(super) const fn new() -> Self {
        Self {
            last: limits::LAST_WRITE_WAIT.as_duration(),
            look: limits::LAST_WRITE_PAUSE.as_duration(),
            unread: limits::SPLICE_UNREAD_WAIT.as_duration(),
        }
    }
}

/// A connection to another server.
pub(super) trait ServerStream: AsyncRead + AsyncWrite + Unpin {
    /// Returns whether the server has closed the connection, as far as that is known without reading the bytes before.
    fn is_closed(&self) -> bool;
}

impl ServerStream for TlsStream<TcpStream> {
    fn is_closed(&self) -> bool {
        let (socket, _) = self.get_ref();
        let ready = pin!(socket.ready(Interest::READABLE));
        match ready.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }
}

/// Copies bytes in both directions until both peers have ended, or the other server has.
///
/// # Errors
///
/// A peer is lost; or it has not taken the last bytes, or any bytes, in time.
pub(super) async fn copy(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    server: &mut impl ServerStream,
    waits: CopyWaits,
) -> io::Result<()> {
    let mut copying = Copying::new(waits);
    loop {
        let deadline = copying.deadline();
        let is_due = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            has_ended = std::future::poll_fn(|cx| copying.poll_copy(cx, client, server)) => {
                if has_ended? {
                    return Ok(());
                }
            }
            () = is_due => copying.look(Instant::now(), server)?,
        }
    }
}

/// The state of both directions.
struct Copying {
    waits: CopyWaits,
    to_server: CopyDirection,
    to_client: CopyDirection,
    /// When the time for the rest is over, once a peer has ended.
    ends_at: Option<Instant>,
    /// When to look at bytes that a peer does not read; none if there were no such bytes at the last look.
    looks_at: Option<Instant>,
}

impl Copying {
    fn new(waits: CopyWaits) -> Self {
        Self {
            waits,
            to_server: CopyDirection::new(),
            to_client: CopyDirection::new(),
            ends_at: None,
            looks_at: None,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.ends_at.into_iter().chain(self.looks_at).min()
    }

    /// Copies what there is. Ready with whether the connection has ended, or when there is another deadline.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut (impl AsyncRead + AsyncWrite + Unpin),
        server: &mut impl ServerStream,
    ) -> Poll<io::Result<bool>> {
        if let Poll::Ready(Err(error)) = self.to_server.poll_copy(cx, client, server) {
            // The server's last bytes may say why it has closed the connection.
            debug!(%error, "a server takes no more of a connection that is passed on");
            self.to_server.end();
        }
        ready_error(self.to_client.poll_copy(cx, server, client))?;
        if self.to_client.stage == Stage::Ended {
            return Poll::Ready(Ok(true));
        }
        let has_ended = [&self.to_server, &self.to_client].map(|it| it.stage != Stage::Copies);
        if self.ends_at.is_none() && has_ended.contains(&true) {
            self.ends_at = Some(Instant::now() + self.waits.last);
            return Poll::Ready(Ok(false));
        }
        if self.looks_at.is_none() && self.waits_for_reader() {
            self.looks_at = Some(Instant::now() + self.waits.look);
            return Poll::Ready(Ok(false));
        }
        Poll::Pending
    }

    fn waits_for_reader(&self) -> bool {
        self.to_server.has_unwritten() || self.to_client.has_unwritten()
    }

    /// Looks whether peers read at all, and whether the server has closed the connection behind bytes that the client does not read.
    ///
    /// # Errors
    ///
    /// The time of a peer is over.
    fn look(&mut self, now: Instant, server: &impl ServerStream) -> io::Result<()> {
        let is_stuck = [&mut self.to_server, &mut self.to_client]
            .map(|direction| direction.is_stuck(now, self.waits.unread));
        if is_stuck.contains(&true) || self.ends_at.is_some_and(|ends_at| ends_at <= now) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.to_client.has_unwritten() && server.is_closed() {
            self.ends_at = self.ends_at.or_else(|| Some(now + self.waits.last));
        }
        self.looks_at = self.waits_for_reader().then(|| now + self.waits.look);
        Ok(())
    }
}

fn ready_error(polled: Poll<io::Result<()>>) -> io::Result<()> {
    match polled {
        Poll::Ready(done) => done,
        Poll::Pending => Ok(()),
    }
}

/// How far a direction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Copies,
    /// Its source has ended, and all bytes are written.
    Ends,
    /// Its target knows that.
    Ended,
}

/// One direction, and the bytes that are in memory.
struct CopyDirection {
    buffer: Box<[u8]>,
    /// Those of the buffer that are not written yet.
    unwritten: Range<usize>,
    /// The target may have bytes in a buffer of its own.
    needs_flush: bool,
    stage: Stage,
    /// Bytes were written since the last look.
    has_moved: bool,
    /// The look since which none were.
    stuck_since: Option<Instant>,
}

impl CopyDirection {
    fn new() -> Self {
        Self {
            buffer: vec![0; limits::SPLICE_BUFFER_BYTES].into(),
            unwritten: 0..0,
            needs_flush: false,
            stage: Stage::Copies,
            has_moved: false,
            stuck_since: None,
        }
    }

    /// Copies what there is. Ready when the source has ended, and the target knows that.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut (impl AsyncRead + Unpin),
        target: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_write(cx, target))?;
            match self.stage {
                Stage::Copies => {
                    let mut buffer = ReadBuf::new(&mut self.buffer);
                    let read = Pin::new(&mut *source).poll_read(cx, &mut buffer)?;
                    if read.is_pending() {
                        self.poll_flush(cx, target)?;
                        return Poll::Pending;
                    }
                    self.unwritten = 0..buffer.filled().len();
                    if self.unwritten.is_empty() {
                        self.stage = Stage::Ends;
                    }
                }
                Stage::Ends => {
                    ready!(Pin::new(&mut *target).poll_shutdown(cx))?;
                    self.end();
                }
                Stage::Ended => return Poll::Ready(Ok(())),
            }
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        target: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while let Some(bytes) = self.buffer.get(self.unwritten.clone())
            && !bytes.is_empty()
        {
            let count = ready!(Pin::new(&mut *target).poll_write(cx, bytes))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unwritten.start += count;
            self.needs_flush = true;
            self.has_moved = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        target: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        if self.needs_flush
            && let Poll::Ready(flushed) = Pin::new(target).poll_flush(cx)
        {
            flushed?;
            self.needs_flush = false;
        }
        Ok(())
    }

    /// Forgets what is not written: the target takes no more.
    fn end(&mut self) {
        self.stage = Stage::Ended;
        self.unwritten = 0..0;
        self.needs_flush = false;
    }

    /// Returns whether there are bytes that the target does not take now.
    fn has_unwritten(&self) -> bool {
        self.needs_flush || !self.unwritten.is_empty()
    }

    /// Returns whether the target has taken no bytes for so long.
    fn is_stuck(&mut self, now: Instant, wait: Duration) -> bool {
        if std::mem::take(&mut self.has_moved) || !self.has_unwritten() {
            self.stuck_since = None;
        }
        if !self.has_unwritten() {
            return false;
        }
        let since = *self.stuck_since.get_or_insert(now);
        wait <= now.duration_since(since)
    }
}

#[cfg(test)]
mod tests;
