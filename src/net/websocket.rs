//! A WebSocket as a stream of bytes: AMQP's frames do not align with its messages
//! (`transport.md#websockets`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::{Buf as _, Bytes};
use futures_core::Stream as _;
use futures_sink::Sink as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits;

/// The bytes of the binary messages of a WebSocket.
pub(crate) struct ByteStream {
    socket: WebSocket,
    /// The rest of the last message.
    read: Bytes,
    /// The close frame was sent.
    has_closed: bool,
}

impl ByteStream {
    pub(crate) fn new(socket: WebSocket) -> Self {
        Self {
            socket,
            read: Bytes::new(),
            has_closed: false,
        }
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.read.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.read = bytes,
                Some(Ok(Message::Text(_))) => {
                    let text = "AMQP comes in binary messages";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        let count = self.read.len().min(buffer.remaining());
        let part = self.read.split_to(count);
        buffer.put_slice(part.chunk());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut socket = Pin::new(&mut self.socket);
        // Previous output is flushed: a TLS record must not end within the head of a message.
        ready!(socket.as_mut().poll_flush(cx)).map_err(io::Error::other)?;
        ready!(socket.as_mut().poll_ready(cx)).map_err(io::Error::other)?;
        let count = bytes.len().min(limits::WEBSOCKET_WRITE_BYTES);
        let part = bytes.get(..count).unwrap_or(bytes);
        let message = Message::Binary(Bytes::copy_from_slice(part));
        socket.start_send(message).map_err(io::Error::other)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket)
            .poll_flush(cx)
            .map_err(io::Error::other)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.has_closed {
            let mut socket = Pin::new(&mut self.socket);
            ready!(socket.as_mut().poll_ready(cx)).map_err(io::Error::other)?;
            // With a code: Java hangs after a close frame of two bytes.
            let close = CloseFrame {
                code: close_code::NORMAL,
                reason: Utf8Bytes::default(),
            };
            socket
                .start_send(Message::Close(Some(close)))
                .map_err(io::Error::other)?;
            self.has_closed = true;
        }
        Pin::new(&mut self.socket)
            .poll_close(cx)
            .map_err(io::Error::other)
    }
}
