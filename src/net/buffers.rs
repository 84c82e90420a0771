//! The buffers of one connection: input that is not processed yet, and output.
//!
//! Their memory is reused while there is traffic, and freed when there is little: a new buffer's
//! pages cost more than the copy into them, and ten thousand idle connections must not keep one
//! each.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::poll_read_buf;

use crate::limits;

/// Input that is not processed yet.
#[derive(Debug, Default)]
pub(crate) struct InputBuffer {
    bytes: BytesMut,
    /// Bytes to read at a time, adapted to the last reads.
    wanted: usize,
}

impl InputBuffer {
    /// Reads available bytes, `most` at most; 0 at the end.
    pub(crate) fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let wanted = self
            .wanted
            .clamp(limits::INPUT_BYTES_MIN, limits::INPUT_BYTES)
            .min(most);
        self.bytes.reserve(wanted);
        let mut into = (&mut self.bytes).limit(most);
        let read = poll_read_buf(Pin::new(stream), cx, &mut into);
        if let Poll::Ready(Ok(count)) = read {
            self.wanted = if wanted <= count {
                limits::INPUT_BYTES
            } else if count < wanted / 8 {
                wanted / 2
            } else {
                wanted
            };
        }
        read
    }

    /// Returns how many bytes are not processed yet.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Frees memory: there was no input for a while.
    pub(crate) fn rest(&mut self) {
        self.wanted = limits::INPUT_BYTES_MIN;
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Returns the input, from which whole frames are taken.
    pub(crate) fn bytes(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }
}

/// Output.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffer {
    bytes: BytesMut,
    /// How many of them are written.
    written: usize,
    /// Bytes that are written at a time, about: the most of the last times.
    typical: usize,
    /// Bytes were written that the stream may have buffered.
    needs_flush: bool,
}

impl OutputBuffer {
    /// Returns the bytes that wait to be written, to append to.
    pub(crate) fn bytes(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Returns how many bytes wait to be written.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether all is written and flushed.
    pub(crate) fn is_flushed(&self) -> bool {
        self.is_empty() && !self.needs_flush
    }

    /// Writes as much as the stream takes.
    pub(crate) fn poll_write(
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
        self.typical = self.written.max(self.typical - self.typical / 16);
        if self.typical.max(limits::OUTPUT_KEPT_BYTES) * 8 < self.bytes.capacity() {
            self.bytes = BytesMut::new();
        }
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }
}
