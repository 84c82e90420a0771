//! The buffers of one connection: what came and is not yet understood, and what is to be sent.
//!
//! Their memory is used again and again while there is traffic, and given back when there is little:
//! a new buffer's pages cost more than what is copied into them, and ten thousand idle connections
//! must not keep one each.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::poll_read_buf;

/// Bytes that are read at a time by a connection on which little comes.
const READ_BYTES_MIN: usize = 2 * 1024;
/// Bytes that are read at a time where much comes: enough for 60 messages of 1 KiB.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of memory for output that are kept while there is none.
const KEPT_BYTES: usize = 4 * 1024;

/// What was read and is not yet understood.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: BytesMut,
    /// Bytes to read at a time, as the last reads have shown.
    wanted: usize,
}

impl Incoming {
    /// Reads what there is, up to some bytes; 0 at the end.
    pub(super) fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let wanted = self.wanted.clamp(READ_BYTES_MIN, READ_BYTES);
        self.bytes.reserve(wanted);
        let read = poll_read_buf(Pin::new(stream), cx, &mut self.bytes);
        if let Poll::Ready(Ok(count)) = read {
            self.wanted = if wanted <= count {
                READ_BYTES
            } else if count < wanted / 8 {
                wanted / 2
            } else {
                wanted
            };
        }
        read
    }

    /// Gives memory back: nothing has come for a while.
    pub(super) fn rest(&mut self) {
        self.wanted = READ_BYTES_MIN;
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Returns what was read, from which whole frames are taken.
    pub(super) fn bytes(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }
}

/// What is to be sent.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: BytesMut,
    /// How many of them are written.
    written: usize,
    /// Bytes that are written at a time, about: the most of the last times.
    usual: usize,
    /// Bytes were written that the stream may hold back.
    needs_flush: bool,
}

impl Output {
    /// Returns the bytes that wait to be written, to which more are added.
    pub(super) fn bytes(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Returns how many bytes wait to be written.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether all is written, and held back by nobody here.
    pub(super) fn is_flushed(&self) -> bool {
        self.is_empty() && !self.needs_flush
    }

    /// Writes as much as the stream takes.
    pub(super) fn poll_write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let mut stream = Pin::new(stream);
        while let Some(rest) = self
            .bytes
            .get(self.written..)
            .filter(|rest| !rest.is_empty())
        {
            match stream.as_mut().poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.needs_flush = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        if self.needs_flush {
            let Poll::Ready(flushed) = stream.poll_flush(cx) else {
                return Ok(());
            };
            flushed?;
            self.needs_flush = false;
        }
        self.usual = self.written.max(self.usual - self.usual / 16);
        if self.usual.max(KEPT_BYTES) * 8 < self.bytes.capacity() {
            self.bytes = BytesMut::new();
        }
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }
}
