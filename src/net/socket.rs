//! A TCP socket that can go from one runtime to another: it is accepted by the runtime that all share, and
//! served by that of its shard.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::unauthenticated::{Direction, Meter};
use super::websocket::ByteStream;

/// A stream that can carry a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns the socket, if the stream can be served by another runtime.
    fn socket(&mut self) -> Option<&mut Socket> {
        None
    }
}

impl Stream for Socket {
    fn socket(&mut self) -> Option<&mut Socket> {
        Some(self)
    }
}

impl Stream for TlsStream<Socket> {
    fn socket(&mut self) -> Option<&mut Socket> {
        Some(self.get_mut().0)
    }
}

/// The HTTP library has the socket.
impl Stream for ByteStream {}

#[cfg(test)]
impl Stream for tokio::io::DuplexStream {}

/// A TCP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    /// None after it could not be registered with another runtime.
    stream: Option<TcpStream>,
    /// Counts its bytes while the peer is unauthenticated.
    meter: Option<Meter>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Some(stream),
            meter: None,
        }
    }

    /// Lets its bytes be counted until the peer is authorized.
    pub(crate) fn count_with(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// Returns what counts its bytes; none if the peer is authorized.
    fn meter(&mut self) -> Option<&Meter> {
        self.meter.take_if(|meter| meter.is_over());
        self.meter.as_ref()
    }

    /// Registers the socket with the runtime of the caller, and no longer with the one before. From then on, the
    /// caller's runtime wakes the task that reads or writes the socket.
    ///
    /// # Errors
    ///
    /// Those of the system. The socket is closed then.
    pub(crate) fn enter_runtime(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream.take() {
            self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
        }
        Ok(())
    }

    /// Lets the socket be reset when it is closed: the system forgets the bytes that its peer has not taken.
    pub(crate) fn reset_when_closed(&self) {
        if let Some(stream) = &self.stream {
            // A socket on which this fails is lost already.
            let _ = stream.set_zero_linger();
        }
    }

    fn count_written(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.written(bytes);
        }
    }

    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        let stream = self.get_mut().stream.as_mut();
        Ok(Pin::new(stream.ok_or(io::ErrorKind::NotConnected)?))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(meter) = self.meter() {
            meter.watch(Direction::Read, cx)?;
        }
        let before = buffer.filled().len();
        ready!(self.as_mut().stream()?.poll_read(cx, buffer))?;
        if let Some(meter) = &self.meter {
            meter.read(buffer.filled().len() - before)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(meter) = self.meter() {
            meter.watch(Direction::Write, cx)?;
        }
        let count = ready!(self.as_mut().stream()?.poll_write(cx, bytes))?;
        self.count_written(count);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(meter) = self.meter() {
            meter.watch(Direction::Write, cx)?;
        }
        let count = ready!(self.as_mut().stream()?.poll_write_vectored(cx, parts))?;
        self.count_written(count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::system::runtime::ShardRuntime;

    #[tokio::test]
    async fn a_socket_is_served_by_another_runtime() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let mut socket = Socket::new(listener.accept().await.unwrap().0);
        let mut bytes = [0; 5];
        peer.write_all(b"first").await.unwrap();
        socket.read_exact(&mut bytes).await.unwrap();
        // These wait in the socket while it moves.
        peer.write_all(b"later").await.unwrap();
        let other = ShardRuntime::start().unwrap();
        let served = other.handle().spawn(async move {
            socket.enter_runtime().unwrap();
            for _ in 0..2 {
                let mut bytes = [0; 5];
                socket.read_exact(&mut bytes).await.unwrap();
                socket.write_all(&bytes).await.unwrap();
            }
        });
        for word in [b"later", b"third"] {
            if word == b"third" {
                peer.write_all(word).await.unwrap();
            }
            peer.read_exact(&mut bytes).await.unwrap();
            assert_eq!(&bytes, word);
        }
        served.await.unwrap();
    }
}
